"""Mode Observe changes nothing that exists: the machines, Nodes and pods that may be changed.

A pool acts on its nodes in mode Act; a check that holds it back only prevents launches. Deletions by a person are
carried out in any mode: of a ProvisionedNode, or of a pool with the policy Drain, whose machines are ended. A machine
whose pool does not exist is left alone while no pool acts.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final

from autoscaler.lifecycle.provisioned_node import has_failed, has_machine
from autoscaler.model.capacity import CapacityPool, DeletionPolicy, Mode
from autoscaler.model.provisioned_node import ProvisionedNode

# Cluster Autoscaler asks every ten seconds, and waits five minutes after a failure: a failure is visible to it this
# long.
_SHOWN: Final = timedelta(minutes=15)


def acts_on_nodes(pool: CapacityPool) -> bool:
    """True if the nodes of a pool may be drained, marked and ended."""
    return pool.mode is Mode.ACT or drains_deleted(pool)


def drains_deleted(pool: CapacityPool) -> bool:
    """True if a person deleted the pool and its policy ends its nodes."""
    return pool.deleting and pool.deletion_policy is DeletionPolicy.DRAIN


def may_touch(pool: str, pools: Iterable[CapacityPool]) -> bool:
    """True if machines of this pool may be changed. `pools` are all existing ones."""
    known = {found.name: found for found in pools}
    if pool in known:
        return acts_on_nodes(known[pool])
    return any(found.mode is Mode.ACT for found in known.values())


def may_touch_node(node: ProvisionedNode, pools: Iterable[CapacityPool]) -> bool:
    """True if a node's machine, Node and pods may be changed."""
    return node.deleting or may_touch(node.pool, pools)


def awaits_order(node: ProvisionedNode, pools: Iterable[CapacityPool], now: datetime) -> bool:
    """True if a failed node stays until Cluster Autoscaler, which decides on its pool, has deleted it.

    It reads from the node why a launch failed. If no machine is left, the object does not wait for ever.
    """
    pool = next((found for found in pools if found.name == node.pool), None)
    if pool is None or not pool.ordered or pool.deleting or node.deleting or not has_failed(node):
        return False
    return has_machine(node) or node.phase_since is None or now < node.phase_since + _SHOWN
