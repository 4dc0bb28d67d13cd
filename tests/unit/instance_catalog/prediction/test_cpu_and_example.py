"""dra.cpu and gpu.example.com: drivers that run on any machine."""

from __future__ import annotations

import pytest

from instance_catalog.dataclass import replace
from instance_catalog.drivers.profile import parse_driver_set
from instance_catalog.kubernetes.profile import profile_for
from instance_catalog.kubernetes.resource_slice import Device, ListValue, RuntimeOnly
from instance_catalog.prediction.predict import unpredictable
from instance_catalog.prediction.variants import implicit_driver_sets
from instance_catalog.types.instance_type import CpuTopology, InstanceType, PciPlacement
from tests.unit.instance_catalog.prediction import machines
from tests.unit.instance_catalog.prediction.machines import slices_of

NUMA = "resource.kubernetes.io/numaNode"
ROOT = "resource.kubernetes.io/pcieRoot"


def server(cpu: CpuTopology) -> InstanceType:
    places = tuple(PciPlacement(None, f"pci0000:{i}0", i // 2) for i in range(4))
    return replace(machines.machine("server", machines.L4, 4, placements=places), vcpu=16, cpu=cpu)


BOTH = server(CpuTopology(sockets=2, numa_nodes=2, threads_per_core=2))
UNKNOWN = server(CpuTopology())


def devices_of(machine: InstanceType, drivers: str) -> dict[str, Device]:
    return {device.name: device for piece in slices_of(machine, drivers) for device in piece.devices}


def test_cpus_are_grouped_by_numa_node_unless_told_otherwise() -> None:
    devices = devices_of(BOTH, "dra-cpu")
    assert list(devices) == ["cpudevnuma000", "cpudevnuma001"]
    second = devices["cpudevnuma001"]
    assert dict(second.attributes) == {
        NUMA: 1,
        "dra.cpu/numaNodeID": 1,
        "dra.net/numaNode": 1,
        "dra.cpu/socketID": 1,
        "dra.cpu/smtEnabled": True,
        "dra.cpu/numCPUs": 8,
    }
    assert second.allow_multiple_allocations
    assert {name: str(c.value) for name, c in second.capacity.items()} == {"dra.cpu/cpu": "8"}


@pytest.mark.parametrize(
    ("drivers", "groups"),
    [
        ("dra-cpu:group-by=socket", {"cpudevsocket000": 8, "cpudevsocket001": 8}),
        ("dra-cpu:group-by=machine", {"cpudevmachine": 16}),
        ("dra-cpu:reserved=0-3+8-11", {"cpudevnuma001": 8}),
        ("dra-cpu:reserved=0+8", {"cpudevnuma000": 6, "cpudevnuma001": 8}),
    ],
)
def test_groups_have_the_cpus_that_are_not_reserved(drivers: str, groups: dict[str, int]) -> None:
    devices = devices_of(BOTH, drivers)
    assert {name: device.attributes["dra.cpu/numCPUs"] for name, device in devices.items()} == groups


def test_threads_of_a_core_are_neighbours() -> None:
    devices = devices_of(BOTH, "dra-cpu:mode=individual:reserved=0")
    numbers = [device.attributes["dra.cpu/cpuID"] for device in devices.values()]
    assert list(devices)[:3] == ["cpudev000", "cpudev001", "cpudev002"]
    assert numbers[:5] == [8, 1, 9, 2, 10]
    assert [device.attributes[NUMA] for device in devices.values()] == [0] * 7 + [1] * 8
    first, second, third = list(devices.values())[:3]
    assert (
        second.attributes["dra.cpu/coreID"] == third.attributes["dra.cpu/coreID"] != first.attributes["dra.cpu/coreID"]
    )
    assert first.capacity == {}


def test_many_cpus_take_several_slices() -> None:
    large = replace(BOTH, vcpu=192)
    assert [len(p.devices) for p in slices_of(large, "dra-cpu:mode=individual")] == [128, 64]
    assert [len(p.devices) for p in slices_of(large, "dra-cpu:mode=individual:pcie-roots")] == [64, 64, 64]


def test_a_thread_alone_has_a_core() -> None:
    (device,) = devices_of(replace(BOTH, vcpu=1), "dra-cpu:mode=individual").values()
    assert device.attributes["dra.cpu/cpuID"] == 0


def test_pcie_roots_are_lists_of_the_local_ones() -> None:
    devices = devices_of(BOTH, "dra-cpu:pcie-roots")
    assert devices["cpudevnuma001"].attributes[ROOT] == ListValue("string", ("pci0000:20", "pci0000:30"))
    (machine,) = devices_of(BOTH, "dra-cpu:group-by=machine:pcie-roots").values()
    assert machine.attributes[ROOT] == ListValue("string", ("pci0000:00", "pci0000:10", "pci0000:20", "pci0000:30"))


def test_a_machine_of_unknown_layout_is_one_group() -> None:
    (device,) = devices_of(UNKNOWN, "dra-cpu:group-by=machine").values()
    assert isinstance(device.attributes["dra.cpu/smtEnabled"], RuntimeOnly)


@pytest.mark.parametrize(
    ("machine", "drivers", "reason"),
    [
        (UNKNOWN, "dra-cpu", "the catalog has no cpu.numaNodes for server: `foreslice catalog set server cpu.numaN"),
        (UNKNOWN, "dra-cpu:mode=individual", "the catalog has no cpu.numaNodes and cpu.threadsPerCore for server"),
        (UNKNOWN, "dra-cpu:group-by=socket", "the catalog has no cpu.sockets for server"),
        (BOTH, "dra-cpu:reserved=0-16", "reserved=0-16 names CPUs that server does not have; it has 16"),
        (
            replace(BOTH, placements=()), "dra-cpu:pcie-roots",
            "the PCIe roots of server are not recorded; add pci.root and pci.numa, or drop pcie-roots",
        ),
        (BOTH, "example@v0.2.0:partitions=2", "example v0.2.0 has no partitions"),
        (BOTH, "example@v0.2.0:shared", "example v0.2.0 cannot share devices"),
        (BOTH, "example@v0.3.0:shared", "example v0.3.0 cannot share devices; take v0.4.0"),
        (BOTH, "example@v0.3.0:binding-conditions", "example v0.3.0 has no binding conditions; take v0.4.0"),
        (BOTH, "example:devices=9:partitions=2", "one slice holds the counters of at most 8 partitioned GPUs"),
        (BOTH, "example:partitions=8", "the driver puts all partitions into one slice, which holds 64, and 72"),
    ],
)  # fmt: skip
def test_what_cannot_be_predicted_has_a_reason(machine: InstanceType, drivers: str, reason: str) -> None:
    assert (unpredictable(machine, parse_driver_set(drivers)) or "").startswith(reason)


def test_the_example_driver_pretends_gpus_anywhere() -> None:
    devices = devices_of(machines.machine("m5", None, 0), "example:devices=2")
    assert list(devices) == ["gpu-0", "gpu-1"]
    assert {name: str(c.value) for name, c in devices["gpu-1"].capacity.items()} == {"memory": "80Gi", "compute": "100"}
    assert devices["gpu-1"].attributes["index"] == 1
    old = devices_of(machines.machine("m5", None, 0), "example@v0.2.0")
    assert (len(old), set(old["gpu-0"].capacity)) == (8, {"memory"})


def test_its_partitions_draw_from_the_counters_of_their_gpu() -> None:
    counters, devices = slices_of(BOTH, "example:devices=2:partitions=2")
    assert [s.name for s in counters.shared_counters] == ["gpu-0-counters", "gpu-1-counters"]
    assert [d.name for d in devices.devices][:3] == ["gpu-0-partition-0", "gpu-0-partition-1", "gpu-0-full"]
    drawn = {d.name: {n: str(v) for n, v in d.consumes_counters[0].counters.items()} for d in devices.devices}
    assert drawn["gpu-0-partition-1"] == {"memory": "40Gi", "compute": "50"}
    assert drawn["gpu-0-full"] == {"memory": "80Gi", "compute": "100"}
    part = devices.devices[1]
    assert {name: str(c.value) for name, c in part.capacity.items()} == {"memory": "40Gi", "compute": "50"}
    _, before = slices_of(BOTH, "example@v0.3.0:devices=2:partitions=2")
    assert set(before.devices[1].capacity) == {"memory"}
    assert before.devices[1].consumes_counters == part.consumes_counters


@pytest.mark.parametrize(
    ("drivers", "name"), [("example:shared", "gpu-0"), ("example:shared:devices=2:partitions=2", "gpu-1-partition-0")]
)
def test_its_shared_devices_are_taken_whole_by_default(drivers: str, name: str) -> None:
    device = devices_of(BOTH, drivers)[name]
    assert device.allow_multiple_allocations
    for capacity in device.capacity.values():
        assert capacity.policy is not None
        assert capacity.policy.valid_range is not None
        assert capacity.policy.default == capacity.policy.valid_range.max == capacity.value


def test_its_devices_may_wait_for_a_condition() -> None:
    device = devices_of(BOTH, "example:binding-conditions")["gpu-0"]
    assert device.binding_conditions == ("BindingConditions",)
    assert device.binding_failure_conditions == ("BindingFailureConditions",)
    assert devices_of(BOTH, "example")["gpu-0"].binding_conditions is None


def test_drivers_of_any_machine_are_offered_only_where_somebody_asks() -> None:
    offered = {p.name for s in implicit_driver_sets(BOTH, profile_for("1.36")) for p in s.profiles}
    assert offered.isdisjoint({"dra-cpu", "example"})
