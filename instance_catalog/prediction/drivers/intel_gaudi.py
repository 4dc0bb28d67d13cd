"""gaudi.intel.com: Gaudi accelerators (intel/intel-resource-drivers-for-kubernetes gaudi-v0.7.2).

One slice, no capacities; the driver's device order is random. Must not know GPUs.
"""

from __future__ import annotations

from typing import Final

from instance_catalog.drivers.profile import DriverProfile
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.profile import KubernetesProfile
from instance_catalog.kubernetes.resource_slice import AttributeValue, Device
from instance_catalog.prediction.driver import Prediction, SliceContents
from instance_catalog.prediction.drivers.intel_gpu import device_name
from instance_catalog.prediction.pci import PCIE_ROOT, pcie_root
from instance_catalog.prediction.tokens import catalog_gap, on_node
from instance_catalog.types.instance_type import InstanceType

HABANA: Final = "Habana"


def runs_on(instance_type: InstanceType) -> bool:
    return instance_type.accelerator is not None and instance_type.accelerator.vendor == HABANA


def contents(
    instance_type: InstanceType, profile: DriverProfile, kubernetes: KubernetesProfile
) -> tuple[SliceContents, ...]:
    """One slice with every accelerator."""
    return (SliceContents(tuple(_device(instance_type, profile, i) for i in range(instance_type.device_count))),)


def _device(instance_type: InstanceType, profile: DriverProfile, index: int) -> Device:
    accelerator, placement = instance_type.accelerator, instance_type.placement(index)
    assert accelerator is not None  # runs_on
    facts = profile.facts.models.get(accelerator.model, FrozenMap())
    name = device_name("gaudi", index, placement.bus_id, facts.get("pci_id"))
    root = pcie_root(instance_type, placement.pcie_root, name)
    attributes: dict[str, AttributeValue] = {
        "model": facts.get("model") or catalog_gap("string", accelerator.key, "model"),
        "serial": on_node("string", name, "serial"),
        "healthy": True,
        "pciRoot": root.partition(":")[2] if isinstance(root, str) else on_node("string", name, "pciRoot"),
        PCIE_ROOT: root,
    }
    return Device(name, FrozenMap(attributes))


PREDICTION: Final = Prediction(runs_on, contents)
