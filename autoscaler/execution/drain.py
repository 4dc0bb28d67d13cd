"""Draining: no new pods, then the Eviction API for the pods on the node, until it is empty or its time is up.

Only the reasons that lifecycle/leaving.py names evict; for all others a node is left alone while pods run there. Pods
of DaemonSets stay: they belong to the node. The eviction of a pod that a PodDisruptionBudget protects is tried again at
each reconcile. A marked pod is left alone as long as possible: if the machine ends anyway, until just enough time is
left to stop it properly. At the deadline the block's policy decides, and the blocked pods are named.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from functools import partial
from typing import Final

from autoscaler.cluster.api import BlockedError, ConflictError, KubernetesApi, NotFoundError, list_all, same_uid
from autoscaler.cluster.isolation import Isolation, Trouble, raise_first
from autoscaler.cluster.resources import NODES, PODS
from autoscaler.kube.pod import parse_pod
from autoscaler.lifecycle.movable import by_namespace, mark_of_node, mark_of_pod, obstacle, unmovable
from autoscaler.lifecycle.reflect import occupies
from autoscaler.model.node import Node
from autoscaler.model.pod import Pod
from autoscaler.model.pod_disruption_budget import PodDisruptionBudget
from autoscaler.model.provisioned_node import ProvisionedNode
from instance_catalog.dataclass import dataclass
from instance_catalog.kubernetes.labels import DRAINING_TAINT

# Time for the next reconcile, and for the kubelet to report that the pod has ended.
_MARGIN: Final = timedelta(minutes=2)
# So long PodDisruptionBudgets may delay a drain that only saves money, before it is taken back.
_PATIENCE: Final = timedelta(minutes=15)
# So long its pods may take to stop: whoever writes a grace period does not decide for how long all other moves wait.
_LONGEST_STOP: Final = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Drained:
    """The progress of a drain: pods that are still on the node, those of them that a budget protects, marked ones, and
    those that could not be evicted for another reason."""

    remaining: tuple[str, ...] = ()
    blocked: tuple[str, ...] = ()
    marked: tuple[str, ...] = ()
    refused: tuple[Trouble, ...] = ()


def cordon(api: KubernetesApi, node: Node) -> bool:
    """Keeps new pods away, unless that was done before or the node is gone. Returns True once a watch shows it.

    Once one watch shows the taint, kube-scheduler's does at about the same time: it assigns no more pods. Those that it
    assigned before may still start, also minutes later, while volumes or devices are prepared for them.
    """
    if is_closed(node):
        return True
    try:
        found = api.get(NODES, node.name)
        taints = found.get("spec", {}).get("taints", [])
        # A predecessor may have been killed before the watch showed its write.
        if any(taint["key"] == DRAINING_TAINT for taint in taints):
            return False
        wanted = [*taints, {"key": DRAINING_TAINT, "effect": "NoSchedule"}]
        # The uid: another machine may have registered by that name since the node was seen.
        version = {"resourceVersion": found["metadata"]["resourceVersion"]} | same_uid(node.uid)
        api.patch(NODES, node.name, {"metadata": version, "spec": {"taints": wanted}})
    except NotFoundError:
        pass
    return False


def is_closed(node: Node | None) -> bool:
    """True if it accepts no more pods, by the last watch event; None: there is no Node."""
    return node is None or any(taint.key == DRAINING_TAINT for taint in node.taints)


def uncordon(api: KubernetesApi, node: Node) -> None:
    """Removes Foreslice's taint from a node that stays after all; makes no request if it has none."""
    if not is_closed(node):
        return
    with suppress(NotFoundError):
        found = api.get(NODES, node.name)
        taints = found.get("spec", {}).get("taints", [])
        kept = [taint for taint in taints if taint["key"] != DRAINING_TAINT]
        if kept != taints:
            version = {"resourceVersion": found["metadata"]["resourceVersion"]} | same_uid(node.uid)
            api.patch(NODES, node.name, {"metadata": version, "spec": {"taints": kept}})


