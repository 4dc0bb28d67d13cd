"""The reasons why a node is removed, and their effect on its pods: one table for planning, journal and execution.

Most reasons hold only while the node is empty. Such a drain begins with only a taint; it is recorded once the taint was
observed and no pod was found after that, and a pod that is found before the machine is ended reverts it. For the other
reasons, pods get a notice and are evicted; if the reason only saves money, the pods are checked again first. The
deletion of a ProvisionedNode by a person evicts as well.
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
    """The effect on the pods of a node that is removed; the value is the sentence in the documentation."""

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


# Machines that are taken back one by one (spot, maintenance) are drained with the defaults of blocks.
SINGLE: Final = Drain()


def evicts(reasons: Iterable[Reason]) -> bool:
    """True if one of the reasons of a decision allows evictions; reasons that are not in the table do not."""
    return any(WHY_IT_GOES.get(reason.code) is PodsThen.EVICTED for reason in reasons)


def checked_first(reasons: Iterable[Reason]) -> bool:
    """True if a drain that evicts begins only once the taint was observed and all pods that are there then may be
    moved, and is reverted if they may not leave after all."""
    return any(reason.code is Code.NODE_DISPENSABLE for reason in reasons)


def may_evict(node: ProvisionedNode) -> bool:
    """True if the pods of a node that is being removed may be evicted, according to its object.

    Its reasons were written when the drain began. A reason that this version does not support evicts no pod.
    """
    return node.deleting or evicts(node.reasons)


def end_postponed(node: ProvisionedNode, block: CapacityBlock | None, now: datetime) -> bool:
    """True if a node drains only because its machine ends, and the provider has cancelled that end, or postponed it so
    that no drain would begin now. `block` is the node's block; None: it has none, or it was deleted."""
    codes = {reason.code for reason in node.reasons}
    if node.deleting or not codes or codes - {Code.BLOCK_ENDING, Code.NODE_RECLAIMED}:
        return False
    if Code.BLOCK_ENDING in codes:
        return block is not None and now < block.drain_starts
    return node.reclaim_at is None or now < node.reclaim_at - SINGLE.budget
