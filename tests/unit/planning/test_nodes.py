"""What becomes of our own nodes, and the ones that are kept up without pods."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from autoscaler.model.capacity import (
    Baseline,
    CapacityPool,
    ConsolidationPolicy,
    DeletionPolicy,
    Disruption,
    DisruptionBudget,
    Drain,
    DriftDisruption,
    Hold,
    Mode,
)
from autoscaler.model.node import Node
from autoscaler.model.plan import NodeAction, NodeDecision
from autoscaler.model.provisioned_node import OfferingRef, Phase, PhaseChange
from autoscaler.model.reason import Code, Reason
from autoscaler.model.snapshot import Snapshot
from autoscaler.planning.placement.existing import present_nodes
from autoscaler.report.reasons import text_of
from autoscaler.scheduling.node_state import NodeState
from autoscaler.scheduling.world import World, WorldMemory
from instance_catalog.dataclass import replace
from instance_catalog.drivers.custom import CustomDriver, DeviceTemplate
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes import labels
from instance_catalog.kubernetes.node_selector import Requirement
from instance_catalog.kubernetes.taint import Taint
from instance_catalog.types.instance_type import CapacityType
from tests.builders import CATALOG, NOW, block, codes, gpus, ours, pairs, plan, pod, snapshot, types
from tests.unit.report.events import events_of

LONG_AGO = NOW - timedelta(hours=1)
ONLY_S1 = (Requirement(labels.INSTANCE_TYPE, "In", ("s1",)),)
TEAM = CapacityPool("team", requirements=ONLY_S1)
IN_BLOCK = OfferingRef("l8", "us-east-1a", CapacityType.CAPACITY_BLOCK, Decimal("0"), "cr-1", "november")


def decision(state: Snapshot, name: str = "n") -> NodeDecision:
    return next(d for d in plan(state).nodes if d.provisioned_node == name)


@pytest.mark.parametrize(
    ("fields", "action", "code"),
    [
        pytest.param({"empty_since": LONG_AGO}, NodeAction.DRAIN, Code.NODE_EMPTY, id="empty-long-enough"),
        pytest.param(
            {"empty_since": NOW - timedelta(minutes=4)}, NodeAction.KEEP, Code.NODE_EMPTY, id="empty-for-a-moment"
        ),
        pytest.param({"phase": Phase.LAUNCHING}, NodeAction.KEEP, Code.COMING_NODE, id="still-coming"),
    ],
)
def test_idle_nodes(fields: dict[str, Any], action: NodeAction, code: Code) -> None:
    node = ours("n", **{"phase": Phase.READY, **fields})
    found = decision(snapshot([], pools=(TEAM,), provisioned=(node,)))
    assert (found.action, codes(found.reasons)) == (action, [code])


def test_a_node_with_a_pod_stays() -> None:
    node = ours("n", phase=Phase.READY, empty_since=LONG_AGO)
    state = snapshot([pod("busy", node_name="n", phase="Running")], provisioned=(node,))
    assert decision(state).action is NodeAction.KEEP
    alone = snapshot([pod("d", node_name="n", phase="Running", owner="DaemonSet/d")], provisioned=(node,))
    assert decision(alone).action is NodeAction.DRAIN


@pytest.mark.parametrize(
    ("minutes", "grace", "action"),
    [
        pytest.param(29, 30, NodeAction.KEEP, id="it may not be created again yet"),
        pytest.param(31, 30, NodeAction.DRAIN, id="long ago"),
        pytest.param(89, 10 * 24 * 3600, NodeAction.KEEP, id="stops for an hour"),
        pytest.param(91, 10 * 24 * 3600, NodeAction.DRAIN, id="says that it stops for days"),
    ],
)
def test_an_empty_node_stays_while_a_pod_moves(minutes: int, grace: int, action: NodeAction) -> None:
    moves = (Reason.of(Code.NODE_DISPENSABLE),)
    leaving = ours("old", phase=Phase.DRAINING, reasons=moves, phase_since=NOW - timedelta(minutes=minutes))
    nodes = (leaving, ours("n", phase=Phase.READY, empty_since=LONG_AGO))
    stopping = pod("p", node_name="old", phase="Running", deleting=True, termination_grace_seconds=grace)
    assert decision(snapshot([stopping], pools=(TEAM,), provisioned=nodes)).action is action


def test_a_pool_that_never_consolidates_keeps_empty_nodes() -> None:
    node = ours("n", phase=Phase.READY, empty_since=LONG_AGO)
    pool = replace(TEAM, disruption=Disruption(consolidate=ConsolidationPolicy.NEVER))
    assert decision(snapshot([], pools=(pool,), provisioned=(node,))).action is NodeAction.KEEP


@pytest.mark.parametrize(("budget", "drained"), [("1", 1), ("50%", 2), ("0", 0), ("100%", 4)])
def test_a_budget_bounds_how_many_go_at_once(budget: str, drained: int) -> None:
    nodes = tuple(ours(f"n{i}", phase=Phase.READY, empty_since=LONG_AGO) for i in range(4))
    pool = replace(TEAM, disruption=Disruption(budgets=(DisruptionBudget(budget),)))
    found = plan(snapshot([], pools=(pool,), provisioned=nodes)).nodes
    assert [d.action for d in found].count(NodeAction.DRAIN) == drained


@pytest.mark.parametrize(
    ("left", "hold", "action"),
    [
        pytest.param(timedelta(hours=9), Hold.ALWAYS, NodeAction.HOLD, id="held-while-it-lasts"),
        pytest.param(timedelta(hours=9), Hold.WHILE_NEEDED, NodeAction.DRAIN, id="empty-and-not-held"),
        pytest.param(timedelta(minutes=40), Hold.ALWAYS, NodeAction.NOTICE, id="notice"),
        pytest.param(timedelta(minutes=10), Hold.ALWAYS, NodeAction.DRAIN, id="drain"),
    ],
)
def test_the_life_of_a_blocks_node(left: timedelta, hold: Hold, action: NodeAction) -> None:
    node = ours("n", offering=IN_BLOCK, phase=Phase.READY, empty_since=LONG_AGO)
    held = block(ends_at=NOW + left, hold=hold, drain=Drain())
    found = decision(snapshot([], blocks=(held,), provisioned=(node,)))
    assert found.action is action
    if action is not NodeAction.DRAIN or hold is Hold.ALWAYS:
        assert found.deadline == held.ends_at


@pytest.mark.parametrize(
    ("fields", "launched"),
    [
        pytest.param({"hold": Hold.ALWAYS}, 2, id="all-machines"),
        pytest.param({"hold": Hold.ALWAYS, "available": 1}, 1, id="what-the-provider-has"),
        pytest.param({"hold": Hold.WHILE_NEEDED}, 0, id="only-when-needed"),
        pytest.param({"hold": Hold.ALWAYS, "starts_at": NOW + timedelta(hours=1)}, 0, id="not-begun"),
    ],
)
def test_a_block_that_is_held_is_started_without_pods(fields: dict[str, Any], launched: int) -> None:
    result = plan(snapshot([], blocks=(block(**fields),)))
    assert [n.offering.block for n in result.launches] == ["november"] * launched
    assert all(codes(n.reasons) == [Code.BLOCK_HELD] for n in result.launches)
    assert len({n.name for n in result.launches}) == launched


def test_pods_use_the_machines_that_are_held() -> None:
    result = plan(snapshot(*pairs(1, gpus(8)), blocks=(block(hold=Hold.ALWAYS),)))
    assert [len(n.pods) for n in result.launches] == [1, 0]
    node = ours("n", offering=IN_BLOCK)
    again = plan(snapshot(*pairs(1, gpus(8)), blocks=(block(hold=Hold.ALWAYS),), provisioned=(node,)))
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


QUIET = timedelta(minutes=20)
OWN = Node("n", labels=FrozenMap({labels.POOL: "team"}))


def ready(**fields: Any) -> Snapshot:
    """One ready node of the team's pool, and its Node; fields of the ProvisionedNode."""
    node = ours("n", **{"phase": Phase.READY, "empty_since": NOW, **fields})
    return snapshot([], pools=(TEAM,), provisioned=(node,), nodes=(OWN,))


