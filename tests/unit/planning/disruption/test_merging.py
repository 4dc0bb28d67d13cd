"""Nodes that are tried together: which sets, when, and what becomes of the machine that is launched for them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from decimal import Decimal

import pytest

from autoscaler.model.capacity import DisruptionBudget, Saving
from autoscaler.model.labels import LabelSelector, Requirement
from autoscaler.model.node import Node
from autoscaler.model.plan import NodeAction, NodeDecision, Plan, PlannedNode
from autoscaler.model.pod import Pod
from autoscaler.model.pod_disruption_budget import PodDisruptionBudget
from autoscaler.model.provisioned_node import Phase, ProvisionedNode
from autoscaler.model.reason import Code, Reason
from autoscaler.model.snapshot import Snapshot
from autoscaler.planning.disruption.consolidation.merging import worth_a_try
from autoscaler.planning.disruption.consolidation.moves import MoveContext
from autoscaler.planning.disruption.consolidation.tried_moves import NOTHING_TRIED
from instance_catalog.dataclass import replace
from instance_catalog.frozen_map import FrozenMap
from tests.builders import NOW
from tests.unit.planning.disruption.moving import POOL, drained, launch, moved, node, present, served, state, step


def sets(nodes: Sequence[ProvisionedNode], pods: Sequence[Pod], *launches: PlannedNode) -> list[list[str]]:
    """The names of the nodes in each set, if the plan without all of them has these launches."""
    found = state(pods, nodes)
    context = MoveContext(
        snapshot=found,
        plan=Plan(),
        make=lambda _: Plan(),
        attempt=lambda _: Plan(launches=launches),
        prices=FrozenMap({one.name: one.offering.usd_per_hour or Decimal(0) for one in nodes}),
        saving={},
        pods={one.node_name: [p for p in pods if p.node_name == one.node_name] for one in nodes},
        idle={},
        closed=frozenset(),
        first=frozenset(),
        now=NOW,
    )
    return [[one.name for one in chosen] for chosen in worth_a_try(nodes, context)]


def takes(name: str, price: int, *pods: str) -> PlannedNode:
    return launch(name, Decimal(price), pods=tuple(f"default/{pod}" for pod in pods))


class TestSets:
    nodes = tuple(node(name) for name in "abcd")
    pods = tuple(served(f"p{name}", name) for name in "abcd")

    def test_nodes_whose_pods_one_machine_takes(self) -> None:
        found = sets(self.nodes, self.pods, takes("x", 70, "pa", "pb"), takes("y", 60, "pc", "pd"))
        assert found == [["c", "d"], ["a", "b"]], "what saves more is tried first"

    def test_equal_pods_are_exchangeable(self) -> None:
        """The plan swaps pods between two machines of the same size: still only whole nodes go."""
        pods = [served("a1", "a"), served("a2", "a"), served("b1", "b"), served("b2", "b")]
        assert sets(self.nodes[:2], pods, takes("x", 30, "a1", "b1", "a2", "b2")) == [["a", "b"]]
        assert sets(self.nodes[:2], pods, takes("x", 30, "a1", "b1"), takes("y", 30, "a2", "b2")) == []

    def test_a_machine_that_costs_more_is_no_reason(self) -> None:
        assert sets(self.nodes[:2], self.pods[:2], takes("x", 80, "pa", "pb")) == []
        assert sets(self.nodes[:2], self.pods[:2], takes("x", 79, "pa", "pb")) == [["a", "b"]]

    def test_pods_of_other_sizes_stay(self) -> None:
        """What a machine takes of a larger kind does not count for smaller pods."""
        pods = [*self.pods[:2], served("pc", "c", cpu="2"), served("pd", "d", cpu="2")]
        assert sets(self.nodes, pods, takes("x", 50, "pa", "pb", "pc"), takes("y", 10, "pd")) == [["a", "b", "c"]]
        assert sets(self.nodes, pods, takes("x", 70, "pc", "pd"), takes("y", 10, "pa")) == [["c", "d"]]

    def test_a_node_whose_pods_would_get_an_equal_machine_stays(self) -> None:
        same = replace(takes("x", 40, "pa"), offerings=(self.nodes[0].offering,))
        assert sets(self.nodes[:3], self.pods[:3], same, takes("y", 60, "pb", "pc")) == [["b", "c"]]

    def test_those_that_cost_most_for_a_pod_first(self) -> None:
        nodes = [node("a", usd_per_hour="20.00"), node("b"), node("c")]
        assert sets(nodes, self.pods[:3], takes("x", 60, "pa", "pb")) == [["b", "c"]]


def _one_for_three(without: Snapshot) -> Plan:
    """Only all three nodes together can be replaced."""
    wanted = [pod.key for pod in without.pods if pod.node_name is None]
    return moved(launch("one", Decimal(60), pods=tuple(wanted)), pods=wanted) if len(wanted) == 3 else Plan()


NODES = tuple(node(name) for name in "abc")
PODS = tuple(served(f"p{name}", name) for name in "abc")


@pytest.mark.parametrize(("budget", "launched"), [("0", 0), ("1", 1)])
def test_nodes_that_are_replaced_together_drain_one_after_the_other(budget: str, launched: int) -> None:
    disruption = replace(POOL.disruption, budgets=(DisruptionBudget(budget),))
    found = state(PODS, NODES, [replace(POOL, disruption=disruption)])
    assert len(step(found, _one_for_three).plan.launches) == launched


@pytest.mark.parametrize(("budget", "goes"), [("0", []), ("1", ["old"])])
def test_no_node_drains_beyond_the_budget(budget: str, goes: list[str]) -> None:
    disruption = replace(POOL.disruption, budgets=(DisruptionBudget(budget),))
    assert drained(step(state(pools=[replace(POOL, disruption=disruption)]), moved())) == goes


@pytest.mark.parametrize(
    ("schedule", "launched"),
    [("0-40 * * * *", 0), ("5-40 * * * *", 0), ("5-25 * * * *", 0), ("45-54 * * * *", 0), ("55-59 * * * *", 1)],
)
def test_no_machine_is_launched_shortly_before_a_budget_closes(schedule: str, launched: int) -> None:
    """It would end without a pod after half an hour, or with those of one of the three nodes."""
    disruption = replace(POOL.disruption, budgets=(DisruptionBudget("0", schedule),))
    found = state(PODS, NODES, [replace(POOL, disruption=disruption)])
    assert NOW.minute == 0
    assert len(step(found, _one_for_three).plan.launches) == launched


@pytest.mark.parametrize(("hour", "launched"), [("9", 0), ("10", 1)])
def test_pods_that_restart_for_days_do_not_ask_for_budgets_open_for_days(hour: str, launched: int) -> None:
    """The drains come before other moves for an hour."""
    disruption = replace(
        POOL.disruption,
        budgets=(DisruptionBudget("0", f"* {hour} * * *"),),
        saving=Saving(percent=1, payback=timedelta(days=3650), restart=timedelta(days=3)),
    )
    found = state(PODS, NODES, [replace(POOL, disruption=disruption)])
    assert NOW.hour == 8
    assert len(step(found, _one_for_three).plan.launches) == launched


def test_nodes_that_a_full_machine_once_replaced_are_not_always_tried_first() -> None:
    """A large cluster tries one node at a time."""
    new = node("new", replaces=("old",), phase_since=NOW - timedelta(hours=1))
    nodes = [node(), node("other"), new]
    found = state([served(), served("more", "other")], nodes)
    found = replace(found, nodes=(*found.nodes, *(Node(f"other-{number}") for number in range(2000))))
    first = step(found, Plan())
    seen = replace(first.tried, refused=FrozenMap())
    again = step(found, Plan(), seen, later=timedelta(minutes=6))
    assert {*first.tried.answers, *again.tried.answers} == {"old", "other"}


def test_what_was_launched_is_used_before_more_is_launched() -> None:
    """Otherwise pods of other nodes take its room, although it was bought for these."""
    new = node("new", replaces=("old",), phase_since=NOW - timedelta(minutes=1), usd_per_hour="5.00")
    nodes = [node(usd_per_hour="10.00"), node("dear", usd_per_hour="90.00"), new]

    def tried(without: Snapshot) -> Plan:
        wanted = [pod.key for pod in without.pods if pod.node_name is None]
        return moved(to="new") if wanted == ["default/web"] else moved(launch("more", pods=tuple(wanted)), pods=wanted)

    result = step(state([served(), served("other", "dear")], nodes), tried)
    assert (drained(result), result.plan.launches) == (["old"], ())


@pytest.mark.parametrize(("minutes", "launched"), [(59, 0), (60, 1)])
def test_a_replacement_that_other_pods_filled_is_not_the_last(minutes: int, launched: int) -> None:
    new = node("new", replaces=("old",), phase_since=NOW - timedelta(minutes=minutes))
    assert len(step(state(nodes=[node(), new]), moved(launch("third"))).plan.launches) == launched


def test_after_a_move_several_are_tried_together_at_once() -> None:
    first = step(state(PODS, NODES), _one_for_three)
    assert first.tried.together is None
    second = step(state(PODS, NODES), Plan())
    assert second.tried.together == NOW


def test_in_every_hour_others_of_many() -> None:
    names = [f"n{number:03}" for number in range(150)]
    found = state([served(f"p-{name}", name) for name in names], map(node, names))
    together, largest = set[str](), 0

    def tried(without: Snapshot) -> Plan:
        nonlocal largest
        gone = [one.name for one in without.provisioned if one.phase is Phase.DRAINING]
        largest = max(largest, len(gone))
        together.update(gone if len(gone) > 8 else ())
        return Plan()

    seen = NOTHING_TRIED
    for hour in range(6):
        seen = step(found, tried, seen, later=timedelta(hours=hour)).tried
    assert together == set(names)
    assert largest == 64


def test_no_more_pods_than_a_plan_can_take() -> None:
    names = [f"n{number:02}" for number in range(20)]
    pods = [served(f"p{number}-{name}", name) for name in names for number in range(30)]
    together: list[int] = []

    def tried(without: Snapshot) -> Plan:
        together.append(sum(one.phase is Phase.DRAINING for one in without.provisioned))
        return Plan()

    step(state(pods, map(node, names)), tried)
    assert max(together) == 17, "of 30 pods each, at most 512 pods"


def test_a_node_that_is_not_replaced_again_now_spoils_no_set() -> None:
    """Its replacements were in vain."""
    names: list[str] = []

    def tried(without: Snapshot) -> Plan:
        gone = [one.name for one in without.provisioned if one.phase is Phase.DRAINING]
        names.extend(gone if len(gone) > 1 else [])
        return Plan()

    seen = replace(NOTHING_TRIED, replaced=FrozenMap({"a": (NOW - timedelta(hours=2), 3)}))
    seen = replace(seen, tried=FrozenMap(dict.fromkeys("abc", NOW)), last=NOW - timedelta(hours=1))
    step(state(PODS, NODES), tried, seen)
    assert set(names) == {"b", "c"}


@pytest.mark.parametrize(("price", "goes"), [("20.50", True), ("19.50", False)])
def test_prices_are_compared_again_when_the_machine_is_ready(price: str, goes: bool) -> None:
    """Those of the old nodes may have fallen since the launch of one for 40 $/h."""
    new = node("new", replaces=("a", "b"), phase_since=NOW - timedelta(minutes=1))
    found = state(PODS[:2], [node("a", usd_per_hour=price), node("b", usd_per_hour=price), new])
    kept = present(found)
    idle = NodeDecision("new", NodeAction.KEEP, (Reason.of(Code.NODE_REPLACES, replaced=("a", "b")),))
    plan = replace(kept, nodes=(*kept.nodes[:2], idle))
    result = step(found, lambda without: moved(pods=_pending(without), to="new"), plan=plan)
    assert bool(drained(result)) is goes


@pytest.mark.parametrize(("lost", "together"), [(timedelta(minutes=5), True), (timedelta(hours=90_000), False)])
def test_a_pod_that_loses_too_much_does_not_keep_others_from_going_together(lost: timedelta, together: bool) -> None:
    """One annotation would otherwise refuse every set of nodes."""
    pods = [*PODS[:2], served("pc", "c", checkpoint_interval=lost)]
    tried: list[set[str]] = []

    def attempt(without: Snapshot) -> Plan:
        tried.append({key.removeprefix("default/") for key in _pending(without)})
        return Plan()

    step(state(pods, NODES), attempt)
    assert {"pc"} in tried, "it is tried alone"
    sets = [one for one in tried if len(one) > 1]
    assert ("pc" in sets[0]) is together
    assert {"pa", "pb", "pc"} in sets, "they are tried later"


@pytest.mark.parametrize("pods", [PODS[:2], PODS], ids=["it is empty", "its pods stay"])
def test_a_node_that_is_empty_by_now_does_not_keep_the_others(pods: Sequence[Pod]) -> None:
    new = node("new", replaces=("a", "b", "c"), phase_since=NOW - timedelta(minutes=1))
    budgets = [PodDisruptionBudget("default", "keep", LabelSelector((Requirement("app", "In", ("pc",)),)), 0)]
    labelled = [replace(pod, labels=FrozenMap({"app": pod.name})) for pod in pods]
    found = state(
        labelled, [*(node(name, usd_per_hour="20.50") for name in "abc"), new], disruption_budgets=tuple(budgets)
    )
    kept = present(found)
    idle = NodeDecision("new", NodeAction.KEEP, (Reason.of(Code.NODE_REPLACES, replaced=("a", "b", "c")),))
    result = step(
        found,
        lambda without: moved(pods=_pending(without), to="new"),
        plan=replace(kept, nodes=(*kept.nodes[:3], idle)),
    )
    assert drained(result) == (["a"] if len(pods) == 2 else [])


def _pending(found: Snapshot) -> list[str]:
    return [pod.key for pod in found.pods if pod.node_name is None]
