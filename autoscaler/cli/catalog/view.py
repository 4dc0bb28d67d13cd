"""Instance types as rows, sheets and plain data, for `foreslice catalog`.

Data uses the field names of catalog files, so that it can be copied into an overlay.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, Final

from instance_catalog.drivers.profile import DriverSet
from instance_catalog.files.file_entry import (
    count_entry,
    cpu_entry,
    device_memory,
    prices_entry,
    product_name,
    text_or_none,
)
from instance_catalog.kubernetes import labels
from instance_catalog.kubernetes.quantity import Quantity
from instance_catalog.prediction.runnable import what_else_it_needs, why_not_runnable
from instance_catalog.types.instance_type import (
    Accelerator,
    CpuTopology,
    Fabric,
    InstanceType,
    NetworkCard,
    PciPlacement,
    Price,
    Provenance,
    RootGroup,
    provenance_of,
)
from instance_catalog.types.node_allocatable import node_allocatable

COLUMNS: Final = ("name", "cloud", "vcpu", "memory", "accelerator", "count", "memory/acc", "$/h")
WIDE_COLUMNS: Final = (*COLUMNS, labels.ACCELERATOR, "arch", "sold as")
_UNKNOWN: Final = "-"


def as_row(instance_type: InstanceType) -> tuple[str, ...]:
    accelerator = instance_type.accelerator
    price = instance_type.price
    return (
        instance_type.name,
        instance_type.cloud,
        str(instance_type.vcpu),
        str(instance_type.memory),
        (instance_type.share or accelerator.model) if accelerator else _UNKNOWN,
        str(instance_type.accelerator_count),
        _device_memory(accelerator),
        f"{'~' if price.guess else ''}{price.usd_per_hour:.4f}" if price else _UNKNOWN,
    )


def as_wide_row(instance_type: InstanceType) -> tuple[str, ...]:
    sold_as = ",".join(kind.value for kind in instance_type.capacity_types)
    key = instance_type.accelerator.key if instance_type.accelerator else _UNKNOWN
    return (*as_row(instance_type), key, instance_type.architecture, sold_as)


def as_data(instance_type: InstanceType) -> dict[str, Any]:
    """Everything, as JSON and YAML show it. Absent and null: not known."""
    accelerator = instance_type.accelerator
    return {
        "name": instance_type.name,
        "cloud": instance_type.cloud,
        "machine": instance_type.machine_type,
        "architecture": instance_type.architecture,
        "vcpu": instance_type.vcpu,
        "cpu": cpu_entry(instance_type.cpu),
        "memory": str(instance_type.memory),
        "accelerator": _accelerator(accelerator, instance_type) if accelerator else None,
        "devices": instance_type.device_count,
        "pci": [_placement(place) for place in instance_type.placements],
        "fabric": _fabric_data(instance_type.fabric),
        "topology": instance_type.topology,
        "sliceTopologies": list(instance_type.slice_topologies),
        "networkCards": [_card(card) for card in instance_type.network_cards],
        "efaCards": None if instance_type.efa_cards is None else list(instance_type.efa_cards),
        "network": instance_type.network,
        "localNvmeGB": instance_type.local_nvme_gb,
        "capacityTypes": [kind.value for kind in instance_type.capacity_types],
        "zones": {region: list(zones) for region, zones in instance_type.zones.items()},
        "prices": prices_entry(instance_type.prices),
        "zonePrices": {place: prices_entry(prices) for place, prices in instance_type.zone_prices.items()},
        "unpriced": instance_type.unpriced,
        "minDriver": instance_type.min_driver,
        "maxDriver": instance_type.max_driver,
        "bareMetal": instance_type.bare_metal,
        "extendedResources": _quantities(instance_type.extended_resources),
        "allocatable": _quantities(node_allocatable(instance_type)),
        "notes": list(instance_type.notes),
        "provenance": _provenance(instance_type.provenance),
        "file": instance_type.origin,
    }


def _fabric_data(fabric: Fabric) -> dict[str, Any]:
    return {
        "link": fabric.link,
        "shape": fabric.shape,
        "gigabytesPerSecond": fabric.gigabytes_per_second,
        "domainNodes": list(fabric.domain_nodes),
    }


def as_sheet(instance_type: InstanceType) -> list[tuple[str, str, str]]:
    """Field, value and source, line by line."""
    return [(field, value, _source(facts, group)) for field, value, facts, group in _lines(instance_type) if value]


_Line = tuple[str, str, Mapping[str, Provenance], str]


def _lines(t: InstanceType) -> Iterator[_Line]:
    facts = t.provenance
    yield "name", t.name, {}, ""
    yield "cloud", t.cloud, {}, ""
    yield "machine type", t.machine_type if t.machine_type != t.name else "", facts, "shape"
    yield "architecture", t.architecture, facts, "shape"
    yield "vCPU", str(t.vcpu), facts, "shape"
    yield "CPU layout", _cpu(t.cpu), facts, "cpu"
    yield "memory", str(t.memory), facts, "shape"
    yield "local NVMe", f"{t.local_nvme_gb} GB" if t.local_nvme_gb else "", facts, "shape"
    if t.accelerator:
        yield from _accelerator_lines(t, t.accelerator)
    yield "fabric", _fabric(t), facts, "fabric"
    yield "topology", t.topology or "", facts, "accelerator"
    yield "topologies of slices", ", ".join(t.slice_topologies), facts, "accelerator"
    yield "NVIDIA driver", _driver_branches(t), facts, "driver"
    yield from _runnable(t)
    yield "bare metal", "yes" if t.bare_metal else "", facts, "shape"
    for resource, amount in t.extended_resources.items():
        yield f"extended resource {resource}", str(amount), facts, "extendedResources"
    yield "PCIe roots", _roots([p.pcie_root for p in t.placements]), facts, "pci"
    for kind, group in groupby(t.network_cards, key=lambda card: card.kind):
        cards = list(group)
        roots = _roots([card.placement.pcie_root for card in cards])
        yield f"network {kind}", f"{len(cards)}{' at ' + roots if roots else ''}", facts, "network"
    yield "network", t.network, facts, "network"
    yield from _market_lines(t)
    for resource, amount in node_allocatable(t).items():
        reserved = {"": Provenance(f"model of {t.reservation.image or 'nothing reserved'} nodes", guess=True)}
        measured = resource in t.allocatable
        yield f"allocatable {resource}", str(amount), facts if measured else reserved, "allocatable"
    for note in t.notes:
        yield "note", note, {}, ""
    yield "file", t.origin, {}, ""


def _market_lines(t: InstanceType) -> Iterator[_Line]:
    facts = t.provenance
    yield "sold as", ", ".join(kind.value for kind in t.capacity_types), facts, "shape"
    for kind, price in t.prices.items():
        text = f"{_dollars(price)} in {price.region} ({price.date})"
        yield f"price {kind.value}", text, facts, "price"
    for place, prices in t.zone_prices.items():
        for kind, price in prices.items():
            yield f"price {kind.value} in {place}", f"{_dollars(price)} ({price.date})", facts, "price"
    for region, zones in t.zones.items():
        yield f"zones of {region}", ", ".join(zones) or "none", facts, "shape"
    if not t.prices and not t.zone_prices:
        why = f" ({t.unpriced})" if t.unpriced else ""
        yield "price", f"not known{why}: never bought until an overlay gives one", {}, ""


def _accelerator_lines(t: InstanceType, accelerator: Accelerator) -> Iterator[_Line]:
    facts = accelerator.provenance
    use = provenance_of(t.provenance, "accelerator")
    # If the kind of accelerator is a guess, its model's name here is a guess as well.
    named = (t.provenance, "accelerator") if use and use.guess else (facts, "identity")
    count = f"{t.share}, one device" if t.share else f"{t.accelerator_count} x {accelerator.model}"
    yield "accelerators", count, t.provenance, "accelerator"
    yield "accelerator key", accelerator.key, {}, ""
    one_of = f"one of {', '.join(accelerator.product_names)}" if accelerator.product_names else ""
    yield "product name", accelerator.product_name or one_of or _not_known(accelerator, "productName"), *named
    yield "GPU architecture", accelerator.architecture or "", facts, "identity"
    yield "compute capability", accelerator.cuda_compute_capability or "", facts, "identity"
    yield "brand", accelerator.brand or "", facts, "identity"
    bounds = "{} to {}".format(*accelerator.memory_bounds) if accelerator.memory_bounds else ""
    yield "driver memory", str(accelerator.memory or bounds or _not_known(accelerator, "memory")), facts, "memory"
    yield "API memory", str(accelerator.api_memory) if accelerator.api_memory else "", facts, "identity"
    yield "API name", accelerator.api_names.get(t.cloud, ""), facts, "identity"
    yield "partitions (MIG)", accelerator.mig_table or "no", {}, ""


def _not_known(accelerator: Accelerator, field: str) -> str:
    return f"not known ({accelerator.unknown.get(field, 'no source')}): selectors on it are unknown"


def _driver_branches(t: InstanceType) -> str:
    bounds = (f"{t.min_driver} or newer" if t.min_driver else "", f"up to {t.max_driver}" if t.max_driver else "")
    return ", ".join(bound for bound in bounds if bound)


def _runnable(t: InstanceType) -> Iterator[_Line]:
    """The reason why only pools with a driver branch of their own are offered the type, and its other requirements."""
    found = why_not_runnable(t, DriverSet(()))
    if found is not None:
        yield "not offered", found.problem, {"": Provenance(found.source)}, "driver"
    if needed := what_else_it_needs(t):
        yield "needs more", f"{needed.problem}; {needed.next_step}", {"": Provenance(needed.source)}, "driver"


def _dollars(price: Price) -> str:
    return f"{price.usd_per_hour} $/h{', a guess,' if price.guess else ''}"


def _cpu(cpu: CpuTopology) -> str:
    known = {"sockets": cpu.sockets, "NUMA nodes": cpu.numa_nodes, "threads a core": cpu.threads_per_core}
    return ", ".join(f"{name}: {count}" for name, count in known.items() if count is not None)


def _fabric(t: InstanceType) -> str:
    fabric = t.fabric
    if fabric.link is None:
        return ""
    speed = f"{fabric.gigabytes_per_second} GB/s each" if fabric.gigabytes_per_second else ""
    domain = f"domains of {' or '.join(map(str, fabric.domain_nodes))} nodes" if fabric.multi_node else ""
    return ", ".join(part for part in (f"{fabric.link} {fabric.shape}".strip(), speed, domain) if part)


def _roots(roots: Sequence[str | RootGroup | None]) -> str:
    """`pci0000:44, pci0000:55 x4`: neighbours with the same root are counted."""
    runs = [(root, len(list(run))) for root, run in groupby(roots)]
    shown = [(f"group {r.group}" if isinstance(r, RootGroup) else r, n) for r, n in runs if r is not None]
    return ", ".join(f"{root} x{count}" if count > 1 else str(root) for root, count in shown)


def _source(facts: Mapping[str, Provenance], group: str) -> str:
    found = provenance_of(facts, group)
    if found is None:
        return ""
    return " ".join(part for part in ("(guess)" if found.guess else "", found.source, found.date) if part)


def _device_memory(accelerator: Accelerator | None) -> str:
    if accelerator is None or (accelerator.memory or accelerator.api_memory) is None:
        return _UNKNOWN
    return str(accelerator.memory) if accelerator.memory else f"~{accelerator.api_memory}"


def _accelerator(accelerator: Accelerator, t: InstanceType) -> dict[str, Any]:
    return {
        "model": accelerator.key,
        "count": count_entry(t.accelerator_count),
        "vendor": accelerator.vendor,
        "name": accelerator.model,
        "apiName": accelerator.api_names.get(t.cloud),
        "productName": product_name(accelerator),
        "architecture": accelerator.architecture,
        "cudaComputeCapability": accelerator.cuda_compute_capability,
        "brand": accelerator.brand,
        "memory": device_memory(accelerator),
        "apiMemory": text_or_none(accelerator.api_memory),
        "migTable": accelerator.mig_table,
        "virtual": accelerator.virtual,
        "nodeLabel": accelerator.node_label,
        "unknown": dict(accelerator.unknown),
        "provenance": _provenance(accelerator.provenance),
    }


def _placement(place: PciPlacement) -> dict[str, Any]:
    root = place.pcie_root
    known = {
        "bus": place.bus_id,
        "root": root if isinstance(root, str) else None,
        "rootGroup": root.group if isinstance(root, RootGroup) else None,
        "numa": place.numa_node,
    }
    return {field: value for field, value in known.items() if value is not None}


def _card(card: NetworkCard) -> dict[str, Any]:
    known = {"kind": card.kind, "subsystem": card.subsystem, "primary": card.primary or None}
    return {**{field: value for field, value in known.items() if value is not None}, **_placement(card.placement)}


def _provenance(facts: Mapping[str, Provenance]) -> dict[str, Any]:
    return {group: {"source": p.source, "date": p.date, "guess": p.guess} for group, p in facts.items()}


def _quantities(amounts: Mapping[str, Quantity]) -> dict[str, str]:
    return {resource: str(amount) for resource, amount in amounts.items()}