@pytest.mark.parametrize(
    ("state", "action", "code"),
    [
        pytest.param(
            ready(unhealthy_since=NOW - QUIET), NodeAction.DRAIN, Code.NODE_UNHEALTHY, id="not-ready-for-long"
        ),
        pytest.param(ready(unhealthy_since=NOW), NodeAction.KEEP, Code.NODE_EMPTY, id="not-ready-for-a-moment"),
        pytest.param(
            ready(reclaim_at=NOW + timedelta(minutes=2)), NodeAction.DRAIN, Code.NODE_RECLAIMED, id="spot-notice"
        ),
        pytest.param(
            ready(reclaim_at=NOW + timedelta(minutes=40)), NodeAction.NOTICE, Code.NODE_RECLAIMED, id="maintenance"
        ),
        pytest.param(ready(reclaim_at=NOW + timedelta(days=2)), NodeAction.KEEP, Code.NODE_EMPTY, id="far-away"),
        pytest.param(ready(recreated_as="7002"), NodeAction.DRAIN, Code.MACHINE_RECREATED, id="another-machine"),
        pytest.param(
            ready(recreated_as="7002", stopped_since=NOW), NodeAction.DRAIN, Code.MACHINE_RECREATED, id="and-stopped"
        ),
    ],
)
def test_ill_and_interrupted_nodes(state: Snapshot, action: NodeAction, code: Code) -> None:
    found = decision(state)
    assert (found.action, codes(found.reasons)) == (action, [code])


