"""The parts of volumes, their claims and StorageClasses that bind pods to places."""

from __future__ import annotations

from collections.abc import Iterable

from autoscaler.kube.fields import Fields
from autoscaler.kube.metadata import parse_metadata
from autoscaler.kube.problem import Problems, left_by_template
from autoscaler.kube.selectors import parse_label_selector, parse_node_selector
from autoscaler.model.origin import CLUSTER, Origin
from autoscaler.model.storage import (
    PersistentVolume,
    PersistentVolumeClaim,
    StorageCapacity,
    StorageClass,
    VolumeAttachment,
    VolumeBindingMode,
)
from instance_catalog.dataclass import replace
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes import labels as keys
from instance_catalog.kubernetes.node_selector import NodeSelector, NodeSelectorTerm, Requirement
from instance_catalog.kubernetes.quantity import Quantity

_CLAIM_IGNORED = ("dataSource", "dataSourceRef")
_CLASS_IGNORED = ("apiVersion", "kind", "parameters", "reclaimPolicy", "allowVolumeExpansion", "mountOptions")
_ZONE_SEPARATOR = "__"  # several zones in one label value (volumehelpers.LabelMultiZoneDelimiter)
_TOPOLOGY = (keys.ZONE_BETA, keys.REGION_BETA, keys.ZONE, keys.REGION)
# Volume plugins that became CSI drivers (csi-translation-lib, v0.36.3).
_IN_TREE = ("awsElasticBlockStore", "azureDisk", "azureFile", "cinder", "gcePersistentDisk", "portworxVolume")
_BINDING_MODES = {mode.value: mode for mode in VolumeBindingMode if mode is not VolumeBindingMode.UNKNOWN}
_PROVISIONER = (
    "name the driver that makes its volumes (`kubectl get csidrivers`), or kubernetes.io/no-provisioner for volumes "
    "that people make"
)
_NOTHING = Quantity.of(0)


def parse_persistent_volume(
    raw: object, problems: Problems | None = None, *, origin: Origin = CLUSTER
) -> PersistentVolume:
    """A PersistentVolume: the nodes and zones that can reach it, and the claims that it suits."""
    fields = Fields(raw, problems)
    metadata = parse_metadata(fields)
    spec = fields.child("spec")
    csi, claim = spec.child("csi"), spec.optional_child("claimRef")
    affinity = spec.child("nodeAffinity").optional_child("required")
    for term in affinity.children("nodeSelectorTerms") if affinity is not None else ():
        _warn_of_placeholders(term.children("matchExpressions"))
    return PersistentVolume(
        name=metadata.name,
        node_affinity=parse_node_selector(affinity),
        topology=FrozenMap({key: _values(metadata.labels[key]) for key in _TOPOLOGY if metadata.labels.get(key)}),
        labels=metadata.labels,
        storage_class=metadata.annotations.get(keys.BETA_STORAGE_CLASS, spec.text("storageClassName")),
        attributes_class=spec.text("volumeAttributesClassName"),
        capacity=spec.quantities("capacity").get("storage", _NOTHING),
        access_modes=spec.texts("accessModes"),
        block=spec.text("volumeMode") == "Block",
        claim=f"{claim.text('namespace')}/{claim.text('name')}" if claim is not None else "",
        claim_uid=claim.text("uid") if claim is not None else "",
        # The API server gives every volume a phase: one without is written by hand, and nobody has it yet.
        available=fields.child("status").text("phase") in ("", "Available"),
        deleting=metadata.deleting,
        driver=csi.text("driver"),
        handle=csi.text("volumeHandle"),
        in_tree=any(source in spec for source in _IN_TREE),
        host_path=spec.child("hostPath").text("path"),
        origin=origin,
    )


def _warn_of_placeholders(requirements: Iterable[Fields]) -> None:
    """No node has the values that a template left: without a warning the volume seems to be in another zone."""
    for found in requirements:
        for value in found.texts("values"):
            if step := left_by_template(value):
                found.warn("values", f"no node has {value!r} for {found.text('key')}", step)


def _values(label: str) -> tuple[str, ...]:
    return tuple(value.strip() for value in label.split(_ZONE_SEPARATOR))


def parse_persistent_volume_claim(
    raw: object, problems: Problems | None = None, *, origin: Origin = CLUSTER
) -> PersistentVolumeClaim:
    """A PersistentVolumeClaim; an empty storageClassName means static volumes only, an absent one the default class."""
    fields = Fields(raw, problems)
    metadata = parse_metadata(fields)
    claim = volume_claim_from(fields, namespace=metadata.namespace, name=metadata.name, origin=origin)
    return replace(
        claim,
        storage_class=metadata.annotations.get(keys.BETA_STORAGE_CLASS, claim.storage_class),
        uid=metadata.uid,
        selected_node=metadata.annotations.get(keys.SELECTED_NODE, ""),
        lost=fields.child("status").text("phase") == "Lost",
        deleting=metadata.deleting,
    )


