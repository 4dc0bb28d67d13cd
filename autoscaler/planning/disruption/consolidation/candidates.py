"""The nodes whose pods may move: which of them are tried now, alone and together, and why the pods of others stay."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from itertools import accumulate, islice
from typing import Final

from autoscaler.lifecycle.movable import by_namespace, deletion_cost, mark_of_node, obstacle
from autoscaler.lifecycle.ownership import OwnNodes
from autoscaler.lifecycle.provisioned_node import is_coming, is_stopped, may_take_pods
from autoscaler.lifecycle.reflect import occupies
from autoscaler.model.capacity import CapacityPool
from autoscaler.model.plan import NodeAction, NodeDecision, Plan
from autoscaler.model.pod import Pod
from autoscaler.model.provisioned_node import Phase, ProvisionedNode
from autoscaler.model.reason import Code, Reason, Subject
from autoscaler.model.snapshot import Snapshot
from autoscaler.planning.demand.virtual_pods import booked_nodes
from autoscaler.planning.disruption.consolidation.merging import dearest_first
from autoscaler.planning.disruption.consolidation.moves import MoveContext
from autoscaler.planning.disruption.consolidation.tried_moves import NO_SECOND, PAUSE, MovesTried
from autoscaler.planning.disruption.running import ends_soon, expected_rest, price_now
from instance_catalog.types.catalog import Catalog

# The most moves that are tried in one reconcile, and their work: each is a plan of the whole cluster with all pending
# pods. At least two may be tried whatever these cost, since some nodes can only be removed together.
TRIES: Final = 8
_NODES_PLANNED: Final = 2_000
_WORK_PLANNED: Final = 2_000_000
# The most nodes that are checked without a move in one reconcile: such a check is cheap, but not for thousands.
_LOOKS: Final = 200
# The time between tries of many nodes together, their number and that of their pods: one plan without them shows which
# of them one machine could replace.
_TOGETHER: Final = timedelta(hours=1)
_PLANNED_TOGETHER: Final = 64
_PODS_TOGETHER: Final = 512
_SOON: Final = timedelta(seconds=1)
# A new node is not moved: the pods that it was bought for may not be bound yet.
_SETTLED: Final = timedelta(minutes=10)


class Candidates:
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
        self._affordable = max(2, _WORK_PLANNED // max(1, plan.work))
        self.most = max(1, min(TRIES, self._affordable, _NODES_PLANNED // max(1, len(snapshot.nodes))))
        awaited = {pod.nominated_node or "" for pod in snapshot.pods if pod.node_name is None} | self._booked
        kept = {decision.provisioned_node for decision in plan.nodes if keeps_for_pods(decision)}
        possible = [n for n in snapshot.provisioned if n.name in kept and n.pool in pools and self._may_go(n)]
        for pod in snapshot.pods:
            if pod.node_name is not None and occupies(pod):
                self.pods.setdefault(pod.node_name, []).append(pod)
        for node in possible:
            price = price_now(node, catalog)
            if price and node.node_name in self.pods and node.node_name not in awaited:
                self.prices[node.name] = price
                self.nodes.append(node)
        self.acts = any(pools[node.pool].acts for node in self.nodes)
        new = (node for node in snapshot.provisioned if may_take_pods(node) and is_new(node, now))
        self.replaced = {name for node in new for name in node.replaces}
        self.nodes.sort(key=self._order)
        starts_or_ends = (n.node_name for n in snapshot.provisioned if is_coming(n) or ends_soon(n))
        self.closed = frozenset(awaited.union(starts_or_ends))

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
            pods=self.pods,
            saving={node.name: self.pools[node.pool].disruption.saving for node in self.nodes},
            idle={node.node_name: price_now(node, self._catalog) or Decimal(0) for node in own if node.name in unused},
            closed=self.closed,
            now=self.now,
            first=frozenset(key for node in own if names.intersection(node.replaces) for key in node.pods),
        )

    def due(self, tried: MovesTried) -> tuple[list[ProvisionedNode], dict[str, Reason]]:
        """The nodes to try now, and the nodes before them whose pods stay, with the reason."""
        batch: list[ProvisionedNode] = []
        stay: dict[str, Reason] = {}
        again = [node for node in self.nodes if node.name in tried.going]
        due = [node for node in self.nodes if tried.next_for(node.name, self.now) <= self.now]
        most = len(again) or self.most  # what goes together is tried together again, whatever that costs
        for node in again or sorted(due, key=lambda node: self._turn(node, tried)):
            if len(batch) == most or len(stay) == _LOOKS:
                break
            why = self._obstacle(node)
            stay |= {node.name: why} if why is not None else {}
            batch += [node] if why is None else []
        return batch, stay

    def together(self, tried: MovesTried) -> list[ProvisionedNode] | None:
        """The nodes to try together: those that cost most for each of their pods, in every hour others of them. None if
        it is not time for that."""
        if tried.going or len(self.nodes) < 2 or self.now < self._next_together(tried):
            return None
        nodes = dearest_first(self.to_act_on(self.nodes), self.prices, self.pods)
        most = _PLANNED_TOGETHER if self._affordable >= TRIES else self._affordable
        first = int(self.now.timestamp() // _TOGETHER.total_seconds()) * most % len(nodes) if len(nodes) > most else 0
        looked_at = [*nodes[first:], *nodes[:first]][:_LOOKS]
        possible = (n for n in looked_at if tried.may_replace(n.name, self.now) and self._obstacle(n) is None)
        found = list(islice(possible, most))
        pods = list(accumulate(len(self.pods[node.node_name]) for node in found))
        return found[: max(2, bisect(pods, _PODS_TOGETHER))]

    def may_pay(self, node: ProvisionedNode) -> bool:
        """True unless moving its pods is likely to cost half of what it costs as long as they run."""
        pods, saving = self.pods[node.node_name], self.pools[node.pool].disruption.saving
        lost = max((pod.checkpoint_interval or timedelta(0) for pod in pods), default=timedelta(0))
        return saving.restart + lost < expected_rest(node, pods, saving.payback, self.now) / 2

    def to_act_on(self, nodes: Sequence[ProvisionedNode]) -> list[ProvisionedNode]:
        """Those of pools that act: a move of others is only reported. All, if no pool acts."""
        return [node for node in nodes if self.pools[node.pool].acts or not self.acts]

    def _turn(self, node: ProvisionedNode, tried: MovesTried) -> tuple[bool, float]:
        """The sort key: replaced nodes first, then those that were tried longest ago."""
        at = tried.tried.get(node.name)
        return node.name not in self.replaced, at.timestamp() if at is not None else 0.0

    def next_at(self, tried: MovesTried) -> datetime | None:
        """The next time at which a node is tried that is not tried now."""
        moments = [tried.next_for(node.name, self.now) for node in self.nodes]
        moments += [at for at in self._settling if at > self.now]
        moments += [self._next_together(tried)] if len(self.nodes) > 1 else []
        return max(min(moments), (tried.last or self.now) + PAUSE, self.now + _SOON) if moments else None

    def _next_together(self, tried: MovesTried) -> datetime:
        return self.now if tried.together is None else tried.together + _TOGETHER

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


def is_new(node: ProvisionedNode, now: datetime) -> bool:
    """True if pods may still move to the replacement. Later its room may have been taken by others."""
    return is_coming(node) or node.phase_since is None or now < node.phase_since + NO_SECOND


def keeps_for_pods(decision: NodeDecision) -> bool:
    """True if the plan keeps the node because of its pods; it may let in no others."""
    bound = any(reason.code is Code.ALREADY_BOUND for reason in decision.reasons)
    return decision.action is NodeAction.CLOSE or (decision.action is NodeAction.KEEP and bound)
