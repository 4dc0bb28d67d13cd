"""Why a node is removed, and what happens to the pods on it: one table for planning, journal and execution.

Most reasons hold only while the node is empty. Such a drain begins with nothing but a taint; it is written down once
the taint was seen and no pod was found after that, and a pod that is found until the machine is ended takes it back.
Of the others the pods are told, and evicted; where that only saves money, they are looked at again first. A person's
order (the ProvisionedNode is deleted) evicts as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from enum import Enum
from types import MappingProxyType
from typing import Final

from autoscaler.model.capacity import CapacityBlock, Drain
from autoscaler.model.provisioned_node import ProvisionedNode
from autoscaler.model.reason import Code, Reason


class PodsThen(Enum):
    """What becomes of the pods on a node that is to go; the value is the sentence of the documentation."""

    EVICTED = "Its pods are evicted."
    KEPT = "It is removed only while it is empty; no pod is evicted."


WHY_IT_GOES: Final[Mapping[Code, PodsThen]] = MappingProxyType(
    {
        Code.BLOCK_ENDING: PodsThen.EVICTED,
        Code.NODE_RECLAIMED: PodsThen.EVICTED,
        Code.MACHINE_RECREATED: PodsThen.EVICTED,
        Code.POOL_DELETED: PodsThen.EVICTED,
        Code.SLICE_BROKEN: PodsThen.EVICTED,
        Code.NODE_DISPENSABLE: PodsThen.EVICTED,
        Code.NODE_EMPTY: PodsThen.KEPT,
        Code.NODE_DRIFTED: PodsThen.KEPT,
        Code.NODE_UNHEALTHY: PodsThen.KEPT,
        Code.NODE_STOPPED: PodsThen.KEPT,
        Code.NODE_FAILED: PodsThen.KEPT,
    }
)


# Machines that are taken back one by one (spot, maintenance) are drained as blocks are by default.
SINGLE: Final = Drain()


def evicts(reasons: Iterable[Reason]) -> bool:
    """Whether one of the reasons of a decision allows evictions; what is not in the table does not."""
    return any(WHY_IT_GOES.get(reason.code) is PodsThen.EVICTED for reason in reasons)


def checked_first(reasons: Iterable[Reason]) -> bool:
    """Whether a drain that evicts begins only once the taint was seen and all pods that are there then may be moved,
    and is taken back if they may not leave after all."""
    return any(reason.code is Code.NODE_DISPENSABLE for reason in reasons)


def may_evict(node: ProvisionedNode) -> bool:
    """Whether the pods of a node on its way out may be evicted, by what the API holds of it.

    Its reasons were written when the drain began. A reason that this version does not know evicts nobody.
    """
    return node.deleting or evicts(node.reasons)


def end_postponed(node: ProvisionedNode, block: CapacityBlock | None, now: datetime) -> bool:
    """Whether a node drains only for the end of its machine, and the provider has moved that end so far that the drain
    would not begin now, or has taken it back. `block` is the node's block; None: it has none, or it was deleted.
    """
    codes = {reason.code for reason in node.reasons}
    if node.deleting or not codes or codes - {Code.BLOCK_ENDING, Code.NODE_RECLAIMED}:
        return False
    if Code.BLOCK_ENDING in codes:
        return block is not None and now < block.drain_starts
    return node.reclaim_at is None or now < node.reclaim_at - SINGLE.budget
