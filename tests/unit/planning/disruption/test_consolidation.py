"""When a move is tried, when it is taken, and what it may not do. The plan of the cluster without the nodes is made by
hand; whole lives are in tests/unit/simulation/test_consolidation.py."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from autoscaler.lifecycle.movable import deletion_cost
from autoscaler.model.capacity import Disruption, Mode
from autoscaler.model.labels import LabelSelector
from autoscaler.model.plan import NodeAction, NodeDecision, Placement, Plan, Target
from autoscaler.model.pod import GangRef, Pod
from autoscaler.model.pod_disruption_budget import PodDisruptionBudget
from autoscaler.model.provisioned_node import OfferingRef, Phase
from autoscaler.model.reason import Code
from autoscaler.model.snapshot import Backoff, Quarantine, Snapshot
from autoscaler.model.spending import Spending
from autoscaler.planning.disruption.consolidation.consolidation import Consolidated
from autoscaler.planning.disruption.consolidation.tried_moves import NOTHING_TRIED
from autoscaler.planning.policy import Policy
from instance_catalog.dataclass import replace
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.types.catalog import Catalog
from instance_catalog.types.instance_type import CapacityType
from tests.builders import CATALOG, NOW, codes, pod
from tests.unit.planning.disruption.moving import (
    CHEAP,
    DEAR,
    POOL,
    drained,
    launch,
    moved,
    node,
    present,
    served,
    state,
    step,
)


def test_a_node_whose_pods_fit_elsewhere_drains() -> None:
    result = step(state(), moved())
    assert drained(result) == ["old"]
    assert codes(result.plan.nodes[0].reasons) == [Code.NODE_DISPENSABLE]
    assert result.plan.nodes[0].reasons[0].detail["saved"] == "40.00"


def test_a_cheaper_node_comes_first() -> None:
    result = step(state(), moved(launch()))
    assert drained(result) == []
    (bought,) = result.plan.launches
    assert bought.replaces == ("old",)
    assert codes(bought.reasons) == [Code.NODE_REPLACES]
    assert codes(result.plan.nodes[0].reasons) == [Code.ALREADY_BOUND, Code.NODE_REPLACED]


def _never(_: Snapshot) -> Plan:
    raise AssertionError("nothing is tried")


LAUNCHED = launch("for-somebody", pods=("default/p",))
BUFFERED = Placement("default/buffer:warm-0", Target.EXISTING, "old")


@pytest.mark.parametrize(
    ("found", "plan"),
    [
        pytest.param(state(nodes=[node(), node("n", phase=Phase.LAUNCHING)]), None, id="a node comes"),
        pytest.param(state(nodes=[node(), node("n", phase=Phase.TERMINATING)]), None, id="a node goes"),
        pytest.param(state(), present(state(), launches=(LAUNCHED,)), id="a node is launched"),
        pytest.param(
            state([served(), pod("p", created=NOW.timestamp())]),
            present(state(), placements=(Placement("default/p", Target.EXISTING, "old"),)),
            id="a pod gets a place",
        ),
        pytest.param(
            state(nodes=[node(), node("e")]),
            Plan(nodes=(*present(state()).nodes, NodeDecision("e", NodeAction.DRAIN))),
            id="a node drains",
        ),
        pytest.param(state(pools=[replace(POOL, disruption=Disruption())]), None, id="the pool does not ask"),
        pytest.param(state(pools=[replace(POOL, deleting=True)]), None, id="the pool goes"),
        pytest.param(state(nodes=[node(phase_since=NOW - timedelta(minutes=9))]), None, id="the node has just come"),
        pytest.param(state(nodes=[node(hosts=4)]), None, id="a host of a slice"),
        pytest.param(state(nodes=[node(unhealthy_since=NOW)]), None, id="an unhealthy node"),
        pytest.param(state(nodes=[node(stopped_since=NOW)]), None, id="a stopped machine"),
        pytest.param(state(nodes=[node(reclaim_at=NOW + timedelta(hours=1))]), None, id="a machine that is taken back"),
        pytest.param(
            state(nodes=[node(offering=OfferingRef("l8", "any", CapacityType.CAPACITY_BLOCK, Decimal(40), block="b"))]),
            None,
            id="a machine of a block",
        ),
        pytest.param(
            state(nodes=[node(offering=OfferingRef("l8", "any", CapacityType.RESERVED, Decimal(40), reservation="r"))]),
            None,
            id="a reserved machine",
        ),
        pytest.param(
            state(nodes=[node(offering=OfferingRef("l8", "any", CapacityType.ON_DEMAND))]), None, id="no price is known"
        ),
        pytest.param(state(pods=[served(), pod("p", nominated_node="old")]), None, id="a pod is nominated"),
        pytest.param(state(unreadable=FrozenMap({"PodDisruptionBudget": "list"})), None, id="budgets cannot be read"),
        pytest.param(state(pods=[served(gang=GangRef("default", "g"))]), None, id="a gang"),
        pytest.param(state(pods=[served(pod_group="g")]), None, id="a pod group"),
        pytest.param(state(pods=[served(), served("ends", deleting=True)]), None, id="a pod is being deleted"),
        pytest.param(
            state(
                disruption_budgets=tuple(
                    PodDisruptionBudget("default", name, LabelSelector(), 1) for name in ("one", "two")
                )
            ),
            None,
            id="two budgets",
        ),
    ],
)
def test_nothing_is_tried_while(found: Snapshot, plan: Plan | None) -> None:
    result = step(found, _never, plan=plan)
    assert drained(result) == drained(Consolidated(plan or present(found), NOTHING_TRIED))
    assert all(not bought.replaces for bought in result.plan.launches)


@pytest.mark.parametrize(
    "tried",
    [
        pytest.param(Plan(), id="a pod fits nowhere"),
        pytest.param(moved(pods=("default/web", "default/waits")), id="a pod that waits would get the place"),
        pytest.param(moved(launch(price=Decimal("34.50"))), id="it saves too little"),
        pytest.param(moved(launch(capacity_type=CapacityType.CAPACITY_BLOCK)), id="only a block has room"),
        pytest.param(moved(launch(capacity_type=CapacityType.FLEX_START)), id="only capacity that may come late"),
        pytest.param(moved(launch(usd_per_hour=None)), id="only a machine without a price"),
        pytest.param(moved(launch(whole="s")), id="only a whole slice"),
    ],
)
def test_a_move_is_not_made_where(tried: Plan) -> None:
    result = step(state(), tried)
    assert (drained(result), result.plan.launches) == ([], ())
    assert codes(result.plan.nodes[0].reasons)[1] in (Code.NO_OTHER_PLACE, Code.NOT_CHEAPER)


def test_who_had_a_place_keeps_it() -> None:
    """The room of a CapacityBuffer is not given up to save money."""
    found = state()
    plan = present(found, placements=(BUFFERED,))
    assert drained(step(found, moved(), plan=plan)) == []
    kept = moved()
    kept = replace(kept, placements=(*kept.placements, replace(BUFFERED, node="other")))
    assert drained(step(found, kept, plan=plan)) == ["old"]


def test_what_others_would_launch_counts_for_nothing() -> None:
    """A pool that only observes proposes the same with and without the move."""
    observing = replace(POOL, name="dry", mode=Mode.OBSERVE)
    proposed = launch("proposed", Decimal(90), pool="dry", pods=("default/waits",))
    waits = Placement("default/waits", Target.NEW, "proposed")
    found = state(pools=[POOL, observing])
    plan = present(found, launches=(proposed,), placements=(waits,))
    tried = moved()
    result = step(found, replace(tried, launches=(proposed,), placements=(*tried.placements, waits)), plan=plan)
    assert drained(result) == ["old"]


@pytest.mark.parametrize("launching", [True, False])
def test_a_pool_that_observes_moves_nothing(launching: bool) -> None:
    observing = replace(POOL, mode=Mode.OBSERVE)
    result = step(state(pools=[observing]), moved(launch()) if launching else moved())
    assert (drained(result), result.plan.launches) == ([], ())
    assert codes(result.plan.nodes[0].reasons)[1] is (Code.NODE_REPLACED if launching else Code.NODE_DISPENSABLE)


def test_nothing_moves_between_a_pool_that_acts_and_one_that_does_not() -> None:
    found = state(pools=[POOL, replace(POOL, name="dry", mode=Mode.OBSERVE)])
    assert step(found, moved(launch(pool="dry"))).plan.launches == ()


def test_dearer_substitutes_are_left_out() -> None:
    """Of what fits the pods only that is asked for which leaves the saving worth the move."""
    bought = step(state(), moved(launch("new", CHEAP, ("l4", Decimal(20)), ("l8", DEAR)))).plan.launches[0]
    assert [offering.instance_type for offering in bought.offerings] == ["l1", "l4"]


def test_a_replacement_is_launched_once() -> None:
    found = state()
    first = step(found, moved(launch()))
    again = step(found, moved(launch()), first.tried, later=timedelta(minutes=30))
    assert again.plan.launches == ()
    assert len(step(found, moved(launch()), first.tried, later=timedelta(hours=2)).plan.launches) == 1


def test_after_a_restart_the_replacement_itself_says_so() -> None:
    found = state(nodes=[node(), node("new", replaces=("old",), phase_since=NOW - timedelta(minutes=1))])
    assert step(found, moved(launch("third"))).plan.launches == ()
    assert drained(step(found, moved(to="new"))) == ["old"]


def test_what_was_replaced_goes_first() -> None:
    """Although another node saves more."""
    replaced = node("old", usd_per_hour="20.00")
    others = [node("dearer"), node("new", replaces=("old",), phase_since=NOW - timedelta(minutes=1))]
    pods = [served(), served("b", "dearer"), served("c", "dearer")]
    seen: list[tuple[str, ...]] = []

    def tried(found: Snapshot) -> Plan:
        seen.append(tuple(n.name for n in found.provisioned if n.phase is Phase.DRAINING))
        return Plan()

    step(state(pods, [replaced, *others]), tried)
    assert seen[0] == ("old",)


def test_a_few_nodes_at_a_time_and_each_in_its_turn() -> None:
    nodes = [node(f"n{number:02}") for number in range(20)]
    pods = [served(f"p{number:02}", f"n{number:02}") for number in range(20)]
    found, seen, alone, seconds = state(pods, nodes), NOTHING_TRIED, [], 0

    def tried(without: Snapshot) -> Plan:
        gone = [n.name for n in without.provisioned if n.phase is Phase.DRAINING]
        alone.extend(gone if len(gone) == 1 else [])
        return Plan()

    while len(alone) < 20:
        before = len(alone)
        result = step(found, tried, seen, later=timedelta(seconds=seconds))
        assert len(alone) - before in (0, 4, 8)
        assert result.next_at is not None
        assert result.next_at > NOW + timedelta(seconds=seconds)
        seen, seconds = result.tried, int((result.next_at - NOW).total_seconds())
    assert sorted(alone) == [n.name for n in nodes]
    assert seconds == 3600  # when many are tried together again
    for _ in range(5):
        result = step(found, tried, seen, later=timedelta(seconds=seconds))
        assert result.next_at is not None
        seen, seconds = result.tried, int((result.next_at - NOW).total_seconds())
    assert (len(alone), seconds) == (20, 6 * 3600)  # the first are tried again, six hours after their turn


@pytest.mark.parametrize(
    ("pods", "minutes", "again"),
    [
        pytest.param((served(),), 359, False, id="all is as it was"),
        pytest.param((served(),), 360, True, id="six hours later a guard may have changed"),
        pytest.param((served(), served("other")), 4, False, id="a pod was bound shortly after"),
        pytest.param((served(), served("other")), 5, True, id="a pod was bound"),
    ],
)
def test_a_node_is_tried_again_after_a_change_and_otherwise_every_six_hours(
    pods: tuple[Pod, ...], minutes: int, again: bool
) -> None:
    tries: list[Snapshot] = []

    def tried(without: Snapshot) -> Plan:
        tries.append(without)
        return Plan()

    first = step(state(), tried)
    assert first.next_at == NOW + timedelta(hours=6)
    step(state(pods), tried, first.tried, later=timedelta(minutes=minutes))
    assert len(tries) == (2 if again else 1)


def test_nodes_that_are_due_again_wait_for_those_that_were_tried_longer_ago() -> None:
    """With a change before every try, all nodes are always due."""
    nodes = [node(f"n{number:02}") for number in range(20)]
    pods = [served(f"p{number:02}", f"n{number:02}") for number in range(20)]
    found, seen, alone = state(pods, nodes), NOTHING_TRIED, set[str]()

    def tried(without: Snapshot) -> Plan:
        gone = [n.name for n in without.provisioned if n.phase is Phase.DRAINING]
        alone.update(gone if len(gone) == 1 else [])
        return Plan()

    for turn in range(3):
        changed = replace(CATALOG, digest=f"of try {turn}")
        seen = step(found, tried, seen, later=turn * timedelta(minutes=5), catalog=changed).tried
    assert len(alone) == 20


SHORT = Backoff(NOW + timedelta(hours=1), instance_type="l1", reason="Shortage")


@pytest.mark.parametrize(
    ("before", "after", "catalog"),
    [
        pytest.param((), (SHORT,), CATALOG, id="a shortage came"),
        pytest.param((SHORT,), (), CATALOG, id="a shortage is forgotten"),
        pytest.param((), (), replace(CATALOG, digest="other"), id="a price changed"),
    ],
)
def test_shortages_and_prices_are_changes(
    before: tuple[Backoff, ...], after: tuple[Backoff, ...], catalog: Catalog
) -> None:
    tries: list[Snapshot] = []

    def tried(without: Snapshot) -> Plan:
        tries.append(without)
        return Plan()

    first = step(state(backoffs=before), tried)
    step(state(backoffs=after), tried, first.tried, later=timedelta(minutes=5), catalog=catalog)
    assert len(tries) == 2


@pytest.mark.parametrize(
    "avoided",
    [
        pytest.param({"backoffs": (Backoff(NOW + timedelta(minutes=10), "l1"),)}, id="shortage"),
        pytest.param(
            {"quarantines": (Quarantine("team", "l1", ("nvidia",), times=1, until=NOW + timedelta(minutes=10)),)},
            id="quarantine",
        ),
    ],
)
def test_a_node_is_tried_again_after_the_end_of_what_kept_a_type_from_being_bought(avoided: dict[str, Any]) -> None:
    """The record stays as it is after its end."""
    tries: list[Snapshot] = []

    def tried(without: Snapshot) -> Plan:
        tries.append(without)
        return Plan()

    found, seen = state(**avoided), NOTHING_TRIED
    for minutes, expected in ((0, 1), (9, 1), (10, 2), (60, 2)):
        seen = step(found, tried, seen, later=timedelta(minutes=minutes)).tried
        assert len(tries) == expected


def test_a_node_whose_pods_may_not_move_is_looked_at_every_five_minutes() -> None:
    first = step(state([served(owner="Job/train")]), Plan())
    assert first.next_at == NOW + timedelta(minutes=5)


def test_several_nodes_together_where_none_can_go_alone() -> None:
    nodes = [node(f"n{number}") for number in range(3)]
    pods = [served(f"p{number}", f"n{number}") for number in range(3)]

    def tried(without: Snapshot) -> Plan:
        gone = [n.name for n in without.provisioned if n.phase is Phase.DRAINING]
        wanted = [p.key for p in without.pods if p.node_name is None]
        return moved(launch("one", Decimal(60), pods=tuple(wanted)), pods=wanted) if len(gone) == 3 else Plan()

    result = step(state(pods, nodes), tried)
    assert [bought.replaces for bought in result.plan.launches] == [("n0", "n1", "n2")]
    assert {codes(d.reasons)[-1] for d in result.plan.nodes} == {Code.NODE_REPLACED}


def test_a_spending_guard_lets_more_be_launched_as_time_passes() -> None:
    policy = Policy(max_launches_per_hour=2)
    found = state(spending=Spending(NOW, recent_launches=Decimal(2)))
    first = step(found, Plan(), policy=policy)
    assert "old" in first.tried.refused
    assert drained(step(found, moved(), first.tried, policy=policy, later=timedelta(minutes=5))) == ["old"]


def test_the_move_that_saves_most_is_taken() -> None:
    nodes = [node("a", usd_per_hour="10.00"), node("b", usd_per_hour="30.00")]
    pods = [served("p", "a"), served("q", "b")]
    result = step(state(pods, nodes), lambda found: moved(pods=[p.key for p in found.pods if p.node_name is None]))
    assert drained(result) == ["b"]


@pytest.mark.parametrize(
    ("text", "cost"), [("-5", -5), ("100", 100), ("", 0), ("many", 0), ("1.5", 0), ("9" * 99, 0), ("٣", 0)]
)
def test_the_deletion_cost_is_a_whole_number(text: str, cost: int) -> None:
    annotations = FrozenMap({"controller.kubernetes.io/pod-deletion-cost": text})
    assert deletion_cost(pod("p", annotations=annotations)) == cost
