"""Lets pods wait for a CapacityBlock that begins soon, instead of launching a more expensive machine now.

The block (spec.maxWait) or the pod (annotation foreslice.dev/max-wait) says how long after its creation a pod may wait;
other pods never wait. A second plan assumes that the blocks have begun, for these pods and for those that get no
machine anyway: the latter take the block when it begins, and may have a higher priority. A pod with a place on a block
in this plan waits. A third plan buys nothing for the waiting pods. It is used only if it costs less and leaves out no
other pod.

Every reconcile decides again, and no wait is stored. If a block is late, has a note, fails or is full, the pod stops
waiting and gets a machine in the same reconcile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Set
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Final, TypeAlias

from autoscaler.lifecycle.capacity_block import BEGINS_WITHIN
from autoscaler.model.capacity import CapacityBlock
from autoscaler.model.plan import LeftOut, Plan, PlannedNode, Target
from autoscaler.model.pod import Pod
from autoscaler.model.reason import Code, Reason, Subject
from autoscaler.model.snapshot import Snapshot
from autoscaler.model.virtual_pods import is_virtual
from autoscaler.planning.supply.blocks import nodes_of
from instance_catalog.dataclass import replace

Make: TypeAlias = Callable[[Snapshot], Plan]
_May: TypeAlias = Mapping[str, frozenset[str]]  # pod -> the blocks that it may wait for

# The most plans with future blocks: each one leaves out gangs of which only a part waited in the one before.
_ROUNDS: Final = 3
# Prevents purchases for a pod in this plan; the time is not shown.
_NOT_NOW: Final = timedelta(seconds=1)


def await_blocks(plan: Plan, snapshot: Snapshot, make: Make, now: datetime) -> Plan:
    """The plan in which pods wait for blocks that begin soon, if they may and if it costs less.

    `make` plans. It is called only if a pod that may wait would get a machine that costs money: once or a few times
    with the future blocks, and once more for the pods that do not wait.
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
    """True if the block will begin soon, as far as is known. A note contains a reason why it might not."""
    if block.note or now >= block.drain_starts or len(nodes_of(block, snapshot.provisioned)) >= block.count:
        return False
    return now < block.starts_at or _beginning(block, snapshot, now)


def _beginning(block: CapacityBlock, snapshot: Snapshot, now: datetime) -> bool:
    """True if the block has just begun and its provider has not counted its machines yet."""
    unused = block.available == 0 and not nodes_of(block, snapshot.provisioned)
    return unused and now < block.starts_at + BEGINS_WITHIN


def _bought(plan: Plan) -> dict[str, PlannedNode]:
    """By pod, the new node that it would get, unless the node is prepaid."""
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
    """True if the block begins while the pod may wait. The time counts from the pod's creation, so a block that is
    postponed again and again does not make the pod wait forever."""
    longest = block.max_wait if pod.max_wait is None else pod.max_wait
    created = datetime.fromtimestamp(pod.created, UTC) if pod.created else now  # no API server has created it
    return bool(longest) and block.starts_at <= created + longest


def _on_blocks(
    may: _May,
    blocks: Mapping[str, CapacityBlock],
    bought: Mapping[str, PlannedNode],
    plan: Plan,
    snapshot: Snapshot,
    make: Make,
) -> tuple[Mapping[str, str], int]:
    """The pods with a place on a future block, with the name of the block; and the work of finding them."""
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
    """True if the block's pool launches, or neither pool does: nobody waits for a proposal."""
    acting = {pool.name for pool in snapshot.pools if pool.acts}
    return ahead.pool in acting or now.pool not in acting


def _torn(pods: Iterable[Pod], waiting: Set[str]) -> frozenset[str]:
    """The pods of gangs of which only some would wait: the machines of the others would stand idle meanwhile."""
    members: dict[str, set[str]] = {}
    for pod in pods:
        if pod.gang and not pod.finished:
            members.setdefault(pod.gang.key, set()).add(pod.key)
    return frozenset(key for keys in members.values() if keys & waiting and not keys <= waiting for key in keys)


def _worth_it(plan: Plan, rest: Plan, waiting: Set[str]) -> bool:
    """True if waiting saves money and no other pod loses its place."""
    served = {placement.pod for placement in plan.placements} - {placement.pod for placement in rest.placements}
    delayed = {left.pod for left in rest.left_out if _is_put_off(left)}
    return served <= waiting & delayed and _price(rest) < _price(plan)


def _price(plan: Plan) -> tuple[Decimal, int]:
    """Machines without a price are compared by their number."""
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
        Subject("pod", left.pod),
        block=block.name,
        begins=block.starts_at.isoformat(timespec="minutes"),
        instance_type=instead.offering.instance_type,
        capacity_type=instead.offering.capacity_type,
        **price,
    )
    return replace(left, reasons=(why,))
