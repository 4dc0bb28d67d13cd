"""Changes to the text of catalog files keep what a person wrote around them."""

from __future__ import annotations

import pytest

from instance_catalog.files.editing import (
    EditError,
    EntryName,
    Header,
    is_changed,
    new_document,
    only_changes,
    value_of,
    with_values,
)
from instance_catalog.files.yaml_text import read

P5 = EntryName("types", "p5.48xlarge")
MINE = """\
# Prices we negotiated.
reason: contract 4711   # see the folder
types:
  # the big one
  - name: p5.48xlarge
    vcpu: 190   # two are ours
    pci: {root: [pci0000:44, "0000:53:00.0"]}
"""


def test_values_are_set_and_comments_stay() -> None:
    text = with_values(MINE, P5, {("vcpu",): 180, ("allocatable", "memory"): "1Ti"}, Header(expires="2027-01-01"))
    assert read(text)["types"] == [
        {
            "name": "p5.48xlarge",
            "vcpu": 180,
            "pci": {"root": ["pci0000:44", "0000:53:00.0"]},
            "allocatable": {"memory": "1Ti"},
        }
    ]
    assert read(text)["expires"] == "2027-01-01"
    for comment in ("# Prices we negotiated.", "# see the folder", "# the big one", "# two are ours"):
        assert comment in text


def test_a_new_overlay_says_why_first() -> None:
    text = with_values("", P5, {("vcpu",): value_of("180")}, Header(reason="test", priority=3))
    assert text == "priority: 3\nreason: test\ntypes:\n  - name: p5.48xlarge\n    vcpu: 180\n"


def test_another_entry_of_the_file_stays() -> None:
    text = with_values(MINE, EntryName("types", "p4d.24xlarge"), {("vcpu",): 90}, Header())
    assert [entry["name"] for entry in read(text)["types"]] == ["p5.48xlarge", "p4d.24xlarge"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("31.50", 31.5),
        ("[spot, on-demand]", ["spot", "on-demand"]),
        ("{model: nvidia-h200, count: 8}", {"model": "nvidia-h200", "count": 8}),
        ("no", "no"),
        ("0000:53:00.0", "0000:53:00.0"),
        ("null", None),
    ],
)
def test_a_value_is_what_a_file_would_have(text: str, expected: object) -> None:
    assert value_of(text) == expected


BEFORE = {"name": "p5.48xlarge", "vcpu": 192, "fabric": {"link": "NVLink", "shape": "switch"}, "memory": "2Ti"}


@pytest.mark.parametrize(
    ("change", "left"),
    [
        pytest.param(("vcpu: 192", "vcpu: 190 # mine"), {"vcpu": 190}, id="a scalar"),
        pytest.param(("shape: switch", "shape: mesh"), {"fabric": {"shape": "mesh"}}, id="a field of a mapping"),
        pytest.param(("memory: 2Ti", "memory:"), {"memory": None}, id="unknown from now on"),
        pytest.param(("    memory: 2Ti\n", ""), {}, id="a deleted field stays as it was"),
        pytest.param(("memory: 2Ti", 'memory: "2Ti"'), {}, id="quotes are no change"),
        pytest.param(("memory: 2Ti", "memory: 2Ti\n    notes: [x]"), {"notes": ["x"]}, id="a new field"),
    ],
)
def test_only_what_changed_is_kept(change: tuple[str, str], left: dict[str, object]) -> None:
    text = new_document(P5, BEFORE)
    assert change[0] in text
    kept = only_changes(text.replace(*change), P5, BEFORE)
    assert read(kept)["types"] == [{"name": "p5.48xlarge", **left}]
    assert ("# mine" in kept) == ("# mine" in change[1])
    assert is_changed(kept, P5) == bool(left)
    assert kept.endswith("\n")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("types: [", r"line \d: .*; correct the YAML first"),
        ("- a", "not a mapping"),
        ("types: {a: 1}", "types is not a list"),
    ],
)
def test_text_that_cannot_be_changed_says_why(text: str, message: str) -> None:
    with pytest.raises(EditError, match=message):
        with_values(text, P5, {("vcpu",): 1}, Header())


def test_a_value_that_is_no_yaml_says_so() -> None:
    with pytest.raises(EditError, match="'\\[1' is no YAML value"):
        value_of("[1")
