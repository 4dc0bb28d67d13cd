"""TPU slices of several hosts: planned, counted and priced as a whole."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal

import pytest

from autoscaler.checks.check import held_back, pool_conditions
from autoscaler.model.capacity import (
    Baseline,
    CapacityPool,
    GroupOffering,
    GroupRoom,
    Limits,
    Mode,
    NodeTemplateRef,
)
from autoscaler.model.device_class import DeviceClass, Selector
from autoscaler.model.node import Node
from autoscaler.model.pod import GangRef, Pod
from autoscaler.model.provisioned_node import OfferingRef, Phase, ProvisionedNode
from autoscaler.model.reason import Code
from autoscaler.model.resource_claim import DeviceRequest, ResourceClaim
from autoscaler.model.snapshot import Snapshot
from autoscaler.planning.policy import Policy
from autoscaler.report.reasons import text_of
from instance_catalog.dataclass import replace
from instance_catalog.drivers.profile import parse_driver_set
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes import labels
from instance_catalog.kubernetes.node_selector import NodeSelector, NodeSelectorTerm, Requirement
from instance_catalog.kubernetes.quantity import Quantity
from instance_catalog.prediction.predict import hosts, unpredictable
from instance_catalog.types.instance_type import CapacityType
from tests.builders import NOW, claim, codes, gang, ours, places, plan, pod, shipped, snapshot, types, why_left

TPU_CLASS = DeviceClass("tpu.google.com", (Selector('device.driver == "tpu.google.com"'),))
ALL_CHIPS = DeviceRequest("chips", "tpu.google.com", allocation_mode="All")
V6E = "tpu-v6e-slice"
CATALOG = shipped("ct6e-standard-4t", "ct6e-standard-8t")
POOL = CapacityPool(
    "tpu", Mode.ACT, drivers=("tpu:topology=4x4",), node_template=NodeTemplateRef("KwokNodeTemplate", "k")
)


def hosts_wanted(count: int, topology: str = "4x4", **fields: object) -> tuple[list[Pod], list[ResourceClaim]]:
    """Pods that take all chips of a host each, as GKE's documentation has them select the slice."""
    selector = FrozenMap({labels.GKE_TPU_ACCELERATOR: V6E, labels.GKE_TPU_TOPOLOGY: topology})
    chosen = {"node_selector": selector, **fields}
    pods = [pod(f"w{i}", f"w{i}", **chosen) for i in range(count)]
    return pods, [claim(f"w{i}", ALL_CHIPS) for i in range(count)]


def state(wanted: tuple[list[Pod], list[ResourceClaim]], **fields: object) -> Snapshot:
    return snapshot(*wanted, classes=(TPU_CLASS,), **fields)


@pytest.mark.parametrize(("pods", "slices"), [(1, 1), (3, 1), (4, 1), (5, 2), (8, 2)])
def test_every_host_of_a_slice_is_bought(pods: int, slices: int) -> None:
    found = plan(state(hosts_wanted(pods)), catalog=CATALOG)
    assert types(found) == ["ct6e-standard-4t"] * (4 * slices)
    assert found.usd_per_hour == Decimal("10.8") * 4 * slices
    assert Counter(len(node.pods) for node in found.launches) == Counter({1: pods, 0: 4 * slices - pods})
    assert all(Code.WHOLE_SLICE in codes(node.reasons) for node in found.launches)
    assert {node.node.labels[labels.GKE_TPU_TOPOLOGY] for node in found.launches} == {"4x4"}
    assert len({node.name for node in found.launches}) == len(found.launches)


def test_a_slice_of_one_host_is_a_node_like_any_other() -> None:
    found = plan(state(hosts_wanted(1, "2x4")), catalog=shipped("ct6e-standard-8t"))
    assert types(found) == ["ct6e-standard-8t"]
    assert Code.WHOLE_SLICE not in codes(found.launches[0].reasons)


def test_the_price_of_the_whole_slice_is_compared() -> None:
    """One host of 4x4 costs half of one of 2x4 with eight chips; the slice costs twice as much."""
    either = NodeSelector((NodeSelectorTerm((Requirement(labels.GKE_TPU_TOPOLOGY, "In", ("2x4", "4x4")),)),))
    found = plan(state(hosts_wanted(1, node_selector=FrozenMap({}), affinity=either)), catalog=CATALOG)
    assert found.usd_per_hour == Decimal("21.6")
    found = plan(state(hosts_wanted(4, node_selector=FrozenMap({}), affinity=either)), catalog=CATALOG)
    assert found.usd_per_hour == Decimal("43.2")


