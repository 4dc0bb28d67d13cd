"""Intents as values: which planned nodes are launched together, which objects that means, and the tokens of its calls.

Pure: everything follows from the plan, or from the LaunchBatch alone, so that a restart derives the same again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping

from autoscaler.model.capacity import CapacityPool
from autoscaler.model.plan import PlannedNode
from autoscaler.model.provisioned_node import LaunchBatch, ProvisionedNode
from autoscaler.model.snapshot import Snapshot
from instance_catalog import labels
from instance_catalog.frozen_map import FrozenMap

# What differs between the nodes or offerings of one batch; the provider or the launch adds these.
_PER_NODE_LABELS = frozenset(
    {
        labels.HOSTNAME,
        labels.INSTANCE_TYPE,
        labels.ZONE,
        labels.REGION,
        labels.ARCHITECTURE,
        labels.OPERATING_SYSTEM,
        labels.CAPACITY_TYPE,
        labels.CAPACITY_BLOCK,
        labels.PROVISIONED_NODE,
    }
)
# What one LaunchBatch holds at most, by its schema.
_LARGEST = 100
_OFFERINGS = 60


def batches_of(launches: Iterable[PlannedNode], snapshot: Snapshot) -> tuple[LaunchBatch, ...]:
    """Group planned nodes that one provider call can launch: alike in everything, and of one gang or of none."""
    pools = {pool.name: pool for pool in snapshot.pools}
    gangs = {pod.key: pod.gang.key for pod in snapshot.pods if pod.gang is not None}
    groups: dict[tuple[object, ...], list[PlannedNode]] = {}
    for launch in launches:
        gang = frozenset(gangs[pod] for pod in launch.pods if pod in gangs)
        alike = (launch.pool, launch.offerings, launch.prediction, _shared_labels(launch), launch.node.taints, gang)
        groups.setdefault(alike, []).append(launch)
    return tuple(
        _batch(group[start : start + _LARGEST], pools, gang=bool(alike[-1]))
        for alike, group in groups.items()
        for start in range(0, len(group), _LARGEST)
    )


def nodes_of(batch: LaunchBatch) -> tuple[ProvisionedNode, ...]:
    """The ProvisionedNodes of a batch, derived from it alone. Raises ValueError for a batch without a prediction."""
    if batch.prediction is None:
        raise ValueError(f"batch {batch.name} has no prediction")
    return tuple(
        ProvisionedNode(
            name=name,
            pool=batch.pool,
            node_name=name,
            batch=batch.name,
            offerings=batch.offerings,
            prediction=batch.prediction,
            labels=batch.labels,
            pods=batch.pods[index] if index < len(batch.pods) else (),
        )
        for index, name in enumerate(batch.nodes)
    )


def token_of(batch: LaunchBatch, attempt: int) -> str:
    """The idempotency token of an attempt: 64 hexadecimal digits, derived only from what is written down."""
    return _digest(batch.uid, str(attempt), batch.offerings[attempt].zone)


def _batch(group: list[PlannedNode], pools: Mapping[str, CapacityPool], *, gang: bool) -> LaunchBatch:
    first = group[0]
    pool = pools[first.pool]
    names = tuple(launch.name for launch in group)
    return LaunchBatch(
        name=f"{first.pool}-{_digest(*names)[:10]}",
        pool=first.pool,
        nodes=names,
        offerings=first.offerings[:_OFFERINGS],
        minimum=len(names) if gang else 1,
        pods=tuple(launch.pods for launch in group),
        prediction=first.prediction,
        labels=_shared_labels(first),
        taints=(*first.node.taints, *pool.startup_taints),
        kubelet_reserved=pool.kubelet_reserved,
        template=pool.node_template,
    )


def _shared_labels(launch: PlannedNode) -> FrozenMap[str, str]:
    return FrozenMap({key: value for key, value in launch.node.labels.items() if key not in _PER_NODE_LABELS})


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()
