"""Pools with `consolidate: Cheaper`: running pods move to cheaper nodes, one step at a time.

A step is first tried as a plan (moves.py). The next step begins only after it is done: no node starts or ends, and no
pod waits for a place. If pods need another machine, the new node is launched while the old one still runs them. The old
one drains only when the new one is ready, since its pods then fit on existing nodes. So a machine that cannot be
launched, or that differs from its prediction, costs no pod its place.

A drain begins with a taint. Once a watch shows the taint, the move is tried again, and only then pods are evicted.

Each node is tried every few minutes, a few nodes at a time, starting with the one that was tried longest ago. While
its pods have no more room than before, a refusal stays the same (refused_moves.py), so it is computed only every six
hours. The history of tries is only in memory: after a restart the nodes are tried again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from functools import partial
from itertools import islice
from typing import Final, TypeVar

from autoscaler.lifecycle.movable import by_namespace, deletion_cost, mark_of_node, obstacle
from autoscaler.lifecycle.ownership import OwnNodes
from autoscaler.lifecycle.provisioned_node import is_stopped, may_take_pods
from autoscaler.lifecycle.reflect import occupies
from autoscaler.model.capacity import CapacityPool, ConsolidationPolicy
from autoscaler.model.plan import NodeAction, NodeDecision, Plan
from autoscaler.model.pod import Pod
from autoscaler.model.provisioned_node import Phase, ProvisionedNode
from autoscaler.model.reason import Code, Reason, Subject
from autoscaler.model.snapshot import Snapshot
from autoscaler.planning.demand.virtual_pods import booked_nodes
from autoscaler.planning.disruption.budgets import Budgets
from autoscaler.planning.disruption.moves import (
    Move,
    MoveContext,
    by_acting_pools,
    ends_soon,
    is_quiet,
    price_now,
    text_of,
    try_move,
)
from autoscaler.planning.disruption.refused_moves import (
    NO_OUTLINE,
    Outline,
    RefusedMove,
    outline_of,
    still_refused,
    with_refusals,
    without_refusals,
)
from autoscaler.planning.placement.replay import pod_without_place
from autoscaler.planning.policy import Policy
from instance_catalog.dataclass import dataclass, replace
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.types.catalog import Catalog

V = TypeVar("V")

# The most moves that are tried in one reconcile, and their work: each is a plan of the whole cluster with all pending
# pods. At least two may be tried whatever these cost, since some nodes can only be removed together.
_TRIES: Final = 8
_NODES_PLANNED: Final = 2_000
_WORK_PLANNED: Final = 2_000_000
_MOST_TOGETHER: Final = 8
# The most nodes that are checked without a move in one reconcile: such a check is cheap, but not for thousands.
_LOOKS: Final = 200
PAUSE: Final = timedelta(seconds=15)
_SOON: Final = timedelta(seconds=1)
AGAIN: Final = timedelta(minutes=5)
# The same for a node that a plan would leave as it is, while its pods have no more room elsewhere.
UNCHANGED: Final = timedelta(hours=6)
# The time between tries of due nodes together with others: one machine may cost less than two whose answers stand.
_TOGETHER: Final = timedelta(hours=1)
# A new node is not moved: the pods that it was bought for may not be bound yet.
_SETTLED: Final = timedelta(minutes=10)
# The time between two replacements for the same node; it doubles each time.
_NO_SECOND: Final = timedelta(hours=1)
_LONGEST_WAIT: Final = timedelta(days=1)
_NO_TIMES: Final[FrozenMap[str, datetime]] = FrozenMap()
_NOT_REPLACED: Final[FrozenMap[str, tuple[datetime, int]]] = FrozenMap()
_NO_ANSWERS: Final[FrozenMap[str, Reason]] = FrozenMap()
_NONE_REFUSED: Final[FrozenMap[str, RefusedMove]] = FrozenMap()


@dataclass(frozen=True, slots=True)
class MovesTried:
    """State between reconciles: `last` is the time of the last try. By name of a ProvisionedNode: when it was
    `tried`, with which result, and when a replacement was launched for it, with the number of replacements. `going`:
    tainted nodes, which are tried once more before they drain. `together`: when nodes were last tried together with
    others that were not due. `refused`: answers that a try would give again, since nothing has changed for them up to
    the state in `outline`."""

    last: datetime | None = None
    together: datetime | None = None
    tried: FrozenMap[str, datetime] = _NO_TIMES
    answers: FrozenMap[str, Reason] = _NO_ANSWERS
    replaced: FrozenMap[str, tuple[datetime, int]] = _NOT_REPLACED
    going: tuple[str, ...] = ()
    refused: FrozenMap[str, RefusedMove] = _NONE_REFUSED
    outline: Outline = NO_OUTLINE

    def among(self, nodes: Sequence[ProvisionedNode]) -> MovesTried:
        """The same without what is known of nodes that are gone."""
        return replace(
            self,
            tried=_kept(self.tried, nodes),
            answers=_kept(self.answers, nodes),
            replaced=_kept(self.replaced, nodes),
            refused=_kept(self.refused, nodes),
        )

    def is_later_than(self, now: datetime) -> bool:
        """True if the clock was set back: nothing would be tried until it has caught up."""
        return any(at > now + PAUSE for at in (*self.tried.values(), self.last or now))

    def next_for(self, name: str, now: datetime) -> datetime:
        """When the ProvisionedNode is tried next; `now` if it never was."""
        at = self.tried.get(name)
        if at is None:
            return now
        return at + (UNCHANGED if name in self.refused else AGAIN)


NOTHING_TRIED: Final = MovesTried()


@dataclass(frozen=True, slots=True)
class Consolidated:
    """The plan with a step, or with the reasons why pods stay. `next_at`: when more nodes are tried."""

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
    attempt: Callable[[Snapshot], Plan],
    catalog: Catalog,
    policy: Policy,
) -> Consolidated:
    """The plan with the next step of consolidation, if there is one. `make` and `attempt`: see MoveContext."""
    pools = {pool.name: pool for pool in snapshot.pools if _consolidates(pool)}
    if not pools:
        return Consolidated(plan, NOTHING_TRIED)
    tried = NOTHING_TRIED if tried.is_later_than(now) else tried.among(snapshot.provisioned)
    if not is_quiet(plan, snapshot, now):
        return Consolidated(_explained(plan, tried), replace(tried, going=()))
    if tried.last is not None and now < tried.last + PAUSE and not tried.going:
        return Consolidated(_explained(plan, tried), tried, tried.last + PAUSE)
    found = _Candidates(snapshot, plan, pools, now, catalog)
    outline = outline_of(snapshot, plan, found.pods, found.closed, catalog, now, policy)
    refused = still_refused(tried.refused, tried.outline, outline, snapshot.claims, now)
    tried = replace(tried, refused=refused, outline=outline)
    batch, stay = found.due(tried)
    seen = replace(
        tried,
        answers=tried.answers.with_items(stay),
        refused=without_refusals(tried.refused, stay),
        tried=tried.tried.with_items(dict.fromkeys(stay, now)),
        going=(),
    )
    beside = [] if tried.going else found.beside(batch, tried)
    stuck = partial(pod_without_place, catalog=catalog, work=policy.work, now=now)
    context = replace(found.move_context(make, attempt), stuck=stuck)
    plan, after = _tried(batch, beside, found, context, seen) if batch else (plan, seen)
    return Consolidated(_explained(plan, after), after, found.next_at(after))


def _consolidates(pool: CapacityPool) -> bool:
    return pool.disruption.consolidate is ConsolidationPolicy.CHEAPER and not (
        pool.ordered or pool.deleting or pool.implicit
    )


class _Candidates:
    """The nodes that may be removed, in the order in which they are tried."""

    def __init__(
        self, snapshot: Snapshot, plan: Plan, pools: Mapping[str, CapacityPool], now: datetime, catalog: Catalog
    ) -> None:
        self.now, self.pools = now, pools
        self._snapshot, self._plan = snapshot, plan
        self._own = OwnNodes(snapshot.nodes)
        self._catalog = catalog
        self._budgets = by_namespace(snapshot.disruption_budgets)
        self._booked = booked_nodes(snapshot)
        self.pods: dict[str, list[Pod]] = {}
        self.prices: dict[str, Decimal] = {}
        self.nodes: list[ProvisionedNode] = []
        self._settling: list[datetime] = []
        affordable = max(2, _WORK_PLANNED // max(1, plan.work))
        self._most = max(1, min(_TRIES, affordable, _NODES_PLANNED // max(1, len(snapshot.nodes))))
        awaited = {pod.nominated_node or "" for pod in snapshot.pods if pod.node_name is None} | self._booked
        kept = {decision.provisioned_node for decision in plan.nodes if _keeps_for_pods(decision)}
        possible = [n for n in snapshot.provisioned if n.name in kept and n.pool in pools and self._may_go(n)]
        for pod in snapshot.pods:
            if pod.node_name is not None and occupies(pod):
                self.pods.setdefault(pod.node_name, []).append(pod)
        for node in possible:
            price = price_now(node, catalog)
            if price and node.node_name in self.pods and node.node_name not in awaited:
                self.prices[node.name] = price
                self.nodes.append(node)
        self._replaced = {name for node in snapshot.provisioned if may_take_pods(node) for name in node.replaces}
        self.nodes.sort(key=self._order)
        self.closed = frozenset(awaited.union(node.node_name for node in snapshot.provisioned if ends_soon(node)))

    def move_context(self, make: Callable[[Snapshot], Plan], attempt: Callable[[Snapshot], Plan]) -> MoveContext:
        """The input of moves."""
        own = self._snapshot.provisioned
        unused = {decision.provisioned_node for decision in self._plan.nodes if _is_idle(decision)}
        names = {node.name for node in self.nodes}
        return MoveContext(
            snapshot=self._snapshot,
            plan=self._plan,
            make=make,
            attempt=attempt,
            prices=self.prices,
            saving={node.name: self.pools[node.pool].disruption.saving for node in self.nodes},
            idle={node.node_name: price_now(node, self._catalog) or Decimal(0) for node in own if node.name in unused},
            closed=self.closed,
            now=self.now,
            first=frozenset(key for node in own if names.intersection(node.replaces) for key in node.pods),
        )

    def pods_of(self, nodes: Sequence[ProvisionedNode]) -> list[Pod]:
        """All pods that would have to move."""
        return [pod for node in nodes for pod in self.pods[node.node_name]]

    def due(self, tried: MovesTried) -> tuple[list[ProvisionedNode], dict[str, Reason]]:
        """The nodes to try now, and the nodes before them whose pods stay, with the reason."""
        batch: list[ProvisionedNode] = []
        stay: dict[str, Reason] = {}
        again = [node for node in self.nodes if node.name in tried.going]
        due = [node for node in self.nodes if tried.next_for(node.name, self.now) <= self.now]
        for node in again or sorted(due, key=lambda node: self._turn(node, tried)):
            if len(batch) == self._most or len(stay) == _LOOKS:
                break
            why = self._obstacle(node)
            stay |= {node.name: why} if why is not None else {}
            batch += [node] if why is None else []
        return batch, stay

    def beside(self, batch: Sequence[ProvisionedNode], tried: MovesTried) -> list[ProvisionedNode]:
        """Nodes that need no try of their own now, if some are due together with those of the batch."""
        if tried.together is not None and self.now < tried.together + _TOGETHER:
            return []
        names = {node.name for node in batch}
        possible = (node for node in self.nodes if node.name not in names and self._obstacle(node) is None)
        return list(islice(possible, self._most - len(batch)))

    def _turn(self, node: ProvisionedNode, tried: MovesTried) -> tuple[bool, float]:
        """The sort key: replaced nodes first, then those that were tried longest ago."""
        at = tried.tried.get(node.name)
        return node.name not in self._replaced, at.timestamp() if at is not None else 0.0

    def next_at(self, tried: MovesTried) -> datetime | None:
        """The next time at which a node is tried that is not tried now."""
        moments = [tried.next_for(node.name, self.now) for node in self.nodes]
        moments += [at for at in self._settling if at > self.now]
        return max(min(moments), (tried.last or self.now) + PAUSE, self.now + _SOON) if moments else None

    def _may_go(self, node: ProvisionedNode) -> bool:
        """True if it is a node of one machine, paid by the hour, and not new."""
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
            return Reason.of(Code.UNREADABLE, Subject("pool", node.pool), right=right)
        return obstacle(self.pods[node.node_name], self._budgets)

    def _order(self, node: ProvisionedNode) -> tuple[object, ...]:
        """The sort key: the nodes that are easiest to move first, among equals the most expensive."""
        pods = self.pods[node.node_name]
        trouble = sum(map(deletion_cost, pods)), len(pods)
        return not self.pools[node.pool].acts, *trouble, -self.prices[node.name], node.name


def _is_idle(decision: NodeDecision) -> bool:
    """True if no pod is on the node or planned for it: it stays only for some minutes."""
    return bool(decision.reasons) and decision.reasons[0].code in (Code.NODE_EMPTY, Code.NODE_REPLACES)


def _keeps_for_pods(decision: NodeDecision) -> bool:
    return decision.action is NodeAction.KEEP and any(r.code is Code.ALREADY_BOUND for r in decision.reasons)


def _tried(
    batch: Sequence[ProvisionedNode],
    beside: Sequence[ProvisionedNode],
    found: _Candidates,
    context: MoveContext,
    tried: MovesTried,
) -> tuple[Plan, MovesTried]:
    """Try the nodes one by one, and several together, also with those `beside`, if none can be removed alone; return
    the move that saves most."""
    answers, moves = dict(tried.answers), list[Move]()
    for nodes in _sets(batch, beside, moves):
        result = try_move(nodes, found.pods_of(nodes), context)
        if isinstance(result, Reason):
            answers.update({nodes[0].name: result} if len(nodes) == 1 else {})
            continue
        answers.update(dict.fromkeys((node.name for node in nodes), text_of(result)))
        if _may_take(result, context.snapshot, tried, found.now):
            moves.append(result)
    after = replace(
        tried,
        last=found.now,
        together=found.now if beside else tried.together,
        tried=tried.tried.with_items(dict.fromkeys((node.name for node in batch), found.now)),
        answers=FrozenMap(answers),
        refused=with_refusals(
            tried.refused, batch, answers, found.pods, context.snapshot.claims, outline=tried.outline, now=found.now
        ),
    )
    pools = {pool.name: pool for pool in context.snapshot.pools}
    best = max((m for m in moves if by_acting_pools(m, pools)), key=lambda move: move.saved, default=None)
    return (context.plan, after) if best is None else _taken(best, context.plan, after, found.now)


def _taken(move: Move, plan: Plan, tried: MovesTried, now: datetime) -> tuple[Plan, MovesTried]:
    """The plan with the first step of the move: its launches, or otherwise the end of its nodes. Then every node
    whose answer may differ is tried again."""
    names = sorted(node.name for node in move.nodes)
    refused = without_refusals(tried.refused, names)  # of nodes that could not go alone, but can together
    tried = replace(
        tried, refused=refused, tried=FrozenMap({name: at for name, at in tried.tried.items() if name in refused})
    )
    if move.launches:
        replaced = {name: (now, 1 + tried.replaced.get(name, (now, 0))[1]) for name in names}
        plan = replace(plan, launches=(*plan.launches, *move.launches))
        return plan, replace(tried, replaced=tried.replaced.with_items(replaced))
    goes = {name: NodeDecision(name, NodeAction.DRAIN, (text_of(move),)) for name in names}
    nodes = tuple(goes.get(decision.provisioned_node, decision) for decision in plan.nodes)
    return replace(plan, nodes=nodes), replace(tried, going=tuple(names))


def _sets(
    batch: Sequence[ProvisionedNode], beside: Sequence[ProvisionedNode], moves: Sequence[Move]
) -> Iterator[Sequence[ProvisionedNode]]:
    """Each node alone; then, while no move was found, the first nodes together, fewer each time."""
    for node in batch:
        yield (node,)
    every = [*batch, *beside]
    count = min(len(every), _MOST_TOGETHER)
    while count > 1 and not moves:
        yield every[:count]
        count //= 2


def _may_take(move: Move, snapshot: Snapshot, tried: MovesTried, now: datetime) -> bool:
    """True if budgets allow the move, and no other replacement exists or was launched shortly before."""
    budgets = Budgets(snapshot, now)
    if not all(budgets.take(node) for node in move.nodes):
        return False
    replaced = {name for node in snapshot.provisioned for name in node.replaces} if move.launches else set()
    if any(node.name in replaced for node in move.nodes):
        return False
    return not move.launches or all(_may_replace(tried.replaced.get(node.name), now) for node in move.nodes)


def _may_replace(before: tuple[datetime, int] | None, now: datetime) -> bool:
    """True if the last replacement is long enough ago: the time grows with the number of replacements in vain."""
    return before is None or now >= before[0] + min(_NO_SECOND * 2 ** min(before[1] - 1, 10), _LONGEST_WAIT)


def _explained(plan: Plan, tried: MovesTried) -> Plan:
    """The plan with the result of trying each node."""
    nodes = tuple(
        replace(decision, reasons=(*decision.reasons, tried.answers[decision.provisioned_node]))
        if _keeps_for_pods(decision) and decision.provisioned_node in tried.answers
        else decision
        for decision in plan.nodes
    )
    return replace(plan, nodes=nodes)


def _kept(values: FrozenMap[str, V], nodes: Iterable[ProvisionedNode]) -> FrozenMap[str, V]:
    """The values of nodes that still exist."""
    return FrozenMap({node.name: values[node.name] for node in nodes if node.name in values})
