"""ResourceClaims: requests, constraints and allocations in the shape of resource.k8s.io/v1, defaults applied."""

from __future__ import annotations

from collections.abc import Iterator

from autoscaler.model.device_class import Selector
from autoscaler.model.namespaced import Namespaced
from autoscaler.model.origin import CLUSTER, Origin
from instance_catalog.dataclass import dataclass, field
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.node_selector import NodeSelector
from instance_catalog.kubernetes.quantity import Quantity
from instance_catalog.kubernetes.taint import Toleration


@dataclass(frozen=True, slots=True)
class DeviceRequest:
    """An `exactly` request or one subrequest of `firstAvailable`.

    `allocation_mode` is ExactCount, All, or the value in the manifest (unsupported modes are fatal in the allocator).
    `admin_access` None means absent, which differs from False if the feature gate is off. `capacity` None means that
    there are no capacity requirements.
    """

    name: str
    device_class: str
    selectors: tuple[Selector, ...] = ()
    allocation_mode: str = "ExactCount"
    count: int = 1
    admin_access: bool | None = None
    tolerations: tuple[Toleration, ...] = ()
    capacity: FrozenMap[str, Quantity] | None = None
    unsupported: tuple[str, ...] = ()

    @property
    def alternatives(self) -> tuple[DeviceRequest, ...]:
        """The subrequests of a prioritized list; for any other request, the request itself."""
        return (self,)


@dataclass(frozen=True, slots=True)
class FirstAvailable:
    """A prioritized list: the first subrequest that can be satisfied wins."""

    name: str
    subrequests: tuple[DeviceRequest, ...]

    @property
    def alternatives(self) -> tuple[DeviceRequest, ...]:
        return self.subrequests


Request = DeviceRequest | FirstAvailable


@dataclass(frozen=True, slots=True)
class MatchAttribute:
    """All devices of the named requests (none named: of the claim) have the same value of `attribute`."""

    attribute: str
    requests: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DistinctAttribute:
    """All devices of the named requests differ in `attribute`."""

    attribute: str
    requests: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class UnknownConstraint:
    """A constraint of a type that this version does not support; `found` lists its fields."""

    found: str = ""
    requests: tuple[str, ...] = ()


Constraint = MatchAttribute | DistinctAttribute | UnknownConstraint


@dataclass(frozen=True, slots=True)
class ClaimConfig:
    """Opaque driver configuration, which only prepare rules read. `parameters` is the JSON text."""

    requests: tuple[str, ...]
    driver: str
    parameters: str


@dataclass(frozen=True, slots=True)
class AllocatedDevice:
    """One result of an allocation. `request` is "request" or "request/subrequest"."""

    request: str
    driver: str
    pool: str
    device: str
    admin_access: bool = False
    share_id: str | None = None
    consumed_capacity: FrozenMap[str, Quantity] | None = None
    tolerations: tuple[Toleration, ...] = ()
    binding_conditions: tuple[str, ...] = ()
    binding_failure_conditions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Allocation:
    """status.allocation. `node_selector` None means usable on every node."""

    devices: tuple[AllocatedDevice, ...]
    node_selector: NodeSelector | None = None
    allocated_at: float | None = None  # allocationTimestamp, seconds since the epoch


@dataclass(frozen=True, slots=True)
class Consumer:
    """An entry of status.reservedFor: resource is "pods", or "podgroups" of the group scheduling.k8s.io."""

    resource: str
    name: str
    uid: str = ""
    api_group: str = ""


@dataclass(frozen=True, slots=True)
class ResourceClaim(Namespaced):
    """A claim. `controller` is the uid of the controlling owner ("" for claims created by hand).

    `pod_group` names the PodGroup (scheduling.k8s.io) that is this owner, "" for other owners. `created`: when the API
    server created it, in seconds of the epoch; 0 if unknown. `device_conditions` maps "driver/pool/device" to the
    condition types that are True, for binding conditions. `spec_key()` is equal for claims with the same requests,
    whatever their names.
    """

    namespace: str
    name: str
    requests: tuple[Request, ...]
    constraints: tuple[Constraint, ...] = ()
    config: tuple[ClaimConfig, ...] = ()
    uid: str = ""
    controller: str = ""
    pod_group: str = ""
    allocation: Allocation | None = None
    reserved_for: tuple[Consumer, ...] = ()
    deleting: bool = False
    device_conditions: FrozenMap[str, tuple[str, ...]] = field(default_factory=FrozenMap)
    unsupported: tuple[str, ...] = ()
    created: float = field(default=0.0, compare=False)
    origin: Origin = field(default=CLUSTER, compare=False)

    @property
    def exact_requests(self) -> Iterator[DeviceRequest]:
        """Its requests, with the alternatives of prioritized lists in their place."""
        return (one for request in self.requests for one in request.alternatives)

    def spec_key(
        self,
    ) -> tuple[tuple[Request, ...], tuple[Constraint, ...], tuple[ClaimConfig, ...], tuple[str, ...]]:
        """The part of the spec that an allocation depends on, as a hashable value."""
        return (self.requests, self.constraints, self.config, self.unsupported)


@dataclass(frozen=True, slots=True)
class ResourceClaimTemplate(Namespaced):
    """Claims generated from it take `spec` with their own name."""

    namespace: str
    name: str
    spec: ResourceClaim
    origin: Origin = field(default=CLUSTER, compare=False)
