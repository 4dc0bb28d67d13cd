"""Pods for which nothing is bought yet: their node has just come, or they asked to wait."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from autoscaler.lifecycle.quarantine import WATCH_SKEW
from autoscaler.model.capacity import Disruption
from autoscaler.model.gang import Gang
from autoscaler.model.node import Node
from autoscaler.model.plan import NodeAction
from autoscaler.model.provisioned_node import OfferingRef, Phase, ProvisionedNode
from autoscaler.model.reason import Code
from autoscaler.model.requested_capacity import ProvisioningRequest
from autoscaler.model.resource_claim import AllocatedDevice, Allocation, ResourceClaim
from autoscaler.model.snapshot import Snapshot
from instance_catalog.dataclass import replace
from instance_catalog.drivers.profile import parse_driver_set
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes import labels
from instance_catalog.kubernetes.profile import REFERENCE
from instance_catalog.kubernetes.quantity import Quantity
from instance_catalog.prediction.predict import predict
from instance_catalog.types.instance_type import CapacityType
from tests.builders import (
    CATALOG,
    NOW,
    TEAM,
    claim,
    gang,
    ours,
    places,
    plan,
    pod,
    snapshot,
    types,
    why_left,
)

SOON = NOW + timedelta(seconds=1)
PROVISIONED = ours(
    "n1",
    phase=Phase.READY,
    phase_since=NOW,
    pods=("default/own",),
    offering=OfferingRef("s1", "any", CapacityType.ON_DEMAND, Decimal("1.00")),
    provider_id="i-1",
)
SLICES = predict(CATALOG.types["s1"], parse_driver_set("nvidia"), kubernetes=REFERENCE, node_name="n1")
NODE = Node(
    "n1",
    ready=True,
    allocatable=FrozenMap({name: Quantity.parse(amount) for name, amount in (("cpu", "8"), ("pods", "99"))}),
)


def taken() -> ResourceClaim:
    """The claim that holds the node's only GPU: kube-scheduler's for the pod itself, whose binding was not seen yet."""
    (piece,) = (piece for piece in SLICES if piece.devices)
    device = AllocatedDevice("gpu", piece.driver, piece.pool.name, piece.devices[0].name)
    return replace(claim("implicit"), allocation=Allocation((device,)))


def torn(provisioned: ProvisionedNode = PROVISIONED, *pods: str, **fields: Any) -> Snapshot:
    """The claim was seen, the binding was not."""
    names = pods or ("own",)
    claims = [claim(f"c-{name}") for name in names]
    return snapshot(
        [pod(name, f"c-{name}") for name in names],
        [*claims, taken()],
        nodes=(NODE,),
        slices=SLICES,
        provisioned=(provisioned,),
        pools=(TEAM,),
        **fields,
    )


@pytest.mark.parametrize("phase", [Phase.REGISTERED, Phase.DRIVERS_READY, Phase.READY], ids=lambda phase: phase.value)
def test_nothing_is_bought_for_a_pod_whose_node_just_came(phase: Phase) -> None:
    result = plan(torn(replace(PROVISIONED, phase=phase)), now=SOON)
    assert (result.launches, why_left(result, "own")) == ((), [Code.AWAITS_BINDING])
    (left,) = result.left_out
    assert left.reasons[0].detail["node"] == "n1"


@pytest.mark.parametrize(
    ("state", "later"),
    [
        pytest.param(torn(), WATCH_SKEW, id="everything-had-time-to-arrive"),
        pytest.param(torn(replace(PROVISIONED, pods=("default/other",))), timedelta(0), id="bought-for-another"),
        pytest.param(torn(replace(PROVISIONED, phase=Phase.LAUNCHED)), timedelta(0), id="has-not-registered"),
        pytest.param(torn(replace(PROVISIONED, phase=Phase.DRAINING)), timedelta(0), id="goes"),
    ],
)
def test_a_pod_without_a_place_gets_another_node(state: Snapshot, later: timedelta) -> None:
    result = plan(state, now=NOW + later)
    assert types(result) == ["s1"]
    assert result.left_out == ()


def test_others_are_served_meanwhile() -> None:
    result = plan(torn(PROVISIONED, "own", "stranger"), now=SOON)
    assert types(result) == ["s1"]
    assert list(places(result)) == ["stranger"]


def test_a_pod_that_fits_its_node_goes_there() -> None:
    state = replace(torn(), claims=FrozenMap({"default/c-own": claim("c-own")}))
    result = plan(state, now=SOON)
    assert (places(result), result.launches, result.left_out) == ({"own": "n1"}, (), ())


def test_the_node_is_kept_for_its_pod() -> None:
    impatient = replace(TEAM, disruption=Disruption(after=timedelta(0)))
    state = replace(torn(replace(PROVISIONED, empty_since=NOW)), pools=(impatient,))
    assert [decision.action for decision in plan(state, now=SOON).nodes] == [NodeAction.KEEP]
    assert [d.action for d in plan(state, now=NOW + WATCH_SKEW).nodes] == [NodeAction.DRAIN]


def test_a_gang_with_such_a_member_is_not_bought_for_in_part() -> None:
    members = [pod(name, f"c-{name}", gang="g") for name in ("own", "b")]
    state = replace(torn(PROVISIONED, "own", "b"), pods=tuple(members), gangs=gang("g", 2))
    assert plan(state, now=SOON).launches == ()
    assert types(plan(state, now=NOW + WATCH_SKEW)) == ["s1", "s1"]


class TestDelay:
    WAITING = pod("a", "c", no_node_before=NOW + timedelta(minutes=5))

    def test_nothing_is_bought_before_it_is_over(self) -> None:
        result = plan(snapshot([self.WAITING], [claim("c")], pools=(TEAM,)))
        assert (result.launches, why_left(result, "a")) == ((), [Code.SCALE_UP_DELAYED])
        (left,) = result.left_out
        assert left.reasons[0].detail["until"] == "2026-11-21T08:05:00+00:00"

    def test_afterwards_it_is_like_any_other(self) -> None:
        state = snapshot([self.WAITING], [claim("c")], pools=(TEAM,))
        assert types(plan(state, now=NOW + timedelta(minutes=5))) == ["s1"]

    def test_a_place_that_is_there_is_taken_at_once(self) -> None:
        state = snapshot([self.WAITING], [claim("c")], provisioned=(ours("coming"),), pools=(TEAM,))
        assert places(plan(state)) == {"a": "coming"}

    def test_equal_pods_that_do_not_wait_are_bought_for(self) -> None:
        state = snapshot([self.WAITING, pod("b", "d")], [claim("c"), claim("d")], pools=(TEAM,))
        result = plan(state)
        assert (types(result), list(places(result))) == (["s1"], ["b"])

    def test_one_that_would_take_a_node_of_a_later_pod_gets_one_too(self) -> None:
        early, late = replace(self.WAITING, created=1), pod("b", "d", created=2)
        result = plan(snapshot([early, late], [claim("c"), claim("d")], pools=(TEAM,)))
        assert (types(result), sorted(places(result)), result.left_out) == (["s1", "s1"], ["a", "b"], ())
        assert Code.COMES_FIRST in [r.code for p in result.placements if p.pod == "default/a" for r in p.reasons]

    @pytest.mark.parametrize(
        ("early", "late"),
        [
            pytest.param({"created": 3}, {"created": 2}, id="came-later"),
            pytest.param({"created": 1}, {"created": 2, "priority": 5}, id="less-important"),
            pytest.param({"created": 1, "cpu": "500"}, {"created": 2}, id="does-not-fit-the-node"),
        ],
    )
    def test_one_that_would_not_waits(self, early: dict[str, Any], late: dict[str, Any]) -> None:
        waiting = pod("a", "c", no_node_before=NOW + timedelta(minutes=5), **early)
        result = plan(snapshot([waiting, pod("b", "d", **late)], [claim("c"), claim("d")], pools=(TEAM,)))
        assert (types(result), why_left(result, "a")) == (["s1"], [Code.SCALE_UP_DELAYED])


class TestBindable:
    """Pods that no plan provides for, but that kube-scheduler binds wherever they fit."""

    EARLY = pod("a", "c", gang="nowhere", created=1)
    LATE = pod("b", "d", created=2)
    CLAIMS = (claim("c"), claim("d"))

    def test_alone_nothing_is_bought(self) -> None:
        result = plan(snapshot([self.EARLY], self.CLAIMS, pools=(TEAM,)))
        assert (result.launches, why_left(result, "a")) == ((), [Code.GANG_INCOMPLETE])

    def test_what_comes_for_another_is_taken_and_nothing_is_said_of_that(self) -> None:
        coming = ours("coming", "s1", pods=("default/b",))
        result = plan(snapshot([self.EARLY, self.LATE], self.CLAIMS, provisioned=(coming,), pools=(TEAM,)))
        assert (types(result), why_left(result, "a")) == (["s1"], [Code.GANG_INCOMPLETE])
        assert [p.pod for p in result.placements] == ["default/b"]

    def test_one_that_would_take_a_node_of_a_later_pod_gets_one_too(self) -> None:
        result = plan(snapshot([self.EARLY, self.LATE], self.CLAIMS, pools=(TEAM,)))
        assert (types(result), sorted(places(result)), result.left_out) == (["s1", "s1"], ["a", "b"], ())

    @pytest.mark.parametrize(
        ("fields", "gangs"),
        [
            pytest.param({"pod_group": "nowhere"}, {}, id="group-in-the-spec"),
            pytest.param({"scheduler_name": "volcano"}, {}, id="another-scheduler"),
            pytest.param({}, gang("another", 1), id="groups-are-in-use"),
        ],
    )
    def test_one_that_its_scheduler_does_not_bind_is_not_counted(
        self, fields: dict[str, Any], gangs: FrozenMap[str, Gang]
    ) -> None:
        gated = REFERENCE.with_gates(gang_scheduling=True)
        volcano = replace(TEAM, scope=replace(TEAM.scope, schedulers=("default-scheduler", "volcano")))
        pods = [replace(self.EARLY, **fields), self.LATE]
        result = plan(snapshot(pods, self.CLAIMS, pools=(volcano,), profile=gated, gangs=FrozenMap(gangs)))
        assert (types(result), why_left(result, "a")) == (["s1"], [Code.GANG_INCOMPLETE])

    def test_one_that_is_not_bound_where_it_fits_keeps_nobody_from_there(self) -> None:
        there = torn(replace(PROVISIONED, pods=()))
        free = FrozenMap({c.key: c for c in self.CLAIMS})
        result = plan(replace(there, pods=(self.EARLY, self.LATE), claims=free), now=NOW + WATCH_SKEW)
        assert (places(result), result.launches, why_left(result, "a")) == ({"b": "n1"}, (), [Code.GANG_INCOMPLETE])

    @pytest.mark.parametrize(
        ("found", "counted"), [((), 2), ((ProvisioningRequest("default", "r", "other.dev", ()),), 1)]
    )
    def test_one_of_a_request_that_another_autoscaler_serves_gets_its_node_there(
        self, found: tuple[ProvisioningRequest, ...], counted: int
    ) -> None:
        annotations = FrozenMap({labels.CONSUME_PROVISIONING_REQUEST: "r"})
        early = replace(self.EARLY, gang=None, annotations=annotations)
        result = plan(snapshot([early, self.LATE], self.CLAIMS, pools=(TEAM,), provisioning_requests=found))
        assert types(result) == ["s1"] * counted
