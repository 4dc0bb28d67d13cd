"""Scheduling cycles in a row, and who is chosen among equals."""

from __future__ import annotations

from typing import Any

import pytest

from autoscaler.model.device_class import DeviceClass
from autoscaler.model.gang import API_GROUP, Gang
from autoscaler.model.node import Node
from autoscaler.model.pod import Container, Pod, PodClaim
from autoscaler.model.resource_claim import Consumer, DeviceRequest, ResourceClaim
from autoscaler.model.snapshot import Snapshot
from autoscaler.scheduling.schedule import Choice, adversarial, first, schedule, seeded
from autoscaler.scheduling.world import World
from instance_catalog.dataclass import replace
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.profile import REFERENCE
from instance_catalog.kubernetes.quantity import Quantity
from instance_catalog.kubernetes.taint import Taint
from tests.unit.dra.build import device, slice_of


def node(name: str, *, cpu: str = "4", **fields: Any) -> Node:
    allocatable = FrozenMap({"cpu": Quantity.parse(cpu), "pods": Quantity.parse("10")})
    return replace(Node(name, allocatable=allocatable), **fields)


def pod(name: str, *, cpu: str = "1", **fields: Any) -> Pod:
    containers = (Container("c", FrozenMap({"cpu": Quantity.parse(cpu)})),)
    return replace(Pod("ns", name, containers=containers), **fields)


def world(*nodes: Node, **fields: Any) -> World:
    return World.of(replace(Snapshot(nodes=nodes), **fields))


def places(pods: list[Pod], seen: World, choose: Choice = first) -> dict[str, str]:
    return {entry.pod.name: entry.node for entry in schedule(pods, seen, choose).bound}


def test_pods_spread_over_the_emptier_nodes() -> None:
    found = places([pod("a"), pod("b"), pod("c")], world(node("n1"), node("n2")))
    assert found == {"a": "n1", "b": "n2", "c": "n1"}


def test_a_pod_that_fits_nowhere_is_left_and_the_next_has_its_turn() -> None:
    found = schedule([pod("big", cpu="9"), pod("small")], world(node("n1")), first)
    assert [entry.pod.name for entry in found.bound] == ["small"]
    assert [left.name for left in found.left] == ["big"]
    assert [there.name for there in found.world.nodes["n1"].pods] == ["small"]


def test_a_nominated_node_is_taken_before_better_ones() -> None:
    disliked = node("n2", taints=(Taint("t", "", "PreferNoSchedule"),))
    seen = world(node("n1"), disliked)
    assert places([pod("a")], seen) == {"a": "n1"}
    assert places([pod("a", nominated_node="n2")], seen) == {"a": "n2"}
    assert places([pod("a", nominated_node="gone")], seen) == {"a": "n1"}
    assert places([pod("a", cpu="3", nominated_node="n2"), pod("b", cpu="3", nominated_node="n2")], seen)["b"] == "n1"


def test_a_claim_that_aborts_the_attempt_is_scheduled_nowhere() -> None:
    claim = ResourceClaim("ns", "gpu", (DeviceRequest("r", device_class=""),))
    seen = world(node("n1"), claims=FrozenMap({"ns/gpu": claim}), classes=(DeviceClass("c"),))
    assert places([pod("a", claims=(PodClaim("gpu", "gpu"),))], seen) == {}


@pytest.mark.parametrize("names", [("n1", "n2"), ("n2", "n1")], ids=["in order", "the other way round"])
def test_the_first_of_equals_is_the_first_by_name(names: tuple[str, ...]) -> None:
    assert places([pod("a")], world(*(node(name) for name in names))) == {"a": "n1"}


def test_a_seed_chooses_the_same_again_and_another_seed_otherwise() -> None:
    seen = world(*(node(f"n{index}") for index in range(8)))
    chosen = {seed: places([pod("a")], seen, seeded(seed))["a"] for seed in range(8)}
    assert chosen == {seed: places([pod("a")], seen, seeded(seed))["a"] for seed in range(8)}
    assert len(set(chosen.values())) > 2


def test_the_adversary_takes_the_place_that_another_pod_needs() -> None:
    fast = node("n2", labels=FrozenMap({"fast": "yes"}))
    pods = [pod("greedy", cpu="4"), pod("picky", node_selector=FrozenMap({"fast": "yes"}))]
    assert places(pods, world(node("n1"), fast), first) == {"greedy": "n1", "picky": "n2"}
    assert places(pods, world(node("n1"), fast), adversarial) == {"greedy": "n2"}


def test_the_adversary_opens_nodes_that_could_stay_empty() -> None:
    busy = pod("there", cpu="0", node_name="n1", phase="Running")
    seen = world(node("n1"), node("n2"), pods=(busy,))
    assert places([pod("a")], seen, adversarial) == {"a": "n2"}


@pytest.mark.parametrize("on", [True, False], ids=["with the gate", "without the gate"])
def test_a_claim_of_a_pod_group_is_allocated_once_and_reserved_for_the_group(on: bool) -> None:
    entry = PodClaim("gpu", "gpu")
    claim = ResourceClaim("ns", "gpu", (DeviceRequest("r", "any"),))
    seen = world(
        node("n1"),
        profile=REFERENCE.with_gates(workload_resource_claims=on),
        gangs=FrozenMap({"ns/g": Gang("ns", "g", "PodGroup", 1, uid="g-uid", claims=(entry,))}),
        claims=FrozenMap({claim.key: claim}),
        classes=(DeviceClass("any"),),
        slices=(slice_of([device("gpu")], node="n1"),),
    )
    members = [pod(name, uid=name, claims=(entry,), pod_group="g") for name in ("a", "b")]
    found = schedule(members, seen, first)
    assert [there.pod.name for there in found.bound] == ["a", "b"]
    group = (Consumer("podgroups", "g", "g-uid", API_GROUP),)
    each = (Consumer("pods", "a", "a"), Consumer("pods", "b", "b"))
    assert found.world.claims["ns/gpu"].reserved_for == (group if on else each)
