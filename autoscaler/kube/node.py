"""Converts Nodes, and back: a hypothetical or simulated node becomes a manifest that an API server accepts."""

from __future__ import annotations

from autoscaler.kube.fields import Fields
from autoscaler.kube.metadata import parse_metadata
from autoscaler.kube.problem import Problems
from autoscaler.kube.selectors import parse_taint
from autoscaler.model.node import Node
from autoscaler.model.origin import CLUSTER, Origin
from instance_catalog.frozen_map import FrozenMap

_IGNORED_SPEC = ("podCIDR", "podCIDRs", "configSource", "externalID")


def parse_node(raw: object, problems: Problems | None = None, *, origin: Origin = CLUSTER) -> Node:
    """A node. Without a Ready condition it counts as ready only if it has no status conditions at all (a manifest)."""
    fields = Fields(raw, problems)
    metadata = parse_metadata(fields)
    fields.ignore("apiVersion", "kind")
    spec, status = fields.child("spec"), fields.child("status")
    spec.ignore(*_IGNORED_SPEC)
    allocatable = status.quantities("allocatable") if "allocatable" in status else status.quantities("capacity")
    conditions = {entry.text("type"): entry.text("status") for entry in status.children("conditions")}
    images = tuple(status.children("images"))
    node = Node(
        name=metadata.name,
        labels=metadata.labels,
        annotations=metadata.annotations,
        taints=tuple(parse_taint(entry) for entry in spec.children("taints")),
        unschedulable=spec.flag("unschedulable"),
        allocatable=allocatable,
        provider_id=spec.text("providerID"),
        ready=conditions.get("Ready") == "True" if conditions else True,
        deleting=metadata.deleting,
        uid=metadata.uid,
        images=FrozenMap({name: image.integer("sizeBytes") for image in images for name in image.texts("names")}),
        created=metadata.created,
        declared_features=status.texts("declaredFeatures"),
        origin=origin,
    )
    if not allocatable:
        status.warn("allocatable", "a node without allocatable resources takes no pods", "add status.allocatable")
    spec.unread()
    fields.unread()
    return node
