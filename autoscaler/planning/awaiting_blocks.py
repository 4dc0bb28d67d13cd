"""Pods that wait for a CapacityBlock that begins soon, instead of getting a machine that costs more at once.

Whoever owns the block (spec.maxWait) or the pod (annotation foreslice.dev/max-wait) says how long after its creation a
pod may wait; nobody waits otherwise. The plan is made again as if the blocks had begun, for these pods and for those
that get no machine anyway: these take the block when it begins, and may be more important. Whoever gets a place on a
block there waits. The plan that counts is made a third time, without buying for those who wait, and only if it costs
less and leaves no other pod out.

Every reconcile decides anew, and a wait is written nowhere: a block that is late, has a note, failed or filled up is
no reason to wait any more, and the pod gets a machine in the same reconcile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Final, TypeAlias

from autoscaler.lifecycle.capacity_block import BEGINS_WITHIN
from autoscaler.model.capacity import CapacityBlock
from autoscaler.model.plan import LeftOut, Plan, PlannedNode, Target
from autoscaler.model.pod import Pod
from autoscaler.model.reason import Code, Reason
from autoscaler.model.snapshot import Snapshot
from autoscaler.model.virtual_pods import is_virtual
from autoscaler.planning.supply.blocks import nodes_of

Make: TypeAlias = Callable[[Snapshot], Plan]
_May: TypeAlias = Mapping[str, frozenset[str]]  # pod -> the blocks for which it may wait

# Plans that look ahead: each one leaves out the gangs of which the one before had only a part waiting.
_ROUNDS: Final = 3
# Buys nothing for a pod in this plan; the moment itself is shown to nobody.
_NOT_NOW: Final = timedelta(seconds=1)


def await_blocks(plan: Plan, snapshot: Snapshot, make: Make, now: datetime) -> Plan:
    """The plan in which pods wait for blocks that begin soon, where that is allowed and costs less.

    `make` plans. It is called only where a pod that may wait would get a machine that costs money: once or a few times
    to look ahead, and once more for the pods that do not wait.
    """
    blocks = {block.name: block for block in snapshot.blocks if _to_come(block, snapshot, now)}
    bought = _bought(plan) if blocks else {}
    may = _may_wait(snapshot, blocks, bought, now)
    if not may:
        return plan
    waiting, work = _on_blocks(may, blocks, bought, plan, snapshot, make)
    if not waiting:
        return replace(plan, work=plan.work + work)
    put_off = (replace(p, no_node_before=now + _NOT_NOW) if p.key in waiting else p for p in snapshot.pods)
    rest = make(replace(snapshot, pods=tuple(put_off)))
    work += plan.work + rest.work
    if not _worth_it(plan, rest, waiting.keys()):
        return replace(plan, work=work)
    left_out = (_waits(left, waiting, blocks, bought) for left in rest.left_out)
    return replace(rest, left_out=tuple(left_out), work=work)


def _to_come(block: CapacityBlock, snapshot: Snapshot, now: datetime) -> bool:
    """Whether the block is about to begin, as far as is known. A note says what may keep it from that."""
    if block.note or now >= block.drain_starts or len(nodes_of(block, snapshot.provisioned)) >= block.count:
        return False
    return now < block.starts_at or _beginning(block, snapshot, now)


def _beginning(block: CapacityBlock, snapshot: Snapshot, now: datetime) -> bool:
    """Whether its time has come a moment ago, and its provider has not counted its machines yet."""
    unused = block.available == 0 and not nodes_of(block, snapshot.provisioned)
    return unused and now < block.starts_at + BEGINS_WITHIN


def _bought(plan: Plan) -> dict[str, PlannedNode]:
    """By pod, the new node that it would get, where that is not paid for already."""
    nodes = {node.name: node for node in plan.launches if not node.offering.capacity_type.needs_reservation}
    return {p.pod: nodes[p.node] for p in plan.placements if p.target is Target.NEW and p.node in nodes}


def _may_wait(
    snapshot: Snapshot, blocks: Mapping[str, CapacityBlock], bought: Mapping[str, PlannedNode], now: datetime
) -> _May:
    found: dict[str, frozenset[str]] = {}
    for pod in snapshot.pods if bought else ():
        if pod.key in bought and not is_virtual(pod.name):
            names = frozenset(name for name, block in blocks.items() if _patient(pod, block, now))
            found |= {pod.key: names} if names else {}
    return found


def _patient(pod: Pod, block: CapacityBlock, now: datetime) -> bool:
    """Whether the block begins while the pod may wait. That counts from its creation, so that a block which is
    postponed again and again keeps nobody waiting for ever."""
    longest = block.max_wait if pod.max_wait is None else pod.max_wait
    created = datetime.fromtimestamp(pod.created, UTC) if pod.created else now  # it never met an API server
    return bool(longest) and block.starts_at <= created + longest


def _on_blocks(
    may: _May,
    blocks: Mapping[str, CapacityBlock],
    bought: Mapping[str, PlannedNode],
    plan: Plan,
    snapshot: Snapshot,
    make: Make,
) -> tuple[Mapping[str, str], int]:
    """The pods that get a place on a block that is to come, with its name; and the work of finding them."""
    work = 0
    for _ in range(_ROUNDS):
        seen = make(_looking_ahead(snapshot, may, blocks, plan))
        work += seen.work
        nodes = {n.name: n for n in seen.launches if n.offering.block in blocks}
        placed = {p.pod: nodes[p.node] for p in seen.placements if p.node in nodes and p.pod in may}
        waiting = {key: n.offering.block for key, n in placed.items() if _acts(n, bought[key], snapshot)}
        torn = _torn(snapshot.pods, waiting.keys())
        if not torn:
            return waiting, work
        may = {key: names for key, names in may.items() if key not in torn}
    return {}, work


def _looking_ahead(snapshot: Snapshot, may: _May, blocks: Mapping[str, CapacityBlock], plan: Plan) -> Snapshot:
    """The snapshot as if these blocks had begun, for the pods that may wait and those that get no machine now."""
    every = frozenset(blocks)
    awaits = {left.pod: every for left in plan.left_out} | dict(may)
    begun = (replace(b, ahead=True, available=None) if b.name in blocks else b for b in snapshot.blocks)
    pods = (replace(p, awaits=awaits[p.key]) if p.key in awaits else p for p in snapshot.pods)
    return replace(snapshot, blocks=tuple(begun), pods=tuple(pods))


def _acts(ahead: PlannedNode, now: PlannedNode, snapshot: Snapshot) -> bool:
    """Whether the block's pool launches, or neither does: nobody waits for what is only proposed."""
    acting = {pool.name for pool in snapshot.pools if pool.acts}
    return ahead.pool in acting or now.pool not in acting


