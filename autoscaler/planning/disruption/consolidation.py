"""Pools with `consolidate: Cheaper`: running pods move to where they cost less, one step at a time.

A step is tried as a plan first (moves.py), and the next one is not taken before it is done: nothing starts, ends or
waits for a place. Pods that need another machine get it first: the new node is launched while the old one still runs
them, and only when it is ready does the old one drain, since its pods fit on nodes that are there. So a machine that
cannot be had, or that is not what was predicted, costs no pod its place.

Each node is tried every few minutes, a few nodes at a time. What was tried is kept in memory alone: after a restart the
nodes are tried again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Final, TypeVar

from autoscaler.lifecycle.marks import mark_of_node
from autoscaler.lifecycle.ownership import OwnNodes
from autoscaler.lifecycle.provisioned_node import is_coming, is_leaving, is_stopped, may_take_pods
from autoscaler.lifecycle.reflect import occupies
from autoscaler.model.capacity import CapacityPool, Saving
from autoscaler.model.plan import NodeAction, NodeDecision, Plan, Target
from autoscaler.model.pod import Pod
from autoscaler.model.provisioned_node import Phase, ProvisionedNode
from autoscaler.model.reason import Code, Reason
from autoscaler.model.snapshot import Snapshot
from autoscaler.model.virtual_pods import is_virtual
from autoscaler.planning.demand.virtual_pods import booked_nodes
from autoscaler.planning.disruption.budgets import Budgets
from autoscaler.planning.disruption.movable import deletion_cost, obstacle
from autoscaler.planning.disruption.moves import Move, by_acting_pools, moment_over, price_now, try_move
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.types.catalog import Catalog

V = TypeVar("V")

# How many moves are tried at once, and what they may cost: each is a plan of the whole cluster.
_TRIES: Final = 8
_NODES_PLANNED: Final = 2_000
_MOST_TOGETHER: Final = 8
# How many nodes are looked at in vain at once: to see that pods stay is cheap, but not for thousands.
_LOOKS: Final = 200
PAUSE: Final = timedelta(seconds=15)
_SOON: Final = timedelta(seconds=1)
AGAIN: Final = timedelta(minutes=5)
# A node that has just come is left alone: the pods it was bought for may still be on their way.
_SETTLED: Final = timedelta(minutes=10)
# So long after a replacement was launched no other one is launched for the same node.
_NO_SECOND: Final = timedelta(hours=1)
_NO_TIMES: Final[FrozenMap[str, datetime]] = FrozenMap()
_NO_ANSWERS: Final[FrozenMap[str, Reason]] = FrozenMap()


@dataclass(frozen=True, slots=True)
class MovesTried:
    """What is kept between reconciles: when anything was `tried` last, and by name of a ProvisionedNode when it was,
    what came of it, and when a replacement was launched for it."""

    last: datetime | None = None
    tried: FrozenMap[str, datetime] = _NO_TIMES
    answers: FrozenMap[str, Reason] = _NO_ANSWERS
    replaced: FrozenMap[str, datetime] = _NO_TIMES


NOTHING_TRIED: Final = MovesTried()


@dataclass(frozen=True, slots=True)
class Consolidated:
    """The plan with a step in it, or with the reasons why pods stay; `next_at`: when more nodes are due to be tried."""

    plan: Plan
    tried: MovesTried
    next_at: datetime | None = None


def consolidated(
    plan: Plan,
    snapshot: Snapshot,
    make: Callable[[Snapshot], Plan],
    now: datetime,
    tried: MovesTried,
    *,
    catalog: Catalog,
) -> Consolidated:
    """The plan with the next step of consolidation, if there is one. `make` plans."""
    pools = {pool.name: pool for pool in snapshot.pools if _consolidates(pool)}
    if not pools:
        return Consolidated(plan, NOTHING_TRIED)
    there = snapshot.provisioned
    tried = replace(
        tried,
        tried=_kept(tried.tried, there),
        answers=_kept(tried.answers, there),
        replaced=_kept(tried.replaced, there),
    )
    if not is_quiet(plan, snapshot):
        return Consolidated(_explained(plan, tried), tried)
    if tried.last is not None and now < tried.last + PAUSE:
        return Consolidated(_explained(plan, tried), tried, tried.last + PAUSE)
    found = _Candidates(snapshot, plan, pools, now, catalog)
    batch, stay = found.due(tried)
    after = replace(
        tried, answers=tried.answers.with_items(stay), tried=tried.tried.with_items(dict.fromkeys(stay, now))
    )
    plan, after = _tried(batch, found, plan, snapshot, make, after) if batch else (plan, after)
    return Consolidated(_explained(plan, after), after, found.next_at(after))


def is_quiet(plan: Plan, snapshot: Snapshot) -> bool:
    """Whether nothing is under way: no launch, no pod that is about to get a place, no node that comes or goes.

    What pools would launch that only observe, and what a provider holds, may stay as it is for weeks.
    """
    acting = {pool.name for pool in snapshot.pools if pool.acts}
    launching = any(launch.pool in acting for launch in plan.launches)
    placed = any(p.target is not Target.NEW and not is_virtual(p.pod) for p in plan.placements)
    going = any(decision.action in (NodeAction.DRAIN, NodeAction.NOTICE) for decision in plan.nodes)
    here = [node for node in snapshot.provisioned if node.name not in snapshot.waiting]
    return not (launching or placed or going or any(is_coming(node) or is_leaving(node) for node in here))


def _consolidates(pool: CapacityPool) -> bool:
    return pool.disruption.consolidate == "Cheaper" and not (pool.ordered or pool.deleting or pool.implicit)


class _Candidates:
    """The nodes that may be done without, in the order in which they are tried."""

    def __init__(
        self, snapshot: Snapshot, plan: Plan, pools: Mapping[str, CapacityPool], now: datetime, catalog: Catalog
    ) -> None:
        self.now = now
        self.pools = pools
        self._snapshot = snapshot
        self._own = OwnNodes(snapshot.nodes)
        self.pods: dict[str, list[Pod]] = {}
        self.prices: dict[str, Decimal] = {}
        self.nodes: list[ProvisionedNode] = []
        self._settling: list[datetime] = []
        awaited = {pod.nominated_node for pod in snapshot.pods if pod.node_name is None} | booked_nodes(snapshot)
        kept = {decision.provisioned_node for decision in plan.nodes if _keeps_for_pods(decision)}
        possible = [n for n in snapshot.provisioned if n.name in kept and n.pool in pools and self._may_go(n)]
        names = {node.node_name for node in possible}
        for pod in snapshot.pods:
            if pod.node_name in names and occupies(pod):
                self.pods.setdefault(str(pod.node_name), []).append(pod)
        for node in possible:
            price = price_now(node, catalog)
            if price and node.node_name in self.pods and node.node_name not in awaited:
                self.prices[node.name] = price
                self.nodes.append(node)
        replaced = {name for node in snapshot.provisioned if may_take_pods(node) for name in node.replaces}
        self.nodes.sort(key=lambda node: self._order(node, replaced))

    def try_move(
        self, nodes: Sequence[ProvisionedNode], plan: Plan, snapshot: Snapshot, make: Callable[[Snapshot], Plan]
    ) -> Move | Reason:
        """The move of these nodes' pods, or why it is not made."""
        pods = [pod for node in nodes for pod in self.pods[node.node_name]]
        saving = _strictest([self.pools[node.pool].disruption.saving for node in nodes])
        return try_move(nodes, pods, plan, snapshot, make, saving=saving, prices=self.prices)

    def due(self, tried: MovesTried) -> tuple[list[ProvisionedNode], dict[str, Reason]]:
        """The nodes to try now, and those before them whose pods stay, with the reason."""
        batch: list[ProvisionedNode] = []
        stay: dict[str, Reason] = {}
        most = max(1, min(_TRIES, _NODES_PLANNED // len(self._snapshot.nodes)))
        for node in self.nodes:
            if len(batch) == most or len(stay) == _LOOKS:
                break
            if moment_over(tried.tried.get(node.name), AGAIN, self.now):
                why = self._obstacle(node)
                stay |= {node.name: why} if why is not None else {}
                batch += [node] if why is None else []
        return batch, stay

    def next_at(self, tried: MovesTried) -> datetime | None:
        """When a node is due to be tried that is not now."""
        moments = [tried.tried[node.name] + AGAIN if node.name in tried.tried else self.now for node in self.nodes]
        moments += [at for at in self._settling if at > self.now]
        return max(min(moments), (tried.last or self.now) + PAUSE, self.now + _SOON) if moments else None

    def _may_go(self, node: ProvisionedNode) -> bool:
        """Whether it is a node of one machine, paid by the hour, that has settled."""
        ready = node.phase is Phase.READY and node.unhealthy_since is None and not is_stopped(node)
        single = node.hosts == 1 and not node.offering.block and not node.offering.reservation
        if not (ready and single and node.reclaim_at is None and node.phase_since is not None):
            return False
        settled = node.phase_since + (self.pools[node.pool].disruption.saving.payback if node.replaces else _SETTLED)
        self._settling.append(settled)
        return self.now >= settled

    def _obstacle(self, node: ProvisionedNode) -> Reason | None:
        found = self._own.of(node)
        if found is not None and (mark := mark_of_node(found)):
            return Reason.of(Code.DO_NOT_DISRUPT, mark=mark)
        if right := self._snapshot.unreadable.get("PodDisruptionBudget"):
            return Reason.of(Code.UNREADABLE, f"pool {node.pool}", right=right)
        return obstacle(self.pods[node.node_name], self._snapshot.disruption_budgets)

    def _order(self, node: ProvisionedNode, replaced: set[str]) -> tuple[object, ...]:
        """What was replaced first; then what is least trouble to move, the dearest first among equals."""
        pods = self.pods[node.node_name]
        trouble = sum(map(deletion_cost, pods)), len(pods)
        return node.name not in replaced, not self.pools[node.pool].acts, *trouble, -self.prices[node.name], node.name


def _keeps_for_pods(decision: NodeDecision) -> bool:
    return decision.action is NodeAction.KEEP and any(r.code is Code.ALREADY_BOUND for r in decision.reasons)


def _tried(
    batch: Sequence[ProvisionedNode],
    found: _Candidates,
    plan: Plan,
    snapshot: Snapshot,
    make: Callable[[Snapshot], Plan],
    tried: MovesTried,
) -> tuple[Plan, MovesTried]:
    """Try the nodes one by one, and several together if none can go alone; take the move that saves most."""
    answers, moves = dict(tried.answers), list[Move]()
    for nodes in _sets(batch, moves):
        result = found.try_move(nodes, plan, snapshot, make)
        if isinstance(result, Reason):
            answers.update({nodes[0].name: result} if len(nodes) == 1 else {})
            continue
        answers.update(dict.fromkeys((node.name for node in nodes), _text(result)))
        if _may_take(result, snapshot, tried, found.now):
            moves.append(result)
    after = MovesTried(
        last=found.now,
        tried=tried.tried.with_items(dict.fromkeys((node.name for node in batch), found.now)),
        answers=FrozenMap(answers),
        replaced=tried.replaced,
    )
    pools = {pool.name: pool for pool in snapshot.pools}
    best = max((m for m in moves if by_acting_pools(m, pools)), key=lambda move: move.saved, default=None)
    return (plan, after) if best is None else _taken(best, plan, after, found.now)


def _taken(move: Move, plan: Plan, tried: MovesTried, now: datetime) -> tuple[Plan, MovesTried]:
    """The plan with the move's first step: what is launched for it, or else the end of its node. Once it is done every
    node is tried again."""
    names = sorted(node.name for node in move.nodes)
    if move.launches:
        replaced = tried.replaced.with_items(dict.fromkeys(names, now))
        plan = replace(plan, launches=(*plan.launches, *move.launches))
        return plan, replace(tried, tried=_NO_TIMES, replaced=replaced)
    goes = {name: NodeDecision(name, NodeAction.DRAIN, (_text(move),)) for name in names}
    nodes = tuple(goes.get(decision.provisioned_node, decision) for decision in plan.nodes)
    return replace(plan, nodes=nodes), replace(tried, tried=_NO_TIMES)


def _sets(batch: Sequence[ProvisionedNode], moves: Sequence[Move]) -> Iterator[Sequence[ProvisionedNode]]:
    """Each node alone; then, as long as no move was found, the first of them together, ever fewer."""
    for node in batch:
        yield (node,)
    count = min(len(batch), _MOST_TOGETHER)
    while count > 1 and not moves:
        yield batch[:count]
        count //= 2


def _may_take(move: Move, snapshot: Snapshot, tried: MovesTried, now: datetime) -> bool:
    """Whether budgets allow the move, and no other replacement is there or was launched shortly before."""
    budgets = Budgets(snapshot, now)
    if not all(budgets.take(node) for node in move.nodes):
        return False
    replaced = {name for node in snapshot.provisioned for name in node.replaces} if move.launches else set()
    again = (moment_over(tried.replaced.get(node.name), _NO_SECOND, now) for node in move.nodes if move.launches)
    return all(again) and not any(node.name in replaced for node in move.nodes)


def _strictest(asked: Sequence[Saving]) -> Saving:
    """What all of the pools ask for."""
    return Saving(
        max(one.percent for one in asked), min(one.payback for one in asked), max(one.restart for one in asked)
    )


def _text(move: Move) -> Reason:
    saved = f"{move.saved:.2f}"
    if not move.launches:
        return Reason.of(Code.NODE_DISPENSABLE, saved=saved)
    types = tuple(sorted(launch.offering.instance_type for launch in move.launches))
    if len(move.nodes) == 1:
        return Reason.of(Code.NODE_REPLACED, saved=saved, by=types)
    return Reason.of(Code.NODE_REPLACED, saved=saved, by=types, together=len(move.nodes))


def _explained(plan: Plan, tried: MovesTried) -> Plan:
    """The plan that says what came of trying each node."""
    nodes = tuple(
        replace(decision, reasons=(*decision.reasons, tried.answers[decision.provisioned_node]))
        if _keeps_for_pods(decision) and decision.provisioned_node in tried.answers
        else decision
        for decision in plan.nodes
    )
    return replace(plan, nodes=nodes)


def _kept(values: FrozenMap[str, V], nodes: Iterable[ProvisionedNode]) -> FrozenMap[str, V]:
    """What is known of nodes that are still there."""
    return FrozenMap({node.name: values[node.name] for node in nodes if node.name in values})
