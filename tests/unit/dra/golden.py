"""Comparing an outcome with a recorded answer of the Go library."""

from __future__ import annotations

from autoscaler.dra.allocation.allocator import (
    Allocated,
    AllocationOutcome,
    ClusterDevices,
    FatalAllocation,
    NotAllocated,
    SearchBudget,
    allocate,
)
from autoscaler.dra.inventory.selectors import SelectorEngine
from autoscaler.model.resource_claim import AllocatedDevice, Allocation
from instance_catalog.kubernetes.profile import KubernetesProfile
from tests.unit.dra import reader
from tests.unit.dra.reader import Json

# Recorded answers are not bound by what fits into a filter's ten seconds.
UNLIMITED = SearchBudget(steps=10**6, upstream_steps=10**18)


def answer(
    case: Json, base: KubernetesProfile, *, engine: SelectorEngine | None, budget: SearchBudget
) -> AllocationOutcome:
    """Allocate a recorded case."""
    profile = reader.profile_of(case, base)
    devices = ClusterDevices.of(
        [reader.resource_slice(raw) for raw in case["slices"]],
        [reader.device_class(raw) for raw in case["classes"]],
        (),
        profile,
        engine=engine,
    )
    return allocate(
        [reader.claim(raw) for raw in case["claims"]],
        node=reader.node(case["node"]),
        devices=devices,
        allocated=reader.allocated(case["allocated"], profile),
        budget=budget,
    )


def difference(outcome: AllocationOutcome, expect: Json) -> str | None:
    """What differs, or None."""
    match outcome:
        case FatalAllocation():
            # Where the Go code panics, on objects that no API server accepts, this one reports an error.
            found = "panic" if expect["outcome"] == "panic" else "fatal"
        case NotAllocated():
            found = "no_fit"
        case Allocated():
            found = "fits"
        case _:
            found = "unknown"
    if found != expect["outcome"]:
        return f"{found} instead of {expect['outcome']}"
    if isinstance(outcome, NotAllocated) and outcome.node_error != expect.get("nodeError", False):
        return "nodeError"
    if isinstance(outcome, Allocated):
        recorded = expect.get("results") or []
        if len(recorded) != len(outcome.allocations):
            return "number of results"
        for allocation, result in zip(outcome.allocations, recorded, strict=True):
            if _described(allocation) != _recorded(result):
                return f"{_described(allocation)} instead of {_recorded(result)}"
    return None


def _described(allocation: Allocation) -> Json:
    return {"nodeSelector": allocation.node_selector, "devices": [_device(result) for result in allocation.devices]}


def _device(result: AllocatedDevice) -> Json:
    return {
        "device": (result.request, result.driver, result.pool, result.device),
        "adminAccess": result.admin_access,
        "shared": result.share_id is not None,
        "consumed": {name: str(value) for name, value in (result.consumed_capacity or {}).items()},
        "tolerations": result.tolerations,
        "conditions": (result.binding_conditions, result.binding_failure_conditions),
    }


def _recorded(result: Json) -> Json:
    selector = result.get("nodeSelector")
    return {
        "nodeSelector": reader.node_selector(selector) if selector else None,
        "devices": [
            {
                "device": (raw["request"], raw["driver"], raw["pool"], raw["device"]),
                "adminAccess": bool(raw.get("adminAccess")),
                "shared": "shareID" in raw,
                "consumed": raw.get("consumedCapacity") or {},
                "tolerations": tuple(reader.toleration(entry) for entry in raw.get("tolerations") or ()),
                "conditions": (
                    tuple(raw.get("bindingConditions") or ()),
                    tuple(raw.get("bindingFailureConditions") or ()),
                ),
            }
            for raw in result["devices"]
        ],
    }
