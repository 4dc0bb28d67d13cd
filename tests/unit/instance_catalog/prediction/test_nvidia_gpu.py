"""gpu.nvidia.com: published samples, the worked dynamic-MIG example, and what differs between releases."""

from __future__ import annotations

import pytest

from instance_catalog.drivers.profile import parse_driver_set
from instance_catalog.kubernetes.profile import profile_for
from instance_catalog.kubernetes.resource_slice import Device, RuntimeOnly, Version
from instance_catalog.prediction.predict import UnpredictableError, predict, unpredictable
from instance_catalog.types.instance_type import InstanceType
from tests.unit.instance_catalog.prediction import machines
from tests.unit.instance_catalog.prediction.machines import slices_of

V1_36 = profile_for("1.36")
V1_34 = profile_for("1.34")
PCI_BUS_ID = "resource.kubernetes.io/pciBusID"
PCIE_ROOT = "resource.kubernetes.io/pcieRoot"
GPU_KEYS = {
    "architecture", "brand", "cudaComputeCapability", "cudaDriverVersion", "driverVersion", "productName",
    PCI_BUS_ID, PCIE_ROOT, "type", "uuid", "addressingMode",
}  # fmt: skip


def gpus_of(machine: InstanceType, drivers: str) -> tuple[Device, ...]:
    return tuple(device for piece in slices_of(machine, drivers) for device in piece.devices)


def capacity(device: Device) -> dict[str, str]:
    return {name: str(c.value) for name, c in device.capacity.items()}


def counters(counters: object) -> dict[str, str]:
    return {name: str(value) for name, value in dict(counters).items()}  # type: ignore[call-overload]


def test_a_p4d_node_publishes_what_dranet_published_of_one() -> None:
    (piece,) = slices_of(machines.p4d(), "nvidia:driver=580.126.09:cuda=13.0")
    assert piece.driver == "gpu.nvidia.com"
    assert (piece.pool.name, piece.pool.generation, piece.pool.slice_count) == ("n", 1, 1)
    assert [device.name for device in piece.devices] == [f"gpu-{i}" for i in range(8)]
    for device in piece.devices:
        known = {k: v for k, v in device.attributes.items() if k not in ("uuid", PCI_BUS_ID, PCIE_ROOT)}
        assert known == {
            "type": "gpu",
            "productName": "NVIDIA A100-SXM4-40GB",
            "brand": "Nvidia",
            "architecture": "Ampere",
            "cudaComputeCapability": Version("8.0.0"),
            "driverVersion": Version("580.126.9"),
            "cudaDriverVersion": Version("13.0.0"),
            "addressingMode": "HMM",
        }
        assert capacity(device) == {"memory": "40Gi"}
        assert not device.taints
    assert [(d.attributes[PCI_BUS_ID], d.attributes[PCIE_ROOT]) for d in piece.devices] == [
        ("0000:10:1c.0", "pci0000:10"),
        ("0000:10:1d.0", "pci0000:10"),
        ("0000:20:1c.0", "pci0000:20"),
        ("0000:20:1d.0", "pci0000:20"),
        ("0000:90:1c.0", "pci0000:90"),
        ("0000:90:1d.0", "pci0000:90"),
        ("0000:a0:1c.0", "pci0000:a0"),
        ("0000:a0:1d.0", "pci0000:a0"),
    ]


@pytest.mark.parametrize(
    ("accelerator", "product", "capability", "driver", "published_driver", "memory"),
    [
        (machines.GB300, "NVIDIA GB300", "10.3.0", "580.105.08", "580.105.8", "284208Mi"),
        (machines.GB200, "NVIDIA GB200", "10.0.0", "580.126.20", "580.126.20", "189471Mi"),
    ],
    ids=["AKS GB300", "OKE GB200"],
)
def test_grace_blackwell_nodes_publish_what_dranet_published_of_them(
    accelerator: object, product: str, capability: str, driver: str, published_driver: str, memory: str
) -> None:
    machine = machines.grace_blackwell(accelerator)  # type: ignore[arg-type]
    devices = gpus_of(machine, f"nvidia:driver={driver}:cuda=13.0")
    assert [d.attributes[PCI_BUS_ID] for d in devices] == [f"{x}:06:00.0" for x in ("0008", "0009", "0018", "0019")]
    assert [d.attributes[PCIE_ROOT] for d in devices] == [f"pci{x}:00" for x in ("0008", "0009", "0018", "0019")]
    first = devices[0]
    assert first.attributes["productName"] == product
    assert first.attributes["cudaComputeCapability"] == Version(capability)
    assert first.attributes["driverVersion"] == Version(published_driver)
    assert first.attributes["addressingMode"] == "ATS"
    assert "resource.kubernetes.io/numaNode" not in first.attributes
    assert capacity(first) == {"memory": memory}


