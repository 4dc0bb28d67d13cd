"""The schema of catalog files, as pydantic models.

Edge code: only loader.py (and through it the command line) imports pydantic. Cross-references between entries, which no
schema can express, are checked in build.py.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from decimal import Decimal
from fractions import Fraction
from typing import Annotated, Any, Final, Literal, TypeAlias

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, PlainValidator, WithJsonSchema
from pydantic.alias_generators import to_camel

from instance_catalog.kubernetes.quantity import Quantity, QuantityError
from instance_catalog.types.instance_type import CapacityType, Vendor

_MOST: Final = Quantity.parse("1Ei")
# No exponents: Fraction("1e999999999") would try to build that number.
_SHARE: Final = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,9})?\Z", re.ASCII)
_DAY: Final = re.compile(r"\d{4}-\d{2}-\d{2}\Z", re.ASCII)
_COUNT: Final = re.compile(r"[1-9][0-9]{0,2}(?:/[1-9][0-9]{0,2})?\Z", re.ASCII)
_RESOURCES: Final = ("cpu", "memory", "ephemeral-storage", "pods")


def _quantity(value: object) -> Quantity:
    try:
        quantity = Quantity.stored(str(value))
    except QuantityError as error:
        raise ValueError("a Kubernetes quantity such as 80Gi or 81559Mi") from error
    if quantity.sign < 0 or quantity > _MOST:
        raise ValueError("a quantity from 0 to 1Ei")
    return quantity


def _count(value: object) -> Fraction:
    if not _COUNT.match(str(value)):
        raise ValueError("a whole number up to 999, or a fraction of a card such as 1/8")
    return Fraction(str(value))


def _share(value: object) -> Fraction:
    if not _SHARE.match(str(value)) or Fraction(str(value)) > 1:
        raise ValueError("a share between 0 and 1, such as 0.075")
    return Fraction(str(value))


def _date(value: object) -> object:
    return str(value) if isinstance(value, int) else value


def _moment(value: object) -> datetime:
    """A date is the beginning of that day, UTC."""
    text = str(value).upper()
    try:
        found = datetime.fromisoformat(f"{text}T00:00:00Z" if _DAY.match(text) else text)
    except ValueError as error:
        raise ValueError("a day such as 2026-12-31, or a time such as 2026-12-31T11:30:00Z") from error
    if found.tzinfo is None:
        raise ValueError("a time with its zone, such as 2026-12-31T11:30:00Z")
    return found.astimezone(UTC)


def _usd(value: object) -> object:
    return str(value) if isinstance(value, int) else value


def _resource(name: str) -> str:
    """A resource of a node. Other names without a domain are mistyped: Kubernetes has no more of them."""
    if "/" not in name and name not in _RESOURCES and not name.startswith("hugepages-"):
        raise ValueError(f"{', '.join(_RESOURCES)}, hugepages-2Mi or the like, or a name such as example.com/thing")
    return name


ResourceName: TypeAlias = Annotated[str, AfterValidator(_resource)]
QuantityText: TypeAlias = Annotated[
    Quantity,
    PlainValidator(_quantity),
    WithJsonSchema({"type": ["string", "integer"], "description": "a Kubernetes quantity", "examples": ["80Gi"]}),
]
Count: TypeAlias = Annotated[
    Fraction,
    PlainValidator(_count),
    WithJsonSchema(
        {"type": ["integer", "string"], "pattern": "^[1-9][0-9]{0,2}(/[1-9][0-9]{0,2})?$", "examples": [8, "1/8"]}
    ),
]
Day: TypeAlias = Annotated[
    str,
    BeforeValidator(_date),
    Field(pattern=r"^\d{4}(-\d{2}(-\d{2})?)?$", description="2026, 2026-08 or 2026-08-03"),
    WithJsonSchema({"type": ["string", "integer"], "pattern": r"^\d{4}(-\d{2}(-\d{2})?)?$"}),
]
Moment: TypeAlias = Annotated[
    datetime,
    PlainValidator(_moment),
    WithJsonSchema({"type": "string", "examples": ["2026-12-31", "2026-12-31T11:30:00Z"]}),
]
Usd: TypeAlias = Annotated[
    Decimal, BeforeValidator(_usd), Field(ge=0), WithJsonSchema({"type": ["number", "string"], "minimum": 0})
]
Share: TypeAlias = Annotated[
    Fraction,
    PlainValidator(_share),
    WithJsonSchema({"type": ["number", "string"], "minimum": 0, "maximum": 1}),
]
Whole: TypeAlias = Annotated[int, Field(strict=True)]
TopologyText: TypeAlias = Annotated[str, Field(pattern=r"^[1-9]\d{0,3}(x[1-9]\d{0,3})+$")]
DriverBranch: TypeAlias = Annotated[str, Field(pattern=r"^\d{1,6}(\.\d{1,6}){0,2}$")]


class Entry(BaseModel):
    model_config = ConfigDict(extra="forbid", alias_generator=to_camel, frozen=True, arbitrary_types_allowed=True)


class ProvenanceEntry(Entry):
    """The source of a group of facts; what nodes publish overrides a guess."""

    source: str = Field(min_length=1)
    date: Day
    guess: bool = False


class OneOfEntry(Entry):
    """A text that is one of these; which one is not known."""

    one_of: list[Annotated[str, Field(min_length=1)]] = Field(min_length=1, max_length=8)


class BoundsEntry(Entry):
    """An amount that is not known exactly."""

    at_least: QuantityText
    at_most: QuantityText


class AcceleratorEntry(Entry):
    """An accelerator model. An absent or null field means: not known, or the driver publishes none."""

    key: str = Field(pattern=r"^[a-z0-9]([a-z0-9-]*[a-z0-9])?$", description="what instance types refer to")
    vendor: Vendor
    model: str = Field(min_length=1, description="the short name people say: H100")
    product_name: str | OneOfEntry | None = Field(None, description="NVML's name, which selectors compare")
    architecture: str | None = Field(None, description="as the driver publishes it: Hopper")
    cuda_compute_capability: str | None = Field(None, pattern=r"^\d+\.\d+\.\d+$")
    brand: str | None = None
    memory: QuantityText | BoundsEntry | None = Field(None, description="as the driver reports it without MIG")
    api_memory: QuantityText | None = Field(None, description="as the cloud's API reports it")
    mig_table: str | None = Field(None, description="partition table in data/mig")
    virtual: bool = Field(default=False, description="a vGPU")
    node_label: str | None = Field(None, description="value of the cloud's accelerator node label")
    unknown: dict[Literal["productName", "memory"], str] = Field({}, description="why a field is not known")
    api_names: dict[str, str] = Field({}, description="by cloud: what its API calls the model")
    provenance: dict[Literal["identity", "productName", "memory"], ProvenanceEntry] = {}


class AcceleratorUse(Entry):
    """The accelerator of a type, the number of them, and the values that differ from the model on this type."""

    model: str = Field(description="key of an accelerator")
    count: Count
    api_name: str | None = Field(None, description="what the cloud's API calls it on this type")
    product_name: str | OneOfEntry | None = Field(None, description="null: not known on this type")
    memory: QuantityText | BoundsEntry | None = Field(None, description="what the driver reports on this type")


class PciEntry(Entry):
    """PCI facts in device order. Lists shorter than the devices are spread evenly: 2 values for 8 devices, 4 each."""

    root: list[Annotated[str, Field(pattern=r"^pci[0-9a-f]{4,}:[0-9a-f]{2}$")]] = Field(
        [], description="verified PCIe roots: pci0000:44"
    )
    root_group: list[Annotated[Whole, Field(ge=0)]] = Field(
        [], description="instead of root: devices with equal numbers share a root whose name is not known"
    )
    bus: list[Annotated[str, Field(pattern=r"^[0-9a-f]{4,}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]$")]] = []
    numa: list[Annotated[Whole, Field(ge=0)]] = []


class NetworkCardEntry(PciEntry):
    """One network device, or `count` equal ones; PCI facts as for accelerators."""

    kind: Literal["ena", "efa", "gvnic", "rdma"]
    count: Whole = Field(1, ge=1, le=999)
    subsystem: str | None = None
    primary: bool = Field(default=False, description="carries the default route")


class FabricEntry(Entry):
    """The links between the accelerators."""

    link: str | None = None
    shape: str = ""
    gigabytes_per_second: Whole | None = Field(None, gt=0, description="per accelerator")
    domain_nodes: list[Annotated[Whole, Field(gt=1)]] = Field([], description="sizes of a multi-node NVLink domain")


class CpuEntry(Entry):
    """The layout of the CPUs, for the driver dra.cpu. Absent: unknown."""

    sockets: Whole | None = Field(None, gt=0)
    numa_nodes: Whole | None = Field(None, gt=0)
    threads_per_core: Whole | None = Field(None, gt=0, le=2)


class PriceEntry(Entry):
    """A list price in one region on one day."""

    usd_per_hour: Usd
    region: str = Field(min_length=1)
    date: Day
    guess: bool = Field(
        default=False, description="put together or copied; marked with ~, and a plan that rests on it says so"
    )


FactGroup: TypeAlias = Literal[
    "shape", "cpu", "accelerator", "pci", "fabric", "network", "price", "allocatable", "driver", "extendedResources"
]


class InstanceTypeEntry(Entry):
    """An instance type."""

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9.+-]*$", description="the cloud's name, unique in the catalog")
    cloud: str = Field(min_length=1, description="given once a file")
    machine: str | None = Field(None, description="the cloud's machine type, where accelerators are attached to it")
    architecture: Literal["amd64", "arm64"]
    vcpu: Whole = Field(gt=0)
    memory: QuantityText
    accelerator: AcceleratorUse | None = None
    pci: PciEntry | None = Field(None, description="of the accelerators")
    fabric: FabricEntry | None = None
    topology: TopologyText | None = Field(None, description="of TPU chips: 2x4")
    slice_topologies: list[TopologyText] = Field([], description="of TPU slices of several such machines: 4x4")
    cpu: CpuEntry | None = None
    network_cards: list[NetworkCardEntry] = []
    efa_cards: list[Annotated[Whole, Field(ge=0)]] | Literal["unknown"] | None = Field(
        None,
        description="indexes of the network cards that take EFA interfaces; absent: 0 and up, one a device",
    )
    network: str = ""
    local_nvme_gb: Whole | None = Field(None, ge=0, alias="localNvmeGB")
    capacity_types: list[CapacityType] = Field(min_length=1, description="how machines of the type are sold")
    prices: dict[CapacityType, PriceEntry | None] = Field({}, description="null: not known")
    zones: dict[str, list[str]] = Field(
        {}, description="by region: where it is sold; of other regions nothing is known"
    )
    zone_prices: dict[str, dict[CapacityType, PriceEntry | None]] = Field(
        {}, description="by zone or region, where they differ from prices"
    )
    unpriced: str = Field(
        "", description="why no price is known: not sold by the hour, no source; a price wins over it"
    )
    min_driver: DriverBranch | None = Field(None, description="oldest NVIDIA driver branch that knows the device: 595")
    max_driver: DriverBranch | None = Field(None, description="last NVIDIA driver branch that runs the device: 580")
    bare_metal: bool = Field(default=False, description="no hypervisor below the node: it has an IOMMU")
    extended_resources: dict[ResourceName, QuantityText] = Field(
        {}, description="what device plugins offer beside DRA: vpc.amazonaws.com/efa"
    )
    allocatable: dict[ResourceName, QuantityText] = Field(
        {}, description="measured on a node; wins over the model of the cloud"
    )
    notes: list[str] = []
    provenance: dict[FactGroup, ProvenanceEntry] = {}


class MachineEntry(Entry):
    """A machine without accelerators that some can be attached to."""

    name: str
    vcpu: Whole = Field(gt=0)
    memory: QuantityText
    prices: dict[CapacityType, Usd] = Field({}, description="of the machine alone; pricesAsOf says where and when")


class AttachmentEntry(Entry):
    """Accelerators that can be attached to every machine of the file within the bounds."""

    accelerator: AcceleratorUse
    max_vcpu: Whole = Field(gt=0)
    max_memory: QuantityText
    prices: dict[CapacityType, Usd] = Field({}, description="of these accelerators alone")
    fabric: FabricEntry | None = None


class PricesAsOf(Entry):
    """Region and date of prices that are written as bare numbers in this file."""

    region: str = Field(min_length=1)
    date: Day


_Raw: TypeAlias = dict[str, Any]


class CatalogFile(Entry):
    """One file of the instance catalog; entries are checked after defaults and overlays were merged in."""

    priority: Annotated[Whole, Field(ge=-1000, le=1000)] = Field(
        0, description="a file of higher priority overrides others, wherever it is"
    )
    reason: str = Field("", description="why this overlay exists")
    expires: Moment | None = Field(
        None, description="from then on this file does not count; a day: from its start, UTC"
    )
    cloud: str | None = Field(None, description="of every type in this file")
    prices_as_of: PricesAsOf | None = None
    provenance: _Raw = Field({}, description="of every type in this file that does not say otherwise")
    defaults: _Raw = Field({}, description="for every type of this file that does not say otherwise")
    types: list[_Raw] = []
    machines: list[MachineEntry] = []
    attachments: list[AttachmentEntry] = []
    accelerators: list[_Raw] = []
    nodes: list[_Raw] = []
    drivers: list[_Raw] = []
