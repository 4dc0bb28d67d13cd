"""compute-domain.nvidia.com, dra.net and tpu.google.com."""

from __future__ import annotations

import pytest

from instance_catalog.dataclass import replace
from instance_catalog.drivers.profile import parse_driver_set
from instance_catalog.kubernetes.resource_slice import Device, RuntimeOnly
from instance_catalog.prediction.drivers.google_tpu import tpu_generation
from instance_catalog.prediction.drivers.nvidia_gpu import is_future_clique
from instance_catalog.prediction.predict import node_labels, unpredictable
from instance_catalog.types.instance_type import InstanceType
from tests.unit.instance_catalog.prediction import machines
from tests.unit.instance_catalog.prediction.machines import slices_of

PCIE_ROOT = "resource.kubernetes.io/pcieRoot"


def devices_of(machine: InstanceType, drivers: str) -> dict[str, Device]:
    (piece,) = slices_of(machine, drivers)
    return {device.name: device for device in piece.devices}


def test_compute_domains_publish_one_channel_and_one_daemon() -> None:
    devices = devices_of(machines.h100x8(), "compute-domain")
    assert {name: dict(d.attributes) for name, d in devices.items()} == {
        "channel-0": {"type": "channel", "id": 0},
        "daemon-0": {"type": "daemon", "id": 0},
    }


@pytest.mark.parametrize(
    ("options", "devices"),
    [("", ["channel-0", "daemon-0"]), (":imex-mode=hostManaged", ["channel-0"])],
    ids=["gate alone", "mode"],
)
def test_host_managed_imex_needs_no_daemon(options: str, devices: list[str]) -> None:
    drivers = f"compute-domain@v0.5.0:HostManagedIMEXDaemon=true{options}"
    assert list(devices_of(machines.h100x8(), drivers)) == devices


def test_a_p4d_node_publishes_the_cards_that_dranet_published_of_one() -> None:
    devices = devices_of(machines.p4d(), "dranet")
    shown = {n: (d.attributes["dra.net/numaNode"], d.attributes[PCIE_ROOT]) for n, d in devices.items()}
    assert list(shown.items()) == [
        ("pci-0000-10-1b-0", (0, "pci0000:10")),
        ("pci-0000-20-01-0", (0, "pci0000:20")),
        ("pci-0000-20-1b-0", (0, "pci0000:20")),
        ("pci-0000-90-01-0", (1, "pci0000:90")),
        ("pci-0000-90-1b-0", (1, "pci0000:90")),
        ("pci-0000-a0-01-0", (1, "pci0000:a0")),
        ("pci-0000-a0-1b-0", (1, "pci0000:a0")),
    ]
    assert dict(devices["pci-0000-10-1b-0"].attributes) == {
        "dra.net/numaNode": 0,
        "dra.net/pciAddress": "0000:10:1b.0",
        "dra.net/pciDevice": "Elastic Fabric Adapter (EFA)",
        "dra.net/pciSubsystem": "efa0",
        "dra.net/pciVendor": "Amazon.com, Inc.",
        "dra.net/rdma": True,
        "dra.net/rdmaDevice": "rdmap16s27",
        PCIE_ROOT: "pci0000:10",
    }
    rdma_devices = [d.attributes["dra.net/rdmaDevice"] for d in devices.values() if d.attributes["dra.net/rdma"]]
    assert rdma_devices == ["rdmap16s27", "rdmap32s27", "rdmap144s27", "rdmap160s27"]


def test_cards_with_an_interface_publish_its_attributes_too() -> None:
    attributes = devices_of(machines.p4d(), "dranet")["pci-0000-20-01-0"].attributes
    known = {name: value for name, value in attributes.items() if not isinstance(value, RuntimeOnly)}
    assert known == {
        "dra.net/alias": "",
        "dra.net/ebpf": False,
        "dra.net/encapsulation": "ether",
        "dra.net/mtu": 9001,
        "dra.net/numaNode": 0,
        "dra.net/pciAddress": "0000:20:01.0",
        "dra.net/pciDevice": "Elastic Network Adapter (ENA)",
        "dra.net/pciSubsystem": "ec20",
        "dra.net/pciVendor": "Amazon.com, Inc.",
        "dra.net/rdma": False,
        "dra.net/sriov": False,
        "dra.net/state": "up",
        "dra.net/type": "device",
        "dra.net/virtual": False,
        PCIE_ROOT: "pci0000:20",
    }
    assert set(attributes) - set(known) == {"dra.net/ifName", "dra.net/ipv4", "dra.net/mac"}


def test_a_gpu_and_its_cards_share_the_root_whether_its_value_is_known_or_not() -> None:
    gpus, cards = slices_of(machines.h100x8(), "nvidia,dranet")
    roots = [gpu.attributes[PCIE_ROOT] for gpu in gpus.devices]
    assert roots[0] == "pci0000:44"
    assert all(isinstance(root, RuntimeOnly) and not root.is_catalog_gap for root in roots[1:])
    assert [card.attributes[PCIE_ROOT] for card in cards.devices] == [root for root in roots for _ in range(4)]


def test_what_is_not_known_of_a_kind_of_card_is_a_gap() -> None:
    machine = machines.machine("a3", machines.H100, 1, cards=(machines.NetworkCard("rdma"),))
    sriov = devices_of(machine, "dranet")["rdma-00"].attributes["dra.net/sriov"]
    assert isinstance(sriov, RuntimeOnly)
    assert sriov.is_catalog_gap


