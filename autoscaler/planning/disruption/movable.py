"""Which running pods may be moved to save money, and why others stay.

What a controller creates again and what serves others loses nothing but time: pods of ReplicaSets, StatefulSets and
ReplicationControllers. Others may lose their work, and move only if they say how much of it that is at most. A gang is
never moved, since all of its pods would have to start again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from autoscaler.lifecycle.marks import mark_of_pod
from autoscaler.model.pod import Pod
from autoscaler.model.pod_disruption_budget import PodDisruptionBudget
from autoscaler.model.reason import Code, Fact, Reason
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes import labels

_SERVING: Final = ("ReplicaSet", "ReplicationController", "StatefulSet")


def obstacle(pods: Iterable[Pod], budgets: Sequence[PodDisruptionBudget]) -> Reason | None:
    """Why the first of a node's pods that cannot be moved stays; None where all may be evicted now."""
    return next((found for pod in pods if (found := _stays(pod, budgets)) is not None), None)


def deletion_cost(pod: Pod) -> int:
    """What its owner says about the cost of deleting it, relative to its siblings; 0 where that is not readable
    (controller.kubernetes.io/pod-deletion-cost)."""
    text = pod.annotations.get(labels.POD_DELETION_COST, "0")
    readable = text.isascii() and text.removeprefix("-").isdecimal()
    return int(text) if readable and len(text) <= len("-2147483648") else 0


def _stays(pod: Pod, budgets: Sequence[PodDisruptionBudget]) -> Reason | None:
    if pod.deleting:
        return Reason.of(Code.POD_ENDING, pod=pod.key)
    if mark := mark_of_pod(pod):
        return _because(pod, mark=mark)
    if pod.gang is not None or pod.pod_group:
        return _because(pod, gang=pod.gang.key if pod.gang else f"{pod.namespace}/{pod.pod_group}")
    controller = pod.owner.partition("/")[0]
    if not controller:
        return _because(pod)
    if controller not in _SERVING and pod.checkpoint_interval is None:
        return _because(pod, controller=controller)
    if pod.unsupported:
        return _because(pod, unsupported=pod.unsupported[0])
    protecting = [budget for budget in budgets if budget.protects(pod)]
    if len(protecting) > 1:
        return _because(pod, budgets=len(protecting))
    if protecting and protecting[0].allowed < 1:
        return _because(pod, budget=protecting[0].name)
    return None


def _because(pod: Pod, **facts: Fact) -> Reason:
    return Reason(Code.PODS_STAY, detail=FrozenMap({"pod": pod.key, **facts}))
