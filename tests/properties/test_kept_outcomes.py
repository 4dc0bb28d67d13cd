"""Allocations that are kept of a node are those that would be found again, told in the names of who asks."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from autoscaler.dra.allocation.allocator import VERDICT_ONLY, Allocated, AllocationOutcome, NotAllocated, allocate
from autoscaler.dra.allocation.context import AllocationContext
from autoscaler.dra.allocation.known_outcomes import question
from autoscaler.dra.inventory.allocated import AllocatedState, PoolUse
from autoscaler.dra.inventory.devices import ClusterDevices, NodeMemory
from autoscaler.model.device_class import Selector
from autoscaler.model.resource_claim import ResourceClaim
from instance_catalog.dataclass import replace
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.profile import REFERENCE
from instance_catalog.kubernetes.quantity import Quantity
from tests.properties.test_dra_pruning import Situation, cluster_of, crowds, situations
from tests.unit.dra.build import DRIVER, NODE, claim, cluster, devices, request, slice_of


def remembering(where: ClusterDevices) -> ClusterDevices:
    return replace(where, memory=NodeMemory(where.engine))


def next_plan(where: ClusterDevices) -> ClusterDevices:
    """The same cluster in the plan after: only what is remembered of nodes is still there."""
    return ClusterDevices(
        where.profile, where.classes, where.taint_rules, where.engine, where.layers, memory=where.memory
    )


def others(asked: list[ResourceClaim]) -> list[ResourceClaim]:
    return [replace(one, name=f"other-{one.name}", uid=f"uid-of-other-{one.name}") for one in asked]


@settings(max_examples=300, deadline=None, derandomize=True)
@given(situations())
def test_what_is_kept_is_what_would_be_found(situation: Situation) -> None:
    asked, content, allocated, profile = situation
    where = remembering(cluster_of(content, profile))
    first = allocate(asked, node=NODE, devices=where, allocated=allocated)
    again = allocate(others(asked), node=NODE, devices=next_plan(where), allocated=allocated)
    fresh = cluster_of(content, profile)
    assert first == allocate(asked, node=NODE, devices=fresh, allocated=allocated)
    assert again == allocate(others(asked), node=NODE, devices=next_plan(fresh), allocated=allocated)


def kept_of(where: ClusterDevices) -> int:
    return len(AllocationContext.of(NODE, where, AllocatedState()).memo.outcomes)


def test_equal_claims_are_asked_once_as_long_as_nothing_changes() -> None:
    where = remembering(cluster(slice_of(devices(2))))
    used = AllocatedState({(DRIVER, "pool"): PoolUse(frozenset({"gpu-00"}))})
    for number, (count, allocated, expected) in enumerate(
        [
            (1, AllocatedState(), Allocated),
            (1, AllocatedState(), Allocated),
            (2, AllocatedState(), Allocated),
            (2, used, NotAllocated),
            (2, used, NotAllocated),
        ]
    ):
        asked = [claim(request("r", count), name=f"c{number}")]
        found = allocate(asked, node=NODE, devices=next_plan(where), allocated=allocated)
        assert isinstance(found, expected)
        if isinstance(found, NotAllocated):
            assert all(
                f"c{number}" in str(reason.subject) for reason in found.reasons if "claim" in str(reason.subject)
            )
    assert kept_of(where) == 3


def test_what_depends_on_how_amounts_are_written_is_not_kept() -> None:
    where = remembering(cluster(slice_of(devices(2)), profile=REFERENCE))
    scene = AllocationContext.of(NODE, where, AllocatedState())
    asks_for_amount = request("r", 1, capacity=FrozenMap({"memory": Quantity.parse("1")}))
    assert question([claim(request("r", 1))], scene) is not None
    assert question([claim(asks_for_amount)], scene) is None
    shared = AllocatedState({(DRIVER, "pool"): PoolUse(shares=frozenset({("gpu-00", "share")}))})
    assert question([claim(request("r", 1))], AllocationContext.of(NODE, where, shared)) is None
    assert question([claim(request("r", 1))], AllocationContext.of(NODE, replace(where, memory=None), shared)) is None


def test_another_class_is_another_question() -> None:
    where = remembering(cluster(slice_of(devices(2))))
    asked = [claim(request("r", 1))]
    narrower = {name: replace(found, selectors=(Selector("x=1"),)) for name, found in where.classes.items()}
    ours, theirs = (
        question(asked, AllocationContext.of(NODE, one, AllocatedState()))
        for one in (where, replace(where, classes=narrower))
    )
    assert ours is not None
    assert ours != theirs


def bare(outcome: AllocationOutcome) -> AllocationOutcome:
    return replace(outcome, reasons=()) if isinstance(outcome, NotAllocated) else outcome


def test_a_verdict_alone_evaluates_no_device_in_use() -> None:
    where = cluster(slice_of(devices(2)))
    used = AllocatedState({(DRIVER, "pool"): PoolUse(frozenset({"gpu-00", "gpu-01"}))})
    wanted = request("r", 1, "x=1")
    found = allocate([claim(wanted)], node=NODE, devices=where, allocated=used, budget=VERDICT_ONLY)
    assert found == NotAllocated((), steps=1)
    memo = AllocationContext.of(NODE, where, used).memo
    assert memo.matches(where.classes["any"], wanted).answers == [None, None]


@settings(max_examples=400, deadline=None, derandomize=True)
@given(st.one_of(situations(), crowds()))
def test_a_verdict_alone_is_the_same_without_the_reasons_of_claims_that_do_not_fit(situation: Situation) -> None:
    asked, content, allocated, profile = situation
    where = remembering(cluster_of(content, profile))
    alone = allocate(asked, node=NODE, devices=where, allocated=allocated, budget=VERDICT_ONLY)
    again = allocate(asked, node=NODE, devices=next_plan(where), allocated=allocated, budget=VERDICT_ONLY)
    told = allocate(asked, node=NODE, devices=next_plan(where), allocated=allocated)
    assert told == allocate(asked, node=NODE, devices=cluster_of(content, profile), allocated=allocated)
    assert alone == again
    assert bare(alone) == bare(told)
