"""Decides who may use a capacity block, and how many of its machines are left.

No pod gets a toleration of the block's taint: kube-scheduler does not bind a pod without it, and the planner plans only
what kube-scheduler will do. Time is counted to the start of the drain, not to the block's end.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from autoscaler.lifecycle.provisioned_node import counts_against_limits
from autoscaler.model.capacity import CapacityBlock, CapacityPool, Permission, UnknownDurationPolicy
from autoscaler.model.pod import Pod
from autoscaler.model.provisioned_node import ProvisionedNode
from autoscaler.model.reason import Code, Reason, Subject
from autoscaler.model.resource_claim import DeviceRequest, FirstAvailable, ResourceClaim
from autoscaler.model.snapshot import Snapshot
from autoscaler.planning.demand.bundles import Bundle
from autoscaler.planning.demand.demand import claim_keys
from instance_catalog.dataclass import dataclass
from instance_catalog.frozen_map import EMPTY


@dataclass(frozen=True, slots=True)
class Admission:
    """The decision whether a bundle may use a block. `at_risk`: pods that may still run when the block ends."""

    refusal: Reason | None = None
    at_risk: int = 0


def admission(bundle: Bundle, block: CapacityBlock, snapshot: Snapshot, now: datetime) -> Admission:
    """Checks consumers and remaining time, and returns the first refusal."""
    at_risk = 0
    for pod in bundle.pods:
        refusal = _not_consumer(pod, bundle, block, snapshot) or _too_long(pod, block, max(now, block.starts_at))
        if refusal:
            return Admission(refusal)
        at_risk += pod.expected_seconds is None
    return Admission(at_risk=at_risk)


def _not_consumer(pod: Pod, bundle: Bundle, block: CapacityBlock, snapshot: Snapshot) -> Reason | None:
    consumers = block.consumers
    namespace = snapshot.namespaces.get(pod.namespace, EMPTY.with_items({"kubernetes.io/metadata.name": pod.namespace}))
    welcome = (
        (not block.ahead or block.name in pod.awaits)
        and (consumers.namespace_selector is None or consumers.namespace_selector.matches(namespace))
        and (consumers.pod_selector is None or consumers.pod_selector.matches(pod.labels))
        and (consumers.min_accelerators == 0 or devices_wanted(bundle, snapshot.claims) >= consumers.min_accelerators)
    )
    return None if welcome else Reason.of(Code.BLOCK_NOT_CONSUMER, Subject("pod", pod.key), block=block.name)


def _too_long(pod: Pod, block: CapacityBlock, at: datetime) -> Reason | None:
    left = int((block.drain_starts - at).total_seconds())
    needed = pod.expected_seconds
    if needed is None and block.unknown_duration is UnknownDurationPolicy.DENY:
        return Reason.of(Code.BLOCK_DURATION_UNKNOWN, Subject("pod", pod.key), block=block.name)
    if needed is None:
        needed = int(block.min_remaining.total_seconds())
    if needed > left:
        return Reason.of(Code.BLOCK_ENDS_TOO_SOON, Subject("pod", pod.key), block=block.name, needed=needed, left=left)
    return None


def devices_wanted(bundle: Bundle, claims: Mapping[str, ResourceClaim]) -> int:
    """The least number of devices that the bundle's claims request; All counts as one, because its number is not
    known."""
    keys = dict.fromkeys(key for pod in bundle.pods for key in claim_keys(pod))
    return sum(_least(request) for key in keys if key in claims for request in claims[key].requests)


def _least(request: DeviceRequest | FirstAvailable) -> int:
    counts = (one.count if one.allocation_mode == "ExactCount" else 1 for one in request.alternatives)
    return min(counts, default=0)


def nodes_of(block: CapacityBlock, provisioned: tuple[ProvisionedNode, ...]) -> tuple[ProvisionedNode, ...]:
    """Managed nodes that have, or will have, a machine of the block."""
    return tuple(p for p in provisioned if counts_against_limits(p) and p.offering.block == block.name)


def available(block: CapacityBlock, provisioned: tuple[ProvisionedNode, ...]) -> int:
    """The number of machines of the block that can still be started.

    It is the provider's last answer, but at most the block's size minus the managed nodes: answers lag behind launches.
    """
    free = block.count - len(nodes_of(block, provisioned))
    return max(0, free if block.available is None else min(free, block.available))


def kept_to_blocks(pool: CapacityPool, snapshot: Snapshot) -> tuple[CapacityBlock, ...]:
    """The blocks that keep a pool from launching unreserved capacity: those that name it, unless it may overflow.

    They keep it from that before they begin, while they are full and after they have ended, until their objects are
    deleted: time alone never makes a pool that a team has paid in advance cost more.
    """
    if pool.overflow is Permission.ALLOW:
        return ()
    return tuple(block for block in snapshot.blocks if block.pool == pool.name)


def overflow_refused(
    pool: CapacityPool, blocks: tuple[CapacityBlock, ...], subject: Subject, *, now: datetime
) -> Reason:
    """Why the pool does not launch unreserved capacity; with the end of the last of its blocks, once that is past."""
    last = max(block.ends_at for block in blocks)
    ended = {"ended": _minute(last)} if last <= now else {}
    names = tuple(block.name for block in blocks)
    return Reason.of(Code.OVERFLOW_NEVER, subject, pool=pool.name, blocks=names, **ended)


def unusable_block(pool: CapacityPool, instance_type: str, snapshot: Snapshot, *, now: datetime) -> Mapping[str, str]:
    """Facts of the block that has such machines for the pool and launches none now: one that is full, else the one that
    begins next, else the last that was open. None of them if there is no such block."""
    found = [b for b in snapshot.blocks if b.instance_type == instance_type and b.pool in ("", pool.name)]
    for block in (block for block in found if block.open_at(now)):
        return {"full": block.name}
    for block in sorted((b for b in found if now < b.starts_at), key=lambda b: b.starts_at)[:1]:
        return {"block": block.name, "begins": _minute(block.starts_at)}
    for block in sorted(found, key=lambda b: b.reclaimed)[-1:]:
        if block.reclaimed <= now:
            return {"block": block.name, "ended": _minute(block.reclaimed)}
        return {"block": block.name, "drains": _minute(block.drain_starts), "ends": _minute(block.reclaimed)}
    return EMPTY


def _minute(at: datetime) -> str:
    return at.isoformat(timespec="minutes")
