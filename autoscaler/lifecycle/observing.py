"""Mode Observe touches nothing that exists: whose machines, Nodes and pods may be changed at all.

A pool acts on its nodes in mode Act; a check that holds it back keeps it from launching only. What a person orders is
carried out in any mode: who deletes a ProvisionedNode, or a pool whose policy is Drain, wants its machines ended. A
machine without a pool that exists is nobody's in particular: it is left alone while no pool acts.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final

from autoscaler.lifecycle.provisioned_node import has_failed, has_machine
from autoscaler.model.capacity import CapacityPool, DeletionPolicy, Mode
from autoscaler.model.provisioned_node import ProvisionedNode

# Cluster Autoscaler asks every ten seconds, and waits five minutes after a failure: so long a failure is shown to it.
_SHOWN: Final = timedelta(minutes=15)


def acts_on_nodes(pool: CapacityPool) -> bool:
    """Whether the nodes that a pool has may be drained, marked and ended."""
    return pool.mode is Mode.ACT or drains_deleted(pool)


def drains_deleted(pool: CapacityPool) -> bool:
    """Whether a person deleted the pool and its policy ends its nodes."""
    return pool.deleting and pool.deletion_policy is DeletionPolicy.DRAIN


def may_touch(pool: str, pools: Iterable[CapacityPool]) -> bool:
    """Whether machines that carry this pool's name may be changed. `pools` are all there are."""
    known = {found.name: found for found in pools}
    if pool in known:
        return acts_on_nodes(known[pool])
    return any(found.mode is Mode.ACT for found in known.values())


def may_touch_node(node: ProvisionedNode, pools: Iterable[CapacityPool]) -> bool:
    """Whether a node's machine, Node and pods may be changed."""
    return node.deleting or may_touch(node.pool, pools)


def awaits_order(node: ProvisionedNode, pools: Iterable[CapacityPool], now: datetime) -> bool:
    """Whether a node that failed stays until Cluster Autoscaler, which decides about its pool, has it deleted.

    It learns from the node why a launch failed. Where no machine is left, the object does not wait for ever.
    """
    pool = next((found for found in pools if found.name == node.pool), None)
    if pool is None or not pool.ordered or pool.deleting or node.deleting or not has_failed(node):
        return False
    return has_machine(node) or node.phase_since is None or now < node.phase_since + _SHOWN
