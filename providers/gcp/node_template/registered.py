"""Compares the labels and taints of GKE nodes with those that a CapacityPool assumes.

A launch cannot add labels or taints: plans use those of the node pool. A label that only the CapacityPool has is
missing on the nodes, so a pod that selects it stays pending. A taint that only the CapacityPool has does not keep pods
away. So each such difference is a fault with a correction.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from instance_catalog.dataclass import replace
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes import labels
from providers.gcp.node_template.groups import Group
from providers.gcp.node_template.placement import shared_labels
from providers.gcp.node_template.pools import PODS, Pool, PoolFault, create, pairs, taint_list, with_dra_labels
from providers.gcp.node_template.template import BlockNodes, GroupTemplate, PoolNodes
from providers.registered import Registered

# GKE sets labels of this domain. Users set only those that GKE's guides name.
_GKE: Final = "cloud.google.com/"
_SETTABLE: Final = frozenset(
    {
        *(labels.GKE_NVIDIA_GPU_DRA_DRIVER, labels.GKE_TPU_DRA_DRIVER),
        *(labels.GKE_NETWORKING_DRA_DRIVER, labels.GKE_COMPUTE_CLASS),
    }
)


def registered_of(group: Group, pool: Pool) -> Registered:
    """The labels and taints of the nodes of a group, for plans. Each node has the name of its node pool as a label."""
    of = FrozenMap({**group.labels, **pool.labels, labels.GKE_NODE_POOL: pool.name})
    return Registered(of, pool.taints, shared_labels(group.distance, group.domain))


def as_wanted(template: GroupTemplate, group: Group, pool: Pool, expected: Iterable[PoolNodes]) -> Pool:
    """The node pool with all labels and taints that it should have.

    gcloud's --node-labels and --node-taints replace the existing ones, so each command must contain all of them (gcloud
    container node-pools update, read 2026-11-27).
    """
    found, taints = dict(with_dra_labels(pool).labels), list(pool.taints)
    for wanted in expected:
        if wanted.template != template.name:
            continue
        found |= _settable(_lacking(wanted, registered_of(group, pool).labels))
        taints += [taint for taint in wanted.taints if taint not in taints]
        for block in _held(wanted, group):
            found[labels.CAPACITY_BLOCK] = block.block
            if block.taint is not None and block.taint not in taints:
                taints = [*(taint for taint in taints if taint.key != block.taint.key), block.taint]
        if _stale(wanted, group, pool):
            found.pop(labels.CAPACITY_BLOCK, None)
    return replace(pool, labels=found, taints=tuple(taints))


def differences(
    template: GroupTemplate, group: Group, pool: Pool, expected: Iterable[PoolNodes], corrected: Pool
) -> Iterator[PoolFault]:
    """The differences between the nodes of a group and the assumptions of the CapacityPools of its template. None of
    them blocks launches. `corrected`: the pool of as_wanted."""
    update = f"gcloud container node-pools update {pool.name} {pool.place}"
    relabel = f"{update} --node-labels={pairs(corrected.labels)}"
    taint = f"{update} --node-taints={taint_list(corrected.taints)}"
    registered = registered_of(group, pool).labels
    for wanted in expected:
        if wanted.template == template.name:
            yield from _of_labels(wanted, pool, _lacking(wanted, registered), update, relabel)
            yield from _of_taints(wanted, pool, taint)
            yield from _of_block(wanted, group, pool, relabel, taint)
    if pool.max_pods is not None and pool.max_pods < PODS:
        yield PoolFault(
            "MaxPods",
            f"a node of node pool {pool.name} takes {pool.max_pods} pods, and plans assume {PODS}",
            create(corrected),
            blocking=False,
        )


def _lacking(wanted: PoolNodes, registered: Mapping[str, str]) -> Mapping[str, str]:
    assumed = {labels.POOL: wanted.pool, **wanted.labels}
    return {key: value for key, value in assumed.items() if registered.get(key) != value}


def _settable(found: Mapping[str, str]) -> Mapping[str, str]:
    """The labels that users set with --node-labels. The label of Workload Identity has an option of its own."""
    own = {labels.GKE_METADATA_SERVER}
    return {k: v for k, v in found.items() if k in _SETTABLE or not (k.startswith(_GKE) or k in own)}


def _held(wanted: PoolNodes, group: Group) -> tuple[BlockNodes, ...]:
    """The CapacityBlock that holds the group's reservation."""
    return tuple(block for block in wanted.blocks if block.reservation == group.reservation != "")[:1]


def _stale(wanted: PoolNodes, group: Group, pool: Pool) -> str:
    """The CapacityBlock in the pool's label if the machines do not belong to it; "" otherwise."""
    named = pool.labels.get(labels.CAPACITY_BLOCK, "")
    return named if not group.reservation and any(block.block == named for block in wanted.blocks) else ""


def _of_labels(
    wanted: PoolNodes, pool: Pool, lacking: Mapping[str, str], update: str, relabel: str
) -> Iterator[PoolFault]:
    if not lacking:
        return
    step, unset = relabel, lacking.keys() - _settable(lacking).keys()
    if labels.GKE_METADATA_SERVER in lacking:
        step = f"{update} --workload-metadata=GKE_METADATA"
    elif unset:
        step = f"correct {' and '.join(sorted(unset))} in spec.labels of CapacityPool {wanted.pool}"
    yield PoolFault(
        "PoolLabels",
        f"nodes of node pool {pool.name} register without {pairs(lacking)}, which plans for CapacityPool "
        f"{wanted.pool} assume",
        step,
        blocking=False,
    )


def _of_taints(wanted: PoolNodes, pool: Pool, step: str) -> Iterator[PoolFault]:
    lacking = [taint for taint in wanted.taints if taint not in pool.taints]
    if lacking:
        yield PoolFault(
            "PoolTaints",
            f"nodes of node pool {pool.name} register without the taint {taint_list(lacking)} of CapacityPool "
            f"{wanted.pool}: other pods may run on them",
            step,
            blocking=False,
        )


def _of_block(wanted: PoolNodes, group: Group, pool: Pool, relabel: str, taint: str) -> Iterator[PoolFault]:
    """The faults of the label and the taint of the CapacityBlock that holds the group's reservation."""
    for block in _held(wanted, group):
        if pool.labels.get(labels.CAPACITY_BLOCK) != block.block:
            yield PoolFault(
                "BlockLabel",
                f"nodes of node pool {pool.name} register without {labels.CAPACITY_BLOCK}={block.block}: its machines "
                f"are those of CapacityBlock {block.block}, whose pods would not find them",
                relabel,
                blocking=False,
            )
        if block.taint is not None and block.taint not in pool.taints:
            yield PoolFault(
                "BlockTaint",
                f"nodes of node pool {pool.name} register without the taint {taint_list([block.taint])} of "
                f"CapacityBlock {block.block}: pods that may not use prepaid machines may run on them",
                taint,
                blocking=False,
            )
    if stale := _stale(wanted, group, pool):
        yield PoolFault(
            "BlockLabel",
            f"nodes of node pool {pool.name} register with {labels.CAPACITY_BLOCK}={stale}, and its machines do not "
            f"start in the reservation of CapacityBlock {stale}",
            relabel,
            blocking=False,
        )
