"""InstanceType and Accelerator values → catalog entries as a file would have them; the way back from build.py.

For exports and for comparing catalogs field by field. What is absent is left out, so an entry says what is known.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any, TypeAlias

from instance_catalog.kubernetes.quantity import Quantity
from instance_catalog.types.instance_type import (
    Accelerator,
    CapacityType,
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
            "productName": _name(accelerator),
            "architecture": accelerator.architecture,
            "cudaComputeCapability": accelerator.cuda_compute_capability,
            "brand": accelerator.brand,
            "memory": _memory(accelerator),
            "apiMemory": _text(accelerator.api_memory),
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
            "cpu": _present(
                {
                    "sockets": t.cpu.sockets,
                    "numaNodes": t.cpu.numa_nodes,
                    "threadsPerCore": t.cpu.threads_per_core,
                }
            ),
            "networkCards": [_cards(list(group)) for _, group in groupby(t.network_cards, key=_card_kind)],
            "efaCards": _efa_cards(t),
            "network": t.network or None,
            "localNvmeGB": t.local_nvme_gb,
            "capacityTypes": [kind.value for kind in t.capacity_types],
            "zones": {region: list(zones) for region, zones in t.zones.items()},
            "prices": _prices(t.prices),
            "zonePrices": {place: _prices(prices) for place, prices in t.zone_prices.items()},
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


def _efa_cards(t: InstanceType) -> list[int] | str | None:
    if t.efa_cards is None:
        return "unknown"
    return None if t.efa_cards == tuple(range(len(t.cards("efa")))) else list(t.efa_cards)


def _prices(prices: Mapping[CapacityType, Price]) -> Entry:
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
    """What differs from the model is written, as null where the type's name is not known."""
    accelerator = t.accelerator
    if accelerator is None:
        return None
    model = models[accelerator.key]
    whole = t.accelerator_count.denominator == 1
    found: Entry = {"model": accelerator.key, "count": int(t.accelerator_count) if whole else str(t.accelerator_count)}
    if _name(accelerator) != _name(model):
        found["productName"] = _name(accelerator)
    memory = _memory(accelerator)
    if memory is not None and memory != _memory(model):
        found["memory"] = memory
    if accelerator.api_names.get(t.cloud) != model.api_names.get(t.cloud):
        found["apiName"] = accelerator.api_names.get(t.cloud)
    return found


def _name(accelerator: Accelerator) -> str | Entry | None:
    return {"oneOf": list(accelerator.product_names)} if accelerator.product_names else accelerator.product_name


def _memory(accelerator: Accelerator) -> str | Entry | None:
    if accelerator.memory_bounds is None:
        return _text(accelerator.memory)
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


def _text(quantity: Quantity | None) -> str | None:
    return None if quantity is None else str(quantity)
