"""gpu.amd.com: whole GPUs, GPUs partitioned by the node image, and virtual partitions (gate AutoPartition).

ROCm/k8s-gpu-dra-driver cmd/gpu-kubeletplugin deviceinfo.go, driver.go at 08bc729. Virtual partitions of one GPU exclude
each other through a counter. The memory mode is one for the whole node; the driver enforces it with taints after the
first allocation, so a new node has none. Must not know other drivers.

With the gate VFIOPassthrough every GPU is published once more, for virtual machines (docs/driver-attributes.md at
06dbe58). Only whole GPUs: virtual functions exist only after an administrator created them. A GPU that could have some
(`total-vfs`) uses all their slots of a counter set. Nothing connects the entry to the GPU's other one until one of them
is prepared.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from instance_catalog.drivers.profile import DriverProfile
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.profile import KubernetesProfile
from instance_catalog.kubernetes.quantity import Quantity
from instance_catalog.kubernetes.resource_slice import (
    AttributeValue,
    Capacity,
    CounterConsumption,
    CounterSet,
    Device,
    RequestPolicy,
)
from instance_catalog.prediction.driver import (
    MOST_ADVANCED_DEVICES,
    MOST_DEVICES,
    Prediction,
    SliceContents,
    counters_in_chunks,
    devices_in_chunks,
)
from instance_catalog.prediction.pci import PCI_BUS_ID, PCIE_ROOT, bus_id, numa_node, pcie_root
from instance_catalog.prediction.tokens import catalog_gap, on_node
from instance_catalog.types.instance_type import Accelerator, InstanceType, PciPlacement

AMD: Final = "AMD"
_AMD_VENDOR_ID: Final = "0x1002"
_SLOTS: Final = "vf-slots"
_FIRST_RENDER_NODE: Final = 128
_PARTITIONS_OF: Final = {"spx": 1, "dpx": 2, "cpx": 8}
_ONE: Final = Quantity.of(1)


def runs_on(instance_type: InstanceType) -> bool:
    return instance_type.accelerator is not None and instance_type.accelerator.vendor == AMD


def why_unpredictable(instance_type: InstanceType, profile: DriverProfile) -> str | None:
    """The reason why the slices cannot be predicted, or None if they can."""
    accelerator = instance_type.accelerator
    if accelerator is None or not runs_on(instance_type):
        return None
    mode = profile.option("partition")
    if mode != profile.facts.options["partition"].default and not _modes(accelerator, profile):
        return f"{accelerator.model} cannot be partitioned; drop partition={mode}"
    if not profile.gates.get("VFIOPassthrough"):
        return None
    if _modes(accelerator, profile) and profile.gates.get("AutoPartition"):
        return "what AutoPartition and VFIOPassthrough publish together is not documented; leave one of them off"
    places = [instance_type.placement(gpu) for gpu in range(instance_type.device_count)]
    if _total_vfs(profile) and any(place.bus_id is None for place in places):
        return f"counter sets are named after PCI addresses, which the catalog does not have for {instance_type.name}"
    return None


def contents(
    instance_type: InstanceType, profile: DriverProfile, kubernetes: KubernetesProfile
) -> tuple[SliceContents, ...]:
    accelerator = instance_type.accelerator
    if accelerator is None:
        return ()
    modes = _modes(accelerator, profile) if profile.gates.get("AutoPartition") else {}
    gpus = range(instance_type.device_count)
    if not modes:
        physical = _physical(instance_type, accelerator, profile)
        if not profile.gates.get("VFIOPassthrough"):
            return devices_in_chunks(physical, MOST_DEVICES)
        passed = [_passed_through(instance_type, accelerator, profile, gpu) for gpu in gpus]
        slots = list(_slots(instance_type, profile))
        most = MOST_ADVANCED_DEVICES if slots else MOST_DEVICES
        return (*devices_in_chunks([*physical, *passed], most), *counters_in_chunks(slots))
    virtual = [
        _virtual(instance_type, accelerator, profile, gpu, mode, count) for gpu in gpus for mode, count in modes.items()
    ]
    sets = [CounterSet(_mutex(gpu), FrozenMap({"partition-mode": _ONE})) for gpu in gpus]
    devices = sorted(virtual, key=lambda device: device.name)
    return (*devices_in_chunks(devices, MOST_ADVANCED_DEVICES), *counters_in_chunks(sets))


def _physical(instance_type: InstanceType, accelerator: Accelerator, profile: DriverProfile) -> list[Device]:
    """The devices in sysfs: GPUs, or the partitions that the node image made of every GPU."""
    partitioned = _modes(accelerator, profile)
    mode = profile.option("partition") or ""
    count = _PARTITIONS_OF[mode.partition("_")[0]]
    kind: dict[str, AttributeValue] = {"type": "amdgpu" if count == 1 else "amdgpu-partition"}
    if partitioned:
        kind["partitionProfile"] = mode
    return [
        Device(
            f"gpu-{card}-{_FIRST_RENDER_NODE + card}",
            FrozenMap({**kind, **_common(instance_type, accelerator, profile, card // count)}),
            FrozenMap({name: Capacity(v, guess=g) for name, (v, g) in _figures(accelerator, profile, count).items()}),
        )
        for card in range(instance_type.device_count * count)
    ]


def _passed_through(instance_type: InstanceType, accelerator: Accelerator, profile: DriverProfile, gpu: int) -> Device:
    """The GPU as a virtual machine can have it."""
    return _vfio_device(
        gpu,
        instance_type.placement(gpu),
        FrozenMap(_common(instance_type, accelerator, profile, gpu)),
        model=accelerator.key,
        capacity=FrozenMap({name: Capacity(v) for name, (v, _) in _figures(accelerator, profile, 1).items()}),
        total_vfs=_total_vfs(profile),
    )


def _slots(instance_type: InstanceType, profile: DriverProfile) -> Iterator[CounterSet]:
    for gpu in range(instance_type.device_count):
        found = _vf_slots(instance_type.placement(gpu), _total_vfs(profile))
        if found is not None:
            yield found


def _total_vfs(profile: DriverProfile) -> int:
    """The number of virtual functions that every GPU can have."""
    return int(profile.option("total-vfs") or 0)


def _virtual(
    instance_type: InstanceType, accelerator: Accelerator, profile: DriverProfile, gpu: int, mode: str, count: int
) -> Device:
    """One mode that the driver would give the GPU. Its partitions are shares of one device, each of fixed size."""
    compute, _, memory = mode.partition("-")
    attributes = {
        **_common(instance_type, accelerator, profile, gpu),
        "type": "amdgpu" if count == 1 else "amdgpu-partition",
        "computePartition": compute,
        "memoryPartition": memory,
        "gpuIndex": gpu,
        "pciAddr": bus_id(instance_type.placement(gpu).bus_id, f"gpu-{gpu}"),
    }
    part = {"partitions": (_ONE, False), **_figures(accelerator, profile, count)}
    capacity = {
        name: Capacity(
            Quantity.of(value.int64_value() * count, value.format),
            RequestPolicy(value, (value,)) if count > 1 else None,
            guess,
        )
        for name, (value, guess) in part.items()
    }
    return Device(
        f"gpu-{gpu}-{mode}",
        FrozenMap(attributes),
        FrozenMap(capacity),
        (CounterConsumption(_mutex(gpu), FrozenMap({"partition-mode": _ONE})),),
        allow_multiple_allocations=count > 1,
    )


def _common(
    instance_type: InstanceType, accelerator: Accelerator, profile: DriverProfile, gpu: int
) -> dict[str, AttributeValue]:
    """The attributes that a GPU and all its partitions publish."""
    name, placement, facts = f"gpu-{gpu}", instance_type.placement(gpu), _facts(accelerator, profile)
    return {
        "productName": accelerator.product_name
        or facts.get("product_name")
        or catalog_gap("string", accelerator.key, "productName"),
        "deviceID": facts.get("device_id") or catalog_gap("string", accelerator.key, "deviceID"),
        "driverVersion": on_node("version", "image", "driverVersion"),
        "driverVersionFull": on_node("string", "image", "driverVersionFull"),
        "numaNode": numa_node(instance_type, placement.numa_node, name),
        PCI_BUS_ID: bus_id(placement.bus_id, name),
        PCIE_ROOT: pcie_root(instance_type, placement.pcie_root, name),
    }


def _figures(accelerator: Accelerator, profile: DriverProfile, parts: int) -> dict[str, tuple[Quantity, bool]]:
    """Capacities of one of `parts` equal parts, each with whether it is a guess; nothing known is a guess of 0."""
    facts = _facts(accelerator, profile)
    guess = bool(facts.get("guess", True))
    memory = accelerator.memory or accelerator.api_memory or Quantity.of(0)
    return {
        "memory": (Quantity.of(memory.int64_value() // parts, "BinarySI"), guess or accelerator.memory is None),
        "computeUnits": (Quantity.of(facts.get("compute_units", 0) // parts, "BinarySI"), guess),
        "simdUnits": (Quantity.of(facts.get("simd_units", 0) // parts, "BinarySI"), guess),
    }


def _modes(accelerator: Accelerator, profile: DriverProfile) -> Mapping[str, int]:
    """Mode → partitions per GPU; empty for a GPU that cannot be partitioned."""
    found: Mapping[str, int] = _facts(accelerator, profile).get("partitions", {})
    return found


def _facts(accelerator: Accelerator, profile: DriverProfile) -> Mapping[str, Any]:
    return profile.facts.models.get(accelerator.model, FrozenMap())


def _mutex(gpu: int) -> str:
    return f"gpu-{gpu}-mutex"


def _vfio_device(
    gpu: int,
    placement: PciPlacement,
    common: FrozenMap[str, AttributeValue],
    *,
    model: str,
    capacity: FrozenMap[str, Capacity],
    total_vfs: int,
) -> Device:
    """A GPU for virtual machines. `common`: its attributes as a GPU; `capacity`: that of the whole GPU."""
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
    shares = _vf_slots(placement, total_vfs)
    consumed = (CounterConsumption(shares.name, shares.counters),) if shares else ()
    # Older builds of the driver publish no capacities here, so these are no more than likely.
    likely = FrozenMap({name: Capacity(found.value, guess=True) for name, found in capacity.items()})
    return Device(f"gpu-vfio-{gpu}", FrozenMap(attributes), likely, consumed)


def _vf_slots(placement: PciPlacement, total_vfs: int) -> CounterSet | None:
    """The slots for virtual functions of a GPU; None for one that can have none."""
    if not total_vfs or placement.bus_id is None:
        return None
    address = placement.bus_id.replace(":", "-").replace(".", "-")
    return CounterSet(f"pf-{address}-counter-set", FrozenMap({_SLOTS: Quantity.of(total_vfs)}))


PREDICTION: Final = Prediction(runs_on, contents, why_unpredictable=why_unpredictable)
