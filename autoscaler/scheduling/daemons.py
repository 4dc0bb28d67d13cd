"""The DaemonSet pods of a node: they take resources and ports before all other pods."""

from __future__ import annotations

from collections.abc import Iterable

from autoscaler.model.node import Node
from autoscaler.model.pod import Pod
from autoscaler.model.reason import Code, Reason, Subject
from autoscaler.model.snapshot import DaemonSet
from autoscaler.scheduling.node_filters import selects_node
from autoscaler.scheduling.node_state import NodeState
from autoscaler.scheduling.resources import pod_requests, units
from instance_catalog.dataclass import replace
from instance_catalog.kubernetes.taint import Toleration

# The tolerations that the DaemonSet controller adds to every pod (pkg/controller/daemon/util/daemonset_util.go, v1.36).
_ALWAYS_TOLERATED = tuple(
    Toleration(f"node.kubernetes.io/{key}", "Exists", "", effect)
    for key, effect in (
        ("not-ready", "NoExecute"),
        ("unreachable", "NoExecute"),
        ("disk-pressure", "NoSchedule"),
        ("memory-pressure", "NoSchedule"),
        ("pid-pressure", "NoSchedule"),
        ("unschedulable", "NoSchedule"),
    )
)


def daemon_pods(node: Node, daemon_sets: Iterable[DaemonSet]) -> tuple[Pod, ...]:
    """One pod, bound to the node, for every DaemonSet that runs there and whose pod has room.

    One that requests more than the node has left, after those of higher priority, stays Pending in the cluster, and so
    does one with scheduling gates: these must not keep all other pods from such nodes.
    """
    wanted = [one for one in daemon_sets if runs_on(one, node) and not one.pod.scheduling_gates]
    left = {resource: units(resource, amount) for resource, amount in node.allocatable.items()}
    placed = set()
    for daemon_set in sorted(wanted, key=lambda one: (-one.pod.priority, one.key)):
        requests = {resource: amount for resource, amount in pod_requests(daemon_set.pod).items() if amount > 0}
        if all(amount <= left.get(resource, 0) for resource, amount in requests.items()):
            left.update({resource: left[resource] - amount for resource, amount in requests.items()})
            placed.add(daemon_set.key)
    return tuple(
        replace(daemon_set.pod, name=f"{daemon_set.name}-{node.name}", node_name=node.name)
        for daemon_set in wanted
        if daemon_set.key in placed
    )


def runs_on(daemon_set: DaemonSet, node: Node) -> bool:
    """True if the DaemonSet controller would create a pod for the node."""
    return not why_not_on(daemon_set, node)


def why_not_on(daemon_set: DaemonSet, node: Node) -> tuple[Reason, ...]:
    """The reasons why the DaemonSet controller would create no pod for the node; () if it would."""
    refused = selects_node(daemon_set.pod, NodeState(node))
    if refused:
        return refused
    tolerations = (*daemon_set.pod.tolerations, *_ALWAYS_TOLERATED)
    subject = Subject("DaemonSet", daemon_set.key)
    return tuple(
        Reason.of(Code.TAINT_NOT_TOLERATED, subject, key=taint.key, value=taint.value, effect=taint.effect)
        for taint in node.taints
        if taint.effect in ("NoSchedule", "NoExecute") and not any(t.tolerates(taint) for t in tolerations)
    )
