"""What nodes of a GKE node pool register with, and what of it a CapacityPool says otherwise.

A launch cannot add labels or taints: those of the node pool count, and plans know them. What the CapacityPool says
beside them is not there: a pod that a plan places on such a node for it would stay pending, or one that its taint keeps
away would come. So each such difference is a fault with the step that ends it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes import labels
from providers.gcp.node_template.groups import Group
from providers.gcp.node_template.placement import shared_labels
from providers.gcp.node_template.pools import PODS, Pool, PoolFault, create, pairs, taint_list
from providers.gcp.node_template.template import GroupTemplate, PoolNodes
from providers.registered import Registered

# Labels below this domain are GKE's own, and nobody sets them but those that its guides have people set.
_GKE: Final = "cloud.google.com/"
_SETTABLE: Final = frozenset(
    {labels.GKE_NVIDIA_GPU_DRA_DRIVER, labels.GKE_NETWORKING_DRA_DRIVER, labels.GKE_COMPUTE_CLASS}
)


def registered_of(group: Group, pool: Pool) -> Registered:
    """What plans know of the nodes of a group. Each has the name of its node pool as a label."""
    of = FrozenMap({**group.labels, **pool.labels, labels.GKE_NODE_POOL: pool.name})
    return Registered(of, pool.taints, shared_labels(group.distance, group.domain))


def differences(
    template: GroupTemplate, group: Group, pool: Pool, expected: Iterable[PoolNodes]
) -> Iterator[PoolFault]:
    """How the nodes of a group differ from what the CapacityPools of its template assume. None of it blocks."""
    of = f"{pool.name} --cluster {template.cluster} --location {template.location}"
    registered = registered_of(group, pool).labels
    for wanted in expected:
        if wanted.template == template.name:
            yield from _of_labels(wanted, pool, registered, of)
            yield from _of_taints(wanted, pool, of)
            yield from _of_block(wanted, group, pool, of)
    if pool.max_pods is not None and pool.max_pods < PODS:
        yield PoolFault(
            "MaxPods",
            f"a node of node pool {pool.name} takes {pool.max_pods} pods, and plans assume {PODS}",
            create(pool),
            blocking=False,
        )


def _of_labels(wanted: PoolNodes, pool: Pool, registered: Mapping[str, str], of: str) -> Iterator[PoolFault]:
    assumed = {labels.POOL: wanted.pool, **wanted.labels}
    lacking = {key: value for key, value in assumed.items() if registered.get(key) != value}
    if not lacking:
        return
    settable = {key: value for key, value in lacking.items() if key in _SETTABLE or not key.startswith(_GKE)}
    step = f"gcloud container node-pools update {of} --node-labels={pairs({**pool.labels, **settable})}"
    if labels.GKE_METADATA_SERVER in lacking:
        step = f"gcloud container node-pools update {of} --workload-metadata=GKE_METADATA"
    elif len(settable) < len(lacking):
        wrong = " and ".join(sorted(lacking.keys() - settable.keys()))
        step = f"correct {wrong} in spec.labels of CapacityPool {wanted.pool}"
    yield PoolFault(
        "PoolLabels",
        f"nodes of node pool {pool.name} register without {pairs(lacking)}, which plans for CapacityPool "
        f"{wanted.pool} assume",
        step,
        blocking=False,
    )


def _of_taints(wanted: PoolNodes, pool: Pool, of: str) -> Iterator[PoolFault]:
    lacking = [taint for taint in wanted.taints if taint not in pool.taints]
    if lacking:
        yield PoolFault(
            "PoolTaints",
            f"nodes of node pool {pool.name} register without the taint {taint_list(lacking)} of CapacityPool "
            f"{wanted.pool}: pods of others may come to them",
            f"gcloud container node-pools update {of} --node-taints={taint_list([*pool.taints, *lacking])}",
            blocking=False,
        )


def _of_block(wanted: PoolNodes, group: Group, pool: Pool, of: str) -> Iterator[PoolFault]:
    """The label and the taint of the CapacityBlock that holds the group's reservation."""
    held = [block for block in wanted.blocks if block.reservation == group.reservation != ""]
    for block in held[:1]:
        if pool.labels.get(labels.CAPACITY_BLOCK) != block.block:
            yield PoolFault(
                "BlockLabel",
                f"nodes of node pool {pool.name} register without {labels.CAPACITY_BLOCK}={block.block}: its machines "
                f"are those of CapacityBlock {block.block}, whose pods would not find them",
                f"gcloud container node-pools update {of} "
                f"--node-labels={pairs({**pool.labels, labels.CAPACITY_BLOCK: block.block})}",
                blocking=False,
            )
        if block.taint is not None and block.taint not in pool.taints:
            kept = [taint for taint in pool.taints if taint.key != block.taint.key]
            yield PoolFault(
                "BlockTaint",
                f"nodes of node pool {pool.name} register without the taint {taint_list([block.taint])} of "
                f"CapacityBlock {block.block}: pods that may not use what is prepaid may come to them",
                f"gcloud container node-pools update {of} --node-taints={taint_list([*kept, block.taint])}",
                blocking=False,
            )
    stale = pool.labels.get(labels.CAPACITY_BLOCK, "")
    if not group.reservation and any(block.block == stale for block in wanted.blocks):
        others = {key: value for key, value in pool.labels.items() if key != labels.CAPACITY_BLOCK}
        yield PoolFault(
            "BlockLabel",
            f"nodes of node pool {pool.name} register with {labels.CAPACITY_BLOCK}={stale}, and its machines do not "
            f"start in the reservation of CapacityBlock {stale}",
            f"gcloud container node-pools update {of} --node-labels={pairs(others)}",
            blocking=False,
        )
