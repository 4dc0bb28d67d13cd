"""The running pods that may be moved to save money, and the reasons why others stay. For planning and execution.

Pods that a controller creates again and that serve others lose only time: those of ReplicaSets, StatefulSets and
ReplicationControllers. Others may lose their work, and move only if an annotation limits the loss. A gang is never
moved, because all of its pods would have to start again. A pod that tolerates the taint of a drain is not moved either:
kube-scheduler may bind the pod that replaces it to the same node. A pod that Kueue admits by itself loses its quota
when it ends, and another workload may get it.

Annotations on pods and nodes prevent autoscalers from removing them: Foreslice's, Karpenter's, Cluster Autoscaler's.
They prevent removals that only Foreslice decides on. They cannot keep a machine that its provider takes back.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, TypeAlias

from autoscaler.model.node import Node
from autoscaler.model.pod import Pod
from autoscaler.model.pod_disruption_budget import PodDisruptionBudget
from autoscaler.model.reason import Code, Fact, Reason
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes import labels
from instance_catalog.kubernetes.taint import Taint

_SERVING: Final = ("ReplicaSet", "ReplicationController", "StatefulSet")
# Each pod is compared with all budgets of its namespace, whose number its tenants choose.
_MOST_BUDGETS: Final = 500
_DRAINING: Final = Taint(labels.DRAINING_TAINT)

BudgetsByNamespace: TypeAlias = Mapping[str, Sequence[PodDisruptionBudget]]


def by_namespace(budgets: Iterable[PodDisruptionBudget]) -> BudgetsByNamespace:
    """The budgets by namespace: a cluster may have thousands."""
    found: dict[str, list[PodDisruptionBudget]] = {}
    for budget in budgets:
        found.setdefault(budget.namespace, []).append(budget)
    return found


def obstacle(pods: Sequence[Pod], budgets: BudgetsByNamespace) -> Reason | None:
    """The reason why the first of a node's pods that cannot be moved stays; None if all may be evicted now."""
    for pod in pods:
        if (why := unmovable(pod)) is not None:
            return why
    shared = {key for key, count in Counter(key for pod in pods for key in set(_bound_to(pod))).items() if count > 1}
    return next((why for pod in pods if (why := _protected(pod, budgets, shared)) is not None), None)


def unmovable(pod: Pod) -> Reason | None:
    """The reason why a pod is not moved, whatever its PodDisruptionBudgets allow."""
    if pod.deleting:
        return Reason.of(Code.POD_ENDING, pod=pod.key)
    if mark := mark_of_pod(pod):
        return _because(pod, mark=mark)
    if any(toleration.tolerates(_DRAINING) for toleration in pod.tolerations):
        return _because(pod, tolerates=_DRAINING.key)
    if pod.gang is not None or pod.pod_group:
        return _because(pod, gang=pod.gang.key if pod.gang else f"{pod.namespace}/{pod.pod_group}")
    if group := _group_of(pod):
        return _because(pod, gang=group)
    if pod.labels.get(labels.KUEUE_MANAGED) == "true":
        return _because(pod, admitted_by="Kueue")
    controller = pod.owner.partition("/")[0]
    if not controller:
        return _because(pod)
    if controller not in _SERVING and pod.checkpoint_interval is None:
        return _because(pod, controller=controller)
    return _because(pod, unsupported=pod.unsupported[0]) if pod.unsupported else None


def _group_of(pod: Pod) -> str:
    """The group of a LeaderWorkerSet that starts again as a whole; "" if there is none, or it is one pod.

    By default each restart of a pod restarts its group (api/leaderworkerset/v1, RestartPolicy), and always one of the
    leader, which owns the StatefulSet of its workers. The policy is not visible on the pods.
    """
    if labels.LWS_GROUP_KEY not in pod.labels or pod.annotations.get(labels.LWS_SIZE) == "1":
        return ""
    name = pod.labels.get(labels.LWS_NAME, "")
    return f"{pod.namespace}/{name}-{pod.labels.get(labels.LWS_GROUP_INDEX, '')}"


def deletion_cost(pod: Pod) -> int:
    """The cost of deleting the pod relative to its siblings, from its annotation; 0 if that cannot be read
    (controller.kubernetes.io/pod-deletion-cost)."""
    text = pod.annotations.get(labels.POD_DELETION_COST, "0")
    readable = text.isascii() and text.removeprefix("-").isdecimal()
    return int(text) if readable and len(text) <= len("-2147483648") else 0


def mark_of_pod(pod: Pod) -> str:
    """The annotation that prevents the pod's eviction; "" without one.

    Karpenter's may also be a duration that counts from the pod's start, which is unknown here, so any value but "false"
    protects.
    """
    if pod.annotations.get(labels.DO_NOT_DISRUPT) == "true":
        return labels.DO_NOT_DISRUPT
    if pod.annotations.get(labels.KARPENTER_DO_NOT_DISRUPT, "false") != "false":
        return labels.KARPENTER_DO_NOT_DISRUPT
    return labels.CA_SAFE_TO_EVICT if pod.annotations.get(labels.CA_SAFE_TO_EVICT) == "false" else ""


def mark_of_node(node: Node) -> str:
    """The annotation that prevents the node's removal; "" without one.

    Foreslice itself sets Cluster Autoscaler's annotation while it holds a node; in this case it does not count.
    """
    marks = [labels.DO_NOT_DISRUPT, labels.KARPENTER_DO_NOT_DISRUPT]
    if node.annotations.get(labels.HELD) != "true":
        marks.append(labels.CA_SCALE_DOWN_DISABLED)
    return next((mark for mark in marks if node.annotations.get(mark) == "true"), "")


def _protected(pod: Pod, budgets: BudgetsByNamespace, shared: set[str]) -> Reason | None:
    """The reason why its PodDisruptionBudgets keep it. `shared` are objects that several pods of the node use: they
    stay until the last of these has left, which a budget allows only when the first runs again, elsewhere."""
    own = budgets.get(pod.namespace, ())
    if len(own) > _MOST_BUDGETS:
        return _because(pod, crowded=len(own))
    protecting = [budget for budget in own if budget.protects(pod)]
    if not protecting:
        return None
    if len(protecting) > 1:
        return _because(pod, budgets=len(protecting))
    if protecting[0].allowed < 1:
        return _because(pod, budget=protecting[0].name)
    common = sorted(shared.intersection(_bound_to(pod)))
    return _because(pod, shared=common[0], protected_by=protecting[0].name) if common else None


def _bound_to(pod: Pod) -> list[str]:
    """Claims and volumes, as kind and key: they may bind several pods to one node."""
    claims = [f"ResourceClaim {pod.namespace}/{entry.claim}" for entry in pod.claims if entry.claim]
    return claims + [f"PersistentVolumeClaim {pod.namespace}/{name}" for name in pod.volumes]


def _because(pod: Pod, **facts: Fact) -> Reason:
    return Reason(Code.PODS_STAY, detail=FrozenMap({"pod": pod.key, **facts}))
