"""Every recorded expression ends as Kubernetes recorded it, at the cost Kubernetes recorded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from autoscaler.cel.common.outcome import CompileFailure
from autoscaler.cel.program import estimated_cost
from tests.unit.cel import corpus

CORPORA = ("corpus", "corpus-extra")
KNOWN_FAILURES = frozenset(
    line
    for line in (corpus.DATA / "known-failures.txt").read_text(encoding="utf-8").splitlines()
    if line and not line.startswith("#")
)


def _expected(case: Mapping[str, Any], line: str) -> tuple[str, int | None]:
    outcome = case.get("expected_in", {}).get(line, case["expected"])
    cost = case.get("runtime_cost")
    if line == "1.37":
        cost = case.get("runtime_cost_1_37", cost)
    # A line with an outcome of its own has no recorded cost, and map order makes some costs vary.
    comparable = isinstance(cost, int) and (
        line == "1.37" or outcome == case["expected"] != "runtime_error" or line == "1.36"
    )
    return outcome, cost if comparable and outcome != "compile_error" else None


def _result(name: str, case: Mapping[str, Any], line: str) -> tuple[str, int | None]:
    features = case.get("features", {})
    lists = line == "1.37" or (line == "1.36" and features.get("allow_list_attributes", False))
    target = corpus.device(name, case["device"], lists=lists)
    return corpus.run(case["expr"], target, corpus.profile(line, features), corpus.case_view(case))


def _agrees(name: str, case: Mapping[str, Any], line: str) -> bool:
    outcome, cost = _expected(case, line)
    found, found_cost = _result(name, case, line)
    return found == outcome and (cost is None or found_cost == cost)


@pytest.mark.parametrize(
    ("name", "case"),
    [pytest.param(name, case, id=case["id"]) for name in CORPORA for case in corpus.load(name)["cases"]],
)
def test_case_on_the_reference_version(name: str, case: Mapping[str, Any]) -> None:
    outcome, cost = _expected(case, "1.36")
    found, found_cost = _result(name, case, "1.36")
    if case["id"] in KNOWN_FAILURES:
        assert not _agrees(name, case, "1.36"), "passes now: remove it from known-failures.txt"
        return
    assert found == outcome, case["expr"]
    if cost is not None:
        assert found_cost == cost, case["expr"]


@pytest.mark.slow
@pytest.mark.parametrize("name", CORPORA)
@pytest.mark.parametrize("line", ["1.34-1.35", "1.37"])
def test_other_release_lines(name: str, line: str) -> None:
    cases = corpus.load(name)["cases"]
    wrong = {case["id"] for case in cases if not _agrees(name, case, line)}
    assert wrong == KNOWN_FAILURES & {case["id"] for case in cases}


@pytest.mark.slow
@pytest.mark.parametrize("name", CORPORA)
@pytest.mark.parametrize("line", ["1.36", "1.37"])
def test_static_worst_case(name: str, line: str) -> None:
    wrong, compared = {}, 0
    for case in corpus.load(name)["cases"]:
        expected = case.get("estimated_max_cost")
        if line == "1.37":
            expected = case.get("estimated_max_cost_1_37", expected)
        profile = corpus.profile(line, case.get("features", {}))
        found = estimated_cost(case["expr"], profile, view=corpus.case_view(case))
        if expected is None or isinstance(found, CompileFailure):
            continue
        compared += 1
        if found != expected:
            wrong[case["id"]] = (expected, found)
    assert wrong == {}
    assert compared > 600


@pytest.mark.parametrize("name", CORPORA)
def test_the_corpora_are_complete(name: str) -> None:
    loaded = corpus.load(name)
    assert len(loaded["cases"]) == loaded["meta"]["count"] == {"corpus": 852, "corpus-extra": 1230}[name]


@pytest.mark.slow
@pytest.mark.parametrize("part", range(10))
def test_random_expressions(part: int) -> None:
    wrong = []
    for case in corpus.fuzz_cases()[part::10]:
        lists = case["list_attributes"]
        found, cost = corpus.run(
            case["expr"],
            corpus.device("corpus", case["device"], lists=lists),
            corpus.profile("1.36", {"allow_list_attributes": lists}),
            corpus.View.STORED,
        )
        if found != case["expected"] or (isinstance(case["cost"], int) and cost != case["cost"]):
            wrong.append((case, found, cost))
    assert wrong == []


def test_random_expressions_that_differ_in_1_37() -> None:
    differing = [case for case in corpus.fuzz_cases() if "expected_1_37" in case or "cost_1_37" in case]
    assert len(differing) > 100
    for case in differing:
        found, cost = corpus.run(
            case["expr"],
            corpus.device("corpus", case["device"], lists=True),
            corpus.profile("1.37", {"allow_list_attributes": case["list_attributes"]}),
            corpus.View.STORED,
        )
        assert found == case.get("expected_1_37", case["expected"]), case["expr"]
        expected = case.get("cost_1_37", case["cost"])
        assert not isinstance(expected, int) or cost == expected, case["expr"]