def evict_all(api: KubernetesApi, pods: Iterable[Pod], *, ends_at: datetime | None, now: datetime) -> Drained:
    """Requests the eviction of every pod that has to leave. `ends_at`: when the machine ends in any case.

    All of them are tried: a policy that refuses the eviction of one must not take time to stop from the others.
    """
    isolation = Isolation(api, logs=False)
    remaining, blocked, marked, refused = list[str](), list[str](), list[str](), list[Trouble]()
    for pod in pods:
        remaining.append(pod.key)
        if pod.deleting:
            continue
        if mark_of_pod(pod) and (ends_at is None or now < ends_at - _stopping(pod)):
            marked.append(pod.key)
            continue
        trouble = isolation.attempt("Pod", pod.name, partial(_evict, api, pod), namespace=pod.namespace)
        match trouble and trouble.error:
            case BlockedError():
                blocked.append(pod.key)
            case NotFoundError():
                remaining.pop()
            case ConflictError():
                continue  # another pod has its name now; the next reconcile shows whether that one is here
            case _ if trouble is not None:
                refused.append(trouble)
    return Drained(tuple(remaining), tuple(blocked), tuple(marked), tuple(refused))


def _evict(api: KubernetesApi, pod: Pod) -> None:
    api.evict(pod.name, namespace=pod.namespace, uid=pod.uid)


def may_all_move(api: KubernetesApi, node: Node, budgets: Iterable[PodDisruptionBudget]) -> bool:
    """True if every pod that is on the node now may be moved to save money."""
    return obstacle(occupants_now(api, node.name), by_namespace(budgets)) is None


def stay_after_all(node: ProvisionedNode, found: Node | None, pods: Sequence[Pod], now: datetime) -> bool:
    """True if a node that is removed only to save money has a mark by now, or pods on it may not be moved, could not be
    for a while, or were created since the drain began: the taint does not keep these away, so they would come back
    after each eviction."""
    if found is not None and mark_of_node(found):
        return True
    began = node.phase_since
    late = began is not None and now >= began + _PATIENCE
    endless = began is not None and now >= began + _PATIENCE + _LONGEST_STOP
    back = [pod for pod in pods if began is not None and pod.created >= began.timestamp()]
    if back or (endless and pods):
        return True
    return any(not pod.deleting and (late or unmovable(pod) is not None) for pod in pods)


def _stopping(pod: Pod) -> timedelta:
    """The time that a pod may take to stop."""
    return timedelta(seconds=pod.termination_grace_seconds) + _MARGIN


def occupants(pods: Iterable[Pod]) -> dict[str, list[Pod]]:
    """The pods that keep a node from being empty, by its name: bound there, not finished, and not of a DaemonSet."""
    found: dict[str, list[Pod]] = {}
    for pod in pods:
        if occupies(pod) and pod.node_name is not None:
            found.setdefault(pod.node_name, []).append(pod)
    return found


def occupants_now(api: KubernetesApi, node_name: str) -> Sequence[Pod]:
    """The pods that keep this node from being empty, read from the API server: a watch of pods may lag.

    Without a resourceVersion the list is read from a quorum. "" is the name of no node.
    """
    if not node_name:
        return ()
    found, _ = list_all(api, PODS, fields={"spec.nodeName": node_name})
    return occupants(map(parse_pod, found)).get(node_name, ())


def raise_obstacles(node: ProvisionedNode, drained: Drained) -> None:
    """The reasons why a drain waits, each with the step that a person can take. BlockedError, or what refused an
    eviction."""
    raise_first(drained.refused)
    why, steps = [], []
    if drained.blocked:
        why.append(f"PodDisruptionBudgets protect {', '.join(drained.blocked)}")
        steps.append("allow a disruption in the PodDisruptionBudgets")
    if drained.marked:
        why.append(f"marks protect {', '.join(drained.marked)}")
        steps.append("take the do-not-disrupt or safe-to-evict annotation away")
    if why:
        message = f"node {node.node_name} cannot be drained: {'; '.join(why)}"
        raise BlockedError(message, next_step=f"{', '.join(steps)}, or delete the pods")
