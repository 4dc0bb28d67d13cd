"""YAML as Kubernetes reads it, JSON streams, lists; and texts that are out to break the reader."""

from __future__ import annotations

from typing import Any

import pytest

from autoscaler.manifests.document import Document
from autoscaler.manifests.documents import read_documents
from autoscaler.manifests.sources import Source
from instance_catalog.diagnostic import Diagnostic, Severity


def read(text: str, file: str = "f.yaml") -> list[Document | Diagnostic]:
    return list(read_documents(Source(file, text)))


def value(text: str) -> Any:
    (document,) = read(text)
    assert isinstance(document, Document), document
    return document.value


@pytest.mark.parametrize(
    ("scalar", "expected"),
    [
        ("1", 1),
        ("1_000", 1000),
        ("0x1f", 31),
        ("010", 8),
        ("0b11", 3),
        ("089", 89.0),
        ("0.5", 0.5),
        ("1e3", 1000.0),
        ("yes", True),
        ("n", False),
        ("~", None),
        ("2027-01-01", "2027-01-01"),
        ("1:30", "1:30"),
        ("0000:53:00.0", "0000:53:00.0"),
        ("40Gi", "40Gi"),
        ('"1"', "1"),
    ],
)
def test_scalars(scalar: str, expected: object) -> None:
    found = value(f"a: {scalar}")["a"]
    assert found == expected
    assert type(found) is type(expected)


def test_keys_become_text() -> None:
    assert value("80: a\ntrue: b\n1.5: c") == {"80": "a", "true": "b", "1.5": "c"}


def test_merge_keys_may_override() -> None:
    assert value("k: &x {a: 1, b: 2}\nl: {<<: *x, a: 3}") == {"k": {"a": 1, "b": 2}, "l": {"a": 3, "b": 2}}


def test_documents_keep_their_lines() -> None:
    found = read("# comment\n---\na: 1\n---\n---\nb:\n- c: 2\n- d\n")
    assert [(document.value, document.line) for document in found if isinstance(document, Document)] == [
        ({"a": 1}, 3),
        ({"b": [{"c": 2}, "d"]}, 6),
    ]
    last = found[-1]
    assert isinstance(last, Document)
    assert [last.locate(path) for path in ((), ("b",), ("b", 0, "c"), ("b", 1), ("b", 7), ("x",))] == [6, 6, 7, 8, 6, 6]


def test_positions_in_json() -> None:
    text = '\n{"a": 1}\n{"b": [1,\n {"c":\n 2}]}'
    found = read(text, "f.json")
    assert [(document.value, document.line) for document in found if isinstance(document, Document)] == [
        ({"a": 1}, 2),
        ({"b": [1, {"c": 2}]}, 3),
    ]
    last = found[-1]
    assert isinstance(last, Document)
    assert [last.locate(path) for path in ((), ("b", 1), ("b", 1, "c"), ("b", 0, "x"), ("z",))] == [3, 4, 4, 3, 3]


@pytest.mark.parametrize(
    "text",
    [
        '{"kind": "PodList", "apiVersion": "v1", "items": [{"metadata": {"name": "a"}}]}',
        "kind: PodList\napiVersion: v1\nitems:\n- metadata: {name: a}",
    ],
    ids=["JSON", "YAML"],
)
def test_items_of_typed_lists_get_their_kind(text: str) -> None:
    assert value(text) == {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}}


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("kind: List\nitems: [{kind: A}, {kind: List, items: [{kind: B}]}]", ["A", "B"]),
        ("kind: List\nitems:", []),
        ("kind: List\nitems: []", []),
        ("kind: PodList\nitems: null", []),
        ("base: &x {items: [{kind: A}]}\n<<: *x\nkind: List\nitems: [{kind: B}, {kind: C}]", ["B", "C"]),
        ("kind: AllowList\nspec: {}", ["AllowList"]),
    ],
    ids=["nested", "null", "empty", "a typed list, null", "a merged list that is overridden", "no list at all"],
)
def test_lists(text: str, names: list[str]) -> None:
    assert [one.value["kind"] for one in read(text) if isinstance(one, Document)] == names


def test_yaml_in_braces_is_yaml() -> None:
    assert value("{a: b, c: [d]}") == {"a": "b", "c": ["d"]}


BOMB = "a0: &a0 [x, x]\n" + "".join(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 9))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: &a [*a]", "nested too deeply"),
        (BOMB, "aliases (*name) make this document too large"),
        ("[" * 100_000, "nested too deeply"),
        ('{"a": ' * 100_000, "nested too deeply"),
        ("- " * 100_000, "nested too deeply"),
        ("a: !!binary aGk=", "could not determine a constructor"),
        ("a: !!python/object/apply:os.system [ls]", "could not determine a constructor"),
        ("? {a: b}\n: c", "unhashable key"),
        ("? ~\n: c", "a field name must be text"),
        ("a: " + "9" * 5000, "number too long"),
        ("a: 0x" + "f" * 5000, "number too long"),
        ("a: \x07", "control characters are not allowed"),
        ("a: b: c", "mapping values are not allowed"),
    ],
    ids=[
        "an alias of itself",
        "a bomb of aliases",
        "deep brackets",
        "deep JSON",
        "deep lists",
        "a binary",
        "a Python object",
        "an object as key",
        "nothing as key",
        "an endless number",
        "an endless hexadecimal number",
        "a control character",
        "two values",
    ],
)
def test_hostile_texts_are_problems(text: str, message: str) -> None:
    (problem,) = read(text)
    assert isinstance(problem, Diagnostic)
    assert message in problem.message
    assert problem.next_step


@pytest.mark.parametrize("text", ['{"a": 1, "a": 2}', "a: 1\na: 2", "a: 1\n<<: {a: 3}\n<<: {b: 4}\na: 2"])
def test_of_a_field_that_is_given_twice_the_last_one_counts(text: str) -> None:
    problem, document = read(text)
    assert isinstance(problem, Diagnostic)
    assert isinstance(document, Document)
    assert (problem.severity, "field 'a' is given twice" in problem.message) == (Severity.WARNING, True)
    assert document.value["a"] == 2


def test_fields_that_are_given_again_and_again_are_named_a_few_times() -> None:
    *problems, _ = read("a: 1\n" * 100)
    assert len(problems) == 20


def test_reading_goes_on_after_a_broken_document() -> None:
    found = read("a: 1\n---\nb: [\n---\nc: 3\n---\nd: }\n---\ne: 5")
    assert [one.line for one in found] == [1, 4, 5, 7, 9]
    assert [one.value for one in found if isinstance(one, Document)] == [{"a": 1}, {"c": 3}, {"e": 5}]
