"""Instance types and what can be bought, as frozen values.

The one vocabulary for hardware facts: prediction turns them into ResourceSlices, planning into candidates, the
providers into launch requests. Facts are data (instance_catalog/data) with a provenance per group; nothing here knows a
type by name, reads files, or knows what a driver publishes.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from decimal import Decimal
from enum import StrEnum
from fractions import Fraction
from typing import Final, Literal, TypeAlias

from instance_catalog.dataclass import dataclass, field, replace
from instance_catalog.drivers.custom import CustomDriver
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.quantity import Quantity
from instance_catalog.types.clouds import region_of
from instance_catalog.types.node_reservation import NOTHING_RESERVED, NodeReservation
from instance_catalog.types.provenance import Provenance as Provenance  # part of this vocabulary

Vendor: TypeAlias = Literal["NVIDIA", "AMD", "AWS", "Google", "Habana", "Intel", "Qualcomm"]
ANY_ZONE: Final = "any"
# Source: botocore's partitions.json.
_PARTITION: Final = re.compile(r"cn-|us-gov-|us-iso[a-z]?-|eu-iso[a-z]-|eusc-", re.ASCII)


_SPOKEN_WITH_VOWEL: Final = "AEFHILMNORSX"  # letters whose names begin with a vowel: an L4, but a T4


class CapacityType(StrEnum):
    """The price model and the guarantee of a machine's capacity."""

    CAPACITY_BLOCK = "capacity-block"  # prepaid for a period: AWS Capacity Block, GCP calendar reservation
    RESERVED = "reserved"  # held for the account: AWS ODCR, GCP reservation
    FLEX_START = "flex-start"  # waits for capacity, and ends automatically: GCP flex-start
    SPOT = "spot"
    ON_DEMAND = "on-demand"

    @property
    def needs_reservation(self) -> bool:
        """True if nothing can be launched without naming a reservation."""
        return self in (CapacityType.CAPACITY_BLOCK, CapacityType.RESERVED)


@dataclass(frozen=True, slots=True)
class Accelerator:
    """One accelerator model; facts that hold in every machine.

    `model` is the common short name ("H100"), `api_names` are the names in each cloud's API; neither is the
    `product_name`, which is NVML's and the one that selectors compare (None: unknown, so selectors on it are
    *unknown*). `product_names` are all possible ones if there are a few. `memory` is the capacity that the driver
    reports without MIG (None: unknown, or the driver publishes none); `memory_bounds` are the least and the most if it
    is not known exactly; `api_memory` is the figure of the cloud's API, which differs and is never compared by claims.
    `cuda_compute_capability` is a version with patch ("9.0.0"). `mig_table` names the partition table of prediction,
    None for devices that cannot be partitioned. A `virtual` device is a vGPU: never partitioned. `node_label` is the
    value of the cloud's accelerator node label (cloud.google.com/gke-tpu-accelerator,
    cloud.google.com/gke-accelerator), if the cloud has one. `provenance` is by fact group: "identity", "productName",
    "memory".
    """

    key: str
    vendor: Vendor
    model: str
    product_name: str | None = None
    product_names: tuple[str, ...] = ()
    architecture: str | None = None  # as published: "Hopper", "Ada Lovelace"
    cuda_compute_capability: str | None = None
    brand: str | None = None  # as published: "Nvidia", "Tesla", "NvidiaVWS"
    memory: Quantity | None = None
    memory_bounds: tuple[Quantity, Quantity] | None = None
    api_memory: Quantity | None = None
    mig_table: str | None = None
    virtual: bool = False
    node_label: str | None = None
    unknown: FrozenMap[str, str] = field(default_factory=FrozenMap)  # by field: why it is not known
    api_names: FrozenMap[str, str] = field(default_factory=FrozenMap)  # by cloud
    provenance: FrozenMap[str, Provenance] = field(default_factory=FrozenMap)

    @property
    def mig(self) -> bool:
        """True if the device can be partitioned."""
        return self.mig_table is not None


@dataclass(frozen=True, slots=True)
class RootGroup:
    """A PCIe root of which only the equality is known: devices of one type with equal groups share a root."""

    group: int


PcieRoot: TypeAlias = str | RootGroup


@dataclass(frozen=True, slots=True)
class PciPlacement:
    """The position of a device. None: unknown.

    `bus_id` is "0000:53:00.0"; `pcie_root` is "pci0000:44" if verified, else the group of devices with an equal root.
    """

    bus_id: str | None = None
    pcie_root: PcieRoot | None = None
    numa_node: int | None = None


NOT_PLACED: Final = PciPlacement()


