"""The hosts of a slice stay or go together."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import pytest

from autoscaler.model.capacity import CapacityPool, Disruption, DisruptionBudget
from autoscaler.model.node import Node
from autoscaler.model.plan import NodeAction, NodeDecision
from autoscaler.model.pod import Pod
from autoscaler.model.provisioned_node import Phase, ProvisionedNode
from autoscaler.model.reason import Code
from autoscaler.model.snapshot import Snapshot
from autoscaler.planning.disruption.node_actions import decide
from instance_catalog.dataclass import replace
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes import labels
from tests.builders import NOW, codes, ours, pod, snapshot

POOL = CapacityPool("p", disruption=Disruption(after=timedelta(minutes=5)))
IDLE = NOW - timedelta(hours=1)


def hosts(*changes: dict[str, object]) -> list[ProvisionedNode]:
    """Four hosts of a slice, empty for an hour, with changes of the first ones."""
    found = []
    for number in range(4):
        change = changes[number] if number < len(changes) else {}
        own = {"phase": Phase.READY, "batch": "b", "hosts": 4, "provider_id": f"id-{number}", "empty_since": IDLE}
        found.append(replace(ours(f"h{number}", pool="p"), **{**own, **change}))
    return found


def decided(nodes: list[ProvisionedNode], pool: CapacityPool = POOL, pods: Sequence[Pod] = ()) -> list[NodeDecision]:
    state: Snapshot = snapshot(pods, pools=(pool,), provisioned=tuple(nodes))
    return list(decide(state, frozenset(), NOW, custom={}))


def actions(found: list[NodeDecision]) -> set[NodeAction]:
    return {decision.action for decision in found}


def test_a_slice_that_is_empty_goes_as_one_disruption() -> None:
    pool = replace(POOL, disruption=replace(POOL.disruption, budgets=(DisruptionBudget("1"),)))
    found = decided(hosts(), pool)
    assert (len(found), actions(found)) == (4, {NodeAction.DRAIN})
    two = [*hosts(), *(replace(one, name=f"x{one.name}", node_name=f"x{one.name}", batch="c") for one in hosts())]
    drained = [one.provisioned_node for one in decided(two, pool) if one.action is NodeAction.DRAIN]
    assert drained == ["h0", "h1", "h2", "h3"]


def test_a_pod_on_one_host_keeps_all() -> None:
    found = decided(hosts(), pods=[pod("w", node_name="h2")])
    assert actions(found) == {NodeAction.KEEP}
    assert [codes(one.reasons)[0] for one in found] == [
        Code.SLICE_IN_USE,
        Code.SLICE_IN_USE,
        Code.ALREADY_BOUND,
        Code.SLICE_IN_USE,
    ]


def test_a_host_that_was_empty_for_a_shorter_time_keeps_the_others() -> None:
    found = decided(hosts({"empty_since": NOW - timedelta(minutes=1)}))
    assert actions(found) == {NodeAction.KEEP}


def test_a_host_that_is_lost_takes_the_others_with_it() -> None:
    """Pods on them are evicted: their job cannot go on."""
    for change in ({"phase": Phase.TERMINATING}, {"phase": Phase.FAILED}, {"phase": Phase.DRAINING, "deleting": True}):
        found = [one for one in decided(hosts(change), pods=[pod("w", node_name="h2")]) if one.provisioned_node != "h0"]
        assert (len(found), actions(found)) == (3, {NodeAction.DRAIN}), change
        assert {code for one in found for code in codes(one.reasons)} == {Code.SLICE_BROKEN}, change


def test_a_host_without_an_object_is_lost() -> None:
    found = decided(hosts()[1:], pods=[pod("w", node_name="h2")])
    assert (len(found), actions(found)) == (3, {NodeAction.DRAIN})


@pytest.mark.parametrize("batch", ["b", "another"])
def test_a_host_that_is_to_be_adopted_is_there(batch: str) -> None:
    """Its machine has a Node; somebody removed its object by force, or a restore lost it."""
    state = snapshot([pod("w", node_name="h2")], pools=(POOL,), provisioned=tuple(hosts()[1:]))
    state = replace(state, unwritten=FrozenMap({batch: 1}))
    found = list(decide(state, frozenset(), NOW, custom={}))
    assert actions(found) == {NodeAction.KEEP if batch == "b" else NodeAction.DRAIN}


def test_a_host_that_is_to_be_adopted_keeps_no_slice_that_has_lost_another() -> None:
    state = snapshot((), pools=(POOL,), provisioned=tuple(hosts({"phase": Phase.TERMINATING})[:3]))
    found = list(decide(replace(state, unwritten=FrozenMap({"b": 1})), frozenset(), NOW, custom={}))
    assert (len(found), actions(found)) == (2, {NodeAction.DRAIN})
    assert {one.reasons[0].detail["left"] for one in found} == {3}


def test_a_drain_that_a_pod_takes_back_is_no_loss() -> None:
    found = decided(hosts({"phase": Phase.DRAINING}), pods=[pod("w", node_name="h2")])
    assert (len(found), actions(found)) == (3, {NodeAction.KEEP})


def test_the_end_of_one_host_is_announced_on_all() -> None:
    for minutes, action in ((2, NodeAction.DRAIN), (40, NodeAction.NOTICE)):
        ends = NOW + timedelta(minutes=minutes)
        found = decided(hosts({"reclaim_at": ends}), pods=[pod("w", node_name="h2")])
        assert (actions(found), {one.deadline for one in found}) == ({action}, {ends})


@pytest.mark.parametrize("phase", [Phase.LAUNCHED, Phase.READY])
def test_a_host_that_somebody_stopped_keeps_no_empty_slice(phase: Phase) -> None:
    """The others run at their full price; a host that is stopped before it joins is awaited by nobody."""
    stopped = {"phase": phase, "stopped_since": IDLE, "empty_since": None}
    found = decided(hosts(stopped))
    assert (len(found), actions(found)) == (4, {NodeAction.DRAIN})
    assert [codes(one.reasons) for one in found] == [[Code.NODE_STOPPED], *[[Code.NODE_EMPTY]] * 3]


def test_a_host_that_somebody_stopped_stays_with_hosts_that_stay() -> None:
    stopped = {"stopped_since": IDLE, "empty_since": None}
    assert actions(decided(hosts(stopped), pods=[pod("w", node_name="h2")])) == {NodeAction.KEEP}
    assert actions(decided(hosts(stopped, {"empty_since": NOW}))) == {NodeAction.KEEP}
    assert actions(decided(hosts(*[stopped] * 4))) == {NodeAction.KEEP}
    marked = Node("h0", labels=FrozenMap({labels.POOL: "p"}), annotations=FrozenMap({labels.DO_NOT_DISRUPT: "true"}))
    state = snapshot((), pools=(POOL,), provisioned=tuple(hosts(stopped)), nodes=(marked,))
    assert actions(list(decide(state, frozenset(), NOW, custom={}))) == {NodeAction.KEEP}


def test_nodes_of_a_batch_that_is_no_slice_go_one_by_one() -> None:
    found = decided([replace(one, hosts=1) for one in hosts()], pods=[pod("w", node_name="h2")])
    assert [one.action for one in found] == [NodeAction.DRAIN, NodeAction.DRAIN, NodeAction.KEEP, NodeAction.DRAIN]
