"""Pods with further networks, which Multus attaches: a plan knows nothing of the networks of its nodes."""

from __future__ import annotations

from collections.abc import Iterator

from autoscaler.lint.advice import surprise
from autoscaler.model.plan import Plan
from autoscaler.model.snapshot import Snapshot
from instance_catalog.diagnostic import Diagnostic
from instance_catalog.kubernetes.labels import MULTUS_NETWORKS


def attached_networks(snapshot: Snapshot, plan: Plan) -> Iterator[Diagnostic]:
    """The first pod on a new node that names networks for Multus, with the number of others."""
    placed = {key for node in plan.launches for key in node.pods}
    found = [pod for pod in snapshot.pods if pod.key in placed and pod.annotations.get(MULTUS_NETWORKS, "").strip()]
    for pod in found[:1]:
        yield surprise(
            f"Pod {pod.key}",
            ("metadata", "annotations"),
            f"names networks by {MULTUS_NETWORKS}: without Multus on the new node it starts with the cluster's "
            "network alone, and without the NetworkAttachmentDefinitions that it names it does not start",
            "install Multus and its networks on such nodes, or drop the annotation",
            pod.origin,
            others=len(found) - 1,
        )
