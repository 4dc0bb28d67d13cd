"""gpu.nvidia.com: consumable shares, devices for virtual machines, Fabric Manager partitions."""

from __future__ import annotations

import pytest

from instance_catalog.dataclass import replace
from instance_catalog.drivers.profile import parse_driver_set
from instance_catalog.kubernetes.profile import profile_for
from instance_catalog.kubernetes.resource_slice import Device, ListValue, RuntimeOnly
from instance_catalog.prediction.predict import predict
from instance_catalog.types.instance_type import Fabric, InstanceType
from tests.unit.instance_catalog.prediction import machines

SHARES = "nvidia@v0.5.0:ConsumableShares=true:consumable-shares="


def devices_of(machine: InstanceType, drivers: str) -> dict[str, Device]:
    pieces = predict(machine, parse_driver_set(drivers), kubernetes=profile_for("1.36"), node_name="n")
    return {device.name: device for piece in pieces for device in piece.devices}


@pytest.mark.parametrize(
    ("mode", "policies"),
    [
        ("unlimited", {"memory": ("81559Mi", "0", "0", "81559Mi", "1Mi")}),
        ("memory", {"memory": ("81559Mi", "81559Mi", "1Mi", "81559Mi", "1Mi")}),
        ("4", {"memory": ("81559Mi", "0", "0", "81559Mi", "1Mi"), "shares": ("4", "1", "1", "4", "1")}),
    ],
)
def test_shares_of_a_gpu_are_requested_by_policy(mode: str, policies: dict[str, tuple[str, ...]]) -> None:
    gpu = devices_of(machines.h100x8(), SHARES + mode)["gpu-0"]
    found = {}
    for name, capacity in gpu.capacity.items():
        assert capacity.policy is not None
        assert capacity.policy.valid_range is not None
        bounds = capacity.policy.valid_range
        found[name] = tuple(map(str, (capacity.value, capacity.policy.default, bounds.min, bounds.max, bounds.step)))
    assert found == policies
    assert gpu.allow_multiple_allocations


def test_memory_is_rounded_down_to_a_mebibyte() -> None:
    odd = machines.gpu("odd", "odd", "Hopper", "9.0.0", "83518996Ki")
    gpu = devices_of(machines.machine("odd", odd, 1), SHARES + "unlimited")["gpu-0"]
    assert str(gpu.capacity["memory"].value) == "81561Mi"


def test_partitions_are_shared_too_and_keep_their_counters() -> None:
    devices = devices_of(machines.h100x8(), SHARES.replace("nvidia@v0.5.0", "nvidia@v0.5.0:dynamic-mig") + "2")
    part = devices["gpu-0-mig-1g10gb-19-0"]
    assert part.allow_multiple_allocations
    assert part.consumes_counters
    assert set(part.capacity) >= {"memory", "shares", "multiprocessors"}


@pytest.mark.parametrize("options", ["", ":consumable-shares=disabled"], ids=["by default", "told so"])
def test_the_gate_shares_nothing_while_the_mode_is_disabled(options: str) -> None:
    gated = devices_of(machines.h100x8(), f"nvidia@v0.5.0:ConsumableShares=true{options}")
    assert gated == devices_of(machines.h100x8(), "nvidia@v0.5.0")


@pytest.mark.parametrize("gate", ["TimeSlicingSettings", "MPSSupport", "NVMLDeviceHealthCheck"])
def test_what_a_claim_configures_or_a_fault_causes_changes_no_fresh_slice(gate: str) -> None:
    assert devices_of(machines.h100x8(), f"nvidia:{gate}=true") == devices_of(machines.h100x8(), "nvidia")


def test_every_gpu_is_published_again_for_virtual_machines() -> None:
    devices = devices_of(machines.p4d(), "nvidia:PassthroughSupport=true")
    assert list(devices)[7:10] == ["gpu-7", "gpu-vfio-0", "gpu-vfio-1"]
    vfio, gpu = devices["gpu-vfio-0"], devices["gpu-0"]
    assert (vfio.attributes["type"], vfio.attributes["vendorID"]) == ("vfio", "0x10de")
    assert vfio.capacity["addressableMemory"].guess
    for name in ("resource.kubernetes.io/pciBusID", "resource.kubernetes.io/pcieRoot"):
        assert vfio.attributes[name] == gpu.attributes[name]
    assert vfio.attributes["uuid"] == "ec22fb63-a496-5df8-9bc6-b66135030025"
    assert vfio.capacity["addressableMemory"].guess
    assert isinstance(vfio.attributes["productName"], RuntimeOnly)
    assert vfio.consumes_counters == ()


def test_a_gpu_with_mig_devices_is_not_for_virtual_machines() -> None:
    drivers = "nvidia:mig=all-3g.20gb"
    assert devices_of(machines.p4d(), f"{drivers}:PassthroughSupport=true") == devices_of(machines.p4d(), drivers)


def test_numa_nodes_are_lists_for_virtual_machines_too() -> None:
    drivers = "nvidia@v0.5.0:DRAListTypeAttributes=true:PassthroughSupport=true"
    machine = machines.grace_blackwell(machines.GB300)
    for name in ("gpu-2", "gpu-vfio-2"):
        assert devices_of(machine, drivers)[name].attributes["resource.kubernetes.io/numaNode"] == ListValue(
            "int", (1,)
        )


@pytest.mark.parametrize(
    ("release", "present", "absent"),
    [
        ("v25.12.0", "numa", "iommuFDEnabled"),
        ("v0.4.1", "iommuFDEnabled", "resource.kubernetes.io/numaNode"),
        ("v0.5.0", "resource.kubernetes.io/numaNode", "numa"),
    ],
)
def test_releases_differ_in_what_they_say_of_vfio_devices(release: str, present: str, absent: str) -> None:
    vfio = devices_of(machines.p4d(), f"nvidia@{release}:PassthroughSupport=true")["gpu-vfio-0"]
    assert present in vfio.attributes
    assert absent not in vfio.attributes


def test_gpus_on_a_switch_know_their_partitions() -> None:
    drivers = "nvidia@v0.5.0:FabricManagerPartitioning=true:PassthroughSupport=true"
    switched = replace(machines.h100x8(), fabric=Fabric("NVLink", "switch", 900))
    devices = devices_of(switched, drivers)
    names = {"gpuModuleID", "partition1", "partition2", "partition4", "partition8"}
    assert names <= set(devices["gpu-3"].attributes)
    assert devices["gpu-3"].attributes["partition8"] == devices["gpu-vfio-5"].attributes["partition8"]
    assert devices["gpu-3"].attributes["partition2"] == devices["gpu-vfio-3"].attributes["partition2"]
    assert names.isdisjoint(devices_of(machines.h100x8(), drivers)["gpu-3"].attributes)
    in_parts = devices_of(switched, "nvidia@v0.5.0:FabricManagerPartitioning=true:dynamic-mig")
    assert names <= set(in_parts["gpu-3"].attributes)
    assert names.isdisjoint(in_parts["gpu-3-mig-3g40gb-9-4"].attributes)