@dataclass(frozen=True, slots=True)
class NetworkCard:
    """One network device as it can appear on the node; which of them do appear is the node template's choice.

    `kind` is "ena", "efa", "gvnic" or "rdma". `subsystem` is the PCI subsystem as dranet publishes it ("efa1").
    The `primary` card carries the default route; dranet does not publish it.
    """

    kind: str
    placement: PciPlacement = NOT_PLACED
    subsystem: str | None = None
    primary: bool = False

    @property
    def rdma(self) -> bool:
        """True if the device supports RDMA."""
        return self.kind in ("efa", "rdma")


@dataclass(frozen=True, slots=True)
class Fabric:
    """The links between the accelerators.

    `link` is the technology ("NVLink", "NeuronLink", "ICI"; None: PCIe only or a single device), `shape` the wiring
    ("switch", "mesh", "ring", "NVL72"), `gigabytes_per_second` per accelerator. `domain_nodes` are the sizes, in nodes,
    in which an NVLink domain across machines is sold (p6e-gb200: 9 or 18); () if the fabric ends at the node.
    """

    link: str | None = None
    shape: str = ""
    gigabytes_per_second: int | None = None
    domain_nodes: tuple[int, ...] = ()

    @property
    def multi_node(self) -> bool:
        """True if an NVLink domain spans nodes."""
        return bool(self.domain_nodes)


@dataclass(frozen=True, slots=True)
class CpuTopology:
    """The layout of the CPUs. None: unknown."""

    sockets: int | None = None
    numa_nodes: int | None = None
    threads_per_core: int | None = None