def _torn(pods: Iterable[Pod], waiting: Set[str]) -> frozenset[str]:
    """The pods of gangs of which some would wait and others would not: their machines would stand idle meanwhile."""
    members: dict[str, set[str]] = {}
    for pod in pods:
        if pod.gang and not pod.finished:
            members.setdefault(pod.gang.key, set()).add(pod.key)
    return frozenset(key for keys in members.values() if keys & waiting and not keys <= waiting for key in keys)


def _worth_it(plan: Plan, rest: Plan, waiting: Set[str]) -> bool:
    """Whether waiting saves something, and nobody else loses a place by it."""
    served = {placement.pod for placement in plan.placements} - {placement.pod for placement in rest.placements}
    delayed = {left.pod for left in rest.left_out if _is_put_off(left)}
    return served <= waiting & delayed and _price(rest) < _price(plan)


def _price(plan: Plan) -> tuple[Decimal, int]:
    """Machines without a price count by their number."""
    return plan.usd_per_hour, sum(1 for node in plan.launches if not node.offering.capacity_type.needs_reservation)


def _is_put_off(left: LeftOut) -> bool:
    return [reason.code for reason in left.reasons] == [Code.SCALE_UP_DELAYED]


def _waits(
    left: LeftOut,
    waiting: Mapping[str, str],
    blocks: Mapping[str, CapacityBlock],
    bought: Mapping[str, PlannedNode],
) -> LeftOut:
    if left.pod not in waiting or not _is_put_off(left):
        return left
    block, instead = blocks[waiting[left.pod]], bought[left.pod]
    price = {} if instead.usd_per_hour is None else {"usd_per_hour": f"{instead.usd_per_hour:.2f}"}
    why = Reason.of(
        Code.WAITS_FOR_BLOCK,
        f"pod {left.pod}",
        block=block.name,
        begins=block.starts_at.isoformat(timespec="minutes"),
        instance_type=instead.offering.instance_type,
        capacity_type=instead.offering.capacity_type,
        **price,
    )
    return replace(left, reasons=(why,))