def test_a_node_of_a_block_whose_machine_is_another_one_goes_before_the_block_ends() -> None:
    node = ours("n", offering=IN_BLOCK, phase=Phase.READY, recreated_as="7002", instance_id="7001")
    for left in (timedelta(minutes=40), timedelta(hours=9)):
        found = decision(snapshot([], blocks=(block(ends_at=NOW + left, hold="Always"),), provisioned=(node,)))
        assert (found.action, codes(found.reasons)) == (NodeAction.DRAIN, [Code.MACHINE_RECREATED])
        assert text_of(found.reasons[0]) == (
            "node n: another machine (7002) was made under the name of its own (7001): what ran there is gone"
        )


def test_an_unhealthy_node_goes_although_it_is_held_or_part_of_a_baseline() -> None:
    ill = replace(ready(unhealthy_since=NOW - QUIET), pools=(replace(TEAM, baselines=(Baseline(1),)),))
    assert decision(ill).action is NodeAction.DRAIN
    node = ours("n", offering=IN_BLOCK, phase=Phase.READY, empty_since=NOW, unhealthy_since=NOW - QUIET)
    held = snapshot([], blocks=(block(hold=Hold.ALWAYS),), provisioned=(node,))
    assert codes(decision(held).reasons) == [Code.NODE_UNHEALTHY]


@pytest.mark.parametrize(
    ("pool", "what"),
    [
        pytest.param(replace(TEAM, labels=FrozenMap({"team": "x"})), "labels", id="labels"),
        pytest.param(replace(TEAM, drivers=("nvidia:mig=all-1g.5gb",)), "drivers", id="drivers"),
        pytest.param(
            replace(TEAM, requirements=(Requirement(labels.CAPACITY_TYPE, "In", ("spot",)),)), "requirements", id="spot"
        ),
    ],
)
def test_an_empty_node_that_its_pool_would_not_launch_any_more_goes(pool: CapacityPool, what: str) -> None:
    state = replace(ready(), pools=(pool,))
    found = decision(state)
    assert (found.action, codes(found.reasons)) == (NodeAction.DRAIN, [Code.NODE_DRIFTED])
    assert found.reasons[0].detail["what"] == what
    never = replace(pool, disruption=Disruption(drift=DriftDisruption.NEVER))
    assert decision(replace(state, pools=(never,))).action is NodeAction.KEEP
    busy = replace(state, pods=(pod("busy", node_name="n", phase="Running"),))
    assert decision(busy).action is NodeAction.KEEP


