"""The cluster as one frozen value: the input of plan_for."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal

from autoscaler.model.capacity import CapacityBlock, CapacityPool
from autoscaler.model.device_class import DeviceClass, DeviceTaintRule
from autoscaler.model.gang import Gang
from autoscaler.model.labels import Selection
from autoscaler.model.namespaced import Namespaced
from autoscaler.model.node import Node
from autoscaler.model.origin import CLUSTER, Origin
from autoscaler.model.other_autoscalers import Autoscaler, ComputeClass, Quota
from autoscaler.model.pod import Pod
from autoscaler.model.pod_disruption_budget import PodDisruptionBudget
from autoscaler.model.provisioned_node import OfferingRef, ProvisionedNode
from autoscaler.model.requested_capacity import CapacityBuffer, PodTemplate, ProvisioningRequest, Scalable
from autoscaler.model.resource_claim import ResourceClaim, ResourceClaimTemplate
from autoscaler.model.spending import Spending
from autoscaler.model.storage import (
    PersistentVolume,
    PersistentVolumeClaim,
    StorageCapacity,
    StorageClass,
    VolumeAttachment,
)
from instance_catalog.dataclass import dataclass, field
from instance_catalog.drivers.profile import DriverSet
from instance_catalog.frozen_map import EMPTY, FrozenMap
from instance_catalog.kubernetes.profile import REFERENCE, KubernetesProfile
from instance_catalog.kubernetes.resource_slice import ResourceSlice
from instance_catalog.types.instance_type import CapacityType

NO_DRIVERS = DriverSet(())


@dataclass(frozen=True, slots=True)
class DaemonSet(Namespaced):
    """A DaemonSet as its overhead on a node: `pod` is its template (node_name None).

    `drivers` are its DRA drivers, `device_plugin` the driver whose devices it serves as a device plugin.
    """

    namespace: str
    name: str
    pod: Pod
    image: str = ""
    origin: Origin = field(default=CLUSTER, compare=False)
    drivers: DriverSet = NO_DRIVERS
    device_plugin: str = ""


@dataclass(frozen=True, slots=True)
class Backoff:
    """An offering that is not requested before `until`. Empty fields and None match everything (a whole zone, a whole
    type).

    `failures` are consecutive; each of them lengthened the wait.
    """

    until: datetime
    instance_type: str = ""
    zone: str = ""
    capacity_type: CapacityType | None = None
    pool: str = ""
    reason: str = ""  # the provider's error kind
    failures: int = 1
    message: str = ""  # the provider's message, and the next step
    reservation: str = ""  # the provider's id

    def covers(self, offering: OfferingRef) -> bool:
        """True if it applies to this offering, in any pool."""
        return (
            self.instance_type in ("", offering.instance_type)
            and self.zone in ("", offering.zone)
            and self.capacity_type in (None, offering.capacity_type)
            and self.reservation in ("", offering.reservation)
        )


@dataclass(frozen=True, slots=True)
class Quarantine:
    """The evidence against launching a type with these driver profiles; the pool does not launch it before `until`.

    The evidence names where it was found, so that the same finding counts once. `until` None: not enough evidence yet.
    """

    pool: str
    instance_type: str
    drivers: tuple[str, ...]
    failed_boots: tuple[str, ...] = ()  # provider ids of machines, consecutive
    mispredictions: tuple[str, ...] = ()  # "namespace/pod on provider id"
    times: int = 0  # the number of quarantines
    until: datetime | None = None
    drifts: tuple[str, ...] = ()  # provider ids of machines that published other devices than predicted


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The state at one moment, in a defined order: by namespace and name unless noted otherwise."""

    profile: KubernetesProfile = REFERENCE
    pods: tuple[Pod, ...] = ()
    nodes: tuple[Node, ...] = ()
    claims: FrozenMap[str, ResourceClaim] = field(default_factory=FrozenMap)  # by namespace/name
    classes: tuple[DeviceClass, ...] = ()
    slices: tuple[ResourceSlice, ...] = ()  # in the order the API server listed them
    taint_rules: tuple[DeviceTaintRule, ...] = ()
    gangs: FrozenMap[str, Gang] = field(default_factory=FrozenMap)  # by namespace/name
    daemon_sets: tuple[DaemonSet, ...] = ()
    namespaces: FrozenMap[str, FrozenMap[str, str]] = field(default_factory=FrozenMap)  # name -> labels
    selections: tuple[Selection, ...] = ()
    volumes: FrozenMap[str, PersistentVolume] = field(default_factory=FrozenMap)
    volume_claims: FrozenMap[str, PersistentVolumeClaim] = field(default_factory=FrozenMap)
    storage_classes: FrozenMap[str, StorageClass] = field(default_factory=FrozenMap)
    attachments: tuple[VolumeAttachment, ...] = ()
    storage_capacities: tuple[StorageCapacity, ...] = ()
    capacity_trackers: frozenset[str] = frozenset()  # CSI drivers that publish their free capacity
    pools: tuple[CapacityPool, ...] = ()
    blocks: tuple[CapacityBlock, ...] = ()
    provisioned: tuple[ProvisionedNode, ...] = ()
    # By name of a ProvisionedNode whose request the provider holds without starting it: the time since when.
    waiting: FrozenMap[str, datetime] = field(default_factory=FrozenMap)
    # By name of a LaunchBatch: the number of its machines that have a Node and no ProvisionedNode.
    unwritten: FrozenMap[str, int] = field(default_factory=FrozenMap)
    disruption_budgets: tuple[PodDisruptionBudget, ...] = ()
    autoscalers: tuple[Autoscaler, ...] = ()  # others that run in the cluster
    quotas: tuple[Quota, ...] = ()
    compute_classes: FrozenMap[str, ComputeClass] = field(default_factory=FrozenMap)  # of GKE
    claim_templates: FrozenMap[str, ResourceClaimTemplate] = field(default_factory=FrozenMap)  # by namespace/name
    pod_templates: FrozenMap[str, PodTemplate] = field(default_factory=FrozenMap)  # by namespace/name
    scalables: tuple[Scalable, ...] = ()  # workloads that a CapacityBuffer may refer to
    provisioning_requests: tuple[ProvisioningRequest, ...] = ()
    capacity_buffers: tuple[CapacityBuffer, ...] = ()
    backoffs: tuple[Backoff, ...] = ()
    quarantines: tuple[Quarantine, ...] = ()
    spending: Spending | None = None
    # By name of the ProvisionedNode, managed nodes that accept no more pods, each with its price in $/h.
    closing: FrozenMap[str, Decimal] = field(default_factory=FrozenMap)
    from_files: bool = False  # without a cluster: components of its nodes may be assumed if no file has them
    unreadable: FrozenMap[str, str] = EMPTY  # kinds that may not be read, with the right that is missing