UNKNOWN_CPU: Final = CpuTopology()


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars per hour for one machine, in one region, on one day. A `guess` has no source that quotes it."""

    usd_per_hour: Decimal
    region: str
    date: str
    guess: bool = False


@dataclass(frozen=True, slots=True)
class Offering:
    """An offering that can be launched: a type in a zone with a capacity type. `zone` is "any" without a sync.

    `region` is the region of the launch; "" if the provider decides it. `usd_per_hour` None: no price is known there,
    so it is listed last and never bought. `price_region` and `price_date` are those of the price. `reservation` is the
    provider's id.
    """

    instance_type: str
    zone: str
    capacity_type: CapacityType
    usd_per_hour: Decimal | None = None
    price_region: str = ""
    price_date: str = ""
    reservation: str | None = None
    region: str = ""

    @property
    def buyable(self) -> bool:
        """True if it has a price and, if its capacity type needs one, a reservation."""
        return self.usd_per_hour is not None and (
            self.reservation is not None or not self.capacity_type.needs_reservation
        )


@dataclass(frozen=True, slots=True)
class InstanceType:
    """One machine type.

    `accelerator_count` may be a fraction of a card (AWS g6f: one vGPU device is published); `device_count` is the
    number that the node shows. `placements` are the accelerators' PCI facts in device order, () if unknown. `topology`
    is the accelerators' wiring as in the node label (TPU "2x4"), `slice_topologies` those of slices of several such
    machines, which are bought as a whole. `prices` are list prices by capacity type, `zone_prices` more exact ones for
    a zone or a region; `capacity_types` are those that are sold at all, in the order of CapacityType; `zones` are by
    region; of other regions nothing is known. `unpriced` is the reason why no price is known. `min_driver` and
    `max_driver` are the oldest and the last NVIDIA driver branch that run the device on this type. `bare_metal`: no
    hypervisor is below the node, so it has an IOMMU. `allocatable` was measured on a node, and overrides the cloud's
    model. `extended_resources` are those of the device plugins of the usual node images, beside DRA. `provenance` is by
    fact group: "shape", "cpu", "accelerator", "pci", "fabric", "network", "price", "allocatable", "driver",
    "extendedResources". `origin` is the data file, for messages.
    """

    cloud: str
    name: str
    architecture: str  # amd64, arm64
    vcpu: int
    memory: Quantity
    accelerator: Accelerator | None = None
    accelerator_count: Fraction = Fraction(0)
    placements: tuple[PciPlacement, ...] = ()
    fabric: Fabric = Fabric()
    topology: str | None = None
    slice_topologies: tuple[str, ...] = ()
    network_cards: tuple[NetworkCard, ...] = ()
    efa_cards: tuple[int, ...] | None = ()  # indexes of the cloud's cards that take EFA interfaces; None: not known
    network: str = ""  # as the cloud writes it: "3200 Gbps peak"
    local_nvme_gb: int | None = None  # decimal gigabytes; None: not known
    capacity_types: tuple[CapacityType, ...] = ()
    prices: FrozenMap[CapacityType, Price] = field(default_factory=FrozenMap)
    zones: FrozenMap[str, tuple[str, ...]] = field(default_factory=FrozenMap)
    zone_prices: FrozenMap[str, FrozenMap[CapacityType, Price]] = field(default_factory=FrozenMap)
    unpriced: str = ""
    min_driver: str | None = None
    max_driver: str | None = None
    bare_metal: bool = False
    extended_resources: FrozenMap[str, Quantity] = field(default_factory=FrozenMap)
    reservation: NodeReservation = field(default=NOTHING_RESERVED, repr=False)  # what a node reserves for itself
    allocatable: FrozenMap[str, Quantity] = field(default_factory=FrozenMap)
    notes: tuple[str, ...] = ()
    provenance: FrozenMap[str, Provenance] = field(default_factory=FrozenMap)
    # The cloud's machine type and value of the node's instance-type label, where accelerators are attached to a machine
    # (name n1-standard-8+1xnvidia-tesla-t4, machine n1-standard-8); else the name.
    machine: str = ""
    cpu: CpuTopology = UNKNOWN_CPU
    # The drivers that the catalog describes beside the shipped ones, by profile name: what a pool's `drivers` may name.
    custom_drivers: FrozenMap[str, CustomDriver] = field(default_factory=FrozenMap, compare=False, repr=False)
    origin: str = field(default="", compare=False, repr=False)

    def __hash__(self) -> int:
        # Predictions and labels are remembered by type: all fields take longer than what is remembered.
        return hash((self.cloud, self.name))

    @property
    def machine_type(self) -> str:
        """The cloud's name of the machine, which is the value of the node's label node.kubernetes.io/instance-type."""
        return self.machine or self.name

    @property
    def device_count(self) -> int:
        """Accelerator devices on the node: a part of a card counts as one."""
        return math.ceil(self.accelerator_count)

    @property
    def share(self) -> str:
        """The share of a card, for people: "1/8 of an L4"; "" for whole cards."""
        if self.accelerator is None or self.accelerator_count >= 1:
            return ""
        whole = self.accelerator.model.partition(" (")[0]
        return f"{self.accelerator_count} of {'an' if whole[:1] in _SPOKEN_WITH_VOWEL else 'a'} {whole}"

    @property
    def sold_on_demand(self) -> bool:
        """True if it can be bought without Spot, flex-start or a reservation."""
        return CapacityType.ON_DEMAND in self.capacity_types

    @property
    def price(self) -> Price | None:
        """The on-demand list price: the yardstick for comparing types, also where on-demand is not sold."""
        return self.prices.get(CapacityType.ON_DEMAND)

    def placement(self, index: int) -> PciPlacement:
        return self.placements[index] if index < len(self.placements) else NOT_PLACED

    def cards(self, kind: str) -> tuple[NetworkCard, ...]:
        return tuple(card for card in self.network_cards if card.kind == kind)

    def offering(
        self, capacity_type: CapacityType, *, zone: str = ANY_ZONE, region: str = "", reservation: str | None = None
    ) -> Offering:
        """The offering at the price of its place; with `reservation`, of that reservation."""
        region = region or _region_of_place(zone)
        offering = Offering(self.name, zone, capacity_type, reservation=reservation, region=region)
        price = self.price_in(zone, capacity_type, region=region)
        if price is None:
            return offering
        return replace(offering, usd_per_hour=price.usd_per_hour, price_region=price.region, price_date=price.date)

    def price_in(self, zone: str, capacity_type: CapacityType, *, region: str = "") -> Price | None:
        """The price in a zone: the zone's own, else its region's, else the list price if that is of the region. Without
        a region the list price is used for all; a price of another region never is."""
        region = region or _region_of_place(zone)
        for place in (zone, region):
            price = self.zone_prices.get(place, _NO_PRICES).get(capacity_type)
            if price is not None:
                return price
        listed = self.prices.get(capacity_type)
        return listed if listed is not None and region in ("", listed.region) else None

    def sold_in(self, zone: str, *, region: str = "") -> bool:
        """False only if the zones of the region with the type are known, and this zone is not one of them; for a whole
        region, if it has no such zone."""
        listed = self.zones.get(region or _region_of_place(zone))
        return listed is None or (bool(listed) if zone == ANY_ZONE else zone in listed)

    def offerings(self, zones: Iterable[str] = (ANY_ZONE,)) -> tuple[Offering, ...]:
        """Everything this type is sold as, in every zone that may have it."""
        places = [zone for zone in zones if self.sold_in(zone)]
        return tuple(self.offering(kind, zone=zone) for zone in places for kind in self.capacity_types)


_NO_PRICES: Final[FrozenMap[CapacityType, Price]] = FrozenMap()


def _region_of_place(zone: str) -> str:
    return "" if zone == ANY_ZONE else region_of(zone)


def partition_of(place: str) -> str:
    """The prefix of regions and zones in one of AWS's separate partitions; "" everywhere else."""
    match = _PARTITION.match(place)
    return match[0] if match else ""


def provenance_of(facts: Mapping[str, Provenance], group: str) -> Provenance | None:
    """The provenance of a fact group, or of everything (group ""), or None."""
    return facts.get(group) or facts.get("")
