"""What a tenant does to a pod or claim of theirs, once its node is there, has no type avoided for all: real plans."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from functools import partial
from typing import Any

import pytest

from autoscaler.lifecycle.quarantine import WATCH_SKEW, mispredicted
from autoscaler.model.capacity import Limits, PodScope, Scope
from autoscaler.model.labels import LabelSelector
from autoscaler.model.node import Node
from autoscaler.model.plan import Placement, Plan, Target
from autoscaler.model.pod import PodAffinityTerm
from autoscaler.model.provisioned_node import OfferingRef, Phase
from autoscaler.model.resource_claim import AllocatedDevice, Allocation
from autoscaler.model.snapshot import Snapshot
from autoscaler.planning.misprediction_check import confirmed_mispredictions
from instance_catalog.dataclass import replace
from instance_catalog.drivers.profile import parse_driver_set
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes import labels
from instance_catalog.kubernetes.node_selector import NodeSelector, NodeSelectorTerm, Requirement
from instance_catalog.kubernetes.profile import REFERENCE
from instance_catalog.kubernetes.quantity import Quantity
from instance_catalog.kubernetes.resource_slice import Device, ResourceSlice
from instance_catalog.prediction.predict import predict
from instance_catalog.types.catalog import Catalog
from instance_catalog.types.instance_type import CapacityType
from tests.builders import CATALOG, NOW, SMALL, TEAM, claim, gpus, machine, ours, plan, pod, snapshot

LATER = NOW + WATCH_SKEW + timedelta(seconds=1)
ROOM = FrozenMap({name: Quantity.parse(amount) for name, amount in (("cpu", "8"), ("memory", "64Gi"), ("pods", "99"))})


# What kube-scheduler writes into an allocation whose devices are those of one node.
AWAY = NodeSelector((NodeSelectorTerm(match_fields=(Requirement("metadata.name", "In", ("n2",)),)),))


def published(node: str) -> tuple[ResourceSlice, ...]:
    return tuple(predict(CATALOG.types["s1"], parse_driver_set("nvidia"), kubernetes=REFERENCE, node_name=node))


def bought(**fields: Any) -> Snapshot:
    """The pod, its claim, and the s1 that was bought for it and is ready; another s1 is there as well."""
    own = ours(
        "n1",
        phase=Phase.READY,
        phase_since=NOW,
        pods=("default/own",),
        offering=OfferingRef("s1", "any", CapacityType.ON_DEMAND, Decimal("1.00")),
        provider_id="i-1",
    )
    state = snapshot(
        [pod("own", "mine")],
        [claim("mine")],
        nodes=tuple(Node(name, ready=True, allocatable=ROOM, provider_id=f"i-{name[1:]}") for name in ("n1", "n2")),
        slices=(*published("n1"), *published("n2")),
        provisioned=(own,),
        pools=(TEAM,),
    )
    return replace(state, **fields)


def test_a_claim_that_is_deleted() -> None:
    state = bought(claims=FrozenMap())
    result = plan(state, now=LATER)
    assert [left.pod for left in result.left_out] == ["default/own"]
    assert mispredicted(state, result, LATER) == ()


def test_a_claim_that_another_pod_took_to_another_node() -> None:
    (piece,) = (piece for piece in published("n2") if piece.devices)
    device = AllocatedDevice("gpu", piece.driver, "n2", piece.devices[0].name)
    away = replace(claim("mine"), allocation=Allocation((device,), node_selector=AWAY))
    full = pod("guest", "mine", cpu="8", node_name="n2", phase="Running")
    state = bought(claims=FrozenMap({away.key: away}), pods=(pod("own", "mine"), full))
    result = plan(state, now=LATER)
    assert [p.pod for p in result.placements if p.node == "n1"] == []
    assert mispredicted(state, result, LATER) == ()


@pytest.mark.parametrize("limits", [Limits(), Limits(nodes=1)], ids=["another-is-bought", "a-limit-keeps-from-another"])
def test_a_node_that_published_something_else_speaks_against_its_type(limits: Limits) -> None:
    wanted = FrozenMap({"default/mine": claim("mine", gpus(product="Small S1"))})
    other = tuple(replace(piece, devices=tuple(map(renamed, piece.devices))) for piece in published("n1"))
    nodes = bought().nodes[:1]
    state = bought(nodes=nodes, slices=other, claims=wanted, pools=(replace(TEAM, limits=limits),))
    result = plan(state, now=LATER)
    assert bool(result.launches) is (limits.nodes is None)
    assert suspected(state) == judged(state) == ["default/own"]


def suspected(state: Snapshot, make: Callable[..., Plan] = plan) -> list[str]:
    return [found.pod for found in mispredicted(state, make(state, now=LATER), LATER)]


def judged(state: Snapshot, make: Callable[..., Plan] = plan) -> list[str]:
    found = mispredicted(state, make(state, now=LATER), LATER)
    return [entry.pod for entry in confirmed_mispredictions(found, state, partial(make, now=LATER))]


# Beside the usual types one that is larger.
LARGER = partial(plan, catalog=Catalog.of([*CATALOG.types.values(), machine("s2", SMALL, 2, "9.00", vcpu=96)]))


def test_a_pod_that_asks_for_more_once_its_node_is_there() -> None:
    state = bought(nodes=bought().nodes[:1], pods=(pod("own", "mine", cpu="40"),))
    assert suspected(state, LARGER) == ["default/own"]
    assert judged(state, LARGER) == []


@pytest.mark.parametrize(("cpu", "expected"), [("20", []), ("10", ["default/own"])], ids=["both-never-fit", "both-did"])
def test_a_pod_is_judged_beside_the_one_that_runs_on_its_node(cpu: str, expected: list[str]) -> None:
    (node,) = (replace(found, pods=("default/own", "default/mate")) for found in bought().provisioned)
    mate = pod("mate", cpu="15", node_name="n1", phase="Running")
    pool = replace(TEAM, scope=Scope(PodScope.ALL))
    pods = (pod("own", "mine", cpu=cpu), mate)
    state = bought(nodes=bought().nodes[:1], pods=pods, provisioned=(node,), pools=(pool,))
    assert suspected(state, LARGER) == ["default/own"]
    assert judged(state, LARGER) == expected


def test_a_pod_that_another_pod_of_the_zone_keeps_away() -> None:
    """kube-scheduler looks at the anti-affinity of pods that run already, wherever they are in the domain."""
    term = PodAffinityTerm(LabelSelector((Requirement("a", "In", ("b",)),)), labels.ZONE, ("default",))
    blocker = pod("blocker", cpu="8", node_name="n2", phase="Running", pod_anti_affinity=(term,))
    nodes = tuple(replace(node, labels=FrozenMap({labels.ZONE: "us-east-1a"})) for node in bought().nodes)
    offering = OfferingRef("s1", "us-east-1a", CapacityType.ON_DEMAND, Decimal("1.00"))
    zonal = tuple(replace(node, offerings=(offering,)) for node in bought().provisioned)
    state = bought(nodes=nodes, provisioned=zonal, pods=(pod("own", "mine", labels=FrozenMap({"a": "b"})), blocker))
    elsewhere = Placement("default/own", Target.NEW, "n3")
    found = mispredicted(state, Plan(placements=(elsewhere,)), LATER)
    assert [entry.pod for entry in found] == ["default/own"]
    assert confirmed_mispredictions(found, state, partial(plan, now=LATER)) == ()
    harmless = replace(state, pods=(pod("own", "mine"), blocker))
    assert confirmed_mispredictions(found, harmless, partial(plan, now=LATER)) == found


def renamed(device: Device) -> Device:
    """The device with another product name."""
    return replace(device, attributes=device.attributes.with_items({"productName": "Another S1"}))
