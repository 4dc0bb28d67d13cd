"""Checked catalog entries → InstanceType and Accelerator values; the checks that no schema can express.

Pure apart from using the pydantic models of schema.py as its input types.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any, TypeVar

from instance_catalog.dataclass import dataclass, replace
from instance_catalog.diagnostic import Path
from instance_catalog.drivers.facts import driver_facts, mig_tables
from instance_catalog.drivers.schema import DriverEntry
from instance_catalog.files import node_schema, schema
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.quantity import Quantity
from instance_catalog.spelling import completed, question
from instance_catalog.types.instance_type import (
    UNKNOWN_CPU,
    Accelerator,
    CapacityType,
    CpuTopology,
    Fabric,
    InstanceType,
    NetworkCard,
    PcieRoot,
    PciPlacement,
    Price,
    Provenance,
    RootGroup,
)
from instance_catalog.types.node_reservation import DiskReservation, LocalDisks, NodeReservation, PodRange, Tier

K = TypeVar("K", bound=str)
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Mismatch:
    """A field that contradicts another one or the rest of the catalog."""

    path: Path
    found: str
    allowed: str
    hint: str = ""


def accelerator_of(entry: schema.AcceleratorEntry) -> Accelerator:
    return Accelerator(
        key=entry.key,
        vendor=entry.vendor,
        model=entry.model,
        **_named(entry.product_name),
        architecture=entry.architecture,
        cuda_compute_capability=entry.cuda_compute_capability,
        brand=entry.brand,
        **_sized(entry.memory),
        api_memory=entry.api_memory,
        mig_table=entry.mig_table,
        virtual=entry.virtual,
        node_label=entry.node_label,
        unknown=FrozenMap({str(name): reason for name, reason in entry.unknown.items()}),
        api_names=FrozenMap(entry.api_names),
        provenance=_provenance(entry.provenance),
    )


def accelerator_mismatches(entry: schema.AcceleratorEntry) -> Iterator[Mismatch]:
    """A partition table that does not exist; bounds that exclude each other."""
    yield from _memory_mismatches(entry.memory, ("memory",))
    tables = mig_tables()
    if entry.mig_table is not None and entry.mig_table not in tables:
        hint = question(completed(entry.mig_table, tables))
        yield Mismatch(("migTable",), repr(entry.mig_table), ", ".join(tables), hint)


def _memory_mismatches(given: object, path: Path) -> Iterator[Mismatch]:
    if isinstance(given, schema.BoundsEntry) and given.at_least > given.at_most:
        found = f"atLeast {given.at_least} above atMost {given.at_most}"
        yield Mismatch(path, found, "atLeast up to atMost")


def unknown_accelerator(raw: Mapping[str, Any], accelerators: Collection[str]) -> Iterator[Mismatch]:
    """An accelerator that an entry names and no file describes; found also if the entry has other defects.

    `accelerators` are the keys of all that are described, valid or not.
    """
    use = raw.get("accelerator")
    model = use.get("model") if isinstance(use, Mapping) else None
    if isinstance(model, str) and model not in accelerators:
        yield Mismatch(
            ("accelerator", "model"),
            repr(model),
            "the key of an entry under accelerators",
            question(completed(model, accelerators)),
        )


def mismatches(entry: schema.InstanceTypeEntry) -> Iterator[Mismatch]:
    """Everything in the entry that contradicts itself."""
    use = entry.accelerator
    yield from _memory_mismatches(use.memory if use else None, ("accelerator", "memory"))
    if use is None and entry.pci is not None:
        yield Mismatch(("pci",), "PCI facts without accelerator", "accelerator and pci, or neither")
    if use is not None and entry.pci is not None:
        yield from _pci_mismatches(entry.pci, _devices(use.count), ("pci",))
    for index, card in enumerate(entry.network_cards):
        yield from _pci_mismatches(card, card.count, ("networkCards", index))
    if isinstance(entry.efa_cards, list) and sorted(set(entry.efa_cards)) != entry.efa_cards:
        yield Mismatch(("efaCards",), "indexes that are not ascending", "each card once, in ascending order")
    elif isinstance(entry.efa_cards, list) and len(entry.efa_cards) != _efa_devices(entry):
        found = f"{len(entry.efa_cards)} cards for {_efa_devices(entry)} EFA devices"
        yield Mismatch(("efaCards",), found, "one index for each device of kind efa under networkCards")
    if sum(card.count for card in entry.network_cards if card.primary) > 1:
        yield Mismatch(("networkCards",), "several primary cards", "one card with primary: true, count 1")


def reservation_of(entry: node_schema.NodeEntry) -> NodeReservation:
    kube = entry.kube_reserved
    return NodeReservation(
        image=entry.image,
        memory_overhead=entry.memory_overhead,
        kernel_base=entry.kernel_memory.base,
        kernel_tiers=_tiers(entry.kernel_memory.tiers),
        memory_base=kube.memory.base,
        memory_per_pod=kube.memory.per_pod,
        memory_tiers=_tiers(kube.memory.tiers),
        cpu_tiers=_tiers(kube.cpu),
        eviction_memory=entry.eviction.memory,
        eviction_disk=entry.eviction.disk,
        disk=_of_disk(kube.disk),
        root_disk=entry.root_disk,
        disk_overhead=_of_disk(entry.disk_overhead),
        local_disks=LocalDisks(tuple(entry.local_disks.families), entry.local_disks.reserved)
        if entry.local_disks
        else LocalDisks(),
        pods=tuple(PodRange(p.least, p.most, p.vcpu_up_to) for p in entry.max_pods),
        provenance=_provenance(entry.provenance),
    )


def _of_disk(entry: node_schema.DiskReservedEntry) -> DiskReservation:
    return DiskReservation(entry.base, entry.share, entry.most_share, entry.most)


def reservation_mismatches(entry: node_schema.NodeEntry) -> Iterator[Mismatch]:
    """Pod ranges that leave a size out."""
    bounds = [range_.vcpu_up_to for range_ in entry.max_pods]
    if bounds[-1] is not None or None in bounds[:-1]:
        yield Mismatch(("maxPods",), f"bounds {bounds}", "rising vcpuUpTo, and a last range without it")


def driver_mismatches(entry: DriverEntry) -> Iterator[Mismatch]:
    """Names that shipped drivers have."""
    shipped = driver_facts()
    if entry.name in shipped:
        allowed = f"a name of its own; {', '.join(shipped)} are shipped with Foreslice"
        yield Mismatch(("name",), repr(entry.name), allowed)
    if any(entry.driver == facts.driver for facts in shipped.values()):
        yield Mismatch(("driver",), repr(entry.driver), "a driver that is not shipped with Foreslice")
    taken = {row.name for facts in shipped.values() for row in facts.device_classes}
    for index, found in enumerate(entry.device_classes):
        if found.name in taken:
            allowed = "a name that no shipped driver's DeviceClass has"
            yield Mismatch(("deviceClasses", index, "name"), repr(found.name), allowed)


def instance_type_of(
    entry: schema.InstanceTypeEntry, accelerators: Mapping[str, Accelerator], *, reserved: NodeReservation, origin: str
) -> InstanceType:
    """The value of an instance type entry without mismatches."""
    use = entry.accelerator
    return InstanceType(
        cloud=entry.cloud,
        name=entry.name,
        machine=entry.machine or "",
        architecture=entry.architecture,
        vcpu=entry.vcpu,
        memory=entry.memory,
        accelerator=_accelerator_in(entry.cloud, use, accelerators[use.model]) if use else None,
        accelerator_count=use.count if use else Fraction(0),
        placements=_placements(entry.pci, _devices(use.count)) if use and entry.pci else (),
        fabric=_fabric(entry.fabric),
        topology=entry.topology,
        slice_topologies=tuple(entry.slice_topologies),
        cpu=_cpu(entry.cpu),
        network_cards=tuple(card for group in entry.network_cards for card in _cards(group)),
        efa_cards=_efa_cards(entry),
        network=entry.network,
        local_nvme_gb=entry.local_nvme_gb,
        capacity_types=tuple(kind for kind in CapacityType if kind in entry.capacity_types),
        prices=_prices(entry.prices),
        zones=FrozenMap({region: tuple(zones) for region, zones in entry.zones.items()}),
        zone_prices=FrozenMap({place: _prices(prices) for place, prices in entry.zone_prices.items()}),
        unpriced=entry.unpriced,
        min_driver=entry.min_driver,
        max_driver=entry.max_driver,
        bare_metal=entry.bare_metal,
        extended_resources=FrozenMap(entry.extended_resources),
        reservation=reserved,
        allocatable=FrozenMap(entry.allocatable),
        notes=tuple(entry.notes),
        provenance=_provenance(entry.provenance),
        origin=origin,
    )


def _accelerator_in(cloud: str, use: schema.AcceleratorUse, model: Accelerator) -> Accelerator:
    """The model with the values of this type. `productName: null` there: the name is unknown for the type."""
    if "product_name" in use.model_fields_set:
        model = replace(model, **_named(use.product_name))
    if use.memory is not None:
        model = replace(model, **_sized(use.memory))
    if use.api_name is not None:
        model = replace(model, api_names=model.api_names.with_items({cloud: use.api_name}))
    return model


def _named(given: str | schema.OneOfEntry | None) -> dict[str, Any]:
    """The fields of an accelerator for its name: known, one of a few, or not known."""
    if isinstance(given, schema.OneOfEntry):
        return {"product_name": None, "product_names": tuple(given.one_of)}
    return {"product_name": given, "product_names": ()}


def _sized(given: Quantity | schema.BoundsEntry | None) -> dict[str, Any]:
    """The fields of an accelerator for its memory: exact, within bounds, or not known."""
    if isinstance(given, schema.BoundsEntry):
        return {"memory": None, "memory_bounds": (given.at_least, given.at_most)}
    return {"memory": given, "memory_bounds": None}


def _prices(entries: Mapping[CapacityType, schema.PriceEntry | None]) -> FrozenMap[CapacityType, Price]:
    return FrozenMap(
        {kind: Price(p.usd_per_hour, p.region, p.date, p.guess) for kind, p in entries.items() if p is not None}
    )


def _tiers(entries: Sequence[node_schema.TierEntry]) -> tuple[Tier, ...]:
    return tuple(Tier(entry.share, entry.up_to) for entry in entries)


def _devices(count: Fraction) -> int:
    return -(-count.numerator // count.denominator)


def _provenance(entries: Mapping[K, schema.ProvenanceEntry]) -> FrozenMap[str, Provenance]:
    return FrozenMap({str(group): Provenance(p.source, p.date, p.guess) for group, p in entries.items()})


def _fabric(entry: schema.FabricEntry | None) -> Fabric:
    if entry is None:
        return Fabric()
    return Fabric(entry.link, entry.shape, entry.gigabytes_per_second, tuple(entry.domain_nodes))


def _cpu(entry: schema.CpuEntry | None) -> CpuTopology:
    return CpuTopology(entry.sockets, entry.numa_nodes, entry.threads_per_core) if entry else UNKNOWN_CPU


def _efa_cards(entry: schema.InstanceTypeEntry) -> tuple[int, ...] | None:
    if entry.efa_cards == "unknown":
        return None
    return tuple(range(_efa_devices(entry)) if entry.efa_cards is None else entry.efa_cards)


def _efa_devices(entry: schema.InstanceTypeEntry) -> int:
    return sum(card.count for card in entry.network_cards if card.kind == "efa")


def _cards(entry: schema.NetworkCardEntry) -> Iterator[NetworkCard]:
    places = _placements(entry, entry.count)
    return (NetworkCard(entry.kind, place, entry.subsystem, entry.primary) for place in places)


def _placements(entry: schema.PciEntry, count: int) -> tuple[PciPlacement, ...]:
    roots: Sequence[PcieRoot] = entry.root or [RootGroup(group) for group in entry.root_group]
    columns = (_spread(entry.bus, count), _spread(roots, count), _spread(entry.numa, count))
    return tuple(PciPlacement(bus, root, numa) for bus, root, numa in zip(*columns, strict=True))


def _spread(values: Sequence[T], count: int) -> Sequence[T | None]:
    """`values` repeated evenly in order: [a, b] for 4 is [a, a, b, b]."""
    if not values:
        return [None] * count
    return [values[index * len(values) // count] for index in range(count)]


def _pci_mismatches(entry: schema.PciEntry, count: int, path: Path) -> Iterator[Mismatch]:
    if entry.root and entry.root_group:
        yield Mismatch((*path, "rootGroup"), "root and rootGroup", "one of them")
    columns: dict[str, Sequence[object]] = {
        "root": entry.root,
        "rootGroup": entry.root_group,
        "bus": entry.bus,
        "numa": entry.numa,
    }
    for name, values in columns.items():
        if values and (count % len(values) or (name == "bus" and len(values) != count)):
            fitting = (
                f"{count} values" if name == "bus" else f"{count} values, or a divisor of {count} to spread evenly"
            )
            yield Mismatch((*path, name), f"{len(values)} values for {count} devices", fitting)
    if len(set(entry.bus)) != len(entry.bus):
        yield Mismatch((*path, "bus"), "the same address twice", "one address per device")