def test_gce_adds_its_own_attributes() -> None:
    machine = machines.machine("a3", machines.H100, 1, cloud="gcp", cards=(machines.NetworkCard("gvnic"),))
    attributes = devices_of(machine, "dranet")["gvnic-00"].attributes
    assert attributes["gce.dra.net/machineType"] == "a3"
    assert {name for name in attributes if name.startswith("gce.")} == {
        f"gce.dra.net/{name}"
        for name in ("machineType", "block", "subBlock", "host", "networkName", "networkProjectNumber")
    }


def test_a_type_with_only_its_primary_card_publishes_no_network() -> None:
    machine = machines.machine("l4", machines.L4, 1, cards=(machines.NetworkCard("ena", primary=True),))
    assert slices_of(machine, "dranet") == ()


@pytest.mark.parametrize(("label", "reason"), [(None, "has no nodeLabel"), ("tpu", "understands no accelerator 'tpu'")])
def test_a_tpu_node_needs_a_label_that_the_driver_understands(label: str | None, reason: str) -> None:
    machine = machines.machine("x", replace(machines.TPU_V6E, node_label=label), 8)
    assert reason in (unpredictable(machine, parse_driver_set("tpu")) or "")


def test_the_first_release_for_tpus_published_the_generation_alone() -> None:
    attributes = devices_of(machines.tpu(), "tpu@v0.1.0")["3"].attributes
    assert {k: v for k, v in attributes.items() if k != "uuid"} == {"index": 3, "tpuGen": "v6e"}


def test_tpu_chips_carry_what_the_node_labels_say() -> None:
    devices = devices_of(machines.tpu(), "tpu")
    assert list(devices) == [str(i) for i in range(8)]
    known = {k: v for k, v in devices["3"].attributes.items() if k != "uuid"}
    assert known == {
        "index": 3,
        "tpuGen": "v6e",
        "brand": "Google",
        "accelerator": "tpu-v6e-slice",
        "chipCount": 8,
        "topology": "2x4",
    }
    assert len({d.attributes["uuid"] for d in devices.values()}) == 1
    assert all(not d.capacity for d in devices.values())


def test_a_pool_chooses_the_topology_of_multi_host_slices() -> None:
    sliced = replace(machines.tpu(4), slice_topologies=("4x4",))
    devices = devices_of(sliced, "tpu:topology=4x4")
    assert {d.attributes["topology"] for d in devices.values()} == {"4x4"}
    assert node_labels(sliced, parse_driver_set("tpu:topology=4x4"))["cloud.google.com/gke-tpu-topology"] == "4x4"


@pytest.mark.parametrize(
    ("accelerator", "generation"),
    [
        ("tpu-v3-device", "v3"),
        ("tpu-v4-podslice", "v4"),
        ("tpu-v5-lite-device", "v5lite"),
        ("tpu-v5-lite-podslice", "v5litepod"),
        ("tpu-v5p-slice", "v5p"),
        ("tpu-v6e-slice", "v6e"),
        ("tpu7x", "tpu7x"),
    ],
)
def test_tpu_generations_follow_from_the_accelerator(accelerator: str, generation: str) -> None:
    assert tpu_generation(accelerator) == generation


def test_a_tpu_without_its_label_cannot_be_predicted() -> None:
    chip = machines.Accelerator(key="google-tpu-v9", vendor="Google", model="TPU v9")
    reason = unpredictable(machines.machine("ct9", chip, 4, cloud="gcp"), parse_driver_set("tpu"))
    assert "gke-tpu-accelerator" in (reason or "")


@pytest.mark.parametrize(
    ("machine", "drivers", "expected"),
    [
        (machines.h100x8(), "nvidia,compute-domain", {"nvidia.com/gpu.present": "true"}),
        (
            machines.h100x8(),
            "nvidia:mig=all-balanced",
            {"nvidia.com/gpu.present": "true", "nvidia.com/mig.config": "all-balanced"},
        ),
        (
            machines.grace_blackwell(machines.GB300),
            "nvidia",
            {"nvidia.com/gpu.present": "true", "nvidia.com/gpu.clique": "future"},
        ),
        (
            machines.machine("g2", machines.L4, 1, cloud="gcp"),
            "nvidia",
            {
                "nvidia.com/gpu.present": "true",
                "gke-no-default-nvidia-gpu-device-plugin": "true",
                "cloud.google.com/gke-nvidia-gpu-dra-driver": "true",
            },
        ),
        (
            machines.tpu(),
            "tpu,nvidia",
            {
                "cloud.google.com/gke-accelerator-count": "8",
                "cloud.google.com/gke-tpu-accelerator": "tpu-v6e-slice",
                "cloud.google.com/gke-tpu-topology": "2x4",
                "cloud.google.com/gke-tpu-dra-driver": "true",
            },
        ),
    ],
    ids=["NVIDIA", "static MIG", "NVLink across nodes", "GKE GPU", "GKE TPU"],
)
def test_nodes_carry_the_labels_of_their_drivers(machine: InstanceType, drivers: str, expected: dict[str, str]) -> None:
    assert dict(node_labels(machine, parse_driver_set(drivers))) == expected


def test_an_nvlink_domain_that_is_not_known_yet_is_that_of_its_capacity_unit() -> None:
    drivers = parse_driver_set("nvidia")
    rack = machines.grace_blackwell(machines.GB200)
    cliques = [node_labels(rack, drivers, unit=unit)["nvidia.com/gpu.clique"] for unit in ("a", "a", "b", "")]
    assert cliques[0] == cliques[1]
    assert len(set(cliques)) == 3
    assert all(map(is_future_clique, cliques))
    assert not is_future_clique("a1b2c3d4-e5f6-7890-abcd-ef1234567890.0")
