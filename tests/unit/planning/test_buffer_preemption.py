"""Which nodes of CapacityBuffers are given up for a real pod; the plans without them are made by hand."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal

import pytest

from autoscaler.model.capacity import CapacityPool, ConsolidationPolicy, Disruption
from autoscaler.model.plan import LeftOut, LeftOutVerdict, NodeAction, Placement, Plan, Target
from autoscaler.model.provisioned_node import OfferingRef, Phase, ProvisionedNode
from autoscaler.model.reason import Code, Reason, Subject
from autoscaler.model.snapshot import Snapshot
from autoscaler.model.virtual_pods import buffer_pod
from autoscaler.planning.buffer_preemption import release_buffer_nodes
from instance_catalog.dataclass import replace
from instance_catalog.types.instance_type import CapacityType
from tests.builders import NOW, ours, pod, snapshot

POOL = CapacityPool("gpu", disruption=Disruption(consolidate=ConsolidationPolicy.WHEN_EMPTY))
LIMIT = Reason.of(Code.POOL_LIMIT, Subject("pool", "gpu"), pool="gpu", resource="nodes", limit="3")
GUARD = Reason.of(Code.SPENDING_GUARD, guard="maxUsdPerHour", limit="10")
LAUNCHES = Reason.of(Code.SPENDING_GUARD, guard="maxLaunchesPerHour", limit="10")
WAITS = LeftOut("default/waits", LeftOutVerdict.DOES_NOT_FIT, (LIMIT,))


def node(name: str, usd: str, pool: str = "gpu") -> ProvisionedNode:
    """A node that has been empty for an hour."""
    return ours(
        name,
        phase=Phase.READY,
        pool=pool,
        empty_since=NOW - timedelta(hours=1),
        offering=OfferingRef("s4", "any", CapacityType.ON_DEMAND, Decimal(usd)),
        provider_id=f"i-{name}",
    )


NODES = (node("cheap", "1"), node("dear", "9"), node("middle", "5"))


def state(*nodes: ProvisionedNode, pool: CapacityPool = POOL) -> Snapshot:
    kept = [replace(pod("waits"), name=buffer_pod("warm", i)) for i in range(len(nodes))]
    return snapshot([pod("waits"), pod("real"), *kept], provisioned=nodes, pools=(pool,))


def planned(found: Snapshot, *more: Placement, left: LeftOut = WAITS) -> Plan:
    """A pod of the buffer on each node."""
    names = [n.node_name for n in found.provisioned]
    kept = [Placement(f"default/{buffer_pod('warm', i)}", Target.EXISTING, name) for i, name in enumerate(names)]
    return Plan(placements=(*kept, *more), left_out=(left,))


def launching_below(limit: int) -> Callable[[Snapshot], Plan]:
    """A planner that has a node for the pod that waits once fewer than `limit` nodes are left."""

    def make(found: Snapshot) -> Plan:
        there = len(found.provisioned) < limit
        return Plan(placements=(Placement("default/waits", Target.NEW, "new"),) if there else ())

    return make


def given_up(plan: Plan) -> list[str]:
    return [str(left.reasons[0].detail["node"]) for left in plan.left_out if left.reasons[0].code is Code.GIVES_WAY]


@pytest.mark.parametrize(("limit", "names"), [(3, {"dear"}), (2, {"dear", "middle"}), (1, {"cheap", "dear", "middle"})])
def test_the_dearest_nodes_go_and_no_more_than_it_takes(limit: int, names: set[str]) -> None:
    found = state(*NODES)
    result = release_buffer_nodes(planned(found), found, launching_below(limit), NOW, custom={})
    assert set(given_up(result)) == names
    assert {d.provisioned_node for d in result.nodes if d.action is NodeAction.DRAIN} == names
    assert {p.node for p in result.placements} == {"cheap", "dear", "middle"} - names
    assert len(result.placements) + len(result.left_out) == 4, "each pod is in one of both"


def test_no_node_goes_where_that_gives_no_pod_a_node() -> None:
    found = state(*NODES)
    plan = planned(found)
    assert release_buffer_nodes(plan, found, launching_below(0), NOW, custom={}) is plan


def test_no_node_goes_where_one_that_ends_already_is_enough() -> None:
    found = state(*NODES, replace(node("ends", "2"), phase=Phase.DRAINING))
    plan = planned(replace(found, provisioned=NODES))
    assert release_buffer_nodes(plan, found, launching_below(4), NOW, custom={}) is plan


def test_a_node_that_a_real_pod_goes_to_stays() -> None:
    found = state(*NODES)
    plan = planned(found, Placement("default/real", Target.EXISTING, "dear"))
    assert given_up(release_buffer_nodes(plan, found, launching_below(3), NOW, custom={})) == ["middle"]


def test_a_node_on_which_a_real_pod_runs_stays() -> None:
    found = state(*NODES)
    found = replace(found, pods=(*found.pods, pod("runs", node_name="dear", phase="Running")))
    result = release_buffer_nodes(planned(found), found, launching_below(3), NOW, custom={})
    assert given_up(result) == ["middle"]


@pytest.mark.parametrize(
    ("reason", "others", "names"),
    [
        pytest.param(LIMIT, "gpu", ["dear"], id="limit-of-the-pool"),
        pytest.param(LIMIT, "other", [], id="limit-of-another-pool"),
        pytest.param(GUARD, "other", ["dear"], id="money-over-all-pools"),
        pytest.param(LAUNCHES, "gpu", [], id="launches-an-hour-do-not-come-back"),
    ],
)
def test_only_nodes_that_count_against_the_limit_give_way(reason: Reason, others: str, names: list[str]) -> None:
    found = state(*(replace(n, pool=others) for n in NODES), pool=replace(POOL, name=others))
    plan = planned(found, left=LeftOut("default/waits", LeftOutVerdict.DOES_NOT_FIT, (reason,)))
    assert given_up(release_buffer_nodes(plan, found, launching_below(3), NOW, custom={})) == names


def test_nodes_of_a_pool_that_ends_no_empty_nodes_stay() -> None:
    found = state(*NODES, pool=replace(POOL, disruption=Disruption(consolidate=ConsolidationPolicy.NEVER)))
    plan = planned(found)
    assert release_buffer_nodes(plan, found, launching_below(3), NOW, custom={}) is plan


def test_a_pod_of_a_buffer_makes_no_node_give_way() -> None:
    found = state(*NODES)
    plan = planned(found, left=LeftOut(f"default/{buffer_pod('warm', 7)}", LeftOutVerdict.DOES_NOT_FIT, (LIMIT,)))
    assert release_buffer_nodes(plan, found, launching_below(3), NOW, custom={}) is plan
