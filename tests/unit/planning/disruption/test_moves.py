"""What a move may not do: to other pods, to nodes that end, and to those who come later."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

import pytest

from autoscaler.loop.wake import next_wake
from autoscaler.model.capacity import Mode
from autoscaler.model.labels import LabelSelector
from autoscaler.model.plan import NodeAction, NodeDecision, Placement, Plan, PlannedNode, Target
from autoscaler.model.pod_disruption_budget import PodDisruptionBudget
from autoscaler.model.provisioned_node import OfferingRef, Phase, ProvisionedNode
from autoscaler.model.reason import Code, Reason
from autoscaler.model.requested_capacity import (
    Condition,
    PodSet,
    ProvisioningRequest,
    RequestClass,
    RequestCondition,
)
from autoscaler.model.snapshot import Snapshot
from autoscaler.planning.disruption.consolidation.tried_moves import NOTHING_TRIED
from autoscaler.settings.settings import LoopSettings
from instance_catalog.dataclass import replace
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes import labels
from instance_catalog.types.instance_type import CapacityType
from tests.builders import NOW, pod
from tests.unit.planning.disruption.moving import (
    POOL,
    claims_of,
    drained,
    launch,
    moved,
    node,
    present,
    served,
    state,
    step,
)


class TestManyNodes:
    def test_every_node_has_its_turn(self) -> None:
        """Also where the first are due again before the last were tried."""
        nodes = [node(f"n{number:03}") for number in range(200)]
        found = state([served(f"p{number:03}", f"n{number:03}") for number in range(200)], nodes)
        alone, seen, seconds = set[str](), NOTHING_TRIED, 0

        def tried(without: Snapshot) -> Plan:
            gone = [n.name for n in without.provisioned if n.phase is Phase.DRAINING]
            alone.update(gone if len(gone) == 1 else [])
            return Plan()

        for _ in range(30):
            result = step(found, tried, seen, later=timedelta(seconds=seconds))
            assert result.next_at is not None
            seen, seconds = result.tried, int((result.next_at - NOW).total_seconds())
        assert len(alone) == 200


def test_what_only_observes_stops_nothing() -> None:
    """An empty node of a pool that observes is to go in each plan, for as long as it observes."""
    dry = replace(POOL, name="dry", mode=Mode.OBSERVE)
    found = state(nodes=[node(), node("idle", pool="dry")], pools=[POOL, dry])
    plan = Plan(nodes=(present(found).nodes[0], NodeDecision("idle", NodeAction.DRAIN)))
    assert drained(step(found, moved(), plan=plan)) == ["old", "idle"]


def test_a_pod_that_is_never_bound_stops_nothing() -> None:
    stuck = pod("p", created=NOW.timestamp() - 3600)
    found = state([served(), stuck])
    place = Placement("default/p", Target.EXISTING, "old")
    tried = moved()
    result = step(
        found, replace(tried, placements=(*tried.placements, place)), plan=present(found, placements=(place,))
    )
    assert drained(result) == ["old"]


@pytest.mark.parametrize(("price", "goes"), [("40.00", False), ("5.00", True)])
def test_an_idle_node_costs_what_it_costs(price: str, goes: bool) -> None:
    """It would end in some minutes, so moving pods to it saves the difference only."""
    kind = OfferingRef("l1" if goes else "l8", "any", CapacityType.ON_DEMAND, Decimal(price))
    found = state(nodes=[node(), node("idle", offering=kind)])
    idle = NodeDecision("idle", NodeAction.KEEP, (Reason.of(Code.NODE_EMPTY, seconds=0),))
    result = step(found, moved(to="idle"), plan=Plan(nodes=(present(found).nodes[0], idle)))
    assert drained(result) == (["old"] if goes else [])


def test_a_replacement_that_waits_for_other_pods_costs_what_it_costs() -> None:
    """A pod may find a place before its replacement is there. It does not move again to what is about to end."""
    replaced, waits = Reason.of(Code.ALREADY_BOUND), Reason.of(Code.NODE_REPLACES, replaced=("gone",))
    nodes = [node(usd_per_hour="5.00"), node("new", replaces=("gone",), usd_per_hour="5.00")]
    plan = Plan(
        nodes=(NodeDecision("old", NodeAction.KEEP, (replaced,)), NodeDecision("new", NodeAction.KEEP, (waits,)))
    )
    assert drained(step(state(nodes=nodes), moved(to="new"), plan=plan)) == []
    own = replace(nodes[1], replaces=("old",), phase_since=NOW - timedelta(minutes=1))
    assert drained(step(state(nodes=[nodes[0], own]), moved(to="new"), plan=plan)) == ["old"]


def test_a_replacement_that_takes_only_some_of_the_pods_is_not_said_to_take_all() -> None:
    """It turned out too small, so another machine is launched for the rest."""
    new = node("new", replaces=("old",), phase_since=NOW - timedelta(hours=1), usd_per_hour="5.00")
    rest = launch("rest", pods=("default/more",))
    places = Placement("default/web", Target.EXISTING, "new"), Placement("default/more", Target.NEW, "rest")
    result = step(state([served(), served("more")], [node(), new]), Plan(launches=(rest,), placements=places))
    assert [launch.name for launch in result.plan.launches] == ["rest"]
    assert result.tried.answers["old"] == Reason.of(Code.NODE_REPLACED, saved="35.00", by=("l1",))


@pytest.mark.parametrize(
    ("mark", "gone", "goes"),
    [({}, False, ["a"]), ({labels.DO_NOT_DISRUPT: "true"}, False, []), ({}, True, [])],
    ids=["all may go", "one stays after all", "one is gone"],
)
def test_a_replacement_of_several_nodes_is_not_for_one_of_them(
    mark: dict[str, str], gone: bool, goes: list[str]
) -> None:
    """It costs less than all of them together, and more than each."""
    nodes = [node("a", usd_per_hour="5"), node("new", usd_per_hour="8", replaces=("a", "b"), phase_since=NOW)]
    pods = [served("web-a", "a")]
    if not gone:
        nodes.append(node("b", usd_per_hour="5"))
        pods.append(served("web-b", "b", annotations=FrozenMap(mark)))
    waits, bound = Reason.of(Code.NODE_REPLACES, replaced=("a", "b")), Reason.of(Code.ALREADY_BOUND)
    why = {"a": bound, "b": bound, "new": waits}
    plan = Plan(nodes=tuple(NodeDecision(n.name, NodeAction.KEEP, (why[n.name],)) for n in nodes))

    def tried(without: Snapshot) -> Plan:
        draining = [n.name for n in without.provisioned if n.phase is Phase.DRAINING]
        return moved(pods=[f"default/web-{name}" for name in draining], to="new")

    assert drained(step(state(pods, nodes), tried, plan=plan)) == goes


@pytest.mark.parametrize(
    "target",
    [
        pytest.param(node("t", reclaim_at=NOW + timedelta(hours=5)), id="its provider takes it back"),
        pytest.param(
            node("t", offering=OfferingRef("l8", "any", CapacityType.CAPACITY_BLOCK, Decimal(0), block="b")),
            id="its block ends",
        ),
        pytest.param(
            node("t", offering=OfferingRef("l8", "any", CapacityType.FLEX_START, Decimal(9))), id="its run ends"
        ),
        pytest.param(node("t", phase=Phase.LAUNCHING), id="its provider holds it, perhaps for weeks"),
    ],
)
def test_nothing_moves_to_what_ends_or_may_never_come(target: ProvisionedNode) -> None:
    found = state([served(), served("b", "t")], [node(), target], waiting=FrozenMap({"t": NOW}))
    assert drained(step(found, moved(to="t"))) == []
    assert drained(step(found, moved(to="other"))) == ["old"]


def booked_by_a_request(found: Snapshot, name: str) -> Snapshot:
    """The snapshot in which a ProvisioningRequest holds the Node for pods that are to come."""
    met = Condition(RequestCondition.PROVISIONED.value, "True")
    request = ProvisioningRequest(
        "default", "train", RequestClass.ATOMIC.value, (PodSet("t", 2),), uid="u-1", conditions=(met,)
    )
    label = FrozenMap({labels.PROVISIONING_REQUEST: request.node_label})
    nodes = tuple(replace(one, labels=label) if one.name == name else one for one in found.nodes)
    return replace(found, nodes=nodes, provisioning_requests=(request,))


@pytest.mark.parametrize(("booked", "to"), [("old", "other"), ("t", "t")])
def test_a_booked_node_is_left_alone(booked: str, to: str) -> None:
    """Neither does it go, nor do pods move to it."""
    found = state([served(), served("b", "t")], [node(), node("t", usd_per_hour="41.00")])
    assert drained(step(found, moved(to=to))) != []
    assert "old" not in drained(step(booked_by_a_request(found, booked), moved(to=to)))


def test_nothing_moves_to_where_a_pod_makes_room_for_itself() -> None:
    """kube-scheduler has nominated it there, and would preempt what takes its room."""
    pods = [served(), served("b", "t"), pod("urgent", nominated_node="t", priority=1000)]
    found = state(pods, [node(), node("t", usd_per_hour="41.00")])
    assert drained(step(found, moved(to="t"))) == []
    assert drained(step(found, moved(to="other"))) == ["old"]


@pytest.mark.parametrize("launches", [(), (launch(),)])
def test_a_move_is_not_made_if_a_pod_may_get_no_place(
    launches: tuple[PlannedNode, ...],
) -> None:
    result = step(state(), moved(*launches), stuck="default/web")
    assert (drained(result), result.plan.launches) == ([], ())
    assert result.plan.nodes[0].reasons[1].code is Code.NO_OTHER_PLACE


def test_the_pods_of_a_replacement_come_first() -> None:
    new = node("new", replaces=("old",), phase_since=NOW - timedelta(minutes=1), pods=("default/large",))
    orders = list[list[str]]()

    def tried(found: Snapshot) -> Plan:
        orders.append([p.name for p in found.pods if p.node_name is None])
        return Plan()

    step(state([served("small"), served("large")], [node(), new]), tried)
    assert orders[0] == ["large", "small"]


def test_a_replacement_in_vain_is_launched_ever_more_rarely() -> None:
    seen, launched, hours = NOTHING_TRIED, list[int](), 0
    for hours in range(24):
        result = step(state(), moved(launch()), seen, later=timedelta(hours=hours))
        launched += [hours] if result.plan.launches else []
        seen = result.tried
    assert launched == [0, 1, 3, 7, 15]


@pytest.mark.parametrize(("shared", "goes"), [("claim", False), ("other", True)])
def test_what_two_pods_share_under_a_budget_keeps_both(shared: str, goes: bool) -> None:
    """The first would wait elsewhere for what the second holds here, and the budget keeps the second."""
    pods = [replace(served("a"), claims=claims_of("claim")), replace(served("b"), claims=claims_of(shared))]
    budget = PodDisruptionBudget("default", "b", LabelSelector(), 1)
    found = state(pods, disruption_budgets=(budget,))
    result = step(found, moved(pods=["default/a", "default/b"]))
    assert drained(result) == (["old"] if goes else [])
    assert drained(step(replace(found, disruption_budgets=()), moved(pods=["default/a", "default/b"]))) == ["old"]


def test_a_drain_is_tried_again_once_the_taint_is_seen() -> None:
    found = state()
    first = step(found, moved())
    assert first.tried.going == ("old",)
    second = step(found, moved(), first.tried, later=timedelta(seconds=1))
    assert drained(second) == ["old"]
    third = step(found, Plan(), first.tried, later=timedelta(seconds=1))
    assert (drained(third), third.tried.going) == ([], ())


def test_the_loop_wakes_when_a_replacement_was_in_vain() -> None:
    new = node(
        "new", replaces=("old",), phase_since=NOW - timedelta(minutes=10), empty_since=NOW - timedelta(minutes=10)
    )
    assert next_wake(state(nodes=[node(), new]), LoopSettings(), NOW) == NOW + timedelta(minutes=20)


HOUR = 3600


@pytest.mark.parametrize(
    ("ages", "runs", "goes"),
    [
        pytest.param([HOUR], [None], True, id="nobody knows"),
        pytest.param([HOUR], [10 * HOUR], True, id="runs for long"),
        pytest.param([HOUR], [HOUR + 300], False, id="ends in five minutes"),
        pytest.param([HOUR, HOUR], [HOUR + 300, 10 * HOUR], True, id="another runs for long"),
        pytest.param([HOUR, HOUR], [HOUR + 300, None], True, id="of another nobody knows"),
        pytest.param([HOUR], [HOUR // 2], True, id="should have ended"),
    ],
)
def test_pods_that_end_soon_are_not_moved(ages: list[int], runs: list[int | None], goes: bool) -> None:
    """What a move saves, it saves as long as they run."""
    pods = [
        served(
            f"p{i}",
            created=NOW.timestamp() - age,
            expected_duration=None if seconds is None else timedelta(seconds=seconds),
        )
        for i, (age, seconds) in enumerate(zip(ages, runs, strict=True))
    ]
    result = step(state(pods), moved(pods=[p.key for p in pods]))
    assert drained(result) == (["old"] if goes else [])
