"""YAML as people mean it, and the lines that errors name."""

from __future__ import annotations

import pytest

from instance_catalog.diagnostic import Path
from instance_catalog.files.yaml_text import YamlTextError, contains, line_of, read


@pytest.mark.parametrize(
    ("scalar", "value"),
    [
        ("0000:53:00.0", "0000:53:00.0"),
        ("1:20", "1:20"),
        ("2026-08-03", "2026-08-03"),
        ("0.202", "0.202"),
        ("92.9375881512329", "92.9375881512329"),
        ("1e3", "1e3"),
        ("no", "no"),
        ("on", "on"),
        ("0x10", "0x10"),
        ("010", "010"),
        ("12", 12),
        ("-1", -1),
        ("true", True),
        ("null", None),
        ("~", None),
        ('"12"', "12"),
    ],
)
def test_scalars(scalar: str, value: object) -> None:
    read_value = read(f"key: {scalar}")["key"]
    assert read_value == value
    assert type(read_value) is type(value)


def test_nothing_after_a_key_is_null() -> None:
    assert read("key:\n") == {"key": None}


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("a: 1\nb: 2\na: 3\n", 3, "key 'a' is given twice"),
        ("x:\n  - {b: 1, b: 2}\n", 2, "key 'b' is given twice"),
        ("a: [1\nb: 2\n", 2, "while parsing a flow sequence"),
        ("a: !!python/name:os.system x\n", 1, "could not determine a constructor"),
        ("a: 1\n---\nb: 2\n", 2, "expected a single document"),
        ("a: \x00", 1, "control characters are not allowed"),
    ],
    ids=["twice", "twice in flow", "unclosed", "object", "two documents", "control character"],
)
def test_what_is_refused(text: str, line: int, message: str) -> None:
    with pytest.raises(YamlTextError, match=message) as caught:
        read(text)
    assert caught.value.line == line


TEXT = """\
cloud: aws
types:
  - name: a
    vcpu: 4
  - name: b
    pci:
      root: [x,
             y]
"""


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ((), 1),
        (("cloud",), 1),
        (("types",), 2),
        (("types", 0), 3),
        (("types", 0, "vcpu"), 4),
        (("types", 0, "missing"), 3),
        (("types", 1, "pci", "root", 1), 8),
        (("types", 7, "vcpu"), 2),
        (("nowhere", "at", "all"), 1),
    ],
    ids=lambda value: ".".join(map(str, value)) if isinstance(value, tuple) else None,
)
def test_lines(path: Path, line: int) -> None:
    assert line_of(TEXT, path) == line


def test_an_empty_text_has_one_line() -> None:
    assert line_of("", ("a",)) == 1


@pytest.mark.parametrize(
    ("path", "steps"),
    [((), 0), (("types", 1, "pci"), 3), (("types", 1, "x"), 2), (("types", 9), 1), (("cloud", 0, 0), 1)],
    ids=["root", "all", "most", "beyond a list", "into text"],
)
def test_how_much_of_a_path_exists(path: Path, steps: int) -> None:
    assert contains(read(TEXT), path) == steps
