"""Allocation on both sides: a case as a question to upstream, and answered by the simulator, and what differs."""

from __future__ import annotations

from collections.abc import Iterator
from time import perf_counter_ns

from autoscaler.dra.allocation.allocator import (
    Allocated,
    AllocatedState,
    AllocationOutcome,
    ClusterDevices,
    FatalAllocation,
    NotAllocated,
    SearchBudget,
    UnknownAllocation,
    allocate,
)
from autoscaler.kube.device_class import parse_device_class
from autoscaler.kube.node import parse_node
from autoscaler.kube.problem import Problems
from autoscaler.kube.resource_claim import parse_resource_claim
from autoscaler.kube.resource_slice import parse_resource_slice
from autoscaler.kube.writing.allocation import write_allocation
from autoscaler.model.resource_claim import Allocation, ResourceClaim
from instance_catalog.kubernetes.profile import KubernetesProfile
from tests.oracle.comparing.difference import Difference, Field
from tests.oracle.upstream import Given, Json, Release

# An answer that upstream gives in time is compared, however many steps it took.
_BUDGET = SearchBudget(steps=10**6, upstream_steps=10**18)
_ANY_SHARE = "SHARE"
_OBJECTS = ("node", "classes", "slices", "claims", "held")
_FIELDS = {
    "AdminAccess": "admin_access",
    "ConsumableCapacity": "consumable_capacity",
    "DeviceBindingAndStatus": "binding_conditions",
    "DeviceTaints": "device_taints",
    "PartitionableDevices": "partitionable_devices",
    "PrioritizedList": "prioritized_list",
}


def question(case: Json, release: Release) -> Json:
    """What upstream is asked."""
    gates = _profile(case, release.profile).gates
    features = {gate: getattr(gates, field) for gate, field in _FIELDS.items()}
    features["FractionalCapacityRange"] = gates.fractional_capacity_range
    features["ListTypeAttributes"] = gates.list_type_attributes
    return {"allocate": {key: case[key] for key in _OBJECTS}, "features": features}


def simulated(case: Json, release: Release) -> Given:
    """What the simulator decides."""
    profile = _profile(case, release.profile)
    problems = Problems()
    claims = [parse_resource_claim(raw, problems) for raw in case["claims"]]
    held = [parse_resource_claim(raw, problems) for raw in case["held"]]
    classes = [parse_device_class(raw, problems) for raw in case["classes"]]
    slices = [parse_resource_slice(raw, problems) for raw in case["slices"]]
    node = parse_node(case["node"], problems)
    if problems.errors:
        return Given({"outcome": "refused", "error": "; ".join(f"{p.field}: {p.message}" for p in problems)}, 0)
    state = AllocatedState.of(held)
    start = perf_counter_ns()
    devices = ClusterDevices.of(slices, classes, (), profile)
    outcome = allocate(claims, node=node, devices=devices, allocated=state, budget=_BUDGET)
    return Given(_described(outcome, claims), perf_counter_ns() - start)


def differences(found: Json, expected: Json) -> tuple[Difference, ...]:
    """What differs between the simulator's answer and upstream's; the first suffices."""
    return tuple(_differences(found, expected))[:1]


def _differences(found: Json, expected: Json) -> Iterator[Difference]:
    if found["outcome"] != expected["outcome"]:
        why = found.get("error") or expected.get("error")
        yield Difference(Field.OUTCOME, f"{found['outcome']} instead of {expected['outcome']} ({why})")
        return
    if found.get("nodeError", False) != expected.get("nodeError", False):
        yield Difference(
            Field.NODE_ERROR, f"{found.get('nodeError', False)} instead of {expected.get('nodeError', False)}"
        )
    for ours, theirs in zip(found.get("results", ()), expected.get("results") or (), strict=True):
        for field in ("claim", "nodeSelector", "devices"):
            left, right = plain(ours.get(field)), plain(theirs.get(field))
            if left != right:
                yield Difference(Field.RESULT, f"{field} {left} instead of {right}")


def plain(value: object) -> object:
    """An allocation without what is empty: Go leaves such fields out, or writes null."""
    match value:
        case dict():
            found = {key: plain(inner) for key, inner in value.items()}
            return {key: inner for key, inner in found.items() if inner not in (None, "", [], {}, False)}
        case list() | tuple():
            return [plain(inner) for inner in value]
    return value


def _profile(case: Json, base: KubernetesProfile) -> KubernetesProfile:
    profile = base.with_gates(**{_FIELDS[gate]: False for gate in case.get("off", ())})
    return profile.with_gates(list_type_attributes=True) if case.get("lists") else profile


def _described(outcome: AllocationOutcome, claims: list[ResourceClaim]) -> Json:
    match outcome:
        case Allocated(allocations=allocations):
            pairs = zip(claims, allocations, strict=True)
            return {"outcome": "fits", "results": [_result(claim.name, allocation) for claim, allocation in pairs]}
        case NotAllocated(node_error=node_error):
            return {"outcome": "no_fit", "nodeError": node_error}
        case FatalAllocation(reasons=reasons):
            return {"outcome": "fatal", "error": str(reasons)}
        case UnknownAllocation(reasons=reasons):
            return {"outcome": "unknown", "error": str(reasons)}


def _result(claim: str, allocation: Allocation) -> Json:
    written = described_allocation(allocation)
    return {"claim": claim, "devices": written["devices"]["results"], "nodeSelector": written.get("nodeSelector")}


def described_allocation(allocation: Allocation) -> Json:
    """An allocation as the API has it, share ids aside: upstream's are random."""
    written = write_allocation(allocation)
    for device in written["devices"]["results"]:
        if "shareID" in device:
            device["shareID"] = _ANY_SHARE
    return written
