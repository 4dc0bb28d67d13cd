"""Devices and ResourceSlices: one type for predicted and published ones.

Shapes follow resource.k8s.io/v1 (Kubernetes 1.36/1.37). A predicted device may carry attribute values that only exist
at run time (uuid, an unverified pcieRoot): these are `RuntimeOnly` tokens, known to be present and equal within their
group, with an unknown value. Nothing here reads Kubernetes JSON; that is autoscaler/kube.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable
from typing import Literal, TypeAlias

from instance_catalog.dataclass import dataclass
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.node_selector import NodeSelector
from instance_catalog.kubernetes.quantity import Quantity
from instance_catalog.kubernetes.taint import Taint

AttributeKind: TypeAlias = Literal["string", "int", "bool", "version"]


@dataclass(frozen=True, slots=True)
class Version:
    """A semantic version as published. Compares by text, as constraints do; CEL compares by precedence."""

    text: str


@dataclass(frozen=True, slots=True)
class RuntimeOnly:
    """A value that exists only once the node runs.

    Two tokens are the same value if and only if `kind` and `group` are equal; `group` is unique to the node it was
    predicted for once `prediction.concrete.for_node` has scoped it. A token never equals a known value.
    `one_of` are all values it can have, () if they are not known.
    """

    kind: AttributeKind
    group: str
    one_of: tuple[str | int | bool | Version, ...] = ()

    @property
    def is_catalog_gap(self) -> bool:
        """True if the value could be known before launch but the catalog lacks it.

        Then it is also unknown whether it equals a known value or a gap of another group.
        """
        return self.group.startswith("catalog:")


@dataclass(frozen=True, slots=True)
class ListValue:
    """A list-typed attribute (gate DRAListTypeAttributes); elements are of one kind."""

    kind: AttributeKind
    items: tuple[str | int | bool | Version, ...]


# `Unset` marks an attribute without exactly one recognised value field, which upstream reports as an evaluation error.
@dataclass(frozen=True, slots=True)
class Unset:
    """An attribute whose value field is missing, doubled or of a newer Kubernetes; `found` describes it."""

    found: str = ""


AttributeValue: TypeAlias = str | int | bool | Version | ListValue | RuntimeOnly | Unset


def exact(value: AttributeValue | None) -> Hashable:
    """A key that is equal for equal values of one kind only: in Python 1 == True and 0 == False."""
    return type(value), value


@dataclass(frozen=True, slots=True)
class ValidRange:
    """A capacity request policy's range; min None means the API object had none."""

    min: Quantity | None = None
    max: Quantity | None = None
    step: Quantity | None = None


@dataclass(frozen=True, slots=True)
class RequestPolicy:
    """The rules for requests of a consumable capacity. At most one of valid_values and valid_range is set."""

    default: Quantity | None = None
    valid_values: tuple[Quantity, ...] = ()
    valid_range: ValidRange | None = None

    @property
    def form(self) -> Hashable:
        """A key by the forms of all quantities."""
        limits = self.valid_range
        bounds = () if limits is None else (limits.min, limits.max, limits.step)
        amounts = (self.default, *self.valid_values, *bounds)
        return len(self.valid_values), limits is None, tuple(None if a is None else a.form for a in amounts)


@dataclass(frozen=True, slots=True)
class Capacity:
    """A capacity of a device: its total value and, for shareable devices, how it may be requested.

    `guess` marks a predicted value without a source: what depends on it is unknown, unless the `bounds` (the least and
    the most it can be) decide it.
    """

    value: Quantity
    policy: RequestPolicy | None = None
    guess: bool = False
    bounds: tuple[Quantity, Quantity] | None = None

    @property
    def form(self) -> Hashable:
        """A key that distinguishes values that `==` does not: the same amounts in different forms (see
        Quantity.form)."""
        policy = self.policy
        return self.value.form, self.guess, None if policy is None else policy.form


@dataclass(frozen=True, slots=True)
class CounterSet:
    """Counters that the devices of a pool share (partitionable devices)."""

    name: str
    counters: FrozenMap[str, Quantity]


@dataclass(frozen=True, slots=True)
class CounterConsumption:
    """The amounts that a device uses from one counter set."""

    counter_set: str
    counters: FrozenMap[str, Quantity]


@dataclass(frozen=True, slots=True)
class NodeReach:
    """The nodes that can use a slice or a device: at most one of the three is set; all unset reaches no node."""

    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool = False


NOWHERE = NodeReach()


@dataclass(frozen=True, slots=True)
class NodeMapping:
    """The device is one of the node's own amounts: `per_device`, or the consumed part of `capacity` times `multiplier`.

    Named as in the API: capacityKey, capacityMultiplier, deviceMultiplier.
    """

    capacity: str | None = None
    multiplier: Quantity | None = None
    per_device: Quantity | None = None


@dataclass(frozen=True, slots=True)
class NodeOverhead:
    """The cost of using the device in the node's own amounts: for each pod, and for each container that names the
    claim."""

    per_pod: Quantity | None = None
    per_container: Quantity | None = None


@dataclass(frozen=True, slots=True)
class NodeAllocatable:
    """The use of a node's own amount, such as cpu, by an allocation of the device (KEP-5517 in 1.37)."""

    mapping: NodeMapping | None = None
    overhead: NodeOverhead | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Device:
    """One device. Attribute and capacity names are as published: unqualified ones belong to the driver's domain."""

    name: str
    attributes: FrozenMap[str, AttributeValue] = dataclasses.field(default_factory=FrozenMap)
    capacity: FrozenMap[str, Capacity] = dataclasses.field(default_factory=FrozenMap)
    consumes_counters: tuple[CounterConsumption, ...] = ()
    taints: tuple[Taint, ...] = ()
    reach: NodeReach = NOWHERE  # only read when the slice has per_device_node_selection
    allow_multiple_allocations: bool = False
    binds_to_node: bool = False
    # None: the field is absent. An empty tuple counts as present, as in upstream's pool ordering.
    binding_conditions: tuple[str, ...] | None = None
    binding_failure_conditions: tuple[str, ...] | None = None
    # By name of the resource.
    node_allocatable: FrozenMap[str, NodeAllocatable] = dataclasses.field(default_factory=FrozenMap)
    # Fields of newer Kubernetes versions; the allocator's verdict for them is unknown.
    unsupported: tuple[str, ...] = ()
    # Values that other modules derive from the device. They are no part of the value, no copy has them, and they end
    # with the device.
    derived: dict[Hashable, object] = dataclasses.field(default_factory=dict, init=False, repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class Pool:
    """The pool a slice belongs to: `slice_count` is pool.resourceSliceCount."""

    name: str
    generation: int = 0
    slice_count: int = 1


@dataclass(frozen=True, slots=True)
class ResourceSlice:
    """A ResourceSlice, published or predicted. `name` orders the slices of a pool from Kubernetes 1.36 on."""

    name: str
    driver: str
    pool: Pool
    devices: tuple[Device, ...] = ()
    reach: NodeReach = NOWHERE
    per_device_node_selection: bool | None = None
    shared_counters: tuple[CounterSet, ...] = ()
    unsupported: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, order=True)
class DeviceId:
    """The cluster-wide identity of a device."""

    driver: str
    pool: str
    device: str

    def __str__(self) -> str:
        return f"{self.driver}/{self.pool}/{self.device}"
