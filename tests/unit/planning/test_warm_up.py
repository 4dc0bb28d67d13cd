"""What is worked out before the first plan is there when it comes."""

from __future__ import annotations

from autoscaler.model.resource_claim import FirstAvailable
from autoscaler.planning.warm_up import CLASS, REQUEST, warm_up
from autoscaler.scheduling.world import World, WorldMemory
from instance_catalog.dataclass import replace
from instance_catalog.kubernetes.node_selector import NodeSelector, NodeSelectorTerm, Requirement
from tests.builders import GPU, claim, gpus, pod, snapshot
from tests.e2e.harness.machines import machine


def test_the_devices_of_every_node_are_there_when_the_first_plan_comes() -> None:
    machines = [machine("g6.12xlarge", name) for name in ("one", "two")]
    cluster = snapshot(
        [], nodes=tuple(made.node for made in machines), slices=tuple(s for made in machines for s in made.slices)
    )
    warm_up(cluster, WorldMemory())
    devices = World.of(cluster).devices
    first = [devices.pools_of(made.node) for made in machines]
    again = World.of(cluster).devices
    for made, (pools, memo) in zip(machines, first, strict=True):
        assert len(pools.devices) >= 4
        assert again.pools_of(made.node)[1] is memo
        assert None not in memo.matches(CLASS, REQUEST).answers


def test_the_sums_of_every_node_are_there_when_the_first_plan_comes() -> None:
    made = machine("g6.12xlarge", "one")
    cluster = snapshot([pod("p", node_name="one")], nodes=(made.node,), slices=made.slices)
    warm_up(cluster, memory := WorldMemory())
    assert len(memory.states) == 1


def test_classes_that_claims_ask_for_are_judged_before_a_pod_asks_for_them_again() -> None:
    made = machine("g6.12xlarge", "one")
    either = FirstAvailable("either", (gpus(2), replace(gpus(1), device_class="unknown.example.com")))
    warm_up(snapshot([], [claim("c", either)], nodes=(made.node,), slices=made.slices), WorldMemory())
    pools, memo = World.of(snapshot([], nodes=(made.node,), slices=made.slices)).devices.pools_of(made.node)
    judged = memo.matches(GPU, gpus(1)).of_class
    assert pools.devices
    assert all(refused or passed is not None for refused, passed in zip(judged.refused, judged.passed, strict=True))


def test_a_slice_that_cannot_be_read_is_left_to_the_pod_that_meets_it() -> None:
    made = machine("g6.xlarge", "here")
    malformed = NodeSelector((NodeSelectorTerm(match_expressions=(Requirement("zone", "Maybe", ("a",)),)),))
    piece = made.slices[0]
    broken = replace(piece, reach=replace(piece.reach, node_name=None, node_selector=malformed))
    warm_up(snapshot([], nodes=(made.node,), slices=(broken,)), WorldMemory())