def test_dynamic_mig_on_eight_h100_as_worked_out_from_the_driver() -> None:
    slices = slices_of(machines.h100x8(), "nvidia:dynamic-mig")
    assert len(slices) == 9
    assert {(s.pool.name, s.pool.slice_count) for s in slices} == {("n", 9)}
    assert [s.name[:5] for s in slices] == [f"{i:05x}" for i in range(9)]
    assert [s.name for s in slices] == sorted(s.name for s in slices)
    first, *others = slices
    assert first.devices == ()
    assert [c.name for c in first.shared_counters] == [f"gpu-{i}-counter-set" for i in range(8)]
    for counter_set in first.shared_counters:
        assert counters(counter_set.counters) == {
            "multiprocessors": "132",
            "copy-engines": "8",
            "decoders": "7",
            "encoders": "0",
            "jpeg-engines": "7",
            "ofa-engines": "1",
            "memory": "81152Mi",
            **{f"memory-slice-{i}": "1" for i in range(8)},
        }
    assert all(s.shared_counters == () and len(s.devices) == 26 for s in others)
    assert [d.name for d in others[0].devices] == [
        "gpu-0",
        *(f"gpu-0-mig-1g10gb-19-{i}" for i in range(7)),
        *(f"gpu-0-mig-1g10gb-me-20-{i}" for i in range(7)),
        *(f"gpu-0-mig-1g20gb-15-{i}" for i in (0, 2, 4, 6)),
        *(f"gpu-0-mig-2g20gb-14-{i}" for i in (0, 2, 4)),
        "gpu-0-mig-3g40gb-9-0",
        "gpu-0-mig-3g40gb-9-4",
        "gpu-0-mig-4g40gb-5-0",
        "gpu-0-mig-7g80gb-0-0",
    ]


def test_a_3g_instance_draws_its_figures_and_memory_slices_from_its_gpu() -> None:
    devices = {d.name: d for d in gpus_of(machines.h100x8(), "nvidia:dynamic-mig")}
    (drawn,) = devices["gpu-0-mig-3g40gb-9-4"].consumes_counters
    assert drawn.counter_set == "gpu-0-counter-set"
    assert counters(drawn.counters) == {
        "multiprocessors": "60",
        "copy-engines": "3",
        "decoders": "3",
        "encoders": "0",
        "jpeg-engines": "3",
        "ofa-engines": "0",
        "memory": "40448Mi",
        **{f"memory-slice-{i}": "1" for i in (4, 5, 6, 7)},
    }
    whole = devices["gpu-0"]
    assert capacity(whole)["memory"] == "81152Mi"
    assert len(whole.consumes_counters[0].counters) == 15


def test_partitions_of_one_gpu_share_its_uuid_as_parent() -> None:
    devices = {d.name: d for d in gpus_of(machines.h100x8(), "nvidia:dynamic-mig")}
    uuid = devices["gpu-0"].attributes["uuid"]
    assert isinstance(uuid, RuntimeOnly)
    assert devices["gpu-0-mig-1g10gb-19-0"].attributes["parentUUID"] == uuid
    assert devices["gpu-0-mig-3g40gb-9-4"].attributes["parentUUID"] == uuid
    assert devices["gpu-1-mig-1g10gb-19-0"].attributes["parentUUID"] != uuid


def test_api_servers_before_1_35_get_counters_and_devices_in_one_slice() -> None:
    slices = slices_of(machines.h100x8(), "nvidia:dynamic-mig", "1.34")
    assert len(slices) == 8
    for piece in slices:
        assert len(piece.shared_counters) == 1
        assert len(piece.devices) == 26
        assert sum(len(c.counters) for d in piece.devices for c in d.consumes_counters) == 238


