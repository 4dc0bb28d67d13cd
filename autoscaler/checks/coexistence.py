"""Checks whether another autoscaler would launch for the pods of a pool: then both would, and one node would be idle.

Facts: Karpenter core skips pods with claims unless configured otherwise; Cluster Autoscaler 1.35 and later simulates
claims, but knows the devices of a group only from a node of it that it has seen.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Final

from autoscaler.model.capacity import CapacityPool, PodScope
from autoscaler.model.other_autoscalers import Autoscaler, AutoscalerKind
from autoscaler.model.reason import Code, Reason, Subject
from autoscaler.model.snapshot import Snapshot
from autoscaler.planning.demand.demand import unreadable
from instance_catalog.kubernetes import labels

# A Node may register before its launch is answered; the launch is repeated until its result is known.
_UNDER_WAY: Final = timedelta(minutes=15)


def competitors(pool: CapacityPool, snapshot: Snapshot) -> Iterator[Reason]:
    """One reason for each autoscaler that would serve the same pods; one, if it is unknown which there are."""
    yield from unreadable(snapshot, Subject("other autoscalers"), "Deployment")
    for other in snapshot.autoscalers:
        if not _same_schedulers(pool, other) or (pool.ordered and other.kind is AutoscalerKind.CLUSTER_AUTOSCALER):
            continue
        if pool.scope.pods is not PodScope.DEVICE_CLAIMS:
            yield Reason.of(
                Code.OTHER_AUTOSCALER, Subject(other.key), kind=other.kind.value, pods="pods without claims"
            )
        elif other.claims and _knows_devices(other, snapshot):
            yield Reason.of(Code.OTHER_AUTOSCALER, Subject(other.key), kind=other.kind.value, pods="pods with claims")


def _same_schedulers(pool: CapacityPool, other: Autoscaler) -> bool:
    return not other.schedulers or bool(set(pool.scope.schedulers) & set(other.schedulers))


def _knows_devices(other: Autoscaler, snapshot: Snapshot) -> bool:
    """Karpenter brings the devices of its types with it; Cluster Autoscaler learns them from nodes of its groups."""
    if other.kind is AutoscalerKind.KARPENTER:
        return True
    ours = {node.node_name for node in snapshot.provisioned}
    foreign = {
        node.name
        for node in snapshot.nodes
        if node.name not in ours and labels.POOL not in node.labels and labels.KARPENTER_NODE_POOL not in node.labels
    }
    return any(slice_.devices and slice_.reach.node_name in foreign for slice_ in snapshot.slices)


def foreign_nodes(pool: CapacityPool, snapshot: Snapshot, now: datetime) -> Iterator[Reason]:
    """Nodes with the pool's label that Foreslice did not start: surge upgrades and repairs of a node pool create
    some."""
    ours = {known for node in snapshot.provisioned for known in (node.node_name, node.provider_id) if known}
    latest = (now - _UNDER_WAY).timestamp()
    found = sorted(
        node.name
        for node in snapshot.nodes
        if node.labels.get(labels.POOL) == pool.name
        and not (node.deleting or node.created > latest or node.name in ours or node.provider_id in ours)
    )
    if found:
        yield Reason.of(Code.FOREIGN_NODES, count=len(found), example=found[0])
