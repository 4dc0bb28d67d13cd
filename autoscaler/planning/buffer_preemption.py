"""Removes nodes that only CapacityBuffers need if real pods wait at a limit.

The nodes of a buffer count against the limits of their pool. A real pod that needs another instance type would wait
while they fill a limit. So the plan without such nodes is tried. If it has a node for a waiting pod, as few nodes as
possible lose their virtual pods, and are removed like other empty nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from functools import partial
from typing import Final

from autoscaler.lifecycle.provisioned_node import is_leaving
from autoscaler.lifecycle.reflect import occupied_nodes
from autoscaler.model.capacity import ConsolidationPolicy
from autoscaler.model.plan import LeftOut, LeftOutVerdict, NodeDecision, Placement, Plan, Target
from autoscaler.model.pod import Pod
from autoscaler.model.provisioned_node import ProvisionedNode
from autoscaler.model.reason import Code, Reason, Subject
from autoscaler.model.snapshot import Snapshot
from autoscaler.model.virtual_pods import owner_of
from autoscaler.planning.demand.demand import claim_keys
from autoscaler.planning.disruption.node_actions import decide, needed_nodes
from instance_catalog.dataclass import replace
from instance_catalog.drivers.custom import CustomDriver

_EVERY_POOL: Final = ""
# The spending guards that count less after a node has ended.
_MONEY: Final = ("maxUsdPerHour", "maxUsdPerDay")


def release_buffer_nodes(
    plan: Plan,
    snapshot: Snapshot,
    make: Callable[[Snapshot], Plan],
    now: datetime,
    *,
    custom: Mapping[str, CustomDriver],
) -> Plan:
    """The plan without nodes that only buffers need, if a real pod gets a node once they are gone.

    `make` plans. It is called only if a real pod waits at a limit that such nodes count against, and then at most 2 +
    log2(nodes) times. The most expensive nodes are given up first, which needs the fewest nodes.
    """
    waiting = _waiting(plan)
    placed = [p for p in plan.placements if waiting and p.target is Target.EXISTING and _is_of_buffer(p.pod)]
    becoming = partial(_becoming, plan, snapshot, now, custom)
    idle = _idle(plan, snapshot, {p.node for p in placed}, becoming)
    pools = {pool for found in waiting.values() for pool in found}
    idle = [node for node in idle if node.pool in pools or _EVERY_POOL in pools]
    if not idle:
        return plan
    leaving = [node for node in snapshot.provisioned if is_leaving(node)]

    def served(count: int) -> int:
        gone = make(_without(snapshot, [*leaving, *idle[:count]], placed))
        return sum(placement.pod in waiting for placement in gone.placements)

    least, most = 0, len(idle)
    best = served(most)
    if served(0) == best:
        return plan
    while most - least > 1:
        middle = (least + most) // 2
        least, most = (least, middle) if served(middle) == best else (middle, most)
    given_up = {node.node_name for node in idle[:most]}
    dropped = {placement.pod: placement.node for placement in placed if placement.node in given_up}
    pods = {pod.key: pod for pod in snapshot.pods if pod.key in dropped}
    return replace(
        plan,
        placements=tuple(placement for placement in plan.placements if placement.pod not in dropped),
        left_out=(*plan.left_out, *(_left_out(pods[key], node) for key, node in sorted(dropped.items()))),
        nodes=becoming(given_up),
    )


def _waiting(plan: Plan) -> Mapping[str, tuple[str, ...]]:
    """The real pods that get no node because of a limit, and the pools whose nodes count against it."""
    found: dict[str, tuple[str, ...]] = {}
    for left in plan.left_out:
        pools = [str(r.detail["pool"]) for r in left.reasons if r.code is Code.POOL_LIMIT]
        guarded = [_EVERY_POOL for r in left.reasons if r.code is Code.SPENDING_GUARD and r.detail["guard"] in _MONEY]
        if (pools or guarded) and not _is_of_buffer(left.pod):
            found[left.pod] = (*pools, *guarded)
    return found


def _idle(
    plan: Plan,
    snapshot: Snapshot,
    nodes: Collection[str],
    becoming: Callable[[Collection[str]], tuple[NodeDecision, ...]],
) -> list[ProvisionedNode]:
    """Those of the nodes that end if no pod of a buffer is planned on them, the most expensive first."""
    real = {p.node for p in plan.placements if not _is_of_buffer(p.pod)}
    alone = {*nodes} - real
    alone -= occupied_nodes(snapshot.pods) if alone else frozenset()
    if not alone:
        return []
    # If a node is empty, it ends now, or as soon as the delay and the budgets of its pool allow.
    ending = {d.provisioned_node for d in becoming(alone) if [r.code for r in d.reasons][:1] == [Code.NODE_EMPTY]}
    emptied = {pool.name for pool in snapshot.pools if pool.disruption.consolidate is not ConsolidationPolicy.NEVER}
    found = (n for n in snapshot.provisioned if n.node_name in alone and n.name in ending and n.pool in emptied)
    return sorted(found, key=lambda node: (-(node.offering.usd_per_hour or Decimal(0)), node.name))


def _becoming(
    plan: Plan,
    snapshot: Snapshot,
    now: datetime,
    custom: Mapping[str, CustomDriver],
    given_up: Collection[str],
) -> tuple[NodeDecision, ...]:
    """The actions for managed nodes if nothing is planned on those that are given up."""
    planned = {placement.node for placement in plan.placements}.difference(given_up)
    return decide(snapshot, needed_nodes(snapshot, planned, now), now, custom=custom)


def _without(snapshot: Snapshot, gone: Sequence[ProvisionedNode], placed: Sequence[Placement]) -> Snapshot:
    """The snapshot after these nodes and the buffer pods that are planned on them are gone."""
    ended, names = {node.name for node in gone}, {node.node_name for node in gone}
    dropped = {placement.pod for placement in placed if placement.node in names}
    return replace(
        snapshot,
        provisioned=tuple(node for node in snapshot.provisioned if node.name not in ended),
        nodes=tuple(node for node in snapshot.nodes if node.name not in names),
        pods=tuple(pod for pod in snapshot.pods if pod.key not in dropped),
    )


def _left_out(pod: Pod, node: str) -> LeftOut:
    why = Reason.of(Code.GIVES_WAY, Subject("pod", pod.key), node=node)
    return LeftOut(pod.key, LeftOutVerdict.DOES_NOT_FIT, (why,), claims=claim_keys(pod))


def _is_of_buffer(key: str) -> bool:
    owner = owner_of(key)
    return owner is not None and owner.kind == "CapacityBuffer"