@pytest.mark.parametrize(
    "limits",
    [Limits(nodes=3), Limits(accelerators=15), Limits(usd_per_hour=Decimal(43))],
    ids=["nodes", "chips", "usd"],
)
def test_a_limit_that_the_slice_exceeds_lets_nothing_of_it_through(limits: Limits) -> None:
    wanted = hosts_wanted(1)
    found = plan(state(wanted, pools=(replace(POOL, limits=limits),)), catalog=CATALOG)
    assert found.launches == ()
    assert Code.POOL_LIMIT in why_left(found, "w0")
    enough = replace(POOL, limits=Limits(nodes=4, accelerators=16, usd_per_hour=Decimal("43.2")))
    assert len(plan(state(wanted, pools=(enough,)), catalog=CATALOG).launches) == 4


@pytest.mark.parametrize(("own", "slices"), [(0, 2), (1, 1), (2, 0)])
def test_no_more_slices_are_planned_than_groups_are_empty(own: int, slices: int) -> None:
    group = GroupOffering("ct6e-standard-4t", "us-east5-b", CapacityType.ON_DEMAND)
    template = NodeTemplateRef("GCPNodeTemplate", "t")
    pool = replace(POOL, node_template=template, groups=frozenset({group}), rooms=(GroupRoom(group, 8),))
    ref = OfferingRef("ct6e-standard-4t", "us-east5-b", CapacityType.ON_DEMAND)
    nodes = tuple(ours(f"n{i}", offering=ref, pool="tpu", phase=Phase.TERMINATING) for i in range(4 * own))
    found = plan(state(hosts_wanted(12), pools=(pool,), provisioned=nodes), catalog=CATALOG)
    assert types(found) == ["ct6e-standard-4t"] * (4 * slices)
    assert len(found.left_out) == 12 - 4 * slices
    assert all(Code.GROUPS_FULL in codes(left.reasons) for left in found.left_out)


def test_a_gang_that_does_not_fill_its_slices_is_placed_or_left_out_as_one() -> None:
    pods, claims = hosts_wanted(6)
    members, gangs = [replace(one, gang=pod("x", gang="g").gang) for one in pods], gang("g", 6)
    found = plan(state((members, claims), gangs=gangs, pools=(replace(POOL, limits=Limits(nodes=8)),)), catalog=CATALOG)
    assert len(found.launches) == 8
    found = plan(state((members, claims), gangs=gangs, pools=(replace(POOL, limits=Limits(nodes=7)),)), catalog=CATALOG)
    assert found.launches == ()
    assert len(found.left_out) == 6


def test_a_baseline_keeps_no_part_of_a_slice_up() -> None:
    found = plan(state(([], []), pools=(replace(POOL, baselines=(Baseline(2),)),)), catalog=CATALOG)
    assert found.launches == ()


def test_a_pool_whose_slices_nobody_launches_as_a_whole_only_proposes() -> None:
    on_gke = replace(POOL, node_template=NodeTemplateRef("GCPNodeTemplate", "t"))
    elsewhere = replace(POOL, node_template=NodeTemplateRef("OtherNodeTemplate", "t"))
    for pool, acts in (
        (POOL, True),
        (on_gke, True),
        (elsewhere, False),
        (replace(elsewhere, drivers=("tpu",)), True),
    ):
        seen = state(hosts_wanted(1), pools=(pool,))
        found = pool_conditions(seen, plan(seen, catalog=CATALOG), CATALOG, policy=Policy(), now=NOW)
        ready = [f for f in found if f.type.value == "Ready"]
        (after,) = held_back(seen, ready).pools
        assert after.acts is acts
        told = [text_of(reason) for f in ready for reason in f.reasons]
        assert (told == []) is acts
        assert acts or "slices of 4 hosts, which Foreslice launches only from a GCPNodeTemplate" in told[0]


@pytest.mark.parametrize(
    ("name", "topology", "expected"),
    [
        ("ct6e-standard-4t", "16x16", 64),
        ("ct6e-standard-8t", "2x4", 1),
        ("ct5p-hightpu-4t", "2x2x2", 2),
        ("ct4p-hightpu-4t", "8x16x16", 512),
        ("tpu7x-standard-4t", "4x4x4", 16),
        ("ct3p-hightpu-4t", "4x4", 4),
        ("ct6e-standard-8t", "4x4", "ct6e-standard-8t has no slices of topology 4x4; it has 2x4"),
        ("ct6e-standard-1t", "2x4", "ct6e-standard-1t has no slices of topology 2x4; it has 1x1"),
        (
            "ct3p-hightpu-4t",
            "3x3",
            "ct3p-hightpu-4t has no slices of topology 3x3; it has 4x4, 4x8, 8x8, 8x16, 16x16, ",
        ),
    ],
)
def test_how_many_hosts_a_topology_has(name: str, topology: str, expected: int | str) -> None:
    instance_type, drivers = shipped(name).get(name), parse_driver_set(f"tpu:topology={topology}")
    why = unpredictable(instance_type, drivers)
    assert why.startswith(str(expected)) if why else hosts(instance_type, drivers) == expected


