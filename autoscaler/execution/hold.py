"""Holds the nodes of a prepaid block, and announces the block's end to the pods on them in time.

A held node is marked so that another autoscaler leaves it alone. At the notice, node and pods get the time at which the
machine ends, so that jobs can write a checkpoint; if that time moves, the notice is withdrawn. Repeating any of this
changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import datetime
from functools import partial

from autoscaler.cluster.api import ConflictError, KubernetesApi, NotFoundError, same_uid
from autoscaler.cluster.isolation import Isolation, raise_first
from autoscaler.cluster.resources import NODES, PODS
from autoscaler.model.node import Node
from autoscaler.model.pod import Pod
from instance_catalog.kubernetes.labels import CA_SCALE_DOWN_DISABLED, CAPACITY_ENDS_AT, HELD


def hold(api: KubernetesApi, node: Node) -> None:
    """Marks a node so that no other autoscaler scales it down."""
    _annotate_node(api, node, {CA_SCALE_DOWN_DISABLED: "true", HELD: "true"})


def release(api: KubernetesApi, node: Node) -> None:
    """Removes Foreslice's marks from a node that is not held any more."""
    if HELD in node.annotations:
        _annotate_node(api, node, {CA_SCALE_DOWN_DISABLED: None, HELD: None})


def give_notice(api: KubernetesApi, node: Node, pods: Iterable[Pod], ends_at: datetime) -> None:
    """Annotates the node and the pods on it with the time at which the machine ends.

    All of them are tried, then the first error is raised: every other pod has the time to write a checkpoint.
    """
    _announce(api, node, pods, ends_at.strftime("%Y-%m-%dT%H:%M:%SZ"))


def withdraw_notice(api: KubernetesApi, node: Node, pods: Iterable[Pod]) -> None:
    """Removes the annotations from a node and its pods: the end was postponed. Makes no request if there are none."""
    if CAPACITY_ENDS_AT in node.annotations or any(CAPACITY_ENDS_AT in pod.annotations for pod in pods):
        _announce(api, node, pods, None)


def _announce(api: KubernetesApi, node: Node, pods: Iterable[Pod], moment: str | None) -> None:
    isolation = Isolation(api, logs=False)
    attempts = [isolation.attempt("Node", node.name, partial(_annotate_node, api, node, {CAPACITY_ENDS_AT: moment}))]
    for pod in pods:
        if pod.annotations.get(CAPACITY_ENDS_AT) != moment:
            attempts.append(isolation.attempt("Pod", pod.name, partial(_annotate_pod, api, pod, moment)))
    raise_first(attempts)


def _annotate_pod(api: KubernetesApi, pod: Pod, moment: str | None) -> None:
    wanted = {"annotations": {CAPACITY_ENDS_AT: moment}}
    with suppress(ConflictError, NotFoundError):  # it finished in the meantime; another one may have its name
        api.patch(PODS, pod.name, {"metadata": wanted | same_uid(pod.uid)}, namespace=pod.namespace)


def _annotate_node(api: KubernetesApi, node: Node, wanted: Mapping[str, str | None]) -> None:
    """Set annotations, or remove those that shall be None; nothing is written when they are so already."""
    if all(node.annotations.get(key) == value for key, value in wanted.items()):
        return
    try:
        api.patch(NODES, node.name, {"metadata": {"annotations": dict(wanted)} | same_uid(node.uid)})
    except NotFoundError:
        return  # the node left in the meantime; the next reconcile sees it
