"""Drivers described in a catalog file: their templates filled with the facts of a type.

The whole check of a template is in drivers/schema.py; here every template can be filled. Must not know other drivers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeAlias

from instance_catalog.drivers.custom import (
    AttributeTemplate,
    CustomDriver,
    DeviceTemplate,
    fields_in,
    only_field,
)
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.profile import KubernetesProfile
from instance_catalog.kubernetes.quantity import Quantity
from instance_catalog.kubernetes.resource_slice import (
    AttributeKind,
    AttributeValue,
    Capacity,
    Device,
    RuntimeOnly,
    Version,
)
from instance_catalog.prediction.driver import MOST_DEVICES, SliceContents, devices_in_chunks
from instance_catalog.prediction.pci import bus_id, numa_node, pcie_root
from instance_catalog.prediction.tokens import catalog_gap, on_node
from instance_catalog.types.instance_type import InstanceType, NetworkCard, PciPlacement

# A field's value; None: the catalog does not have it.
_Facts: TypeAlias = Mapping[str, AttributeValue | None]


def runs_on(instance_type: InstanceType, driver: CustomDriver) -> bool:
    """True if any template makes a device on the type."""
    return next(_devices(instance_type, driver), None) is not None


def contents(
    instance_type: InstanceType, driver: CustomDriver, kubernetes: KubernetesProfile
) -> tuple[SliceContents, ...]:
    """The devices template by template, in as many slices as they need.

    Without its gate the API server drops nodeAllocatableResources (pkg/registry/resource/resourceslice/strategy.go,
    v1.37.2).
    """
    taking = kubernetes.devices_take_node_amounts
    return devices_in_chunks(list(_devices(instance_type, driver, taking=taking)), MOST_DEVICES)


def _devices(instance_type: InstanceType, driver: CustomDriver, *, taking: bool = False) -> Iterator[Device]:
    for template in driver.devices:
        matching = [
            facts
            for facts in _hardware(instance_type, template)
            if all(str(facts[name]) == wanted for name, wanted in template.where.items())
        ]
        for index, facts in enumerate(matching):
            counted = {**facts, "index": index, "count": len(matching)}
            yield _device(instance_type, template, counted, taking=taking)


def _hardware(instance_type: InstanceType, template: DeviceTemplate) -> Iterator[_Facts]:
    """The fields of each repetition of a template."""
    common: _Facts = {
        "instanceType": instance_type.name,
        "cloud": instance_type.cloud,
        "vcpu": instance_type.vcpu,
    }
    match template.for_each:
        case "node":
            yield common
        case "accelerator":
            for index in range(instance_type.device_count):
                own = _placed(instance_type, instance_type.placement(index), f"gpu-{index}")
                yield {**common, **own, **_model(instance_type)}
        case "networkCard":
            cards = [card for card in instance_type.network_cards if not card.primary]
            for index, card in enumerate(cards):
                own = _placed(instance_type, card.placement, f"{card.kind}-{index:02d}")
                yield {**common, **own, **_card(card)}


def _placed(instance_type: InstanceType, placement: PciPlacement, device: str) -> _Facts:
    """Tokens are those of the shipped drivers, so that devices of both are known to be aligned."""
    return {
        "pciBusID": bus_id(placement.bus_id, device),
        "pcieRoot": pcie_root(instance_type, placement.pcie_root, device),
        "numaNode": numa_node(instance_type, placement.numa_node, device),
    }


def _model(instance_type: InstanceType) -> _Facts:
    accelerator = instance_type.accelerator
    if accelerator is None:
        return {}
    return {
        "vendor": accelerator.vendor,
        "model": accelerator.model,
        "productName": accelerator.product_name,
        "architecture": accelerator.architecture,
        "cudaComputeCapability": accelerator.cuda_compute_capability,
    }


def _card(card: NetworkCard) -> _Facts:
    return {"kind": card.kind, "subsystem": card.subsystem, "rdma": card.rdma}


def _device(instance_type: InstanceType, template: DeviceTemplate, facts: _Facts, *, taking: bool) -> Device:
    name = template.name.replace("{index}", str(facts["index"]))
    attributes = {key: _filled(attribute, facts, name, key) for key, attribute in template.attributes.items()}
    capacity = {key: _amount(instance_type, text) for key, text in template.capacity.items()}
    return Device(
        name,
        FrozenMap(attributes),
        FrozenMap(capacity),
        allow_multiple_allocations=template.allow_multiple_allocations,
        node_allocatable=template.node_allocatable if taking else FrozenMap(),
    )


def _filled(template: AttributeTemplate, facts: _Facts, device: str, attribute: str) -> AttributeValue:
    """The attribute's value. If a field of it is unknown: a token, the field's own if the text is that field alone."""
    if template.text is None:
        return on_node(template.kind, device, attribute)
    text = template.text
    for name in fields_in(template.text):
        value = facts[name]
        if isinstance(value, RuntimeOnly) and only_field(template.text) and value.kind == template.kind:
            return value
        if value is None or (isinstance(value, RuntimeOnly) and value.is_catalog_gap):
            return catalog_gap(template.kind, str(facts["instanceType"]), device, attribute)
        if isinstance(value, RuntimeOnly):
            return on_node(template.kind, device, attribute)
        text = text.replace(f"{{{name}}}", str(value).lower() if isinstance(value, bool) else str(value))
    return _typed(template.kind, text)


def _typed(kind: AttributeKind, text: str) -> AttributeValue:
    match kind:
        case "string":
            return text
        case "int":
            return int(text)
        case "bool":
            return text == "true"
        case "version":
            return Version(text)


def _amount(instance_type: InstanceType, text: str) -> Capacity:
    """A quantity, the number of CPUs, or the accelerator's memory; the cloud's figure for that is a guess."""
    match only_field(text):
        case None:
            return Capacity(Quantity.stored(text))
        case "vcpu":
            return Capacity(Quantity.of(instance_type.vcpu))
        case _:
            accelerator = instance_type.accelerator
            known = accelerator.memory if accelerator else None
            memory = known or (accelerator.api_memory if accelerator else None) or Quantity.of(0)
            return Capacity(Quantity.of(memory.int64_value(), "BinarySI"), guess=known is None)
