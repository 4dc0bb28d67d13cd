"""Selectors on both sides: a case as a question to upstream, and answered by the simulator, and what differs."""

from __future__ import annotations

from time import perf_counter_ns

from autoscaler.cel.device import DeviceView
from autoscaler.cel.environment import View
from autoscaler.cel.outcome import CompileFailure, Outcome
from autoscaler.cel.program import compile_selector, estimated_cost
from autoscaler.kube.resource_slice import parse_resource_slice
from instance_catalog.resource_slice import ResourceSlice
from tests.oracle.selector_cases import text
from tests.oracle.upstream import Given, Json, Release

_OUTCOMES = {Outcome.TRUE: "true", Outcome.FALSE: "false", Outcome.ERROR: "runtime_error", Outcome.UNKNOWN: "unknown"}


def question(case: Json, release: Release) -> Json:
    """What upstream is asked. In 1.36 the allocator is not told about list attributes, the CEL environment is."""
    asked = {"expression": text(case["tree"]), "device": case["device"], "new": case["new"], "estimate": True}
    return {"select": asked, "features": {"ConsumableCapacity": True, "CELListTypeAttributes": case["lists"]}}


def simulated(case: Json, release: Release) -> Given:
    """What the simulator decides."""
    profile = release.profile.with_gates(list_type_attributes=case["lists"])
    view = View.NEW if case["new"] else View.STORED
    expression = text(case["tree"])
    parsed = _slice(case["device"])
    start = perf_counter_ns()
    program = compile_selector(expression, profile, view=view)
    if isinstance(program, CompileFailure):
        return Given({"outcome": "compile_error", "error": program.message}, perf_counter_ns() - start)
    evaluation = program.evaluate(DeviceView.of(parsed.driver, parsed.devices[0], profile))
    found: Json = {"outcome": _OUTCOMES[evaluation.outcome], "error": evaluation.message, "cost": evaluation.cost}
    spent = perf_counter_ns() - start
    return Given({**found, "estimate": estimated_cost(expression, profile, view=view)}, spent)


def difference(found: Json, expected: Json) -> str | None:
    """What differs between the simulator's answer and upstream's, or None."""
    if found["outcome"] != expected["outcome"]:
        return f"{found['outcome']} ({found.get('error')}) instead of {expected['outcome']} ({expected.get('error')})"
    if "estimate" in expected and found["estimate"] != expected["estimate"]:
        return f"estimate {found['estimate']} instead of {expected['estimate']}"
    if "cost" in expected and found["cost"] != expected["cost"]:
        return f"cost {found['cost']} instead of {expected['cost']}"
    return None


def _slice(device: Json) -> ResourceSlice:
    described = {key: value for key, value in device.items() if key != "driver"}
    return parse_resource_slice(
        {"spec": {"driver": device.get("driver", ""), "devices": [{"name": "device", **described}]}}
    )
