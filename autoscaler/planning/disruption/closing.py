"""Pools with `consolidate: Close`: nodes whose pods would cost less on new machines accept no more pods.

kube-scheduler spreads pods, so a large machine with one small pod gets the next small pod, and the next, and never
ends. A taint sends these pods to other nodes or to new machines of their size. No pod is evicted; the machine is ended
after its last pod.

The price of pods alone is that of a plan for them in an empty cluster. It changes only with the pods of the node. If a
pod has no place because of closed nodes, they are opened again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from decimal import Decimal
from typing import Final, TypeAlias

from autoscaler.lifecycle.movable import mark_of_node
from autoscaler.lifecycle.ownership import OwnNodes
from autoscaler.lifecycle.provisioned_node import is_coming, is_stopped, may_take_pods
from autoscaler.lifecycle.reflect import occupies
from autoscaler.model.capacity import CapacityPool, ConsolidationPolicy
from autoscaler.model.plan import Plan
from autoscaler.model.pod import Pod
from autoscaler.model.provisioned_node import OfferingRef, ProvisionedNode
from autoscaler.model.snapshot import Snapshot
from autoscaler.planning.demand.demand import pending_pods
from autoscaler.planning.disruption.moves import price_now
from autoscaler.planning.disruption.node_actions import baseline_names, needed_nodes
from autoscaler.planning.disruption.without_nodes import without_nodes
from instance_catalog.dataclass import dataclass, field, replace
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.types.catalog import Catalog

# The most nodes that are checked in one reconcile: each needs a small plan. The others stay open until they are
# checked.
_TRIES: Final = 8

_Key: TypeAlias = tuple[OfferingRef, tuple[str, ...], tuple[CapacityPool, ...], str]


@dataclass(frozen=True, slots=True)
class ClosingMemory:
    """Cached prices of pods alone, with the input of each, by name of a ProvisionedNode.

    None if not all of the pods have a place, or a price is not known.
    """

    alone: dict[str, tuple[_Key, Decimal | None]] = field(default_factory=dict)


def with_closing(
    snapshot: Snapshot, make: Callable[[Snapshot], Plan], now: datetime, *, catalog: Catalog, kept: ClosingMemory
) -> Snapshot:
    """The snapshot with the nodes to close marked. `make` plans, with the pods of one node at a time."""
    pools = {pool.name: pool for pool in snapshot.pools if _closes(pool)}
    kept_now = {node.name for node in snapshot.provisioned if node.pool in pools}
    for name in kept.alone.keys() - kept_now:
        del kept.alone[name]
    if not pools:
        return snapshot
    found = FrozenMap(dict(_closing(_Run(snapshot, pools, make, now, catalog, kept))))
    return replace(snapshot, closing=found) if found else snapshot


def open_where_needed(plan: Plan, snapshot: Snapshot, make: Callable[[Snapshot], Plan]) -> tuple[Snapshot, Plan]:
    """The same snapshot, or one with every node open if more pods have a place then."""
    if not snapshot.closing or not plan.left_out:
        return snapshot, plan
    opened = replace(snapshot, closing=FrozenMap())
    other = make(opened)
    return (opened, other) if len(other.left_out) < len(plan.left_out) else (snapshot, plan)


def _closes(pool: CapacityPool) -> bool:
    return (
        pool.disruption.consolidate is ConsolidationPolicy.CLOSE and pool.acts and not (pool.ordered or pool.deleting)
    )


@dataclass(frozen=True, slots=True)
class _Run:
    snapshot: Snapshot
    pools: dict[str, CapacityPool]
    make: Callable[[Snapshot], Plan]
    now: datetime
    catalog: Catalog
    kept: ClosingMemory


def _closing(run: _Run) -> Iterator[tuple[str, Decimal]]:
    """Names of the ProvisionedNodes that close, with the saving for their pods."""
    occupants: dict[str, list[Pod]] = {}
    for pod in run.snapshot.pods:
        if pod.node_name is not None and occupies(pod):
            occupants.setdefault(pod.node_name, []).append(pod)
    stay = needed_nodes(run.snapshot, (), run.now) | _awaited(run.snapshot) | baseline_names(run.snapshot, run.now)
    own, tries = OwnNodes(run.snapshot.nodes), _TRIES
    for node in run.snapshot.provisioned:
        pods, price = occupants.get(node.node_name, []), price_now(node, run.catalog)
        if price is None or not pods or node.pool not in run.pools or not _is_ours_to_close(node):
            continue
        there = own.of(node)
        if {node.name, node.node_name} & stay or there is None or mark_of_node(there):
            continue
        if set(node.pods) == {pod.key for pod in pods}:
            continue  # it is the cheapest for them
        key = (node.offering, tuple(pod.uid for pod in pods), tuple(run.snapshot.pools), run.catalog.digest)
        if node.name not in run.kept.alone or run.kept.alone[node.name][0] != key:
            run.kept.alone.pop(node.name, None)
            if not tries:
                continue
            tries -= 1
            run.kept.alone[node.name] = key, _alone(node, pods, run)
        alone = run.kept.alone[node.name][1]
        if alone is not None and alone <= price * (100 - run.pools[node.pool].disruption.saving.percent) / 100:
            yield node.name, price - alone


def _is_ours_to_close(node: ProvisionedNode) -> bool:
    """True if it is paid by the hour, belongs to no slice, and accepts pods now."""
    ready = may_take_pods(node) and not is_coming(node) and not is_stopped(node)
    return ready and not node.offering.block and node.hosts == 1 and not node.replaces


def _awaited(snapshot: Snapshot) -> frozenset[str]:
    """Names of Nodes and ProvisionedNodes that a pending pod was bought for or is nominated to."""
    pending = {pod.key: pod for pod in pending_pods(snapshot)}
    bought = (node.name for node in snapshot.provisioned if not pending.keys().isdisjoint(node.pods))
    return frozenset([*bought, *(pod.nominated_node for pod in pending.values() if pod.nominated_node)])


def _alone(node: ProvisionedNode, pods: list[Pod], run: _Run) -> Decimal | None:
    """The hourly price of the pods on new machines, in a cluster without anything else."""
    without = without_nodes(run.snapshot, [node], pods)
    keys = {pod.key for pod in pods}
    alone = replace(
        without,
        pods=tuple(pod for pod in without.pods if pod.key in keys),
        nodes=(),
        slices=tuple(piece for piece in without.slices if piece.reach.node_name is None),
        provisioned=(),
        attachments=(),
        closing=FrozenMap(),
        provisioning_requests=(),
        capacity_buffers=(),
    )
    plan = run.make(alone)
    placed = {placement.pod for placement in plan.placements}
    if placed != keys or any(launch.usd_per_hour is None for launch in plan.launches):
        return None
    return plan.usd_per_hour