def volume_claim_from(fields: Fields, *, namespace: str, name: str, origin: Origin) -> PersistentVolumeClaim:
    """The claim of `fields` (a claim or a volumeClaimTemplate), with the name that its controller gives it."""
    fields.ignore("apiVersion", "kind", "metadata", "status")
    spec = fields.child("spec")
    spec.ignore(*_CLAIM_IGNORED)
    claim = PersistentVolumeClaim(
        namespace=namespace,
        name=name,
        storage_class=spec.optional_text("storageClassName"),
        volume=spec.optional_text("volumeName") or None,
        access_modes=spec.texts("accessModes"),
        capacity=spec.child("resources").quantities("requests").get("storage", _NOTHING),
        selector=parse_label_selector(spec.optional_child("selector")),
        block=spec.text("volumeMode") == "Block",
        attributes_class=spec.text("volumeAttributesClassName"),
        origin=origin,
    )
    spec.unread()
    fields.unread()
    return claim


def ephemeral_volume_claims(
    spec: Fields, *, namespace: str, pod_name: str, origin: Origin
) -> tuple[PersistentVolumeClaim, ...]:
    """The claims for the generic ephemeral volumes of a pod spec, named <pod>-<volume>."""
    found = []
    for volume in spec.children("volumes"):
        ephemeral = volume.optional_child("ephemeral")
        if ephemeral is not None:
            name = f"{pod_name}-{volume.text('name')}"
            template = ephemeral.child("volumeClaimTemplate")
            found.append(volume_claim_from(template, namespace=namespace, name=name, origin=origin))
    return tuple(found)


def parse_storage_class(raw: object, problems: Problems | None = None, *, origin: Origin = CLUSTER) -> StorageClass:
    """A StorageClass with allowedTopologies as a node selector.

    Upstream: ValidateStorageClass in pkg/apis/storage/validation of k8s.io/kubernetes v1.36.3.
    """
    fields = Fields(raw, problems)
    fields.ignore(*_CLASS_IGNORED)
    metadata = parse_metadata(fields)
    terms = tuple(_parse_topology(term) for term in fields.children("allowedTopologies"))
    provisioner = fields.text("provisioner")
    if fields.raw("provisioner") in (None, ""):
        fields.error("provisioner", "is required", _PROVISIONER)
    mode = fields.choice("volumeBindingMode", _BINDING_MODES, VolumeBindingMode.IMMEDIATE.value)
    found = StorageClass(
        name=metadata.name,
        binding_mode=_BINDING_MODES.get(mode, VolumeBindingMode.UNKNOWN),
        topologies=NodeSelector(terms) if terms else None,
        provisioner=provisioner,
        default=metadata.annotations.get(keys.DEFAULT_STORAGE_CLASS) == "true",
        origin=origin,
    )
    fields.unread()
    return found


def _parse_topology(term: Fields) -> NodeSelectorTerm:
    expressions = tuple(term.children("matchLabelExpressions"))
    _warn_of_placeholders(expressions)
    return NodeSelectorTerm(tuple(Requirement(e.required("key"), "In", e.texts("values")) for e in expressions))


def parse_volume_limits(raw: object, problems: Problems | None = None) -> tuple[str, FrozenMap[str, int]]:
    """A CSINode: the node's name, and the most volumes there by CSI driver. Without a count: any number."""
    fields = Fields(raw, problems)
    metadata = parse_metadata(fields)
    drivers = fields.child("spec").children("drivers")
    counts = ((driver.text("name"), driver.child("allocatable").optional_integer("count")) for driver in drivers)
    return metadata.name, FrozenMap({name: count for name, count in counts if count is not None})


def parse_volume_attachment(raw: object, problems: Problems | None = None) -> VolumeAttachment | None:
    """A VolumeAttachment; None for volumes of in-tree plugins, which are part of it."""
    spec = Fields(raw, problems).child("spec")
    volume = spec.child("source").text("persistentVolumeName")
    return VolumeAttachment(spec.text("nodeName"), spec.text("attacher"), volume) if volume else None


def parse_storage_capacity(raw: object, problems: Problems | None = None) -> StorageCapacity:
    """A CSIStorageCapacity; maximumVolumeSize is preferred because it is more precise."""
    fields = Fields(raw, problems)
    nodes = parse_label_selector(fields.optional_child("nodeTopology"))
    largest = fields.quantity("maximumVolumeSize")
    return StorageCapacity(
        fields.text("storageClassName"), nodes, fields.quantity("capacity") if largest is None else largest
    )


def parse_capacity_tracker(raw: object, problems: Problems | None = None) -> str | None:
    """The name of a CSIDriver that publishes CSIStorageCapacities, None for another."""
    fields = Fields(raw, problems)
    return parse_metadata(fields).name if fields.child("spec").flag("storageCapacity") else None
