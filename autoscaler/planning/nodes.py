"""What becomes of our own nodes, and which ones are kept up without any pod asking for them.

Empty nodes go after their pool's delay, nodes of a capacity block stay while the block lasts and are given notice and
drained before the provider takes them, a pool's baseline stays. It decides only; execution/ drains.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import datetime

from autoscaler.errors import ConfigurationError
from autoscaler.model.capacity import CapacityBlock, CapacityPool, Disruption
from autoscaler.model.plan import Disposal, NodeDecision, PlannedNode
from autoscaler.model.provisioned_node import Phase, ProvisionedNode
from autoscaler.model.reason import Code, Reason
from autoscaler.model.snapshot import Snapshot
from autoscaler.planning.blocks import OVER, available
from autoscaler.planning.candidates import Candidate
from autoscaler.planning.existing import Assigned, Placed
from autoscaler.planning.launches import Purchase, launch
from autoscaler.planning.limits import binding
from autoscaler.planning.market import Market
from autoscaler.planning.schedule import Window

_LEAVING = (Phase.DRAINING, Phase.TERMINATING)


def decide(snapshot: Snapshot, placed: Iterable[Placed], now: datetime) -> tuple[NodeDecision, ...]:
    """One decision for each node of ours that is not on its way out already."""
    needed = {entry.node for entry in placed}
    occupied = {pod.node_name for pod in snapshot.pods if pod.bound and not pod.owner.startswith("DaemonSet/")}
    kept = _baseline_nodes(snapshot, now)
    budget = _Budgets(snapshot, now)
    decisions: list[NodeDecision] = []
    for node in snapshot.provisioned:
        if node.phase in OVER or node.phase in _LEAVING:
            continue
        block = next((b for b in snapshot.blocks if b.name == node.offering.block), None)
        decision = _by_block(node, block, now) if block else None
        if decision is None:
            busy = node.node_name in needed or node.node_name in occupied
            decision = _by_use(node, snapshot, now, busy=busy, baseline=node.name in kept, budget=budget)
        decisions.append(decision)
    return tuple(decisions)


def _by_block(node: ProvisionedNode, block: CapacityBlock, now: datetime) -> NodeDecision | None:
    """A block's end outranks everything; before it, `hold: Always` keeps the node up."""
    ending = (Reason.of(Code.BLOCK_ENDING, f"block {block.name}", block=block.name),)
    if now >= block.drain_starts:
        return NodeDecision(node.name, Disposal.DRAIN, ending, deadline=block.reclaimed)
    if now >= block.notice_at:
        return NodeDecision(node.name, Disposal.NOTICE, ending, deadline=block.reclaimed)
    if block.hold == "Always":
        held = Reason.of(Code.BLOCK_HELD, f"block {block.name}", block=block.name)
        return NodeDecision(node.name, Disposal.HOLD, (held,), deadline=block.reclaimed)
    return None


def _by_use(
    node: ProvisionedNode, snapshot: Snapshot, now: datetime, *, busy: bool, baseline: bool, budget: _Budgets
) -> NodeDecision:
    disruption = next((p.disruption for p in snapshot.pools if p.name == node.pool), Disruption())
    if busy:
        return NodeDecision(node.name, Disposal.KEEP, (Reason.of(Code.ALREADY_BOUND),))
    if node.phase is not Phase.READY:
        return NodeDecision(node.name, Disposal.KEEP, (Reason.of(Code.COMING_NODE),))
    if baseline:
        return NodeDecision(node.name, Disposal.KEEP, (Reason.of(Code.BASELINE, f"pool {node.pool}"),))
    idle = (now - node.empty_since) if node.empty_since else None
    reasons = (Reason.of(Code.NODE_EMPTY, seconds=int(idle.total_seconds()) if idle else 0),)
    may_go = disruption.consolidate == "WhenEmpty" and idle is not None and idle >= disruption.after
    if may_go and budget.take(node.pool):
        return NodeDecision(node.name, Disposal.DRAIN, reasons)
    return NodeDecision(node.name, Disposal.KEEP, reasons)


class _Budgets:
    """How many more nodes of each pool may be disrupted now."""

    def __init__(self, snapshot: Snapshot, now: datetime) -> None:
        self._left: dict[str, int] = {}
        for pool in snapshot.pools:
            alive = [n for n in snapshot.provisioned if n.pool == pool.name and n.phase not in OVER]
            going = sum(1 for n in alive if n.phase in _LEAVING)
            allowed = [
                _amount(b.nodes, len(alive))
                for b in pool.disruption.budgets
                if _is_open(b.schedule, "UTC", now, unreadable=True)
            ]
            if allowed:
                self._left[pool.name] = max(0, min(allowed) - going)

    def take(self, pool: str) -> bool:
        """Use one disruption of the pool; False if there is none left."""
        if pool not in self._left:
            return True
        self._left[pool] -= 1
        return self._left[pool] >= 0


