"""What planning does not do although it could: the bounds on what goes and on what is bought, at their edges."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from autoscaler.model.capacity import (
    Baseline,
    CapacityPool,
    Disruption,
    DisruptionBudget,
    GroupOffering,
    Limits,
    Permission,
    PodScope,
    Scope,
)
from autoscaler.model.node import Node
from autoscaler.model.plan import NodeAction
from autoscaler.model.provisioned_node import OfferingRef, Phase
from autoscaler.model.snapshot import Quarantine
from autoscaler.planning.policy import Policy
from autoscaler.planning.supply.blocks import available
from autoscaler.planning.supply.candidates import candidates_of
from instance_catalog.dataclass import replace
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes import labels
from instance_catalog.kubernetes.node_selector import Requirement
from instance_catalog.kubernetes.quantity import Quantity
from instance_catalog.types.instance_type import CapacityType
from tests.builders import CATALOG, NOW, block, claim, gpus, ours, pairs, places, plan, pod, snapshot, types

LONG_AGO = NOW - timedelta(hours=1)
TEAM = CapacityPool("team", requirements=(Requirement(labels.INSTANCE_TYPE, "In", ("s1", "s4")),))
ROOM = FrozenMap({"cpu": Quantity.parse("8"), "pods": Quantity.of(10)})
SMALL_ONE = gpus(1, product="Small S1")


def drained(*budgets: DisruptionBudget, **phases: Phase) -> int:
    """How many of four idle nodes go; `phases` of some of them, by name."""
    names = (f"n{number}" for number in range(4))
    nodes = tuple(ours(name, phase=phases.get(name, Phase.READY), empty_since=LONG_AGO) for name in names)
    pool = replace(TEAM, disruption=Disruption(budgets=budgets))
    found = plan(snapshot([], pools=(pool,), provisioned=nodes)).nodes
    return [decision.action for decision in found].count(NodeAction.DRAIN)


def test_nodes_that_are_going_use_the_budget() -> None:
    assert drained(DisruptionBudget("2"), n0=Phase.DRAINING) == 1
    assert drained(DisruptionBudget("2"), n0=Phase.DRAINING, n1=Phase.TERMINATING) == 0


def test_the_strictest_budget_counts() -> None:
    assert drained(DisruptionBudget("1"), DisruptionBudget("100%")) == 1


def test_a_budget_whose_schedule_cannot_be_read_is_in_force() -> None:
    assert drained(DisruptionBudget("0", "every other day")) == 0


@pytest.mark.parametrize(("phase", "expected"), [(Phase.READY, {"p": "n"}), (Phase.DRAINING, {})])
def test_a_node_on_its_way_out_takes_no_pods_and_one_that_is_wanted_stays(
    phase: Phase, expected: dict[str, str]
) -> None:
    node = ours("n", phase=phase, empty_since=LONG_AGO)
    there = Node("n", labels=FrozenMap({labels.POOL: node.pool}), ready=True, allocatable=ROOM)
    pool = replace(TEAM, scope=Scope(PodScope.ALL))
    result = plan(snapshot([pod("p")], nodes=(there,), pools=(pool,), provisioned=(node,)))
    assert {name: where for name, where in places(result).items() if where == "n"} == expected
    assert [decision.action for decision in result.nodes] == ([NodeAction.KEEP] if expected else [])


@pytest.mark.parametrize(
    ("until", "bought"), [(NOW + timedelta(minutes=1), "s4"), (NOW, "s1"), (NOW - timedelta(minutes=1), "s1")]
)
def test_a_type_in_quarantine_is_not_bought(until: Any, bought: str) -> None:
    quarantine = Quarantine("team", "s1", ("nvidia",), until=until)
    pool = replace(TEAM, drivers=("nvidia",))
    state = snapshot([pod("p", "c")], [claim("c", SMALL_ONE)], pools=(pool,), quarantines=(quarantine,))
    assert types(plan(state)) == [bought]


def test_candidates_are_the_cheapest_first() -> None:
    found = candidates_of(snapshot([]), CATALOG, Policy(), now=NOW)
    prices = [candidate.usd_per_hour for candidate in found if candidate.usd_per_hour is not None]
    assert prices == sorted(prices)
    assert len(set(prices)) > 1


@pytest.mark.parametrize(
    ("policy", "bought"),
    [
        pytest.param(Policy(max_usd_per_hour=Decimal("4.60")), 1, id="the hour's, with just enough"),
        pytest.param(Policy(max_usd_per_hour=Decimal("4.59")), 0, id="the hour's, a cent short"),
        pytest.param(Policy(max_usd_per_day=Decimal("73.60")), 1, id="the day's, with just enough"),
        pytest.param(Policy(max_usd_per_day=Decimal("73.59")), 0, id="the day's, a cent short"),
    ],
)
def test_what_runs_counts_against_the_guards(policy: Policy, bought: int) -> None:
    # 3.60 $/h run already; s1 costs 1 $/h, and sixteen hours are left of the day.
    running = ours("n", phase=Phase.READY, provider_id="machine")
    busy = pod("busy", node_name="n", phase="Running")
    pods, claims = pairs(1, SMALL_ONE)
    assert len(types(plan(snapshot([*pods, busy], claims, provisioned=(running,)), policy=policy))) == bought


def test_a_baseline_stays_below_the_limit_of_its_pool() -> None:
    pool = replace(TEAM, baselines=(Baseline(3),), limits=Limits(nodes=2))
    assert len(types(plan(snapshot([], pools=(pool,))))) == 2


def test_what_a_launch_falls_back_to_stays_below_the_limits_too() -> None:
    def offered(limit: str | None) -> list[str]:
        pool = replace(TEAM, limits=Limits(usd_per_hour=None if limit is None else Decimal(limit)))
        state = snapshot([pod("p", "c")], [claim("c", SMALL_ONE)], pools=(pool,))
        (node,) = plan(state).launches
        return [offering.instance_type for offering in node.offerings]

    assert offered(None) == ["s1", "s4"]
    assert offered("3.60") == ["s1", "s4"]
    assert offered("3.59") == ["s1"]


@pytest.mark.parametrize(("overflow", "bought"), [(Permission.NEVER, []), (Permission.ALLOW, ["s1"])])
def test_a_pool_with_a_reservation_overflows_only_when_it_says_so(overflow: Permission, bought: list[str]) -> None:
    pool = CapacityPool("team", capacity_types=(CapacityType.CAPACITY_BLOCK, CapacityType.ON_DEMAND), overflow=overflow)
    own = block(pool="team", available=0)
    state = snapshot([pod("p", "c")], [claim("c", SMALL_ONE)], pools=(pool,), blocks=(own,))
    assert types(plan(state)) == bought


@pytest.mark.parametrize(("kind", "bought"), [("capacity-block", ["l8"]), ("reserved", ["l8"]), ("on-demand", [])])
def test_a_group_of_any_reservation_starts_the_machines_of_a_block(kind: str, bought: list[str]) -> None:
    """A CapacityBlock may name an on-demand reservation: its group says that its machines are reserved."""
    own = block(pool="team")
    group = GroupOffering(own.instance_type, own.zone, kind)
    pool = CapacityPool("team", capacity_types=(CapacityType.CAPACITY_BLOCK,), groups=frozenset({group}))
    state = snapshot([pod("p", "c")], [claim("c")], pools=(pool,), blocks=(own,))
    assert types(plan(state)) == bought


@pytest.mark.parametrize(("said", "left"), [(None, 1), (2, 1), (1, 1), (0, 0)])
def test_of_a_block_no_more_is_available_than_our_nodes_leave(said: int | None, left: int) -> None:
    offering = OfferingRef("l8", "us-east-1a", CapacityType.CAPACITY_BLOCK, Decimal("0"), "cr-1", "november")
    assert available(block(available=said), (ours("n", offering=offering),)) == left
