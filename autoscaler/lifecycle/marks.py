"""Marks on pods and nodes that ask autoscalers to leave them alone: ours, Karpenter's, Cluster Autoscaler's.

A mark keeps a node from going because we want it to. It cannot keep a machine that its provider takes back.
"""

from __future__ import annotations

from autoscaler.model.node import Node
from autoscaler.model.pod import Pod
from instance_catalog.kubernetes import labels


def mark_of_pod(pod: Pod) -> str:
    """The annotation that asks not to evict the pod; "" without one.

    Karpenter's may also be a duration that counts from the pod's start. When that was is not known here, so any value
    but "false" protects.
    """
    if pod.annotations.get(labels.DO_NOT_DISRUPT) == "true":
        return labels.DO_NOT_DISRUPT
    if pod.annotations.get(labels.KARPENTER_DO_NOT_DISRUPT, "false") != "false":
        return labels.KARPENTER_DO_NOT_DISRUPT
    return labels.CA_SAFE_TO_EVICT if pod.annotations.get(labels.CA_SAFE_TO_EVICT) == "false" else ""


def mark_of_node(node: Node) -> str:
    """The annotation that asks not to remove the node; "" without one.

    While a node is held we put Cluster Autoscaler's mark there ourselves; that one does not bind us.
    """
    marks = [labels.DO_NOT_DISRUPT, labels.KARPENTER_DO_NOT_DISRUPT]
    if node.annotations.get(labels.HELD) != "true":
        marks.append(labels.CA_SCALE_DOWN_DISABLED)
    return next((mark for mark in marks if node.annotations.get(mark) == "true"), "")
