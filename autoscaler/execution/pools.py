"""Pools that are deleted: held by a finalizer until their nodes are gone, if that is what their policy says.

A pool whose policy is Retain, that only observes, or that has no nodes goes at once.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Final

from autoscaler.cluster.api import KubernetesApi, NotFoundError
from autoscaler.cluster.finalizers import set_finalizer
from autoscaler.cluster.resources import CAPACITY_POOLS
from autoscaler.kube.custom.capacity_pool import FINALIZER
from autoscaler.model.capacity import CapacityPool, Mode
from autoscaler.model.provisioned_node import Phase
from autoscaler.model.snapshot import Snapshot

_GONE: Final = frozenset({Phase.GONE})


def guard(api: KubernetesApi, pool: CapacityPool, snapshot: Snapshot) -> None:
    """Put the finalizer on a pool with nodes to drain, or take it away. Writes nothing when it is right already."""
    nodes = any(node.pool == pool.name and node.phase not in _GONE for node in snapshot.provisioned)
    wanted = nodes and pool.mode is Mode.ACT and pool.deletion_policy == "Drain"
    # The API server accepts no new finalizer on an object that is being deleted.
    if wanted == pool.guarded or (wanted and pool.deleting):
        return
    with suppress(NotFoundError):
        set_finalizer(api, CAPACITY_POOLS, pool.name, FINALIZER, held=wanted)
