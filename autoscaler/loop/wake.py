"""The time of the next reconcile if nothing changes in the cluster. Pure, except for the count of attempts."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from typing import TypeAlias

from autoscaler.cluster.isolation import Trouble
from autoscaler.lifecycle.capacity_block import BEGINS_WITHIN, next_moment
from autoscaler.lifecycle.observing import acts_on_nodes
from autoscaler.lifecycle.provisioned_node import (
    awaits_machine,
    has_come,
    has_failed,
    has_machine,
    may_take_pods,
    times_out_at,
)
from autoscaler.lifecycle.quarantine import WATCH_SKEW
from autoscaler.model.plan import NodeAction, Plan
from autoscaler.model.provisioned_node import Phase, ProvisionedNode
from autoscaler.model.snapshot import Snapshot
from autoscaler.planning.demand.demand import awaited_bindings
from autoscaler.planning.disruption.baseline import windows_of
from autoscaler.planning.disruption.node_actions import REPLACING
from autoscaler.settings.settings import LoopSettings

_Item: TypeAlias = tuple[str, str, str]  # kind, namespace and name of what could not be done


class Retries:
    """The times at which failed items are tried again: the intervals grow while the failure lasts."""

    def __init__(self, settings: LoopSettings) -> None:
        self._settings = settings
        self._attempts: Mapping[_Item, int] = {}  # failed reconciles in a row, by item

    def next(self, troubles: Sequence[Trouble], now: datetime) -> datetime | None:
        """Counts each item separately: one that fails for hours does not slow down one that failed just now."""
        items = {(trouble.kind, trouble.namespace, trouble.name) for trouble in troubles}
        self._attempts = {item: self._attempts.get(item, 0) + 1 for item in items}
        if not items:
            return None
        fewest = min(self._attempts.values())
        return now + min(self._settings.retry * (1 << min(fewest - 1, 10)), self._settings.resync)


def earliest(*moments: datetime | None) -> datetime | None:
    """The earliest of the given times; None if there are none."""
    return min((moment for moment in moments if moment is not None), default=None)


def next_wake(snapshot: Snapshot, settings: LoopSettings, now: datetime) -> datetime | None:
    """The time of the next change that no event announces; None if there is none."""
    return min((moment for moment in _due(snapshot, settings, now) if moment > now), default=None)


def next_step(plan: Plan, snapshot: Snapshot, settings: LoopSettings, now: datetime) -> datetime | None:
    """The time of the next look at a node that was tainted and is not drained before the taint was seen; a watch of
    Nodes wakes a controller earlier."""
    acting = {pool.name for pool in snapshot.pools if acts_on_nodes(pool)}
    drained = {decision.provisioned_node for decision in plan.nodes if decision.action is NodeAction.DRAIN}
    waits = any(n.name in drained and n.pool in acting and may_take_pods(n) for n in snapshot.provisioned)
    return now + settings.retry if waits else None


def _due(snapshot: Snapshot, settings: LoopSettings, now: datetime) -> Iterator[datetime]:
    """Times of changes; some are over."""
    after = {pool.name: pool.disruption.after for pool in snapshot.pools}
    for pod in snapshot.pods:
        if pod.no_node_before is not None and pod.node_name is None:
            yield pod.no_node_before
    patient = any(pod.max_wait for pod in snapshot.pods)
    awaited = awaited_bindings(snapshot, now)
    bound = {
        pod.key
        for pod in (snapshot.pods if awaited else ())
        if pod.node_name is not None and awaited.get(pod.key) == pod.node_name
    }
    for block in snapshot.blocks:
        moment = next_moment(block, now)
        if moment is not None:
            yield moment
        if block.max_wait or patient:
            yield block.starts_at + BEGINS_WITHIN  # from then on no pod waits for it
    for backoff in snapshot.backoffs:
        yield backoff.until
    for quarantine in snapshot.quarantines:
        if quarantine.until is not None:
            yield quarantine.until
    for pool in snapshot.pools:
        yield from (window.next_change(now) for window in windows_of(pool))
    for node in snapshot.provisioned:
        yield from _due_of(node, bound, settings, now, held=node.name in snapshot.waiting)
        if node.empty_since is not None and node.pool in after:
            yield node.empty_since + after[node.pool]


def _due_of(
    node: ProvisionedNode, bound: Collection[str], settings: LoopSettings, now: datetime, *, held: bool
) -> Iterator[datetime]:
    """Those of a node. `held`: its provider holds the request, perhaps for weeks. `bound`: pods that are bound to the
    nodes that were launched for them."""
    timeout = times_out_at(node)
    if timeout is not None:
        yield timeout
    since = node.phase_since
    if since is not None and since > now - WATCH_SKEW and has_come(node) and not all(p in bound for p in node.pods):
        yield since + WATCH_SKEW  # then nodes are bought for what its pods still lack
    if node.replaces and since is not None:
        yield since + REPLACING  # no pod arrived, so it is removed
    if node.phase is Phase.READY:
        return
    # The trouble's own schedule (Retries) repeats a request that is held.
    if (awaits_machine(node) and not held) or (has_failed(node) and not has_machine(node)):
        yield now + settings.retry
    else:
        yield now + settings.resync
