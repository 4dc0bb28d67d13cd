"""Pools with `consolidate: Close`: a node accepts no more pods than those that it was bought for, and ends after them.

kube-scheduler spreads pods, so a large machine with one small pod gets the next small pod, and the next, and never
ends. A taint sends these pods to new machines of their size. No pod is evicted.

With `consolidate: Cheaper`, the nodes that one machine replaces close when the first of them drains: its pods would
otherwise go to the next ones, and be evicted again.

A closed node opens for pods that find no place otherwise, that would launch a more expensive machine than it is, or
that are expected to cost less there: most pods run for minutes and a few for weeks, so one that has run for hours
outlasts most new ones. Nothing is remembered.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Final

from autoscaler.lifecycle.leaving import checked_first
from autoscaler.lifecycle.movable import mark_of_node
from autoscaler.lifecycle.ownership import OwnNodes
from autoscaler.lifecycle.provisioned_node import is_coming, is_leaving, is_stopped, may_take_pods
from autoscaler.lifecycle.reflect import occupies
from autoscaler.model.capacity import CapacityPool, ConsolidationPolicy
from autoscaler.model.plan import Plan
from autoscaler.model.pod import Pod
from autoscaler.model.provisioned_node import ProvisionedNode
from autoscaler.model.snapshot import Snapshot
from autoscaler.planning.demand.demand import pending_pods
from autoscaler.planning.disruption.consolidation.tried_moves import NO_SECOND
from autoscaler.planning.disruption.node_actions import baseline_names, needed_nodes
from autoscaler.planning.disruption.running import price_now, remaining
from instance_catalog.dataclass import replace
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.labels import DRAINING_TAINT
from instance_catalog.types.catalog import Catalog

# The most nodes that are tried one by one in a reconcile: each is a plan of the whole cluster.
_TRIES: Final = 8
# A pod that has run for so long is expected to outlast a new one on a node of the price of its own machine. The part
# of a new pod's time that is left after an older pod has ended shrinks with about the cube root of the older pod's age:
# on a production trace from 55 % after 2 hours to 25 % after a day and 18 % after four.
_LONG: Final = timedelta(hours=1)
_ROOT: Final = Decimal(1) / 3


def with_closing(snapshot: Snapshot, now: datetime, *, catalog: Catalog, closes: bool) -> Snapshot:
    """The snapshot with the nodes to close marked, each with its price. `closes`: also those of pools with
    `consolidate: Close`."""
    pools = {pool.name for pool in snapshot.pools if closes and _acts(pool, ConsolidationPolicy.CLOSE)}
    names = {node.name for node in snapshot.provisioned if node.pool in pools and not node.replaces}
    names.update(_going_together(snapshot, now))
    return replace(snapshot, closing=FrozenMap(dict(_closing(snapshot, names, now, catalog)))) if names else snapshot


def without_closed_pools(snapshot: Snapshot) -> Snapshot:
    """The snapshot in which only nodes close whose pods move to a machine that is there already."""
    moving = {name for new in snapshot.provisioned for name in new.replaces}
    return _without(snapshot, snapshot.closing.keys() - moving)


def _going_together(snapshot: Snapshot, now: datetime) -> Iterator[str]:
    """The ProvisionedNodes that are still to be drained for a replacement of several, once one of them has the taint of
    a drain. That lasts as long as these drains come before other moves."""
    replacements = [new for new in snapshot.provisioned if len(new.replaces) > 1]
    if not replacements:
        return
    pools = {pool.name for pool in snapshot.pools if _acts(pool, ConsolidationPolicy.CHEAPER)}
    tainted = {node.name for node in snapshot.nodes if any(taint.key == DRAINING_TAINT for taint in node.taints)}
    known = {node.name: node for node in snapshot.provisioned}
    for new in replacements:
        olds = [known[name] for name in new.replaces if name in known]
        ready = may_take_pods(new) and not is_coming(new)
        began = any((is_leaving(old) and checked_first(old.reasons)) or old.node_name in tainted for old in olds)
        if ready and began and new.phase_since is not None and now < new.phase_since + NO_SECOND:
            yield from (old.name for old in olds if old.pool in pools)


def reopened(plan: Plan, snapshot: Snapshot, make: Callable[[Snapshot], Plan], now: datetime) -> tuple[Snapshot, Plan]:
    """The snapshot with the closed nodes open that pods are better placed on, and its plan; `make` plans."""
    if snapshot.closing and plan.left_out:
        opened = replace(snapshot, closing=FrozenMap())
        other = make(opened)
        if len(other.left_out) < len(plan.left_out):
            return opened, other
    useful = _worth_opening(plan, snapshot, now) if plan.launches else []
    # kube-scheduler prefers the emptiest node, so the best one opens alone if that suffices.
    if not useful or not _is_cheaper(make(_without(snapshot, useful)), plan):
        return snapshot, plan
    for name in useful[:_TRIES]:
        opened = _without(snapshot, (name,))
        tried = make(opened)
        if _is_cheaper(tried, plan):
            snapshot, plan = opened, tried
    return snapshot, plan


def _is_cheaper(plan: Plan, other: Plan) -> bool:
    return len(plan.left_out) == len(other.left_out) and plan.usd_per_hour < other.usd_per_hour


def _worth_opening(plan: Plan, snapshot: Snapshot, now: datetime) -> list[str]:
    """Names of the closed nodes on which pods are expected to cost less than on the machines that the plan launches for
    them, those of the least cost first.

    kube-scheduler may put any pod there that waits, also one whose machine is starting: the longest counts, and the
    cheapest machine.
    """
    prices = [launch.usd_per_hour or Decimal(0) for launch in plan.launches]
    waiting = [pod.expected_seconds for pod in pending_pods(snapshot)]
    longest = None if None in waiting else max((span for span in waiting if span is not None), default=0)
    occupants = _occupants(snapshot)
    found: list[tuple[Decimal, str]] = []
    for node in snapshot.provisioned:
        price = snapshot.closing.get(node.name)
        if price is not None:
            share = _share(node, occupants.get(node.node_name, ()), longest, now)
            # In the cloud's usual state a pod that fits on a node never launches a more expensive one.
            if price < max(prices) or (share is not None and price * share <= min(prices)):
                found.append((price if share is None else price * share, node.name))
    return [name for _, name in sorted(found)]


def _share(node: ProvisionedNode, pods: Sequence[Pod], longest: int | None, now: datetime) -> Decimal | None:
    """The share of the node's price that a new pod is expected to cost there, in the time that it runs: nothing as long
    as the node's own pods run, and then all of it, as from the start on an empty node. None if nothing is known.

    `longest`: the seconds that the new pod runs, None if they are not known. Then the age of the node's pods tells.
    """
    if not pods:
        return Decimal(1)
    left = remaining(pods, now)
    if longest and left is not None:
        return Decimal(max(0, longest - int(left.total_seconds()))) / longest
    run = int(_longest_run(node, pods, now).total_seconds())
    return round((Decimal(int(_LONG.total_seconds())) / run) ** _ROOT, 6) if run else None


def _longest_run(node: ProvisionedNode, pods: Sequence[Pod], now: datetime) -> timedelta:
    """How long the oldest of the pods has run at most: as long as it and the node exist."""
    oldest = min((pod.created for pod in pods), default=now.timestamp())
    here = now if node.phase_since is None else node.phase_since
    return max(timedelta(0), min(timedelta(seconds=now.timestamp() - oldest), now - here))


def _without(snapshot: Snapshot, names: Collection[str]) -> Snapshot:
    kept = {name: price for name, price in snapshot.closing.items() if name not in names}
    return replace(snapshot, closing=FrozenMap(kept))


def _acts(pool: CapacityPool, how: ConsolidationPolicy) -> bool:
    return pool.disruption.consolidate is how and pool.acts and not (pool.ordered or pool.deleting)


def _occupants(snapshot: Snapshot) -> dict[str, list[Pod]]:
    """By name of the Node, its pods without those of DaemonSets."""
    found: dict[str, list[Pod]] = {}
    for pod in snapshot.pods:
        if pod.node_name is not None and occupies(pod):
            found.setdefault(pod.node_name, []).append(pod)
    return found


def _closing(
    snapshot: Snapshot, names: Collection[str], now: datetime, catalog: Catalog
) -> Iterator[tuple[str, Decimal]]:
    """Those of the ProvisionedNodes that close, with their prices."""
    own = OwnNodes(snapshot.nodes)
    stay = needed_nodes(snapshot, (), now) | _awaited(snapshot) | baseline_names(snapshot, now)
    for node in snapshot.provisioned:
        price, there = price_now(node, catalog), own.of(node)
        if node.name not in names or price is None or not _is_ours_to_close(node):
            continue
        if {node.name, node.node_name} & stay:
            continue
        if there is not None and not mark_of_node(there):
            yield node.name, price


def _is_ours_to_close(node: ProvisionedNode) -> bool:
    """True if it is paid by the hour, belongs to no slice, and accepts pods now."""
    ready = may_take_pods(node) and not is_coming(node) and not is_stopped(node)
    return ready and not node.offering.block and node.hosts == 1 and node.unhealthy_since is None


def _awaited(snapshot: Snapshot) -> frozenset[str]:
    """Names of Nodes and ProvisionedNodes that a pending pod was bought for or is nominated to."""
    pending = {pod.key: pod for pod in pending_pods(snapshot)}
    bought = (node.name for node in snapshot.provisioned if not pending.keys().isdisjoint(node.pods))
    return frozenset([*bought, *(pod.nominated_node for pod in pending.values() if pod.nominated_node)])
