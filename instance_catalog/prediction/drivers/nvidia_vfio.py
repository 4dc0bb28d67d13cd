"""gpu.nvidia.com, gate PassthroughSupport: GPUs for virtual machines (kubernetes-sigs/dra-driver-nvidia-gpu vfio.go).

Every GPU is published a second time as gpu-vfio-<i>. Nothing connects the two, so the allocator may allocate both; the
driver withdraws the other one only when one is prepared. Must not know MIG.
"""

from __future__ import annotations

import uuid
from typing import Final

from instance_catalog.drivers.profile import DriverProfile
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.quantity import Quantity
from instance_catalog.kubernetes.resource_slice import AttributeValue, Capacity, Device
from instance_catalog.prediction.pci import NUMA_NODE, PCI_BUS_ID, PCIE_ROOT, bus_id, numa_node, pcie_root
from instance_catalog.prediction.tokens import catalog_gap, on_node
from instance_catalog.types.instance_type import InstanceType

_NVIDIA_VENDOR_ID: Final = "0x10de"


def devices(
    instance_type: InstanceType, profile: DriverProfile, fabric_attributes: tuple[FrozenMap[str, AttributeValue], ...]
) -> tuple[Device, ...]:
    """One device per GPU; `fabric_attributes` are added to each by the gate FabricManagerPartitioning."""
    return tuple(_device(instance_type, profile, index, extra) for index, extra in enumerate(fabric_attributes))


def _device(
    instance_type: InstanceType, profile: DriverProfile, index: int, extra: FrozenMap[str, AttributeValue]
) -> Device:
    accelerator, placement = instance_type.accelerator, instance_type.placement(index)
    assert accelerator is not None  # nvidia_gpu.runs_on
    # The GPU's name, so that unknown values of both are the same token.
    gpu, name, address = f"gpu-{index}", f"gpu-vfio-{index}", placement.bus_id
    facts = profile.facts.models.get(accelerator.model, FrozenMap())
    numa_attribute = NUMA_NODE if "numa-node" in profile.features else "numa"
    as_list = bool(profile.gates.get("DRAListTypeAttributes"))
    attributes: dict[str, AttributeValue] = {
        "type": "vfio",
        "uuid": str(uuid.uuid5(uuid.NAMESPACE_DNS, address)) if address else on_node("string", name, "uuid"),
        "deviceID": facts.get("device_id") or catalog_gap("string", accelerator.key, "deviceID"),
        "vendorID": _NVIDIA_VENDOR_ID,
        # The PCI database's name, which is not NVML's.
        "productName": catalog_gap("string", accelerator.key, "pciProductName"),
        PCI_BUS_ID: bus_id(address, gpu),
        PCIE_ROOT: pcie_root(instance_type, placement.pcie_root, gpu),
        numa_attribute: numa_node(instance_type, placement.numa_node, gpu, as_list=as_list),
        **extra,
    }
    if "iommufd" in profile.features:
        attributes["iommuFDEnabled"] = on_node("bool", "host", "iommuFDEnabled")
    # The sum of the memory windows has no source; it is near the memory.
    size = accelerator.memory or accelerator.api_memory or Quantity.of(0)
    window = Capacity(Quantity.of(size.int64_value(), "BinarySI"), guess=True)
    return Device(name, FrozenMap(attributes), FrozenMap({"addressableMemory": window}))
