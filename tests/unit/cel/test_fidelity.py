"""Cases that outsiders found, with the answers of upstream's own code (tests/oracle/go; Go 1.26.8)."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import pytest

from autoscaler.cel.checker.environment import View
from autoscaler.cel.common.outcome import CompileFailure, Outcome
from autoscaler.cel.interpreter.device import DeviceView
from autoscaler.cel.program import DEFECT, compile_selector, estimated_cost
from autoscaler.kube.resource_slice import parse_resource_slice
from instance_catalog.kubernetes.profile import KubernetesProfile, profile_for
from instance_catalog.kubernetes.resource_slice import ResourceSlice
from tests.unit.cel.corpus import DATA

RELEASES = {"1.36": profile_for("1.36.3"), "1.37": profile_for("1.37.2")}
_OUTCOMES = {Outcome.TRUE: "true", Outcome.FALSE: "false", Outcome.ERROR: "runtime_error"}


@cache
def recorded() -> tuple[ResourceSlice, tuple[dict[str, Any], ...]]:
    """The device of all cases, and the cases."""
    first, *cases = map(json.loads, (DATA / "fidelity.jsonl").read_text(encoding="utf-8").splitlines())
    described = {key: value for key, value in first["device"].items() if key != "driver"}
    spec = {"driver": first["device"]["driver"], "devices": [{"name": "device", **described}]}
    return parse_resource_slice({"spec": spec}), tuple(cases)


def answer(expression: str, profile: KubernetesProfile) -> dict[str, Any]:
    piece, _ = recorded()
    program = compile_selector(expression, profile, view=View.STORED)
    if isinstance(program, CompileFailure):
        return {"outcome": "compile_error"}
    found = program.evaluate(DeviceView.of(piece.driver, piece.devices[0], profile))
    if found.outcome is Outcome.UNKNOWN:
        assert DEFECT not in found.message, found.message
        return {"outcome": "unknown"}
    estimate = estimated_cost(expression, profile, view=View.STORED)
    return {"outcome": _OUTCOMES[found.outcome], "cost": found.cost, "estimate": estimate}


SORTS = list(dict.fromkeys(case["sort"] for case in recorded()[1]))


@pytest.mark.slow
@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("sort", SORTS)
def test_upstream_answers_alike(sort: str, release: str) -> None:
    different = []
    for case in recorded()[1]:
        if case["sort"] != sort:
            continue
        found = answer(case["expression"], RELEASES[release])
        expected = {"outcome": "unknown"} if case.get("unknown") else case[release]
        if any(found.get(field) != value for field, value in expected.items()):
            different.append((case["expression"], found, expected))
    assert different == []


def test_every_sort_of_the_review_has_cases() -> None:
    assert {"messages", "quantities", "patterns", "urls", "parser", "estimate", "format", "time", "cost"} <= {*SORTS}
