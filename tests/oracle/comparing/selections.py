"""Selectors on both sides: a case as a question to upstream, and answered by the simulator, and what differs."""

from __future__ import annotations

from collections.abc import Iterator
from time import perf_counter_ns

from autoscaler.cel.checker.environment import View
from autoscaler.cel.common.outcome import CompileFailure, Evaluation, Outcome
from autoscaler.cel.interpreter.device import DeviceView
from autoscaler.cel.program import compile_selector, estimated_cost
from autoscaler.kube.resource_slice import parse_resource_slice
from instance_catalog.kubernetes.resource_slice import ResourceSlice
from tests.oracle.cases.selector_cases import text
from tests.oracle.comparing.difference import Difference, Field
from tests.oracle.upstream import Given, Json, Release

_OUTCOMES = {Outcome.TRUE: "true", Outcome.FALSE: "false", Outcome.ERROR: "runtime_error", Outcome.UNKNOWN: "unknown"}


def question(case: Json, release: Release) -> Json:
    """What upstream is asked. In 1.36 the allocator is not told about list attributes, the CEL environment is."""
    asked = {"expression": text(case["tree"]), "new": case["new"], "estimate": True}
    asked |= {"devices": case["devices"]} if case.get("devices") else {"device": case.get("device", {})}
    gates = release.profile.gates
    return {
        "select": asked,
        "features": {"ConsumableCapacity": gates.consumable_capacity, "CELListTypeAttributes": case["lists"]},
    }


def simulated(case: Json, release: Release) -> Given:
    """What the simulator decides, of all devices in order if there are several."""
    profile = release.profile.with_gates(list_type_attributes=case["lists"])
    view = View.NEW if case["new"] else View.STORED
    expression = text(case["tree"])
    parsed = [_slice(device) for device in case.get("devices") or [case.get("device", {})]]
    start = perf_counter_ns()
    program = compile_selector(expression, profile, view=view)
    if isinstance(program, CompileFailure):
        return Given({"outcome": "compile_error", "error": program.message}, perf_counter_ns() - start)
    answers = [_answer(program.evaluate(DeviceView.of(one.driver, one.devices[0], profile))) for one in parsed]
    spent = perf_counter_ns() - start
    found: Json = {"outcome": "decided", "answers": answers} if case.get("devices") else answers[0]
    return Given({**found, "estimate": estimated_cost(expression, profile, view=view)}, spent)


def _answer(evaluation: Evaluation) -> Json:
    return {"outcome": _OUTCOMES[evaluation.outcome], "error": evaluation.message, "cost": evaluation.cost}


def differences(found: Json, expected: Json) -> tuple[Difference, ...]:
    """What differs between the simulator's answer and upstream's, for every device."""
    return tuple(_differences(found, expected))


def _differences(found: Json, expected: Json) -> Iterator[Difference]:
    if found["outcome"] != expected["outcome"]:
        yield from _of_device(found, expected, "")
        return
    if "estimate" in expected and found["estimate"] != expected["estimate"]:
        yield Difference(Field.ESTIMATE, f"{found['estimate']} instead of {expected['estimate']}")
    if expected["outcome"] != "decided":
        yield from _of_device(found, expected, "")
        return
    for index, (ours, theirs) in enumerate(zip(found["answers"], expected["answers"], strict=True)):
        yield from _of_device(ours, theirs, f"device {index}")


def _of_device(found: Json, expected: Json, place: str) -> Iterator[Difference]:
    if found["outcome"] == "unknown":
        return  # not decided, and counted as such
    if found["outcome"] != expected["outcome"]:
        text = f"{found['outcome']} ({found.get('error')}) instead of {expected['outcome']} ({expected.get('error')})"
        yield Difference(Field.OUTCOME, text, place)
    elif "cost" in expected and found["cost"] != expected["cost"]:
        yield Difference(Field.COST, f"{found['cost']} instead of {expected['cost']}", place)


def _slice(device: Json) -> ResourceSlice:
    described = {key: value for key, value in device.items() if key != "driver"}
    return parse_resource_slice(
        {"spec": {"driver": device.get("driver", ""), "devices": [{"name": "device", **described}]}}
    )
