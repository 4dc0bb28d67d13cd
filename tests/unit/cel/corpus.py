"""Loads the recorded cases and runs them: expression, device, profile → outcome and cost."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from autoscaler.cel.checker.environment import View
from autoscaler.cel.common.outcome import CompileFailure, Outcome
from autoscaler.cel.interpreter.device import DeviceView
from autoscaler.cel.program import compile_selector
from instance_catalog.dataclass import replace
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.profile import KubernetesProfile, profile_for
from instance_catalog.kubernetes.quantity import Quantity
from instance_catalog.kubernetes.resource_slice import AttributeValue, Capacity, Device, ListValue, Unset, Version

DATA = Path(__file__).parents[2] / "data" / "cel"
LINES = {"1.36": "1.36.3", "1.34-1.35": "1.35.0", "1.37": "1.37.0"}
_OUTCOMES = {Outcome.TRUE: "true", Outcome.FALSE: "false", Outcome.ERROR: "runtime_error", Outcome.UNKNOWN: "unknown"}


@cache
def load(name: str) -> dict[str, Any]:
    """The corpus file `name`."""
    with gzip.open(DATA / f"{name}.yaml.gz") as file:
        loaded: dict[str, Any] = yaml.load(file, Loader=yaml.CSafeLoader)
    return loaded


@cache
def fuzz_cases() -> tuple[dict[str, Any], ...]:
    """The random expressions."""
    with gzip.open(DATA / "fuzz-golden.jsonl.gz", "rt", encoding="utf-8") as file:
        return tuple(json.loads(line) for line in file)


@cache
def device(corpus: str, name: str, *, lists: bool) -> tuple[str, Device]:
    """Driver and device of a corpus; `lists` says whether list values are looked at."""
    raw = load(corpus)["devices"][name]
    attributes = {key: _attribute(value, lists) for key, value in (raw.get("attributes") or {}).items()}
    capacity = {key: Capacity(Quantity.parse(str(value))) for key, value in (raw.get("capacity") or {}).items()}
    return raw["driver"], Device(
        name,
        attributes=FrozenMap(attributes),
        capacity=FrozenMap(capacity),
        allow_multiple_allocations=bool(raw.get("multi", False)),
    )


def _attribute(raw: Mapping[str, Any], lists: bool) -> AttributeValue:
    """The value upstream picks where several are set."""
    order = ["int", "bool", "string", "version"]
    listed = ["ints", "bools", "strings", "versions"]
    kind = next((kind for kind in ([*listed, *order] if lists else [*order, *listed]) if kind in raw), None)
    if kind is None:
        return Unset("nothing")
    value = raw[kind]
    if kind == "version":
        return Version(value)
    if kind in listed:
        items = tuple(Version(text) for text in value) if kind == "versions" else tuple(value)
        return ListValue(kind.removesuffix("s"), items)
    result: AttributeValue = value
    return result


def profile(line: str, features: Mapping[str, Any]) -> KubernetesProfile:
    """The profile of a release line with the gates of a case."""
    found = profile_for(LINES[line])
    gates = replace(
        found.gates,
        consumable_capacity=features.get("consumable_capacity", True),
        list_type_attributes=features.get("allow_list_attributes", False),
    )
    return replace(found, gates=gates)


def run(expression: str, target: tuple[str, Device], chosen: KubernetesProfile, view: View) -> tuple[str, int | None]:
    """Outcome, in the words of the corpus, and cost."""
    program = compile_selector(expression, chosen, view=view)
    if isinstance(program, CompileFailure):
        return "compile_error", None
    evaluation = program.evaluate(DeviceView.of(*target, chosen))
    return _OUTCOMES[evaluation.outcome], evaluation.cost


def case_view(case: Mapping[str, Any]) -> View:
    """Stored unless the case says otherwise."""
    return View.NEW if case.get("features", {}).get("env") == "new" else View.STORED