@pytest.mark.parametrize(
    ("drivers", "device", "extra", "missing"),
    [
        ("nvidia", "gpu-0", set(), set()),
        ("nvidia:mig=all-balanced", "gpu-0-mig-3g20gb-9-4", {"parentUUID", "profile"}, set()),
        ("nvidia:dynamic-mig:mig-mode-on", "gpu-0-mig-3g20gb-9-4", {"parentUUID", "profile"}, {"uuid"}),
        ("nvidia@v0.5.0", "gpu-0", {"resource.kubernetes.io/numaNode"}, set()),
        ("nvidia@v25.8.1", "gpu-0", {"pcieBusID"}, {PCI_BUS_ID, "addressingMode"}),
        ("nvidia@v25.3.2", "gpu-0", {"pcieBusID", "minor", "index"}, {PCI_BUS_ID, "addressingMode"}),
        (
            "nvidia@v25.12.0:dynamic-mig:mig-mode-on",
            "gpu-0-mig-3g20gb-9-4",
            {"parentUUID", "profile"},
            {"uuid", "addressingMode", PCIE_ROOT},
        ),
    ],
    ids=["gpu", "static MIG", "dynamic MIG", "main", "25.8", "25.3", "25.12 dynamic MIG"],
)
def test_attribute_names_are_those_of_the_release(
    drivers: str, device: str, extra: set[str], missing: set[str]
) -> None:
    found = next(d for d in gpus_of(machines.p4d(), drivers) if d.name == device)
    assert set(found.attributes) == (GPU_KEYS | extra) - missing


def test_static_mig_publishes_the_layout_of_every_gpu() -> None:
    (piece,) = slices_of(machines.p4d(), "nvidia:mig=all-balanced")
    of_first = [d for d in piece.devices if d.name.startswith("gpu-0-")]
    assert [d.attributes["profile"] for d in of_first] == ["1g.5gb", "1g.5gb", "2g.10gb", "3g.20gb"]
    assert len(piece.devices) == 4 * 8
    largest = next(d for d in of_first if d.attributes["profile"] == "3g.20gb")
    assert capacity(largest) == {
        "multiprocessors": "42",
        "copyEngines": "3",
        "decoders": "2",
        "encoders": "0",
        "jpegEngines": "0",
        "ofaEngines": "0",
        "memory": "20096Mi",
        **{f"memorySlice{i}": "1" for i in (4, 5, 6, 7)},
    }
    assert all(d.consumes_counters == () for d in piece.devices)


def test_releases_up_to_25_8_name_mig_devices_by_id_start_and_size() -> None:
    names = [d.name for d in gpus_of(machines.p4d(), "nvidia@v25.8.1:mig=all-3g.20gb")]
    assert names[:2] == ["gpu-0-mig-9-0-4", "gpu-0-mig-9-4-4"]


def test_ampere_with_mig_mode_on_gives_away_partitions_only() -> None:
    counters_first, *others = slices_of(machines.p4d(), "nvidia:dynamic-mig:mig-mode-on")
    assert len(counters_first.shared_counters) == 8
    assert all(len(piece.devices) == 25 for piece in others)
    assert not any(d.name == "gpu-0" for d in others[0].devices)
    _, *before = slices_of(machines.p4d(), "nvidia@v25.12.0:dynamic-mig:mig-mode-on")
    assert [piece.devices[0].name for piece in before] == [f"gpu-{i}" for i in range(8)]
    assert all(len(piece.devices) == 26 for piece in before)


def test_ampere_with_mig_mode_off_is_whole_behind_an_empty_slice() -> None:
    slices = slices_of(machines.p4d(), "nvidia:dynamic-mig")
    assert [len(piece.devices) for piece in slices] == [0, *[1] * 8]
    assert not any(piece.shared_counters for piece in slices)
    assert capacity(slices[1].devices[0]) == {"memory": "40Gi"}


