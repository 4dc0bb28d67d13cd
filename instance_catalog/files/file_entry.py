"""InstanceType and Accelerator values → catalog entries in the form of a file; the reverse of build.py.

For exports and for comparing catalogs field by field. Unknown values are left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import groupby
from typing import Any, TypeAlias

from instance_catalog.kubernetes.quantity import Quantity
from instance_catalog.types.instance_type import (
    Accelerator,
    CapacityType,
    CpuTopology,
    InstanceType,
    NetworkCard,
    PciPlacement,
    Price,
    Provenance,
    RootGroup,
)

Entry: TypeAlias = dict[str, Any]


def accelerator_entry(accelerator: Accelerator) -> Entry:
    """The model as it is written under `accelerators`."""
    return _present(
        {
            "key": accelerator.key,
            "vendor": accelerator.vendor,
            "model": accelerator.model,
            "productName": product_name(accelerator),
            "architecture": accelerator.architecture,
            "cudaComputeCapability": accelerator.cuda_compute_capability,
            "brand": accelerator.brand,
            "memory": device_memory(accelerator),
            "apiMemory": text_or_none(accelerator.api_memory),
            "migTable": accelerator.mig_table,
            "virtual": accelerator.virtual or None,
            "nodeLabel": accelerator.node_label,
            "unknown": dict(accelerator.unknown),
            "apiNames": dict(accelerator.api_names),
            "provenance": _provenance(accelerator.provenance),
        }
    )


def type_entry(t: InstanceType, models: Mapping[str, Accelerator]) -> Entry:
    """The type as it is written under `types`, where `models` are the catalog's accelerators."""
    return _present(
        {
            "name": t.name,
            "cloud": t.cloud,
            "machine": t.machine or None,
            "architecture": t.architecture,
            "vcpu": t.vcpu,
            "memory": str(t.memory),
            "accelerator": _use(t, models),
            "pci": _pci(t.placements),
            "fabric": _fabric(t),
            "topology": t.topology,
            "sliceTopologies": list(t.slice_topologies),
            "cpu": _present(cpu_entry(t.cpu)),
            "networkCards": [_cards(list(group)) for _, group in groupby(t.network_cards, key=_card_kind)],
            "efaCards": _efa_cards(t),
            "network": t.network or None,
            "localNvmeGB": t.local_nvme_gb,
            "capacityTypes": [kind.value for kind in t.capacity_types],
            "zones": {region: list(zones) for region, zones in t.zones.items()},
            "prices": prices_entry(t.prices),
            "zonePrices": {place: prices_entry(prices) for place, prices in t.zone_prices.items()},
            "unpriced": t.unpriced or None,
            "minDriver": t.min_driver,
            "maxDriver": t.max_driver,
            "bareMetal": t.bare_metal or None,
            "extendedResources": {name: str(amount) for name, amount in t.extended_resources.items()},
            "allocatable": {name: str(amount) for name, amount in t.allocatable.items()},
            "notes": list(t.notes),
            "provenance": _provenance(t.provenance),
        }
    )


def cpu_entry(cpu: CpuTopology) -> Entry:
    """The layout of the processors; None for unknown values."""
    return {"sockets": cpu.sockets, "numaNodes": cpu.numa_nodes, "threadsPerCore": cpu.threads_per_core}


def _efa_cards(t: InstanceType) -> list[int] | str | None:
    if t.efa_cards is None:
        return "unknown"
    return None if t.efa_cards == tuple(range(len(t.cards("efa")))) else list(t.efa_cards)


def prices_entry(prices: Mapping[CapacityType, Price]) -> Entry:
    """Prices by capacity type."""
    return {
        kind.value: {
            "usdPerHour": str(price.usd_per_hour),
            "region": price.region,
            "date": price.date,
            **({"guess": True} if price.guess else {}),
        }
        for kind, price in prices.items()
    }


def _use(t: InstanceType, models: Mapping[str, Accelerator]) -> Entry | None:
    """The reference to the model, with the values that differ from it; null if the type's name is unknown."""
    accelerator = t.accelerator
    if accelerator is None:
        return None
    model = models[accelerator.key]
    found: Entry = {"model": accelerator.key, "count": count_entry(t.accelerator_count)}
    if product_name(accelerator) != product_name(model):
        found["productName"] = product_name(accelerator)
    memory = device_memory(accelerator)
    if memory is not None and memory != device_memory(model):
        found["memory"] = memory
    if accelerator.api_names.get(t.cloud) != model.api_names.get(t.cloud):
        found["apiName"] = accelerator.api_names.get(t.cloud)
    return found


def count_entry(count: Fraction) -> int | str:
    """A number, or text such as 1/8 for a part of a card."""
    return int(count) if count.denominator == 1 else str(count)


def product_name(accelerator: Accelerator) -> str | Entry | None:
    """The product name, or the names of which it is one; None: not known."""
    return {"oneOf": list(accelerator.product_names)} if accelerator.product_names else accelerator.product_name


def device_memory(accelerator: Accelerator) -> str | Entry | None:
    """The memory that the driver publishes, or its bounds; None: not known."""
    if accelerator.memory_bounds is None:
        return text_or_none(accelerator.memory)
    low, high = accelerator.memory_bounds
    return {"atLeast": str(low), "atMost": str(high)}


def _pci(places: Sequence[PciPlacement]) -> Entry:
    """Columns that are known for every device; a column of one value applies to all."""
    roots = [place.pcie_root for place in places]
    columns: dict[str, list[Any]] = {
        "bus": [place.bus_id for place in places],
        "root": [root if isinstance(root, str) else None for root in roots],
        "rootGroup": [root.group if isinstance(root, RootGroup) else None for root in roots],
        "numa": [place.numa_node for place in places],
    }
    return {name: values for name, values in columns.items() if values and None not in values}


def _card_kind(card: NetworkCard) -> tuple[object, ...]:
    place = card.placement
    known = (place.bus_id is None, place.pcie_root is None, isinstance(place.pcie_root, str), place.numa_node is None)
    return card.kind, card.subsystem, card.primary, *known


def _cards(cards: Sequence[NetworkCard]) -> Entry:
    first = cards[0]
    count = len(cards) if len(cards) > 1 else None
    named = {"kind": first.kind, "count": count, "subsystem": first.subsystem, "primary": first.primary or None}
    return {**_present(named), **_pci([card.placement for card in cards])}


def _fabric(t: InstanceType) -> Entry:
    fabric = t.fabric
    return _present(
        {
            "link": fabric.link,
            "shape": fabric.shape or None,
            "gigabytesPerSecond": fabric.gigabytes_per_second,
            "domainNodes": list(fabric.domain_nodes),
        }
    )


def _provenance(facts: Mapping[str, Provenance]) -> Entry:
    return {
        group: {"source": fact.source, "date": fact.date, **({"guess": True} if fact.guess else {})}
        for group, fact in facts.items()
    }


def _present(fields: Mapping[str, Any]) -> Entry:
    return {name: value for name, value in fields.items() if value is not None and value not in ({}, [])}


def text_or_none(quantity: Quantity | None) -> str | None:
    """As Kubernetes writes it."""
    return None if quantity is None else str(quantity)
