"""Finds the nodes that are kept without pods: machines of open blocks that are held, and baselines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import datetime

from autoscaler.errors import ConfigurationError
from autoscaler.lifecycle.provisioned_node import may_take_pods
from autoscaler.model.capacity import CapacityPool, Hold
from autoscaler.model.plan import PlannedNode
from autoscaler.model.reason import Code, Reason, Subject
from autoscaler.model.snapshot import Snapshot
from autoscaler.planning.disruption.windows import Window
from autoscaler.planning.placement.existing import Assigned
from autoscaler.planning.placement.launches import Purchase, launch
from autoscaler.planning.placement.packing_input import PackingInput
from autoscaler.planning.supply.blocks import available
from autoscaler.planning.supply.candidates import Candidate
from autoscaler.planning.supply.limits import binding


def windows_of(pool: CapacityPool) -> Iterator[Window]:
    """The schedules that change the baseline or the budgets of the pool; unusable_fields.py reports unreadable ones."""
    entries = [(b.schedule, b.time_zone) for b in pool.baselines]
    entries += [(b.schedule, "UTC") for b in pool.disruption.budgets]
    for schedule, time_zone in entries:
        if schedule is not None:
            with suppress(ConfigurationError):
                yield Window.parse(schedule, time_zone)


def is_open(schedule: str | None, time_zone: str, now: datetime, *, unreadable: bool) -> bool:
    """True if a window is open; no schedule means always. unusable_fields.py reports an unreadable one."""
    try:
        return schedule is None or Window.parse(schedule, time_zone).open_at(now)
    except ConfigurationError:
        return unreadable


def baseline_nodes(pool: CapacityPool, now: datetime) -> int:
    """The number of nodes that the pool keeps now: the largest of its open baselines."""
    return max(
        (b.replicas for b in pool.baselines if is_open(b.schedule, b.time_zone, now, unreadable=False)),
        default=0,
    )


def may_hold(snapshot: Snapshot) -> bool:
    """True if nodes may be launched without a pod: see `holds`."""
    return bool(snapshot.blocks) or any(pool.baselines for pool in snapshot.pools)


def holds(
    packing: PackingInput, launched: Sequence[PlannedNode], assigned: Assigned, catalog_digest: str
) -> tuple[PlannedNode, ...]:
    """Nodes to launch without a pod: machines of open blocks that are always held, and missing baseline nodes."""
    waiting = [item for item in assigned.rest if item not in assigned.stuck]
    harmless = [
        i
        for i, candidate in enumerate(packing.candidates)
        if not candidate.barred and (candidate.block or candidate.pool.baselines)
        if candidate.hosts == 1  # slices are launched only for pods
        if packing.trials.breaks(packing.shape_of[i], waiting) is None
    ]
    wanted = [*_blocks_to_hold(packing, launched, harmless), *_baselines_to_fill(packing, launched, harmless)]
    if not wanted:
        return ()
    bought = [_candidate_of(packing, node) for node in launched]
    purchases: list[Purchase] = []
    for index, reason in wanted:
        candidate = packing.candidates[index]
        if binding(candidate, packing.limits, bought) is None:
            bought.append(candidate)
            purchases.append(Purchase(candidate, (), reasons=(reason,)))
    world = assigned.world
    for node in launched:  # their names are used already
        world = world.with_node(node.node, ())
    return launch(purchases, world, packing.snapshot, catalog_digest=catalog_digest, together=False).nodes


def _candidate_of(packing: PackingInput, node: PlannedNode) -> Candidate:
    return next(
        c
        for c in packing.candidates
        if c.offering == node.offering and c.pool.name == node.pool and c.profiles == node.drivers
    )


def _blocks_to_hold(
    packing: PackingInput, launched: Sequence[PlannedNode], harmless: Sequence[int]
) -> Iterator[tuple[int, Reason]]:
    snapshot = packing.snapshot
    for block in snapshot.blocks:
        index = next((i for i in harmless if packing.candidates[i].block == block), None)
        if block.hold is not Hold.ALWAYS or index is None:
            continue
        planned = sum(1 for node in launched if node.offering.block == block.name)
        reason = Reason.of(Code.BLOCK_HELD, Subject("block", block.name), block=block.name)
        for _ in range(available(block, snapshot.provisioned) - planned):
            yield index, reason


def _baselines_to_fill(
    packing: PackingInput, launched: Sequence[PlannedNode], harmless: Sequence[int]
) -> Iterator[tuple[int, Reason]]:
    snapshot = packing.snapshot
    for pool in snapshot.pools:
        alive = [n for n in snapshot.provisioned if n.pool == pool.name and may_take_pods(n)]
        missing = baseline_nodes(pool, packing.now) - len(alive) - sum(1 for node in launched if node.pool == pool.name)
        mine = [i for i in harmless if packing.candidates[i].pool == pool]
        if missing <= 0 or not mine:
            continue
        best = min(mine, key=lambda i: (packing.candidates[i].rank, packing.candidates[i].usd_per_hour or 0, i))
        for _ in range(missing):
            yield best, Reason.of(Code.BASELINE, Subject("pool", pool.name))
