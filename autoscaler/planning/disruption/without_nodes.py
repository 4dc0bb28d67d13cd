"""The cluster while some nodes drain, with their pods pending again."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from autoscaler.model.node import Node
from autoscaler.model.pod import Pod
from autoscaler.model.provisioned_node import Phase, ProvisionedNode
from autoscaler.model.requests import NOTHING
from autoscaler.model.resource_claim import ResourceClaim
from autoscaler.model.snapshot import Snapshot
from autoscaler.planning.demand.demand import claim_keys
from instance_catalog.dataclass import replace
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.labels import DRAINING_TAINT
from instance_catalog.kubernetes.taint import Taint


def without_nodes(
    snapshot: Snapshot, nodes: Collection[ProvisionedNode], moved: Sequence[Pod], first: Collection[str] = ()
) -> Snapshot:
    """The snapshot with these nodes draining, and the pods of `moved`, which run on them, pending.

    The machines still count against limits, because the launches for the pods happen before they end. The Nodes take no
    pods, but kube-scheduler still counts them as domains until they are gone: with a topology spread constraint a pod
    may not go to another node because of the empty one that it leaves. Pods with keys in
    `first` are placed before the others. Claims that are reserved for nobody else are not allocated any more, as the
    ResourceClaim controller releases them after the pods are gone. Those of other consumers keep their devices: pods of
    DaemonSets, which no drain evicts, and objects that are no pods, which the controller does not know.
    """
    names, ended = {node.node_name for node in nodes}, {node.name for node in nodes}
    keys = {pod.key for pod in moved}
    there = (pod for pod in snapshot.pods if pod.key in keys or pod.node_name not in names)
    pods = tuple(as_pending(pod) if pod.key in keys else pod for pod in there)
    if first:
        pods = tuple(sorted(pods, key=lambda pod: pod.key not in first))
    return replace(
        snapshot,
        pods=pods,
        claims=_freed(snapshot, moved),
        nodes=tuple(_tainted(node) if node.name in names else node for node in snapshot.nodes),
        slices=tuple(slice_ for slice_ in snapshot.slices if slice_.reach.node_name not in names),
        attachments=tuple(found for found in snapshot.attachments if found.node not in names),
        provisioned=tuple(
            replace(node, phase=Phase.DRAINING) if node.name in ended else node for node in snapshot.provisioned
        ),
    )


def _tainted(node: Node) -> Node:
    others = tuple(taint for taint in node.taints if taint.key != DRAINING_TAINT)
    return replace(node, taints=(*others, Taint(DRAINING_TAINT)))


def as_pending(pod: Pod) -> Pod:
    """The pod as its controller creates it again."""
    waiting = replace(pod, node_name=None, nominated_node=None, phase="Pending", unscheduled="", unscheduled_why="")
    return replace(waiting, claim_amounts=NOTHING) if pod.claim_amounts else waiting


def _freed(snapshot: Snapshot, moved: Sequence[Pod]) -> FrozenMap[str, ResourceClaim]:
    """The claims without the moved pods. A claim that kube-scheduler made for an extended resource of one of them is
    made again for the pod's next node."""
    named = {key for pod in moved for key in claim_keys(pod)}
    uids = {pod.uid for pod in moved if pod.uid}
    found: dict[str, ResourceClaim] = {}
    for key, claim in snapshot.claims.items():
        if claim.controller not in uids and key not in named:
            found[key] = claim
            continue
        left = tuple(consumer for consumer in claim.reserved_for if consumer.uid not in uids)
        if left:  # whoever owns it: it keeps its devices, and a finalizer keeps it
            found[key] = replace(claim, reserved_for=left)
        elif key in named:
            found[key] = replace(claim, allocation=None, reserved_for=(), device_conditions=FrozenMap())
    return FrozenMap(found)
