"""A group's future node as Kubernetes' own bytes: the Node, and the ResourceSlices of its drivers.

Values that exist only at run time are placeholders, as in printed predictions: equal where they will be equal. Only
slices of the node itself are sent, because Cluster Autoscaler refuses templates with others.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from autoscaler.externalgrpc.exemplars import Exemplar
from autoscaler.externalgrpc.kubernetes_types import NODE, RESOURCE_SLICE
from autoscaler.externalgrpc.node_groups import EXEMPLAR_TAINT
from autoscaler.externalgrpc.wire import Json, encode
from autoscaler.kube.writing.slices import slice_manifest
from autoscaler.model.node import Node
from autoscaler.model.snapshot import Snapshot
from autoscaler.planning.supply.candidates import Candidate
from autoscaler.planning.supply.hypothetical import template_of
from instance_catalog.kubernetes import labels
from instance_catalog.prediction.concrete import make_concrete

# Cluster Autoscaler gives the template a name of its own.
NAME = "foreslice-template"
_READY_FOR: Final = timedelta(minutes=5)


def template_bytes(candidate: Candidate, snapshot: Snapshot) -> tuple[bytes, tuple[bytes, ...]]:
    """The node of a candidate, and its slices."""
    template = template_of(candidate, snapshot, name=NAME)
    unit = candidate.block.name if candidate.block else ""
    concrete = make_concrete(template.slices, node_name=NAME, seed=NAME, unit=unit)
    own = (slice_ for slice_ in concrete if slice_.reach.node_name == NAME)
    return encode(NODE, node_manifest(template.node)), tuple(slice_bytes(slice_manifest(slice_)) for slice_ in own)


def exemplar_of(group: str, candidate: Candidate, snapshot: Snapshot, *, name: str, now: datetime) -> Exemplar | None:
    """A Node of the candidate that Cluster Autoscaler treats as running; None if it has no slices.

    Ready for longer than the minute that it waits; with a taint that keeps pods away and that it removes from
    templates; never removed by it, nor given a load balancer's traffic.
    """
    template = template_of(candidate, snapshot, name=name)
    unit = candidate.block.name if candidate.block else ""
    concrete = make_concrete(template.slices, node_name=name, seed=name, unit=unit)
    mark = {labels.EXEMPLAR: name}
    slices = [slice_manifest(slice_) for slice_ in concrete if slice_.reach.node_name == name]
    for manifest in slices:
        manifest["metadata"]["labels"] = mark
    node = {"apiVersion": "v1", "kind": "Node", **node_manifest(template.node)}
    node["metadata"]["labels"] |= {**mark, labels.NO_LOAD_BALANCER: "true"}
    node["metadata"]["annotations"] = {labels.CA_SCALE_DOWN_DISABLED: "true"}
    node["spec"]["taints"].append({"key": EXEMPLAR_TAINT.key, "effect": EXEMPLAR_TAINT.effect})
    for condition in node["status"]["conditions"]:
        condition |= {"lastHeartbeatTime": _timestamp(now), "lastTransitionTime": _timestamp(now - _READY_FOR)}
    return Exemplar(group, name, node, tuple(slices)) if slices else None


def _timestamp(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def slice_bytes(manifest: Json) -> bytes:
    """A ResourceSlice from its manifest."""
    return encode(RESOURCE_SLICE, {"metadata": manifest["metadata"], "spec": manifest["spec"]})


def node_manifest(node: Node) -> Json:
    """The Node as its kubelet would register it, ready and without pods."""
    resources = {name: str(amount) for name, amount in sorted(node.allocatable.items())}
    status: Json = {
        "capacity": resources,
        "allocatable": resources,
        "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
        "nodeInfo": {
            "operatingSystem": node.labels.get(labels.OPERATING_SYSTEM, "linux"),
            "architecture": node.labels.get(labels.ARCHITECTURE, ""),
        },
    }
    if node.declared_features:
        status["declaredFeatures"] = list(node.declared_features)
    taints = [{"key": taint.key, "value": taint.value, "effect": taint.effect} for taint in node.taints]
    metadata = {"name": node.name, "labels": dict(sorted(node.labels.items()))}
    return {"metadata": metadata, "spec": {"taints": taints}, "status": status}
