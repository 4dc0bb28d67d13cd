"""gpu.amd.com with the gate VFIOPassthrough: every GPU once more, for virtual machines.

ROCm/k8s-gpu-dra-driver cmd/gpu-kubeletplugin deviceinfo.go at 08bc729, docs/driver-attributes.md at 06dbe58. Only GPUs
as a whole: virtual functions exist where somebody has made them. A GPU that could have some (`total-vfs`) takes all
their slots of a counter set. Nothing ties the entry to the GPU's other one until one of them is prepared.
"""

from __future__ import annotations

from typing import Final

from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.quantity import Quantity
from instance_catalog.kubernetes.resource_slice import AttributeValue, Capacity, CounterConsumption, CounterSet, Device
from instance_catalog.prediction.pci import PCI_BUS_ID
from instance_catalog.prediction.tokens import catalog_gap, on_node
from instance_catalog.types.instance_type import PciPlacement

_AMD_VENDOR_ID: Final = "0x1002"
_SLOTS: Final = "vf-slots"


def device(
    gpu: int,
    placement: PciPlacement,
    common: FrozenMap[str, AttributeValue],
    *,
    model: str,
    capacity: FrozenMap[str, Capacity],
    total_vfs: int,
) -> Device:
    """The entry of a GPU; `common` is what it publishes as a GPU as well, `capacity` that of the whole GPU."""
    kept = {name: value for name, value in common.items() if not name.startswith("driverVersion")}
    attributes: dict[str, AttributeValue] = {
        **kept,
        "type": "vfio",
        "isVF": False,
        "iommuGroup": on_node("string", f"gpu-{gpu}", "iommuGroup"),
        "pciAddr": common[PCI_BUS_ID],
        "vendorID": _AMD_VENDOR_ID,
        # The PCI database's name, which is not KFD's.
        "productName": catalog_gap("string", model, "pciProductName"),
    }
    shares = counter_set(placement, total_vfs)
    consumed = (CounterConsumption(shares.name, shares.counters),) if shares else ()
    # Older builds of the driver publish no capacities here, so these are no more than likely.
    likely = FrozenMap({name: Capacity(found.value, guess=True) for name, found in capacity.items()})
    return Device(f"gpu-vfio-{gpu}", FrozenMap(attributes), likely, consumed)


def counter_set(placement: PciPlacement, total_vfs: int) -> CounterSet | None:
    """The slots for virtual functions of a GPU; None for one that can have none."""
    if not total_vfs or placement.bus_id is None:
        return None
    address = placement.bus_id.replace(":", "-").replace(".", "-")
    return CounterSet(f"pf-{address}-counter-set", FrozenMap({_SLOTS: Quantity.of(total_vfs)}))
