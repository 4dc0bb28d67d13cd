"""Finds managed nodes whose drivers published other ResourceSlices than the prediction at their launch.

Each machine is compared once, when it becomes usable. The policy decides whether its type is avoided afterwards. The
claims that count are those of the pods that the machine was bought for.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from autoscaler.dra.drift import DriftPolicy, matters, quarantines
from autoscaler.lifecycle.ownership import OwnNodes
from autoscaler.lifecycle.provisioned_node import became_ready
from autoscaler.lifecycle.quarantine import Drift
from autoscaler.model.node import Node
from autoscaler.model.provisioned_node import ProvisionedNode
from autoscaler.model.resource_claim import ResourceClaim
from autoscaler.model.snapshot import Snapshot
from autoscaler.planning.demand.demand import claim_keys
from autoscaler.planning.supply.hypothetical import as_coming
from instance_catalog.dataclass import replace
from instance_catalog.drift.compare import Unified, unify
from instance_catalog.kubernetes.resource_slice import ResourceSlice
from instance_catalog.types.catalog import Catalog


def slice_drifts(snapshot: Snapshot, catalog: Catalog, policy: DriftPolicy, now: datetime) -> tuple[Drift, ...]:
    """The nodes that became ready at `now` and differ from their prediction with today's catalog.

    Only predicted drivers are compared: others do not depend on the type. Device taints are ignored, since a broken
    device is no evidence against its type.
    """
    ready = [provisioned for provisioned in snapshot.provisioned if became_ready(provisioned, now)]
    nodes = OwnNodes(snapshot.nodes if ready else ())
    found = []
    for provisioned in ready:
        node = nodes.of(provisioned)
        unified = None if node is None else _compared(provisioned, snapshot, catalog)
        if node is None or unified is None or unified.equal:
            continue
        avoided = _avoided(policy, unified, node, provisioned, snapshot)
        found.append(Drift(provisioned, unified.differences, avoided=avoided))
    return tuple(found)


def _compared(provisioned: ProvisionedNode, snapshot: Snapshot, catalog: Catalog) -> Unified | None:
    """The predicted and the published slices; None if nothing can be predicted, or nothing was published."""
    expected = as_coming(provisioned, snapshot, catalog)
    drivers = {slice_.driver for slice_ in expected.slices} if expected else set()
    published = [
        _without_taints(slice_)
        for slice_ in snapshot.slices
        if slice_.reach.node_name == provisioned.node_name and slice_.driver in drivers
    ]
    return unify(expected.slices, published) if expected and published else None


def _avoided(
    policy: DriftPolicy, unified: Unified, node: Node, provisioned: ProvisionedNode, snapshot: Snapshot
) -> bool:
    impact = matters(
        unified,
        _claims_for(provisioned, snapshot),
        node=node,
        classes=snapshot.classes,
        profile=snapshot.profile,
    )
    return quarantines(policy, unified, [impact])


def _claims_for(provisioned: ProvisionedNode, snapshot: Snapshot) -> Iterator[ResourceClaim]:
    """The claims of the pods that it was bought for, each shared claim once."""
    bought_for = set(provisioned.pods)
    keys = dict.fromkeys(key for pod in snapshot.pods if pod.key in bought_for for key in claim_keys(pod))
    return (snapshot.claims[key] for key in keys if key in snapshot.claims)


def _without_taints(slice_: ResourceSlice) -> ResourceSlice:
    return replace(slice_, devices=tuple(replace(device, taints=()) for device in slice_.devices))
