"""The finalizers of Foreslice's custom resources: when a pool gets one, and when it is removed.

A deleted pool is held until its nodes are gone, if its policy says so. A pool with the policy Retain, or without nodes,
is removed at once. That holds in mode Observe as well: deleting a pool is a user's order.

If the CustomResourceDefinitions are being deleted, Foreslice is being uninstalled: machines stay as they are. Deleting
a CustomResourceDefinition deletes all its objects. That must not be read as the order to end every node, and the
finalizers must not block the deletion of the definitions.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import Final

from autoscaler.cluster.api import KubernetesApi, NotFoundError, set_finalizer
from autoscaler.cluster.journal import FINALIZER as MACHINE_FINALIZER
from autoscaler.cluster.resources import (
    CAPACITY_POOLS,
    CUSTOM_RESOURCE_DEFINITIONS,
    LAUNCH_BATCHES,
    PROVISIONED_NODES,
    Resource,
)
from autoscaler.errors import ConfigurationError
from autoscaler.kube.custom.capacity_pool import FINALIZER as POOL_FINALIZER
from autoscaler.kube.custom.launch_batch import FINALIZER as BATCH_FINALIZER
from autoscaler.lifecycle.provisioned_node import is_over
from autoscaler.model.capacity import CapacityPool, DeletionPolicy
from autoscaler.model.provisioned_node import LaunchBatch
from autoscaler.model.snapshot import Snapshot

_OURS: Final = (PROVISIONED_NODES, CAPACITY_POOLS, LAUNCH_BATCHES)


def sync_finalizer(api: KubernetesApi, pool: CapacityPool, snapshot: Snapshot) -> None:
    """Adds the finalizer to a pool with nodes to drain, or removes it. Writes nothing if it is right already."""
    nodes = any(node.pool == pool.name and not is_over(node) for node in snapshot.provisioned)
    wanted = nodes and pool.deletion_policy is DeletionPolicy.DRAIN
    # The API server accepts no new finalizer on an object that is being deleted.
    if wanted == pool.guarded or (wanted and pool.deleting):
        return
    with suppress(NotFoundError):
        set_finalizer(api, CAPACITY_POOLS, pool.name, POOL_FINALIZER, held=wanted)


def stop_while_uninstalling(api: KubernetesApi, snapshot: Snapshot, batches: Iterable[LaunchBatch] = ()) -> None:
    """Releases objects that are deleted along with their definition, and raises ConfigurationError.

    Makes no request as long as no object is being deleted.
    """
    nodes = [node.name for node in snapshot.provisioned if node.deleting]
    pools = [pool.name for pool in snapshot.pools if pool.deleting]
    launches = [batch.name for batch in batches if batch.deleting]
    if not (nodes or pools or launches) or not any(_is_going(api, resource) for resource in _OURS):
        return
    for resource, finalizer, names in (
        (PROVISIONED_NODES, MACHINE_FINALIZER, nodes),
        (CAPACITY_POOLS, POOL_FINALIZER, pools),
        (LAUNCH_BATCHES, BATCH_FINALIZER, launches),
    ):
        for name in names:
            with suppress(NotFoundError):
                set_finalizer(api, resource, name, finalizer, held=False)
    raise ConfigurationError(
        "the custom resources of foreslice.dev are being deleted: no node is launched or ended, all machines stay",
        next_step="remove the controller too, and terminate at the cloud the machines that you do not need; or install "
        "the resources again: machines whose nodes are registered are then adopted",
    )


def _is_going(api: KubernetesApi, resource: Resource) -> bool:
    try:
        found = api.get(CUSTOM_RESOURCE_DEFINITIONS, str(resource))
    except NotFoundError:
        return False
    return "deletionTimestamp" in found["metadata"]
