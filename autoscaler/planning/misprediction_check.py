"""Checks whether pods that their real nodes refuse would fit on the predicted nodes. Pure.

After the launch, the owner of a pod can change its requests, its labels, or add another pod with anti-affinity. Such
changes are no evidence against the node's type. So a node is mispredicted only if the predicted node, in the current
state of the cluster, takes the pods that the node was bought for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set

from autoscaler.lifecycle.quarantine import Misprediction
from autoscaler.lifecycle.reflect import occupies
from autoscaler.model.plan import Plan
from autoscaler.model.pod import Pod
from autoscaler.model.provisioned_node import Phase, ProvisionedNode
from autoscaler.model.requests import NOTHING
from autoscaler.model.resource_claim import ResourceClaim
from autoscaler.model.snapshot import Snapshot
from autoscaler.planning.demand.demand import claim_keys
from instance_catalog.dataclass import replace
from instance_catalog.frozen_map import FrozenMap


def confirmed_mispredictions(
    found: Sequence[Misprediction], snapshot: Snapshot, make: Callable[[Snapshot], Plan]
) -> tuple[Misprediction, ...]:
    """The mispredictions for which the predicted node takes all pods that the real one was bought for. `make` makes
    a plan."""
    if not found:
        return ()
    nodes = {entry.node for entry in found}
    names = {node.node_name for node in nodes}
    namespaces = {entry.pod.partition("/")[0] for entry in found}
    plan = make(_as_predicted(snapshot, nodes, namespaces))
    placed = {placement.pod for placement in plan.placements if placement.node in names}
    there = {pod.key for pod in snapshot.pods if pod.node_name is None or pod.node_name in names}
    return tuple(entry for entry in found if there & {*entry.node.pods} <= placed)


def _as_predicted(snapshot: Snapshot, nodes: Set[ProvisionedNode], namespaces: Set[str]) -> Snapshot:
    """The snapshot as if these nodes had not registered yet, with their pods pending.

    Other pending pods remain only if they are in the same namespaces: pods of other namespaces share no claim or gang.
    """
    names = {node.node_name for node in nodes}
    gone = {(slice_.driver, slice_.pool.name) for slice_ in snapshot.slices if slice_.reach.node_name in names}
    pods = tuple(
        _pending(pod) if pod.node_name in names else pod
        for pod in snapshot.pods
        if (occupies(pod) if pod.node_name in names else pod.node_name or pod.namespace in namespaces)
    )
    moved = {key for pod in pods if pod.node_name is None for key in claim_keys(pod)}
    claims = snapshot.claims.items()
    return replace(
        snapshot,
        nodes=tuple(node for node in snapshot.nodes if node.name not in names),
        slices=tuple(slice_ for slice_ in snapshot.slices if slice_.reach.node_name not in names),
        pods=pods,
        claims=FrozenMap({key: _free(claim, gone) if key in moved else claim for key, claim in claims}),
        provisioned=tuple(
            replace(node, phase=Phase.LAUNCHED) if node in nodes else node for node in snapshot.provisioned
        ),
    )


def _pending(pod: Pod) -> Pod:
    return replace(pod, node_name=None, phase="Pending", claim_amounts=NOTHING)


def _free(claim: ResourceClaim, pools: Set[tuple[str, str]]) -> ResourceClaim:
    """The claim without an allocation of devices in these pools (driver, name)."""
    if claim.allocation and any((device.driver, device.pool) in pools for device in claim.allocation.devices):
        return replace(claim, allocation=None, reserved_for=())
    return claim