@pytest.mark.parametrize(
    ("bought", "asked", "action"),
    [
        pytest.param(("nvidia", "pipes"), ("nvidia", "pipes"), NodeAction.KEEP, id="as-asked"),
        pytest.param(("nvidia",), ("nvidia", "pipes"), NodeAction.DRAIN, id="asked-since"),
        pytest.param(("nvidia", "pipes"), ("nvidia",), NodeAction.DRAIN, id="not-asked-any-more"),
    ],
)
def test_drivers_that_the_catalog_describes_are_compared_like_others(
    bought: tuple[str, ...], asked: tuple[str, ...], action: NodeAction
) -> None:
    pipes = CustomDriver("pipes", "fabric.acme.com", "v1", (DeviceTemplate("node", "controller"),))
    catalog = replace(CATALOG, drivers=FrozenMap({"pipes": pipes}))
    state = replace(ready(drivers=bought), pools=(replace(TEAM, drivers=asked),))
    (found,) = plan(state, catalog=catalog).nodes
    assert found.action is action


@pytest.mark.parametrize(
    ("annotations", "action"),
    [
        pytest.param({labels.DO_NOT_DISRUPT: "true"}, NodeAction.KEEP, id="ours"),
        pytest.param({labels.KARPENTER_DO_NOT_DISRUPT: "true"}, NodeAction.KEEP, id="karpenters"),
        pytest.param({labels.CA_SCALE_DOWN_DISABLED: "true"}, NodeAction.KEEP, id="cluster-autoscalers"),
        pytest.param(
            {labels.CA_SCALE_DOWN_DISABLED: "true", labels.HELD: "true"}, NodeAction.DRAIN, id="set-by-us-while-held"
        ),
        pytest.param({labels.DO_NOT_DISRUPT: "false"}, NodeAction.DRAIN, id="taken-back"),
    ],
)
def test_a_mark_keeps_a_node(annotations: dict[str, str], action: NodeAction) -> None:
    state = replace(ready(empty_since=LONG_AGO), nodes=(replace(OWN, annotations=FrozenMap(annotations)),))
    found = decision(state)
    assert found.action is action
    assert (Code.DO_NOT_DISRUPT in codes(found.reasons)) is (action is NodeAction.KEEP)


@pytest.mark.parametrize(
    ("policy", "action"), [(DeletionPolicy.DRAIN, NodeAction.DRAIN), (DeletionPolicy.RETAIN, NodeAction.KEEP)]
)
def test_a_deleted_pool_drains_its_nodes_unless_it_retains_them(policy: DeletionPolicy, action: NodeAction) -> None:
    state = replace(ready(), pools=(replace(TEAM, deleting=True, deletion_policy=policy),))
    assert decision(state).action is action


def test_a_deleted_pool_launches_nothing() -> None:
    state = snapshot(*pairs(1, gpus(1)), pools=(replace(TEAM, deleting=True),))
    assert plan(state).launches == ()


def test_a_failed_node_goes_but_not_under_a_pod() -> None:
    node = ours("n", phase=Phase.FAILED, provider_id="i-1", history=(PhaseChange(Phase.FAILED, NOW, "NeverReady"),))
    alone = snapshot([], pools=(TEAM,), provisioned=(node,))
    assert (decision(alone).action, codes(decision(alone).reasons)) == (NodeAction.DRAIN, [Code.NODE_FAILED])
    busy = replace(alone, pods=(pod("busy", node_name="n", phase="Running"),))
    found = decision(busy)
    assert (found.action, codes(found.reasons)) == (NodeAction.KEEP, [Code.ALREADY_BOUND, Code.NODE_FAILED])
    assert [event.reason for event in events_of(plan(busy), busy)] == ["NeverReady", "NotEmpty"]
    gone = replace(busy, pools=(replace(TEAM, deleting=True, deletion_policy=DeletionPolicy.DRAIN),))
    assert codes(decision(gone).reasons) == [Code.POOL_DELETED]
    without_machine = snapshot([], pools=(TEAM,), provisioned=(replace(node, provider_id=""),))
    assert plan(without_machine).nodes == ()


