"""Decides about managed nodes: keep, give notice, drain, end. It only decides; execution/ drains.

If the provider has announced the end of a machine, this has precedence: pods get a notice and are evicted in time.
Otherwise a node is removed only while no pod runs on it: because it never became usable, is not healthy, no longer
matches its pool, or is not needed. A working node is never removed against a do-not-disrupt mark, and never beyond the
budgets of its pool. lifecycle/leaving.py lists the reasons for which pods are evicted.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from typing import Final

from autoscaler.lifecycle.leaving import SINGLE, checked_first
from autoscaler.lifecycle.movable import mark_of_node
from autoscaler.lifecycle.ownership import OwnNodes
from autoscaler.lifecycle.provisioned_node import (
    has_failed,
    has_machine,
    is_coming,
    is_leaving,
    is_stopped,
    last_edge,
    may_take_pods,
)
from autoscaler.lifecycle.recreation import why_recreated
from autoscaler.lifecycle.reflect import occupied_nodes
from autoscaler.lifecycle.slices import slice_of
from autoscaler.model.capacity import (
    CapacityBlock,
    CapacityPool,
    ConsolidationPolicy,
    DeletionPolicy,
    Disruption,
    DriftDisruption,
    Hold,
    StoppedMachines,
)
from autoscaler.model.plan import NodeAction, NodeDecision
from autoscaler.model.provisioned_node import ProvisionedNode
from autoscaler.model.reason import Code, Reason, Subject
from autoscaler.model.snapshot import Snapshot
from autoscaler.planning.demand.demand import awaited_bindings, pending_pods
from autoscaler.planning.demand.virtual_pods import booked_nodes
from autoscaler.planning.disruption.baseline import baseline_nodes
from autoscaler.planning.disruption.budgets import Budgets
from autoscaler.planning.disruption.whole_slices import together, used_slices
from autoscaler.planning.supply.drivers import readable
from autoscaler.planning.supply.offering_labels import capacity_type_facts
from instance_catalog.drivers.custom import CustomDriver
from instance_catalog.kubernetes import labels
from instance_catalog.kubernetes.node_selector import requirement_matches
from instance_catalog.types.instance_type import ANY_ZONE

# Kubernetes evicts the pods of a node that is not ready after five minutes; a reboot takes less than ten.
UNHEALTHY: Final = timedelta(minutes=15)
# The time for which empty nodes are kept for pods that move: a replacement from its start, the others from the last
# phase of the node that drains, and for as long as a pod on it may take to stop, at most _STOPPING: whoever writes a
# grace period does not decide how long all empty nodes cost money.
REPLACING: Final = timedelta(minutes=30)
_STOPPING: Final = timedelta(hours=1)
_BOUND: Final = Reason.of(Code.ALREADY_BOUND)
_COMING: Final = Reason.of(Code.COMING_NODE)


def decide(
    snapshot: Snapshot, needed: frozenset[str], now: datetime, *, custom: Mapping[str, CustomDriver]
) -> tuple[NodeDecision, ...]:
    """One decision for each managed node that is not being removed already, and for each machine of a failed node.

    `needed` are names of nodes with pending pods, `custom` the catalog's own drivers.
    """
    run = _Run(snapshot, needed, now, custom)
    found = (run.decide(n) for n in snapshot.provisioned if may_take_pods(n) or (has_failed(n) and has_machine(n)))
    return together(tuple(found), snapshot.provisioned, snapshot.unwritten)


def needed_nodes(snapshot: Snapshot, planned: Collection[str], now: datetime) -> frozenset[str]:
    """The names of nodes that pending pods use in this plan or were bought for, and of booked nodes."""
    bindings = awaited_bindings(snapshot, now)
    awaited = (bindings[pod.key] for pod in pending_pods(snapshot) if pod.key in bindings)
    return frozenset({*planned, *awaited, *booked_nodes(snapshot)})


class _Run:
    """One pass over the nodes."""

    def __init__(
        self, snapshot: Snapshot, needed: frozenset[str], now: datetime, custom: Mapping[str, CustomDriver]
    ) -> None:
        self._now = now
        self._custom = custom
        self._nodes = OwnNodes(snapshot.nodes)
        self._pools = {pool.name: pool for pool in snapshot.pools}
        self._blocks = {block.name: block for block in snapshot.blocks}
        self._busy = needed | occupied_nodes(snapshot.pods)
        self._used_slices = used_slices(snapshot.provisioned, self._busy)
        self._baseline = baseline_names(snapshot, now)
        self._closing = snapshot.closing
        self._provisioned = snapshot.provisioned
        self._moving = _pods_move(snapshot, now)
        self._budget = Budgets(snapshot, now)

    def decide(self, node: ProvisionedNode) -> NodeDecision:
        """The decision of the first rule that applies."""
        if node.recreated_as:
            return NodeDecision(node.name, NodeAction.DRAIN, (why_recreated(node),), deadline=self._now)
        block = self._blocks.get(node.offering.block)
        ending = self._by_block_end(node, block) if block else self._by_reclaim(node)
        if ending is not None:
            return ending
        pool = self._pools.get(node.pool)
        if pool is not None and pool.deleting and pool.deletion_policy is DeletionPolicy.DRAIN:
            return NodeDecision(
                node.name, NodeAction.DRAIN, (Reason.of(Code.POOL_DELETED, Subject("pool", node.pool)),)
            )
        if pool is not None and pool.ordered:
            # Whatever its state: two autoscalers would end each other's nodes and buy them again.
            return NodeDecision(node.name, NodeAction.KEEP, (Reason.of(Code.OTHER_LAUNCHER, pool=pool.name),))
        if has_failed(node):
            return self._failed(node)
        if is_stopped(node):
            return self._stopped(node, pool)
        held = block is not None and block.hold is Hold.ALWAYS
        why_kept = self._needed(node)
        if why_kept is None:
            why = self._why_it_goes(node, pool, wanted=held or node.name in self._baseline)
            if why is not None:
                return self._unless_protected(node, why)
        if block is not None and held:
            reason = Reason.of(Code.BLOCK_HELD, Subject("block", block.name), block=block.name)
            return NodeDecision(node.name, NodeAction.HOLD, (reason,), deadline=block.reclaimed)
        if why_kept is None and node.name in self._baseline:
            why_kept = Reason.of(Code.BASELINE, Subject("pool", node.pool))
        if node.name in self._closing:
            return NodeDecision(node.name, NodeAction.CLOSE, (self._why_closing(node),))
        unhealthy = self._unhealthy(node)
        also = () if unhealthy is None else (unhealthy,)
        return NodeDecision(node.name, NodeAction.KEEP, (why_kept or self._empty(node), *also))

    def _stopped(self, node: ProvisionedNode, pool: CapacityPool | None) -> NodeDecision:
        """A person stopped the machine and may start it again. It is ended only if the pool says so, or with the
        empty rest of its slice."""
        since = "" if node.stopped_since is None else f"{node.stopped_since:%Y-%m-%dT%H:%M:%SZ}"
        why = Reason.of(Code.NODE_STOPPED, since=since)
        if pool is not None and pool.disruption.stopped is StoppedMachines.END:
            return self._unless_protected(node, why)
        return self._protected(node, why) or NodeDecision(node.name, NodeAction.KEEP, (why,))

    def _failed(self, node: ProvisionedNode) -> NodeDecision:
        """It is removed, but not while a pod runs on it: a pod that tolerates all taints may run on a node that
        never became ready."""
        why = Reason.of(Code.NODE_FAILED, why=last_edge(node))
        if node.node_name in self._busy:
            return NodeDecision(node.name, NodeAction.KEEP, (_BOUND, why))
        return NodeDecision(node.name, NodeAction.DRAIN, (why,))

    def _by_block_end(self, node: ProvisionedNode, block: CapacityBlock) -> NodeDecision | None:
        ending = (Reason.of(Code.BLOCK_ENDING, Subject("block", block.name), block=block.name),)
        if self._now >= block.drain_starts:
            return NodeDecision(node.name, NodeAction.DRAIN, ending, deadline=block.reclaimed)
        if self._now >= block.notice_at:
            return NodeDecision(node.name, NodeAction.NOTICE, ending, deadline=block.reclaimed)
        return None

    def _by_reclaim(self, node: ProvisionedNode) -> NodeDecision | None:
        if node.reclaim_at is None or self._now < node.reclaim_at - SINGLE.budget - SINGLE.notice:
            return None
        why = (Reason.of(Code.NODE_RECLAIMED, Subject("node", node.name), at=node.reclaim_at.isoformat()),)
        drains = self._now >= node.reclaim_at - SINGLE.budget
        return NodeDecision(node.name, NodeAction.DRAIN if drains else NodeAction.NOTICE, why, deadline=node.reclaim_at)

    def _why_closing(self, node: ProvisionedNode) -> Reason:
        to = next((new.node_name for new in self._provisioned if node.name in new.replaces), "")
        return Reason.of(Code.NODE_CLOSING, to=to) if to else Reason.of(Code.NODE_CLOSING)

    def _needed(self, node: ProvisionedNode) -> Reason | None:
        """The reason why it stays whatever the policy is: it has pods, or it has not registered yet."""
        if node.node_name in self._busy:
            return _BOUND
        if is_coming(node):
            return _COMING
        if node.replaces and self._awaits_moves(node):
            return Reason.of(Code.NODE_REPLACES, replaced=node.replaces)
        return Reason.of(Code.SLICE_IN_USE, hosts=node.hosts) if slice_of(node) in self._used_slices else None

    def _awaits_moves(self, node: ProvisionedNode) -> bool:
        """True if the pods that it was launched for may still be created again by their controllers."""
        return node.phase_since is not None and self._now < node.phase_since + REPLACING

    def _why_it_goes(self, node: ProvisionedNode, pool: CapacityPool | None, *, wanted: bool) -> Reason | None:
        """The reason to remove an empty node, if there is one. `wanted`: a baseline keeps it, so an empty node stays.
        It also stays while pods move: it may be the place of a pod that is not created again yet."""
        disruption = pool.disruption if pool else Disruption()
        unhealthy = self._unhealthy(node)
        if unhealthy is not None:
            return unhealthy
        if disruption.drift is DriftDisruption.WHEN_EMPTY and pool is not None:
            drift = drifted(node, pool, self._blocks.get(node.offering.block), custom=self._custom)
            if drift:
                return Reason.of(Code.NODE_DRIFTED, Subject("pool", pool.name), what=drift)
        idle = disruption.consolidate is not ConsolidationPolicy.NEVER and node.empty_since is not None
        if self._moving:
            return None
        if not wanted and idle and node.empty_since is not None and self._now >= node.empty_since + disruption.after:
            return self._empty(node)
        return None

    def _unhealthy(self, node: ProvisionedNode) -> Reason | None:
        if node.unhealthy_since is None or self._now < node.unhealthy_since + UNHEALTHY:
            return None
        return Reason.of(Code.NODE_UNHEALTHY, seconds=_seconds(self._now - node.unhealthy_since))

    def _unless_protected(self, node: ProvisionedNode, why: Reason) -> NodeDecision:
        protected = self._protected(node, why)
        if protected is not None:
            return protected
        action = NodeAction.DRAIN if self._budget.take(node) else NodeAction.KEEP
        return NodeDecision(node.name, action, (why,))

    def _protected(self, node: ProvisionedNode, why: Reason) -> NodeDecision | None:
        """The decision to keep it if its Node has a mark against disruption."""
        found = self._nodes.of(node)
        mark = mark_of_node(found) if found else ""
        if not mark:
            return None
        return NodeDecision(node.name, NodeAction.KEEP, (Reason.of(Code.DO_NOT_DISRUPT, mark=mark), why))

    def _empty(self, node: ProvisionedNode) -> Reason:
        return Reason.of(Code.NODE_EMPTY, seconds=_seconds(self._now - node.empty_since) if node.empty_since else 0)


def drifted(
    node: ProvisionedNode, pool: CapacityPool, block: CapacityBlock | None, *, custom: Mapping[str, CustomDriver]
) -> str:
    """The field of the pool that the node no longer matches; "" if it matches.

    Compared with the record of the launch, never with the Node: a label that a user changed on the Node, or that a
    provider did not set, must not end nodes and buy them again forever.
    """
    if any(node.labels.get(key) != value for key, value in pool.labels.items()):
        return "labels"
    wanted = readable((block.drivers if block else ()) or pool.drivers, custom=custom)
    if wanted and wanted.profiles and wanted != readable(node.prediction.drivers, custom=custom):
        return "drivers"
    facts = capacity_type_facts(node.offering.capacity_type)
    if node.offering.zone != ANY_ZONE:
        facts[labels.ZONE] = node.offering.zone
    bound = [requirement for requirement in pool.requirements if requirement.key in facts]
    return "" if all(requirement_matches(requirement, facts) for requirement in bound) else "requirements"


def _pods_move(snapshot: Snapshot, now: datetime) -> bool:
    """True while pods that left a node to save money may not have been created again. A StatefulSet creates a pod only
    after the old one has stopped."""
    began = {n.node_name: n.phase_since for n in snapshot.provisioned if is_leaving(n) and checked_first(n.reasons)}
    if not began:
        return False
    stopping = dict.fromkeys(began, timedelta(0))
    for pod in snapshot.pods:
        if pod.node_name in stopping:
            grace = min(timedelta(seconds=pod.termination_grace_seconds), _STOPPING)
            stopping[pod.node_name] = max(stopping[pod.node_name], grace)
    return any(since is not None and now < since + REPLACING + stopping[name] for name, since in began.items())


def baseline_names(snapshot: Snapshot, now: datetime) -> set[str]:
    """Names of the ProvisionedNodes that a baseline keeps: the first by name, so the choice is stable."""
    kept: set[str] = set()
    for pool in snapshot.pools:
        alive = sorted(n.name for n in snapshot.provisioned if n.pool == pool.name and may_take_pods(n))
        kept.update(alive[: baseline_nodes(pool, now)])
    return kept


def _seconds(span: timedelta) -> int:
    return int(span.total_seconds())
