"""Draining: no new pods, then the Eviction API for those that are there, until the node is empty or its time is up.

Pods of DaemonSets stay: they belong to the node. A pod that a PodDisruptionBudget protects is asked again at each tick;
at the deadline the block's or pool's policy decides, and what was blocked is named.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from autoscaler.cluster.api import BlockedError, KubernetesApi, NotFoundError
from autoscaler.cluster.resources import NODES
from autoscaler.lifecycle.reflect import occupies
from autoscaler.model.node import Node
from autoscaler.model.pod import Pod
from instance_catalog.labels import DRAINING_TAINT


@dataclass(frozen=True, slots=True)
class Drained:
    """How far a drain got: pods that are still on the node, and those of them whose eviction is blocked (by key)."""

    remaining: tuple[str, ...] = ()
    blocked: tuple[str, ...] = ()


def cordon(api: KubernetesApi, node: Node) -> None:
    """Keep new pods away. Does nothing when that was done before, or when the node is gone."""
    if any(taint.key == DRAINING_TAINT for taint in node.taints):
        return
    try:
        found = api.get(NODES, node.name)
        taints = [*found.get("spec", {}).get("taints", []), {"key": DRAINING_TAINT, "effect": "NoSchedule"}]
        version = found["metadata"]["resourceVersion"]
        api.patch(NODES, node.name, {"metadata": {"resourceVersion": version}, "spec": {"taints": taints}})
    except NotFoundError:
        return


def evict_all(api: KubernetesApi, pods: Iterable[Pod]) -> Drained:
    """Ask for the eviction of every pod that has to leave."""
    remaining, blocked = [], []
    for pod in pods:
        remaining.append(pod.key)
        if pod.deleting:
            continue
        try:
            api.evict(pod.name, namespace=pod.namespace, uid=pod.uid)
        except BlockedError:
            blocked.append(pod.key)
        except NotFoundError:
            remaining.pop()
    return Drained(tuple(remaining), tuple(blocked))


def occupants(pods: Iterable[Pod]) -> dict[str, list[Pod]]:
    """The pods that keep a node from being empty, by its name: bound there, not finished, and not of a DaemonSet."""
    found: dict[str, list[Pod]] = {}
    for pod in pods:
        if occupies(pod) and pod.node_name is not None:
            found.setdefault(pod.node_name, []).append(pod)
    return found