def test_an_unhealthy_node_with_a_pod_stays_and_says_so() -> None:
    busy = replace(ready(unhealthy_since=NOW - QUIET), pods=(pod("busy", node_name="n", phase="Running"),))
    found = decision(busy)
    assert (found.action, codes(found.reasons)) == (NodeAction.KEEP, [Code.ALREADY_BOUND, Code.NODE_UNHEALTHY])
    (event,) = events_of(plan(busy), busy)
    assert (event.about.kind, event.about.name, event.type, event.reason) == (
        "ProvisionedNode",
        "n",
        "Warning",
        "NotEmpty",
    )
    assert "kubectl delete provisionednode n" in event.message


@pytest.mark.parametrize(
    ("phase", "mode", "told"),
    [
        (Phase.READY, Mode.ACT, []),
        (Phase.DRAINING, Mode.ACT, ["Draining"]),
        (Phase.READY, Mode.OBSERVE, []),
    ],
    ids=["only considered", "written down", "a pool that observes"],
)
def test_a_drain_that_demands_an_empty_node_is_told_once_it_is_written(
    phase: Phase, mode: Mode, told: list[str]
) -> None:
    state = replace(ready(empty_since=LONG_AGO), pools=(replace(TEAM, mode=mode),))
    after = replace(state, provisioned=tuple(replace(node, phase=phase) for node in state.provisioned))
    assert [event.reason for event in events_of(plan(state), after)] == told


@pytest.mark.parametrize(
    ("phase", "provider_id", "taints"),
    [
        pytest.param(Phase.READY, "i-1", [], id="considered: a pod that needs it ends that"),
        pytest.param(Phase.DRAINING, "i-1", None, id="drains: it takes nothing"),
        pytest.param(Phase.FAILED, "i-1", None, id="failed: it takes nothing"),
        pytest.param(Phase.LAUNCHING, "", [], id="coming: its machine is not known yet"),
        pytest.param(Phase.READY, "i-2", [labels.DRAINING_TAINT], id="somebody else's: as it is"),
        pytest.param(Phase.DRAINING, "i-2", [labels.DRAINING_TAINT], id="somebody else's, whatever ours does"),
    ],
)
def test_what_a_tainted_node_takes(phase: Phase, provider_id: str, taints: list[str] | None) -> None:
    there = Node("n", provider_id=provider_id or "i-1", taints=(Taint(labels.DRAINING_TAINT, "", "NoSchedule"),))
    state = snapshot([], provisioned=(ours("n", "s1", phase=phase, provider_id=provider_id and "i-1"),), nodes=(there,))
    present = present_nodes(state, CATALOG, World.of(state))
    assert (taints is not None) is ("n" in present.targets)
    if taints is not None:
        assert [taint.key for taint in present.world.nodes["n"].node.taints] == taints


@pytest.mark.parametrize("registered", [False, True])
def test_a_starting_node_is_computed_again_only_if_something_of_it_changes(*, registered: bool) -> None:
    taint = Taint("example.com/starting", "", "NoSchedule")
    there = Node("n", provider_id="i-1", taints=(taint,))
    state = snapshot(
        [],
        pools=(replace(TEAM, startup_taints=(taint,)),),
        provisioned=(ours("n", "s1", phase=Phase.LAUNCHED, provider_id="i-1"),),
        nodes=(there,) if registered else (),
    )
    memory = WorldMemory()

    def seen(state: Snapshot) -> NodeState:
        return present_nodes(state, CATALOG, World.of(state, kept=memory), kept=memory.added).world.nodes["n"]

    first = seen(state)
    assert first.node.taints == ()
    assert seen(state) is first
    assert seen(replace(state, provisioned=(replace(state.provisioned[0], history=()),))) is first
    other = replace(TEAM, taints=(taint,), startup_taints=())
    assert [one.key for one in seen(replace(state, pools=(other,))).node.taints] == [taint.key]
    assert seen(replace(state, provisioned=(ours("n", "s4", phase=Phase.LAUNCHED, provider_id="i-1"),))) is not first
