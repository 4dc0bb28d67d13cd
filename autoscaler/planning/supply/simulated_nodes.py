"""Pods that want a node which KWOK simulates, or whose GPUs are simulated."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from autoscaler.model.pod import Pod
from autoscaler.model.snapshot import Snapshot
from autoscaler.planning.supply.drivers import PUBLISHING_TEMPLATES
from instance_catalog.kubernetes import labels

# KWOK documentation, "Manage Nodes and Pods" (0.7): the label of its nodes, beside which they have the taint KWOK_NODE.
_OF_KWOK: Final = ("type", "kwok")


def wants_simulated_node(pod: Pod, snapshot: Snapshot) -> str:
    """The labels in the pod's selector that only simulated nodes, or nodes with simulated GPUs, have; nothing if a pool
    launches such nodes."""
    if any(pool.node_template.kind in PUBLISHING_TEMPLATES or is_simulated(pool.labels) for pool in snapshot.pools):
        return ""
    if pod.requires_label(labels.SIMULATED_GPUS):
        return labels.SIMULATED_GPUS
    key, value = _OF_KWOK
    tolerates = any(one.key == labels.KWOK_NODE for one in pod.tolerations)
    return f"{key}={value}" if tolerates and (value,) in pod.required_values({key}) else ""


def is_simulated(of_node: Mapping[str, str]) -> bool:
    """True if a node with these labels is simulated, or its GPUs are."""
    key, value = _OF_KWOK
    return labels.SIMULATED_GPUS in of_node or of_node.get(key) == value
