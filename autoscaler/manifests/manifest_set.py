"""The objects that have been read so far: the parts of a future Snapshot."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from autoscaler.kube.kinds import Form, SnapshotKind
from autoscaler.kube.pod import uid_of
from autoscaler.kube.priority import PriorityClass
from autoscaler.kube.problem import Problems
from autoscaler.kube.workloads.queues import Queues
from autoscaler.kube.workloads.stamping import EmptyParts, Expansion
from autoscaler.manifests.document import Document
from autoscaler.manifests.plan_context import PlanContext
from autoscaler.model.capacity import CapacityBlock, CapacityPool, GroupNodes, NodeTemplateRef
from autoscaler.model.device_class import DeviceClass, DeviceTaintRule
from autoscaler.model.gang import Gang
from autoscaler.model.labels import Selection
from autoscaler.model.node import Node
from autoscaler.model.other_autoscalers import ComputeClass
from autoscaler.model.pod import Pod
from autoscaler.model.provisioned_node import ProvisionedNode
from autoscaler.model.requested_capacity import CapacityBuffer, PodTemplate, ProvisioningRequest
from autoscaler.model.resource_claim import ResourceClaim, ResourceClaimTemplate
from autoscaler.model.snapshot import DaemonSet
from autoscaler.model.storage import (
    PersistentVolume,
    PersistentVolumeClaim,
    StorageCapacity,
    StorageClass,
    VolumeAttachment,
)
from instance_catalog.dataclass import dataclass, field, replace
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.resource_slice import ResourceSlice


@dataclass(slots=True)
class ManifestSet:
    """By name or namespace/name, in the order of the files. `raw` are objects that other packages read."""

    contexts: list[PlanContext] = field(default_factory=list)
    priorities: dict[str, PriorityClass] = field(default_factory=dict)
    pods: dict[str, Pod] = field(default_factory=dict)
    nodes: dict[str, Node] = field(default_factory=dict)
    claims: dict[str, ResourceClaim] = field(default_factory=dict)
    templates: dict[str, ResourceClaimTemplate] = field(default_factory=dict)
    classes: dict[str, DeviceClass] = field(default_factory=dict)
    slices: list[ResourceSlice] = field(default_factory=list)
    taint_rules: dict[str, DeviceTaintRule] = field(default_factory=dict)
    gangs: dict[str, Gang] = field(default_factory=dict)
    daemon_sets: list[DaemonSet] = field(default_factory=list)
    namespaces: dict[str, FrozenMap[str, str]] = field(default_factory=dict)
    volumes: dict[str, PersistentVolume] = field(default_factory=dict)
    volume_claims: dict[str, PersistentVolumeClaim] = field(default_factory=dict)
    storage_classes: dict[str, StorageClass] = field(default_factory=dict)
    volume_limits: dict[str, FrozenMap[str, int]] = field(default_factory=dict)
    attachments: list[VolumeAttachment] = field(default_factory=list)
    storage_capacities: list[StorageCapacity] = field(default_factory=list)
    capacity_trackers: set[str] = field(default_factory=set)
    selections: list[Selection] = field(default_factory=list)
    pools: dict[str, CapacityPool] = field(default_factory=dict)
    node_pools: dict[str, CapacityPool] = field(default_factory=dict)  # of Karpenter, read as such
    compute_classes: dict[str, ComputeClass] = field(default_factory=dict)  # of GKE
    blocks: dict[str, CapacityBlock] = field(default_factory=dict)
    provisioned: list[ProvisionedNode] = field(default_factory=list)
    overlays: list[Document] = field(default_factory=list)
    node_templates: list[Document] = field(default_factory=list)
    registers: dict[NodeTemplateRef, tuple[GroupNodes, ...]] = field(default_factory=dict)  # of nodes of a template
    pod_templates: dict[str, PodTemplate] = field(default_factory=dict)
    provisioning_requests: list[ProvisioningRequest] = field(default_factory=list)
    capacity_buffers: list[CapacityBuffer] = field(default_factory=list)
    runtime_classes: set[str] = field(default_factory=set)  # of the files, or reported as missing
    absent_nodes: set[str] = field(default_factory=set)  # of slices, reported as missing
    queues: Queues = field(default_factory=Queues)
    empty_parts: EmptyParts = field(default_factory=EmptyParts)
    scalables: list[tuple[str, object]] = field(default_factory=list)  # kind and object, read where a buffer needs it

    def put(self, kind: SnapshotKind, value: Any) -> None:
        """Take over a value of a kind; of several with one name the last counts."""
        values = getattr(self, kind.field)
        match kind.form, values:
            case Form.PAIRS, dict():
                values.update([value])
            case Form.BY_KEY, dict():
                values[value.key] = value
            case _, dict():
                values[value.name] = value
            case _, set():
                values.add(value)
            case _:
                values.append(value)

    def add(self, expansion: Expansion) -> None:
        """Take over what a workload turned into. What the files hold themselves is not replaced.

        Two workloads may invent the same pod name; the later pod then gets its owner's kind into the name.
        """
        for pod in expansion.pods:
            if pod.key in self.pods:
                name = f"{pod.name}-{pod.owner.partition('/')[0].lower()}"
                pod = replace(pod, name=name, uid=uid_of("Pod", pod.namespace, name))
            self.pods[pod.key] = pod
        for gang in expansion.gangs:
            self.gangs.setdefault(gang.key, gang)
        for claim in expansion.volume_claims:
            self.volume_claims.setdefault(claim.key, claim)
        for template in expansion.claim_templates:
            self.templates.setdefault(f"{template.namespace}/{template.name}", template)

    def used_claims(self) -> set[str]:
        """Keys of the claims that pods name."""
        return {f"{pod.namespace}/{entry.claim}" for pod in self.pods.values() for entry in pod.claims if entry.claim}


Reader: TypeAlias = Callable[[ManifestSet, Document, Problems], None]
