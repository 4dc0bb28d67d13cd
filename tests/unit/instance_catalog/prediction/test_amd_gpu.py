"""gpu.amd.com: whole GPUs, partitions of the image, virtual partitions."""

from __future__ import annotations

import pytest

from instance_catalog.drivers.profile import parse_driver_set
from instance_catalog.kubernetes.quantity import Quantity
from instance_catalog.kubernetes.resource_slice import RuntimeOnly
from instance_catalog.prediction.predict import unpredictable
from instance_catalog.types.instance_type import Accelerator, InstanceType, PciPlacement
from tests.unit.instance_catalog.prediction import machines
from tests.unit.instance_catalog.prediction.machines import slices_of

MI300X = Accelerator(
    key="amd-instinct-mi300x", vendor="AMD", model="MI300X", memory=Quantity.parse("196592Mi"), node_label=None
)
V520 = Accelerator(key="amd-v520", vendor="AMD", model="Radeon Pro V520", api_memory=Quantity.parse("8Gi"))


def mi300x(count: int = 8) -> InstanceType:
    places = tuple(PciPlacement(f"0000:{i}c:00.0", f"pci0000:{i}0", i // 4) for i in range(count))
    return machines.machine("mi300x", MI300X, count, cloud="azure", placements=places)


def test_whole_gpus_are_named_after_card_and_render_node() -> None:
    (piece,) = slices_of(mi300x(), "amd")
    assert [device.name for device in piece.devices] == [f"gpu-{i}-{128 + i}" for i in range(8)]
    first = piece.devices[0]
    known = {name: value for name, value in first.attributes.items() if not isinstance(value, RuntimeOnly)}
    assert known == {
        "type": "amdgpu",
        "deviceID": "0x74a1",
        "productName": "AMD_Instinct_MI300X_OAM",
        "partitionProfile": "spx_nps1",
        "numaNode": 0,
        "resource.kubernetes.io/pciBusID": "0000:0c:00.0",
        "resource.kubernetes.io/pcieRoot": "pci0000:00",
    }
    assert set(first.attributes) - set(known) == {"driverVersion", "driverVersionFull"}
    assert {name: str(c.value) for name, c in first.capacity.items()} == {
        "memory": "196592Mi",
        "computeUnits": "304",
        "simdUnits": "1216",
    }
    assert not any(capacity.guess for capacity in first.capacity.values())


def test_a_partition_has_what_one_was_seen_to_have() -> None:
    """ROCm/k8s-gpu-dra-driver PR 21: an MI300X in dpx_nps1."""
    (piece,) = slices_of(mi300x(), "amd:partition=dpx_nps1")
    assert len(piece.devices) == 16
    first, second, third = piece.devices[:3]
    assert {name: str(c.value) for name, c in first.capacity.items()} == {
        "memory": "98296Mi",
        "computeUnits": "152",
        "simdUnits": "608",
    }
    assert (first.attributes["type"], first.attributes["partitionProfile"]) == ("amdgpu-partition", "dpx_nps1")
    bus = "resource.kubernetes.io/pciBusID"
    assert first.attributes[bus] == second.attributes[bus] != third.attributes[bus]


def test_virtual_partitions_of_a_gpu_exclude_each_other() -> None:
    pieces = slices_of(mi300x(), "amd:AutoPartition=true")
    devices, counters = pieces
    assert [device.name for device in devices.devices[:4]] == [
        "gpu-0-cpx-nps1", "gpu-0-cpx-nps4", "gpu-0-dpx-nps2", "gpu-0-spx-nps1",
    ]  # fmt: skip
    assert [s.name for s in counters.shared_counters] == [f"gpu-{i}-mutex" for i in range(8)]
    assert {c.counter_set for d in devices.devices[:4] for c in d.consumes_counters} == {"gpu-0-mutex"}
    assert all(str(c.counters["partition-mode"]) == "1" for d in devices.devices for c in d.consumes_counters)


def test_a_virtual_partition_is_taken_in_equal_shares() -> None:
    devices = {device.name: device for device in slices_of(mi300x(1), "amd:AutoPartition=true")[0].devices}
    cpx, spx = devices["gpu-0-cpx-nps4"], devices["gpu-0-spx-nps1"]
    shown = {}
    for name, capacity in cpx.capacity.items():
        assert capacity.policy is not None
        assert capacity.policy.valid_values == (capacity.policy.default,)
        shown[name] = (str(capacity.value), str(capacity.policy.default))
    assert shown == {
        "partitions": ("8", "1"),
        "memory": ("196592Mi", "24574Mi"),
        "computeUnits": ("304", "38"),
        "simdUnits": ("1216", "152"),
    }
    assert cpx.allow_multiple_allocations
    assert (cpx.attributes["computePartition"], cpx.attributes["memoryPartition"]) == ("cpx", "nps4")
    assert (cpx.attributes["type"], spx.attributes["type"]) == ("amdgpu-partition", "amdgpu")
    assert not spx.allow_multiple_allocations
    assert all(capacity.policy is None for capacity in spx.capacity.values())


def test_every_gpu_can_be_passed_through_as_well() -> None:
    (piece,) = slices_of(mi300x(2), "amd:VFIOPassthrough=true")
    assert [device.name for device in piece.devices] == ["gpu-0-128", "gpu-1-129", "gpu-vfio-0", "gpu-vfio-1"]
    gpu, passed = piece.devices[1], piece.devices[3]
    known = {name: value for name, value in passed.attributes.items() if not isinstance(value, RuntimeOnly)}
    assert known == {
        "type": "vfio",
        "isVF": False,
        "vendorID": "0x1002",
        "deviceID": "0x74a1",
        "numaNode": 0,
        "pciAddr": "0000:1c:00.0",
        "resource.kubernetes.io/pciBusID": "0000:1c:00.0",
        "resource.kubernetes.io/pcieRoot": "pci0000:10",
    }
    assert set(passed.attributes) - set(known) == {"iommuGroup", "productName"}
    assert {n: c.value for n, c in passed.capacity.items()} == {n: c.value for n, c in gpu.capacity.items()}
    assert all(capacity.guess for capacity in passed.capacity.values())
    assert (gpu.consumes_counters, passed.consumes_counters) == ((), ())


def test_a_gpu_that_is_passed_through_takes_the_slots_of_its_functions() -> None:
    devices, counters = slices_of(mi300x(1), "amd:VFIOPassthrough=true:total-vfs=8")
    (slots,) = counters.shared_counters
    assert (slots.name, str(slots.counters["vf-slots"])) == ("pf-0000-0c-00-0-counter-set", "8")
    (taken,) = devices.devices[1].consumes_counters
    assert (taken.counter_set, taken.counters) == (slots.name, slots.counters)


@pytest.mark.parametrize(
    ("drivers", "reason"),
    [
        ("amd:AutoPartition=true:VFIOPassthrough=true", "publish together is not documented"),
        ("amd:VFIOPassthrough=true:total-vfs=8", "named after PCI addresses, which the catalog does not have"),
    ],
)
def test_what_is_not_known_of_passing_through_is_not_predicted(drivers: str, reason: str) -> None:
    machine = machines.machine("bare", MI300X, 1, cloud="azure")
    assert reason in (unpredictable(machine, parse_driver_set(drivers)) or "")


def test_more_than_eight_gpus_take_more_slices() -> None:
    pieces = slices_of(mi300x(20), "amd:AutoPartition=true")
    assert [len(piece.devices) for piece in pieces] == [64, 16, 0, 0, 0]
    assert [len(piece.shared_counters) for piece in pieces] == [0, 0, 8, 8, 4]


def test_what_nobody_has_read_is_a_guess() -> None:
    (piece,) = slices_of(machines.machine("g4ad", V520, 1), "amd:AutoPartition=true")
    (device,) = piece.devices
    assert all(capacity.guess for capacity in device.capacity.values())
    assert isinstance(device.attributes["productName"], RuntimeOnly)
    assert "partitionProfile" not in device.attributes


@pytest.mark.parametrize(
    ("machine", "drivers", "reason"),
    [
        (machines.machine("g4ad", V520, 1), "amd:partition=cpx_nps1", "Radeon Pro V520 cannot be partitioned"),
        (machines.machine("g4ad", V520, 1), "amd", None),
        (mi300x(), "amd:partition=cpx_nps4", None),
    ],
)
def test_what_cannot_be_predicted_has_a_reason(machine: InstanceType, drivers: str, reason: str | None) -> None:
    said = unpredictable(machine, parse_driver_set(drivers))
    assert (said is None) if reason is None else (said or "").startswith(reason)