def _amount(text: str, nodes: int) -> int:
    """ "3" or "10%" of the nodes, rounded up as Karpenter does, so that small pools can change at all."""
    if text.endswith("%"):
        return -(-nodes * int(text[:-1]) // 100)
    return int(text)


def windows_of(pool: CapacityPool) -> Iterator[Window]:
    """The schedules that change what the pool keeps up or lets go; unreadable ones are reported by objections.py."""
    entries = [(b.schedule, b.time_zone) for b in pool.baselines]
    entries += [(b.schedule, "UTC") for b in pool.disruption.budgets]
    for schedule, time_zone in entries:
        if schedule is not None:
            with suppress(ConfigurationError):
                yield Window.parse(schedule, time_zone)


def _is_open(schedule: str | None, time_zone: str, now: datetime, *, unreadable: bool) -> bool:
    """Whether a window is open; no schedule is always. One that cannot be read is reported by objections.py."""
    try:
        return schedule is None or Window.parse(schedule, time_zone).open_at(now)
    except ConfigurationError:
        return unreadable


def _floor(pool: CapacityPool, now: datetime) -> int:
    """How many nodes the pool keeps up now: the largest of its open baselines."""
    return max(
        (b.replicas for b in pool.baselines if _is_open(b.schedule, b.time_zone, now, unreadable=False)),
        default=0,
    )


def _baseline_nodes(snapshot: Snapshot, now: datetime) -> set[str]:
    """Names of the ProvisionedNodes that a baseline keeps: the first ones by name, so that they stay the same."""
    kept: set[str] = set()
    for pool in snapshot.pools:
        alive = sorted(
            n.name
            for n in snapshot.provisioned
            if n.pool == pool.name and n.phase not in OVER and n.phase not in _LEAVING
        )
        kept.update(alive[: _floor(pool, now)])
    return kept


def holds(
    market: Market, launched: Sequence[PlannedNode], assigned: Assigned, catalog_digest: str
) -> tuple[PlannedNode, ...]:
    """Nodes to launch without a pod: machines of open blocks that are held always, and missing baseline nodes."""
    waiting = [item for item in assigned.rest if item not in assigned.stuck]
    harmless = [
        i
        for i, candidate in enumerate(market.candidates)
        if not candidate.barred and (candidate.block or candidate.pool.baselines)
        if market.trials.breaks(market.shape_of[i], waiting) is None
    ]
    bought = [_candidate_of(market, node) for node in launched]
    purchases: list[Purchase] = []
    for index, reason in [
        *_blocks_to_hold(market, launched, harmless),
        *_baselines_to_fill(market, launched, harmless),
    ]:
        candidate = market.candidates[index]
        if binding(candidate, market.limits, bought) is None:
            bought.append(candidate)
            purchases.append(Purchase(candidate, (), reasons=(reason,)))
    world = assigned.world
    for node in launched:  # their names are taken
        world = world.with_node(node.node, ())
    return launch(purchases, world, market.snapshot, catalog_digest=catalog_digest, together=False).nodes


def _candidate_of(market: Market, node: PlannedNode) -> Candidate:
    return next(
        c
        for c in market.candidates
        if c.offering == node.offering and c.pool.name == node.pool and c.profiles == node.drivers
    )


def _blocks_to_hold(
    market: Market, launched: Sequence[PlannedNode], harmless: Sequence[int]
) -> Iterator[tuple[int, Reason]]:
    snapshot = market.snapshot
    for block in snapshot.blocks:
        index = next((i for i in harmless if market.candidates[i].block == block), None)
        if block.hold != "Always" or index is None:
            continue
        planned = sum(1 for node in launched if node.offering.block == block.name)
        reason = Reason.of(Code.BLOCK_HELD, f"block {block.name}", block=block.name)
        for _ in range(available(block, snapshot.provisioned) - planned):
            yield index, reason


def _baselines_to_fill(
    market: Market, launched: Sequence[PlannedNode], harmless: Sequence[int]
) -> Iterator[tuple[int, Reason]]:
    snapshot = market.snapshot
    for pool in snapshot.pools:
        alive = [n for n in snapshot.provisioned if n.pool == pool.name and n.phase not in (*OVER, *_LEAVING)]
        missing = _floor(pool, market.now) - len(alive) - sum(1 for node in launched if node.pool == pool.name)
        mine = [i for i in harmless if market.candidates[i].pool == pool]
        if missing <= 0 or not mine:
            continue
        best = min(mine, key=lambda i: (market.candidates[i].rank, market.candidates[i].usd_per_hour or 0, i))
        for _ in range(missing):
            yield best, Reason.of(Code.BASELINE, f"pool {pool.name}")
