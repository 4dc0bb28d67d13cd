"""The overlay that repairs a drift: catalog facts taken from a node's published slices.

It is a proposal for review and for another verification: with it over the catalog, the prediction should agree.
Differences without a field in the catalog (a driver's release, the effects of its options) are not repaired. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

from instance_catalog.drift.compare import Aspect, Unified
from instance_catalog.drivers.facts import CardFacts, driver_facts
from instance_catalog.kubernetes.resource_slice import AttributeValue, Device, ListValue, Version, exact
from instance_catalog.prediction.drivers import aws_net
from instance_catalog.prediction.drivers.nvidia_gpu import runs_on
from instance_catalog.prediction.pci import NUMA_NODE, PCI_BUS_ID, PCIE_ROOT
from instance_catalog.types.instance_type import InstanceType, NetworkCard, RootGroup

_Content: TypeAlias = dict[str, Any]

_GPU_DRIVER: Final = "gpu.nvidia.com"
_NETWORK_DRIVER: Final = "dra.net"
# Attribute → field of the accelerator model. They apply to every type that has the model.
_OF_MODEL: Final = {
    "architecture": "architecture",
    "brand": "brand",
    "cudaComputeCapability": "cudaComputeCapability",
}
_GPU_PCI: Final = frozenset({PCI_BUS_ID, "pcieBusID", PCIE_ROOT, NUMA_NODE})
# dra.vpc.amazonaws.com/deviceType → NetworkCard.kind
_KINDS_OF_AWS: Final[Mapping[AttributeValue, str]] = {**{v: k for k, v in aws_net.DEVICE_TYPES.items()}, "efa": "efa"}
_CARD_PCI: Final = frozenset({"pciAddress", "pciSubsystem", "numaNode", PCIE_ROOT})


def proposal(instance_type: InstanceType, unified: Unified, *, source: str, date: str) -> _Content | None:
    """The content of a catalog file that reduces the drift; None if no content does.

    Differences are repaired, and gaps of the catalog are filled from the published slices. `source` and `date` (ISO)
    become the provenance.
    """
    changed = _changed(unified)
    gpus = _published(unified, _GPU_DRIVER, "type", "gpu") if runs_on(instance_type) else ()
    cards_of = _NETWORK_DRIVER
    cards = _published(unified, _NETWORK_DRIVER)
    if not cards and not any(card.rdma for card in instance_type.network_cards):
        # It says less of a card than the catalog may already have, and cards are replaced as a whole.
        cards_of, cards = aws_net.DRIVER, _published(unified, aws_net.DRIVER)
    use = _accelerator(instance_type, gpus, changed[_GPU_DRIVER]) if gpus else {}
    models = _model(instance_type, gpus, changed[_GPU_DRIVER]) if gpus else []
    move_gpus = bool(gpus) and ("count" in use or bool(changed[_GPU_DRIVER] & _GPU_PCI))
    move_cards = bool(cards) and bool(changed.get(cards_of, set()) & (_CARD_PCI | {""}))
    # Groups of equal roots cannot be compared with roots that are known: both learn them, or neither.
    move_cards = move_cards or (bool(cards) and move_gpus and _grouped_cards(instance_type))
    described = _cards(instance_type, cards) if move_cards else []
    move_gpus = move_gpus or (bool(gpus) and bool(described) and _grouped_gpus(instance_type))
    pci = _gpu_pci(instance_type, gpus) if move_gpus else {}
    parts: dict[str, tuple[str, object]] = {
        "accelerator": ("accelerator", use),
        "pci": ("pci", pci),
        "networkCards": ("network", described),
    }
    given = {field: value for field, (_, value) in parts.items() if value}
    if not given and not models:
        return None
    facts = {group: {"source": source, "date": date, "guess": False} for group, value in parts.values() if value}
    types = [{"name": instance_type.name, **given, "provenance": facts}]
    return {**({"types": types} if given else {}), **({"accelerators": models} if models else {})}


def _grouped_gpus(instance_type: InstanceType) -> bool:
    return any(isinstance(place.pcie_root, RootGroup) for place in instance_type.placements)


def _grouped_cards(instance_type: InstanceType) -> bool:
    return any(isinstance(card.placement.pcie_root, RootGroup) for card in instance_type.network_cards)


def _changed(unified: Unified) -> dict[str, set[str]]:
    """By driver: attributes and capacities to correct; "" if a device is missing or extra."""
    found: dict[str, set[str]] = {_GPU_DRIVER: set(), _NETWORK_DRIVER: set()}
    for difference in (*unified.differences, *unified.answers):
        whole_device = difference.aspect in (Aspect.DEVICE, Aspect.DRIVER) and not difference.field
        if whole_device or difference.published is not None:
            found.setdefault(difference.driver, set()).add(difference.field)
    return found


def _published(unified: Unified, driver: str, attribute: str = "", value: str = "") -> tuple[Device, ...]:
    devices = (device for slice_ in unified.published if slice_.driver == driver for device in slice_.devices)
    return tuple(device for device in devices if not attribute or device.attributes.get(attribute) == value)


def _accelerator(instance_type: InstanceType, gpus: Sequence[Device], changed: set[str]) -> _Content:
    found: _Content = {}
    product = _common([device.attributes.get("productName") for device in gpus])
    if "productName" in changed and isinstance(product, str):
        found["productName"] = product
    memory = {device.capacity["memory"].value for device in gpus if "memory" in device.capacity}
    if "memory" in changed and len(memory) == 1:
        found["memory"] = str(memory.pop())
    if "" in changed and len(gpus) != instance_type.device_count:
        found["count"] = len(gpus)
    return found


def _model(instance_type: InstanceType, gpus: Sequence[Device], changed: set[str]) -> list[_Content]:
    if instance_type.accelerator is None:
        return []
    values = {field: _common([d.attributes.get(name) for d in gpus]) for name, field in _OF_MODEL.items()}
    known = {field: _plain(value) for field, value in values.items() if field in changed and value is not None}
    return [{"key": instance_type.accelerator.key, **known}] if known else []


def _gpu_pci(instance_type: InstanceType, gpus: Sequence[Device]) -> _Content:
    ordered = sorted(gpus, key=lambda device: int(device.name.rpartition("-")[2]))
    columns = {
        "bus": [device.attributes.get(PCI_BUS_ID, device.attributes.get("pcieBusID")) for device in ordered],
        "root": [device.attributes.get(PCIE_ROOT) for device in ordered],
        "numa": [_scalar(device.attributes.get(NUMA_NODE)) for device in ordered],
    }
    found = _complete(columns)
    if "root" in found and _grouped_gpus(instance_type):
        found["rootGroup"] = []
    return found


def _cards(instance_type: InstanceType, devices: Sequence[Device]) -> list[_Content]:
    """The cards as a whole, because lists are not merged; [] if one of them is of no known kind."""
    found = [_primary(card) for card in instance_type.network_cards if card.primary]
    facts = driver_facts()["dranet"].cards
    for device in devices:
        kind = _kind(device, facts)
        if kind is None:
            return []
        values = device.attributes
        columns = {
            "bus": [values.get("pciAddress")],
            "root": [values.get(PCIE_ROOT)],
            "numa": [values.get("numaNode")],
        }
        subsystem = values.get("pciSubsystem")
        named = {"subsystem": subsystem} if isinstance(subsystem, str) and subsystem != facts[kind].subsystem else {}
        found.append({"kind": kind, **named, **_complete(columns)})
    return found


def _primary(card: NetworkCard) -> _Content:
    place = card.placement
    root: _Content = (
        {"rootGroup": [place.pcie_root.group]}
        if isinstance(place.pcie_root, RootGroup)
        else _complete({"root": [place.pcie_root]})
    )
    named = {"subsystem": card.subsystem} if card.subsystem else {}
    return {
        "kind": card.kind,
        "primary": True,
        **named,
        **root,
        **_complete({"bus": [place.bus_id], "numa": [place.numa_node]}),
    }


def _kind(device: Device, facts: Mapping[str, CardFacts]) -> str | None:
    """The kind of card whose vendor and device the slice names; of a kind without fixed device, its vendor.

    AWS's own driver names the kind instead.
    """
    if aws_net.DEVICE_TYPE in device.attributes:
        return _KINDS_OF_AWS.get(device.attributes[aws_net.DEVICE_TYPE])
    vendor, name = device.attributes.get("pciVendor"), device.attributes.get("pciDevice")
    exact = (kind for kind, card in facts.items() if (card.vendor, card.device) == (vendor, name))
    loose = (kind for kind, card in facts.items() if card.vendor == vendor and card.device is None)
    return next(exact, None) or next(loose, None)


def _complete(columns: Mapping[str, Sequence[AttributeValue | None]]) -> _Content:
    """The columns that have a value in every row."""
    return {name: list(values) for name, values in columns.items() if all(value is not None for value in values)}


def _common(values: Sequence[AttributeValue | None]) -> AttributeValue | None:
    return values[0] if len(set(map(exact, values))) == 1 else None


def _scalar(value: AttributeValue | None) -> AttributeValue | None:
    return value.items[0] if isinstance(value, ListValue) and len(value.items) == 1 else value


def _plain(value: AttributeValue) -> str:
    return value.text if isinstance(value, Version) else str(value)
