"""Paths as people write them, and values as they are told."""

from __future__ import annotations

import pytest

from autoscaler.kube.fields import Fields, describe
from autoscaler.kube.problem import PLACEHOLDER, UNREPLACED, Problems
from instance_catalog.diagnostic import Diagnostic, Path


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ((), ""),
        (("spec", "devices", "requests", 0, "exactly"), "spec.devices.requests[0].exactly"),
        (("metadata", "labels", "a.b/c"), "metadata.labels['a.b/c']"),
        (("a", "", "b"), "a[''].b"),
    ],
)
def test_paths(path: Path, text: str) -> None:
    assert Diagnostic("x", path=path).field == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "nothing"),
        (True, "true"),
        ({}, "an object"),
        ([], "a list"),
        ("a", "the string 'a'"),
        (1.5, "the number 1.5"),
        ("x" * 99, "the string '" + "x" * 56 + "..."),
    ],
)
def test_values_in_words(value: object, text: str) -> None:
    assert describe(value) == text


@pytest.mark.parametrize(
    ("value", "step"),
    [
        ("3", "write it without quotes"),
        (" 3.0 ", "write it without quotes"),
        ("three", "write a whole number; if a tool fills it in, run that tool first"),
        ("template-num-nodes", "write a whole number; if a tool fills it in, run that tool first"),
        ("${NODES}", UNREPLACED),
        ("<nodes>", PLACEHOLDER),
        ([3], ""),
    ],
)
def test_only_numbers_are_in_quotes_by_mistake(value: object, step: str) -> None:
    problems = Problems()
    Fields({"replicas": value}, problems).integer("replicas")
    assert [problem.next_step for problem in problems] == [step]


def test_only_true_and_false_are_in_quotes_by_mistake() -> None:
    problems = Problems()
    fields = Fields({"a": "true", "b": "maybe"}, problems)
    assert (fields.flag("a"), fields.flag("b")) == (False, False)
    assert [problem.next_step for problem in problems] == [
        "write it without quotes",
        "write true or false; if a tool fills it in, run that tool first",
    ]


def test_null_counts_as_absent() -> None:
    problems = Problems()
    fields = Fields({"a": None, "b": [None], "c": {"d": None}}, problems)
    assert (fields.text("a"), fields.integer("a", 7), fields.optional_child("a")) == ("", 7, None)
    assert list(fields.children("b")) == []
    assert fields.child("c").names() == ()
    assert fields.unread() == ()
    assert [problem.field for problem in problems] == ["b[0]"]


def test_what_is_not_read_is_unknown() -> None:
    problems = Problems()
    fields = Fields({"name": "a", "nmae": "b", "old": 1}, problems)
    fields.text("name")
    fields.ignore("old")
    assert fields.unread() == ("nmae",)
    (problem,) = problems
    assert (problem.field, problem.next_step) == ("nmae", "did you mean 'name'?")


@pytest.mark.parametrize(
    ("value", "expected"),
    [("2027-01-31T09:00:00Z", 1801386000.0), ("2027-01-31T09:00:00+01:00", 1801382400.0), ("soon", None), (7, None)],
)
def test_times(value: object, expected: float | None) -> None:
    problems = Problems()
    assert Fields({"at": value}, problems).epoch("at") == expected
    assert bool(len(problems)) == (expected is None)
