"""What becomes of our own nodes, and the ones that are kept up without pods."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from autoscaler.model.capacity import Baseline, CapacityPool, Disruption, DisruptionBudget, Drain
from autoscaler.model.plan import Disposal, NodeDecision
from autoscaler.model.provisioned_node import OfferingRef, Phase
from autoscaler.model.reason import Code
from autoscaler.model.snapshot import Snapshot
from instance_catalog import labels
from instance_catalog.node_selector import Requirement
from tests.unit.planning.scene import NOW, block, codes, gpus, ours, pairs, plan, pod, snapshot, types

LONG_AGO = NOW - timedelta(hours=1)
ONLY_S1 = (Requirement(labels.INSTANCE_TYPE, "In", ("s1",)),)
TEAM = CapacityPool("team", requirements=ONLY_S1)
IN_BLOCK = OfferingRef("l8", "us-east-1a", "capacity-block", "0", "cr-1", "november")


def decision(state: Snapshot, name: str = "n") -> NodeDecision:
    return next(d for d in plan(state).nodes if d.provisioned_node == name)


@pytest.mark.parametrize(
    ("fields", "disposal", "code"),
    [
        pytest.param({"empty_since": LONG_AGO}, Disposal.DRAIN, Code.NODE_EMPTY, id="empty-long-enough"),
        pytest.param(
            {"empty_since": NOW - timedelta(minutes=4)}, Disposal.KEEP, Code.NODE_EMPTY, id="empty-for-a-moment"
        ),
        pytest.param({"phase": Phase.LAUNCHING}, Disposal.KEEP, Code.COMING_NODE, id="still-coming"),
    ],
)
def test_idle_nodes(fields: dict[str, Any], disposal: Disposal, code: Code) -> None:
    node = ours("n", **{"phase": Phase.READY, **fields})
    found = decision(snapshot([], pools=(TEAM,), provisioned=(node,)))
    assert (found.disposal, codes(found.reasons)) == (disposal, [code])


def test_a_node_with_a_pod_stays() -> None:
    node = ours("n", phase=Phase.READY, empty_since=LONG_AGO)
    state = snapshot([pod("busy", node_name="n", phase="Running")], provisioned=(node,))
    assert decision(state).disposal is Disposal.KEEP
    alone = snapshot([pod("d", node_name="n", phase="Running", owner="DaemonSet/d")], provisioned=(node,))
    assert decision(alone).disposal is Disposal.DRAIN


def test_a_pool_that_never_consolidates_keeps_empty_nodes() -> None:
    node = ours("n", phase=Phase.READY, empty_since=LONG_AGO)
    pool = replace(TEAM, disruption=Disruption(consolidate="Never"))
    assert decision(snapshot([], pools=(pool,), provisioned=(node,))).disposal is Disposal.KEEP


@pytest.mark.parametrize(("budget", "drained"), [("1", 1), ("50%", 2), ("0", 0), ("100%", 4)])
def test_a_budget_bounds_how_many_go_at_once(budget: str, drained: int) -> None:
    nodes = tuple(ours(f"n{i}", phase=Phase.READY, empty_since=LONG_AGO) for i in range(4))
    pool = replace(TEAM, disruption=Disruption(budgets=(DisruptionBudget(budget),)))
    found = plan(snapshot([], pools=(pool,), provisioned=nodes)).nodes
    assert [d.disposal for d in found].count(Disposal.DRAIN) == drained


@pytest.mark.parametrize(
    ("left", "hold", "disposal"),
    [
        pytest.param(timedelta(hours=9), "Always", Disposal.HOLD, id="held-while-it-lasts"),
        pytest.param(timedelta(hours=9), "WhileNeeded", Disposal.DRAIN, id="empty-and-not-held"),
        pytest.param(timedelta(minutes=40), "Always", Disposal.NOTICE, id="notice"),
        pytest.param(timedelta(minutes=10), "Always", Disposal.DRAIN, id="drain"),
    ],
)
def test_the_life_of_a_blocks_node(left: timedelta, hold: str, disposal: Disposal) -> None:
    node = ours("n", offering=IN_BLOCK, phase=Phase.READY, empty_since=LONG_AGO)
    held = block(ends_at=NOW + left, hold=hold, drain=Drain())
    found = decision(snapshot([], blocks=(held,), provisioned=(node,)))
    assert found.disposal is disposal
    if disposal is not Disposal.DRAIN or hold == "Always":
        assert found.deadline == held.ends_at


@pytest.mark.parametrize(
    ("fields", "launched"),
    [
        pytest.param({"hold": "Always"}, 2, id="all-machines"),
        pytest.param({"hold": "Always", "available": 1}, 1, id="what-the-provider-has"),
        pytest.param({"hold": "WhileNeeded"}, 0, id="only-when-needed"),
        pytest.param({"hold": "Always", "starts_at": NOW + timedelta(hours=1)}, 0, id="not-begun"),
    ],
)
def test_a_block_that_is_held_is_started_without_pods(fields: dict[str, Any], launched: int) -> None:
    result = plan(snapshot([], blocks=(block(**fields),)))
    assert [n.offering.block for n in result.launches] == ["november"] * launched
    assert all(codes(n.reasons) == [Code.BLOCK_HELD] for n in result.launches)
    assert len({n.name for n in result.launches}) == launched


def test_pods_use_the_machines_that_are_held() -> None:
    result = plan(snapshot(*pairs(1, gpus(8)), blocks=(block(hold="Always"),)))
    assert [len(n.pods) for n in result.launches] == [1, 0]
    node = ours("n", offering=IN_BLOCK)
    again = plan(snapshot(*pairs(1, gpus(8)), blocks=(block(hold="Always"),), provisioned=(node,)))
    assert [len(n.pods) for n in again.launches] == [0]


def test_a_baseline_is_filled_and_kept() -> None:
    pool = replace(TEAM, baselines=(Baseline(2),))
    empty = ours("n", phase=Phase.READY, empty_since=LONG_AGO)
    result = plan(snapshot([], pools=(pool,), provisioned=(empty,)))
    assert types(result) == ["s1"]
    assert codes(result.launches[0].reasons) == [Code.BASELINE]
    assert codes(result.nodes[0].reasons) == [Code.BASELINE]
    closed = replace(pool, baselines=(Baseline(2, schedule="* 18-23 * * *"),))
    assert plan(snapshot([], pools=(closed,), provisioned=(empty,))).launches == ()
