"""Pools that are deleted: held by a finalizer until their nodes are gone, if that is what their policy says.

A pool whose policy is Retain, or that has no nodes, goes at once. That a pool observes makes no difference: to delete
it is a person's order.
"""

from __future__ import annotations

from contextlib import suppress

from autoscaler.cluster.api import KubernetesApi, NotFoundError
from autoscaler.cluster.finalizers import set_finalizer
from autoscaler.cluster.resources import CAPACITY_POOLS
from autoscaler.kube.custom.capacity_pool import FINALIZER
from autoscaler.lifecycle.provisioned_node import is_over
from autoscaler.model.capacity import CapacityPool
from autoscaler.model.snapshot import Snapshot


def sync_finalizer(api: KubernetesApi, pool: CapacityPool, snapshot: Snapshot) -> None:
    """Put the finalizer on a pool with nodes to drain, or take it away. Writes nothing when it is right already."""
    nodes = any(node.pool == pool.name and not is_over(node) for node in snapshot.provisioned)
    wanted = nodes and pool.deletion_policy == "Drain"
    # The API server accepts no new finalizer on an object that is being deleted.
    if wanted == pool.guarded or (wanted and pool.deleting):
        return
    with suppress(NotFoundError):
        set_finalizer(api, CAPACITY_POOLS, pool.name, FINALIZER, held=wanted)