def test_machines_that_exist_in_slices_only_are_offered_in_slices_only() -> None:
    catalog = shipped("ct3p-hightpu-4t")
    v3 = {"node_selector": FrozenMap({labels.GKE_TPU_TOPOLOGY: "4x4"})}
    assert types(plan(state(hosts_wanted(4, **v3)), catalog=catalog)) == ["ct3p-hightpu-4t"] * 4
    assert plan(state(hosts_wanted(1, node_selector=FrozenMap({}))), catalog=catalog).launches == ()


def test_a_topology_that_nobody_listed_is_counted_in_machines() -> None:
    unlisted = replace(shipped("ct6e-standard-4t").get("ct6e-standard-4t"), topology=None, slice_topologies=())
    assert hosts(unlisted, parse_driver_set("tpu:topology=4x4")) == 4
    assert "whole machines with 4 chips" in str(unpredictable(unlisted, parse_driver_set("tpu:topology=3x3")))


AMOUNTS = {"cpu": "170", "memory": "600Gi", "pods": "9"}
ROOM = FrozenMap({name: Quantity.parse(amount) for name, amount in AMOUNTS.items()})


def host(number: int, phase: Phase, batch: str = "first") -> ProvisionedNode:
    """A host of a slice that was bought for the gang."""
    offering = OfferingRef("ct6e-standard-4t", "any", CapacityType.ON_DEMAND, Decimal("10.8"))
    given = {"pool": "tpu", "offering": offering, "drivers": ("tpu:topology=4x4",), "hosts": 4, "phase_since": NOW}
    coming = ours(f"{batch}-{number}", phase=phase, pods=(f"default/w{number}",), **given)
    return replace(coming, batch=batch)


@pytest.mark.parametrize("key", [None, labels.GKE_NODE_POOL])
@pytest.mark.parametrize("registered", [0, 1, 3])
def test_a_gang_waits_for_the_slice_that_comes_for_it(key: str | None, registered: int) -> None:
    """Also where it wants a node pool of its own, whose name nobody knows before a host has registered."""
    pods, claims = hosts_wanted(4)
    pods = [replace(found, gang=GangRef("default", "g")) for found in pods]
    phases = [Phase.REGISTERED if number < registered else Phase.LAUNCHED for number in range(4)]
    coming = tuple(host(number, phase) for number, phase in enumerate(phases))
    own = {labels.GKE_NODE_POOL: "slice", labels.GKE_TPU_ACCELERATOR: V6E, labels.GKE_TPU_TOPOLOGY: "4x4"}
    nodes = tuple(
        Node(one.name, labels=FrozenMap({**own, labels.POOL: "tpu"}), allocatable=ROOM) for one in coming[:registered]
    )
    found = plan(
        state((pods, claims), pools=(POOL,), gangs=gang("g", 4, key), provisioned=coming, nodes=nodes), catalog=CATALOG
    )
    assert types(found) == []
    assert set(places(found).values()) == {one.node_name for one in coming}


def test_gangs_do_not_share_slices_that_come() -> None:
    """One host is left of the slice of which the first gang takes three: the second gang goes to the other slice."""
    pods, claims = hosts_wanted(7)
    pods = [replace(found, gang=GangRef("default", f"g{number // 3 and 1}")) for number, found in enumerate(pods)]
    gangs = gang("g0", 3, labels.GKE_NODE_POOL).with_items(gang("g1", 4, labels.GKE_NODE_POOL))
    coming = tuple(host(number, Phase.LAUNCHED, batch) for batch in ("a", "b") for number in range(4))
    found = plan(state((pods, claims), pools=(POOL,), gangs=gangs, provisioned=coming), catalog=CATALOG)
    assert types(found) == []
    slices = {p.removeprefix("default/"): node.partition("-")[0] for p, node in places(found).items()}
    assert len({slices[f"w{number}"] for number in range(3)}) == 1
    assert len({slices[f"w{number}"] for number in range(3, 7)}) == 1
    assert len(set(slices.values())) == 2
