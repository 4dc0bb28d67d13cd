"""The world as one frozen value: what plan_for decides from."""

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
from autoscaler.model.other_autoscalers import Autoscaler, Quota
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

    `drivers` are the DRA drivers it runs, `device_plugin` the driver whose devices it hands out the old way.
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
    """Do not ask for this before `until`. Empty fields and None match everything (a whole zone, a whole type).

    `failures` in a row, each of which lengthened the wait.
    """

    until: datetime
    instance_type: str = ""
    zone: str = ""
    capacity_type: CapacityType | None = None
    pool: str = ""
    reason: str = ""  # the provider's error kind
    failures: int = 1
    message: str = ""  # what the provider said, and what to do about it
    reservation: str = ""  # the provider's id

    def covers(self, offering: OfferingRef) -> bool:
        """Whether it is about this offering, in whatever pool."""
        return (
            self.instance_type in ("", offering.instance_type)
            and self.zone in ("", offering.zone)
            and self.capacity_type in (None, offering.capacity_type)
            and self.reservation in ("", offering.reservation)
        )


@dataclass(frozen=True, slots=True)
class Quarantine:
    """What speaks against launching a type with these driver profiles; `until` then, the pool does not.

    The evidence names what it was seen on, so that seeing it twice counts once. `until` None: not enough yet.
    """

    pool: str
    instance_type: str
    drivers: tuple[str, ...]
    failed_boots: tuple[str, ...] = ()  # provider ids of machines, in a row
    mispredictions: tuple[str, ...] = ()  # "namespace/pod on provider id"
    times: int = 0  # how often it was quarantined
    until: datetime | None = None
    drifts: tuple[str, ...] = ()  # provider ids of machines that published something else than predicted


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Everything known at one moment, in a defined order: by namespace and name unless said otherwise."""

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
    capacity_trackers: frozenset[str] = frozenset()  # CSI drivers that say how much they can make
    pools: tuple[CapacityPool, ...] = ()
    blocks: tuple[CapacityBlock, ...] = ()
    provisioned: tuple[ProvisionedNode, ...] = ()
    # Since when a provider holds the request for a ProvisionedNode, by its name, of those that it does not start yet.
    waiting: FrozenMap[str, datetime] = field(default_factory=FrozenMap)
    # Machines that have a Node and no ProvisionedNode, by the name of their LaunchBatch: how many.
    unwritten: FrozenMap[str, int] = field(default_factory=FrozenMap)
    disruption_budgets: tuple[PodDisruptionBudget, ...] = ()
    autoscalers: tuple[Autoscaler, ...] = ()  # others that run in the cluster
    quotas: tuple[Quota, ...] = ()
    claim_templates: FrozenMap[str, ResourceClaimTemplate] = field(default_factory=FrozenMap)  # by namespace/name
    pod_templates: FrozenMap[str, PodTemplate] = field(default_factory=FrozenMap)  # by namespace/name
    scalables: tuple[Scalable, ...] = ()  # what a CapacityBuffer may refer to
    provisioning_requests: tuple[ProvisioningRequest, ...] = ()
    capacity_buffers: tuple[CapacityBuffer, ...] = ()
    backoffs: tuple[Backoff, ...] = ()
    quarantines: tuple[Quarantine, ...] = ()
    spending: Spending | None = None
    # Own nodes that take no more pods, by name of the ProvisionedNode: what their pods would save on new machines, $/h.
    closing: FrozenMap[str, Decimal] = field(default_factory=FrozenMap)
    from_files: bool = False  # without a cluster: what its nodes run may be assumed where nothing says so
    unreadable: FrozenMap[str, str] = EMPTY  # kinds that may not be read, with the right that is missing