@pytest.mark.parametrize("accelerator", [machines.L4, machines.L4_VGPU], ids=["no MIG", "vGPU"])
def test_gpus_without_mig_hardware_get_one_slice_each(accelerator: object) -> None:
    machine = machines.machine("two", accelerator, 2)  # type: ignore[arg-type]
    for version in ("1.34", "1.36"):
        slices = slices_of(machine, "nvidia:dynamic-mig", version)
        assert [len(piece.devices) for piece in slices] == [1, 1]


@pytest.mark.parametrize(
    ("machine", "drivers", "reason"),
    [
        (machines.machine("l4", machines.L4, 1), "nvidia:mig=all-balanced", "cannot be partitioned"),
        (machines.h100x8(), "nvidia:mig=all-1g.5gb", "it has all-1g.10gb, "),
        (machines.machine("h100x16", machines.H100, 16), "nvidia:dynamic-mig", "at most 8 GPUs"),
        (machines.machine("l4", machines.L4, 1), "nvidia@v25.12.0:dynamic-mig", "take v0.4.0"),
        (
            machines.machine("g7", machines.UNNAMED, 1, min_driver="595"),
            "nvidia:driver=580.126.09",
            "needs NVIDIA driver 595 or newer, the image has 580.126.09",
        ),
    ],
    ids=[
        "no MIG",
        "unknown layout",
        "too many GPUs",
        "old release",
        "old image",
    ],
)
def test_what_cannot_be_predicted_says_why(machine: InstanceType, drivers: str, reason: str) -> None:
    driver_set = parse_driver_set(drivers)
    assert reason in (unpredictable(machine, driver_set) or "")
    with pytest.raises(UnpredictableError, match="with nvidia"):
        predict(machine, driver_set, kubernetes=V1_36)


def test_known_figures_are_no_guesses_even_if_those_of_other_profiles_are() -> None:
    devices = gpus_of(machines.machine("h200", machines.H200, 1), "nvidia:mig=all-2g.35gb")
    assert [capacity(d)["memory"] for d in devices] == ["33280Mi"] * 3
    assert not any(d.capacity["memory"].guess for d in devices)


@pytest.mark.parametrize("mig", ["mig=all-1g.10gb", "dynamic-mig:mig-mode-on"])
def test_guessed_figures_of_partitions_say_so(mig: str) -> None:
    devices = gpus_of(machines.machine("p4de", machines.A100_80, 1), f"nvidia:{mig}")
    found = next(d for d in devices if d.attributes["profile"] == "1g.10gb")
    assert (str(found.capacity["memory"].value), found.capacity["memory"].guess) == ("9856Mi", True)


def test_facts_that_the_catalog_lacks_are_gaps_and_guessed_memory_says_so() -> None:
    machine = machines.machine("g7", machines.UNNAMED, 2)
    first, second = gpus_of(machine, "nvidia")
    name = first.attributes["productName"]
    assert isinstance(name, RuntimeOnly)
    assert name.is_catalog_gap
    assert second.attributes["productName"] == name
    root = first.attributes[PCIE_ROOT]
    assert isinstance(root, RuntimeOnly)
    assert root.is_catalog_gap
    assert second.attributes[PCIE_ROOT] != root
    assert (str(first.capacity["memory"].value), first.capacity["memory"].guess) == ("32Gi", True)


def test_without_an_image_driver_versions_exist_only_at_run_time() -> None:
    first, second = gpus_of(machines.machine("l4", machines.L4, 2), "nvidia")
    for name in ("driverVersion", "cudaDriverVersion", "addressingMode"):
        value = first.attributes[name]
        assert isinstance(value, RuntimeOnly)
        assert not value.is_catalog_gap
        assert second.attributes[name] == value


def test_numa_nodes_are_lists_under_their_gate() -> None:
    devices = gpus_of(machines.grace_blackwell(machines.GB300), "nvidia@v0.5.0:DRAListTypeAttributes=true")
    assert [d.attributes["resource.kubernetes.io/numaNode"].items for d in devices] == [(0,), (0,), (1,), (1,)]  # type: ignore[union-attr]


def test_types_without_nvidia_devices_publish_nothing() -> None:
    assert slices_of(machines.tpu(), "nvidia,compute-domain") == ()
