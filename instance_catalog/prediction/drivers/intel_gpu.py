"""gpu.intel.com: Flex, Max and Arc GPUs (intel/intel-resource-drivers-for-kubernetes gpu-v0.11.0).

One slice; the driver's device order is random. Virtual functions exist only if the node image creates them, so none are
predicted. Must not know other drivers.
"""

from __future__ import annotations

from typing import Final

from instance_catalog.drivers.profile import DriverProfile
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.profile import KubernetesProfile
from instance_catalog.kubernetes.quantity import Quantity
from instance_catalog.kubernetes.resource_slice import AttributeValue, Capacity, Device
from instance_catalog.prediction.driver import Prediction, SliceContents
from instance_catalog.prediction.pci import PCI_BUS_ID, PCIE_ROOT, bus_id, in_name, pcie_root
from instance_catalog.prediction.tokens import catalog_gap, on_node
from instance_catalog.types.instance_type import InstanceType

INTEL: Final = "Intel"
_MILLICORES: Final = Capacity(Quantity.of(1000))  # of every GPU


def runs_on(instance_type: InstanceType) -> bool:
    return instance_type.accelerator is not None and instance_type.accelerator.vendor == INTEL


def contents(
    instance_type: InstanceType, profile: DriverProfile, kubernetes: KubernetesProfile
) -> tuple[SliceContents, ...]:
    """One slice with every GPU."""
    return (SliceContents(tuple(_device(instance_type, profile, i) for i in range(instance_type.device_count))),)


def _device(instance_type: InstanceType, profile: DriverProfile, index: int) -> Device:
    accelerator, placement = instance_type.accelerator, instance_type.placement(index)
    assert accelerator is not None  # runs_on
    facts = profile.facts.models.get(accelerator.model, FrozenMap())
    name = device_name("gpu", index, placement.bus_id, facts.get("pci_id"))
    address = bus_id(placement.bus_id, name)
    root = pcie_root(instance_type, placement.pcie_root, name)
    attributes: dict[str, AttributeValue] = {
        "model": accelerator.model,
        "family": facts.get("family", "Unknown"),
        "driver": facts.get("kernel_driver") or on_node("string", "image", "driver"),
        "type": "gpu",
        "sriov": on_node("bool", name, "sriov"),
        "health": on_node("string", name, "health"),
        "pciId": facts.get("pci_id") or catalog_gap("string", accelerator.key, "pciId"),
        "pciAddress": address,
        "pciRoot": root.partition(":")[2] if isinstance(root, str) else on_node("string", name, "pciRoot"),
        PCI_BUS_ID: address,
        PCIE_ROOT: root,
    }
    memory = accelerator.memory or accelerator.api_memory or Quantity.of(0)
    figure = Capacity(Quantity.of(memory.int64_value(), "BinarySI"), guess=accelerator.memory is None)
    return Device(name, FrozenMap(attributes), FrozenMap({"memory": figure, "millicores": _MILLICORES}))


def device_name(kind: str, index: int, address: str | None, pci_id: str | None) -> str:
    """0000-53-00-0-0x56c1. No selector can read names, so one of which a part is not known may be made up."""
    return f"{in_name(address)}-{pci_id}" if address and pci_id else f"{kind}-{index:02d}"


PREDICTION: Final = Prediction(runs_on, contents)
