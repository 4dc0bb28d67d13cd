"""`foreslice probe` against the fake libnvidia-ml, through the real pynvml."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from instance_catalog.probe.record import Probe
from tests.fakes.nvml.library import SCENARIOS, Outcome, run_probe

# Scenario → what the error says, and what it says to do.
ERRORS = {
    "no-gpu": ("there is no NVIDIA GPU", "lspci -d 10de:"),
    "mismatch": ("of different versions", "reboot the node"),
    "not-loaded": ("kernel driver is not loaded", "modprobe nvidia"),
    "permission-denied": ("may not be opened", "run the probe as root"),
    "gpu-lost": ("a GPU is lost", "drain the node"),
}
RECORDS = {"a100-mig", "h100", "gb200-clique", "placements-denied", "vgpu", "v100-peers"}


def record(outcome: Outcome) -> Probe:
    assert outcome.exit_code == 0, outcome.stderr
    return Probe.model_validate(yaml.safe_load(outcome.stdout))


def test_every_scenario_is_tested() -> None:
    assert {path.stem for path in SCENARIOS.glob("*.txt")} == RECORDS | set(ERRORS)


@pytest.mark.parametrize(("scenario", "message"), ERRORS.items(), ids=ERRORS)
def test_what_cannot_be_probed_says_what_to_do(
    scenario: str, message: tuple[str, str], new_driver: Path, node: Path
) -> None:
    outcome = run_probe(new_driver, scenario, node)
    assert (outcome.exit_code, outcome.stdout) == (1, "")
    assert all(part in outcome.stderr for part in message)
    assert "Traceback" not in outcome.stderr


def test_without_nvml_it_says_what_to_install(node: Path) -> None:
    outcome = run_probe(None, "h100", node)
    assert outcome.exit_code == 1
    assert "libnvidia-ml.so.1 was not found\n  install the NVIDIA driver" in outcome.stderr


def test_without_pynvml_it_says_what_to_install(node: Path) -> None:
    outcome = run_probe(None, "h100", node, pynvml=False)
    assert outcome.exit_code == 1
    assert "pip install 'foreslice[probe]'" in outcome.stderr


def test_a_node_without_proc_is_refused(new_driver: Path, tmp_path: Path) -> None:
    outcome = run_probe(new_driver, "h100", tmp_path)
    assert outcome.exit_code == 1
    assert "--host-root" in outcome.stderr


def test_an_h100_node(new_driver: Path, node: Path) -> None:
    found = record(run_probe(new_driver, "h100", node))
    assert (found.driver_version, found.cuda_driver_version) == ("580.126.09", "13.0")
    assert (found.host.vcpu, found.host.memory_ki_b) == (4, 65011712)
    assert found.notes == ()
    assert [(gpu.minor, gpu.index, gpu.module_id) for gpu in found.gpus] == [(0, 1, 1), (1, 0, 2)]
    gpu = found.gpus[0]
    assert (gpu.product_name, gpu.brand, gpu.architecture) == ("NVIDIA H100 80GB HBM3", "Nvidia", "Hopper")
    assert (gpu.cuda_compute_capability, gpu.memory_bytes) == ("9.0.0", 81559 * 2**20)
    assert (gpu.addressing_mode, gpu.virtual, gpu.fabric) == ("HMM", False, None)
    assert gpu.pci.model_dump() == {
        "address": "0000:53:00.0",
        "root": "pci0000:53",
        "path": ("0000:53:01.0",),
        "numa_node": 0,
    }
    assert [(link.peer, link.links) for link in gpu.nv_links] == [("switch", 18)]


def test_network_cards(new_driver: Path, node: Path) -> None:
    ena, efa = record(run_probe(new_driver, "h100", node)).nics
    assert (ena.vendor, ena.device, ena.interfaces, ena.default_route) == ("1d0f", "ec20", ("ens5",), True)
    assert (efa.subsystem, efa.rdma_devices, efa.default_route) == ("efa1", ("rdmap84s0",), False)
    assert efa.pci.root == "pci0000:53"


def test_an_a100_in_mig_mode(new_driver: Path, node: Path) -> None:
    divided, whole = (gpu.mig for gpu in record(run_probe(new_driver, "a100-mig", node)).gpus)
    assert divided is not None
    assert whole is not None
    assert (divided.enabled, divided.pending, whole.instances) == (True, True, ())
    profiles = {profile.name: profile for profile in divided.profiles}
    assert list(profiles) == ["1g.5gb", "2g.10gb", "3g.20gb", "4g.20gb", "7g.40gb", "1g.5gb+me", "1g.10gb"]
    assert profiles["3g.20gb"].model_dump() == {
        "id": 9,
        "name": "3g.20gb",
        "slices": 3,
        "instances": 2,
        "multiprocessors": 42,
        "copy_engines": 3,
        "decoders": 2,
        "encoders": 0,
        "jpeg_engines": 0,
        "ofa_engines": 0,
        "memory_mib": 20096,
        "placements": ((0, 4), (4, 4)),
    }
    places = [(instance.profile_id, instance.start, instance.size) for instance in divided.instances]
    assert places == [(9, 4, 4), (19, 0, 1)]
    assert all(instance.uuid.startswith("MIG-") for instance in divided.instances)


def test_a_clique_across_nodes(new_driver: Path, node: Path) -> None:
    found = record(run_probe(new_driver, "gb200-clique", node))
    assert found.gpus[0].fabric is not None
    assert found.gpus[0].fabric.model_dump() == {
        "state": "completed",
        "cluster_uuid": "a1b2c3d4-e5f6-7890-abcd-ef1234567890",
        "clique_id": 7,
    }
    assert [gpu.pci.root for gpu in found.gpus] == ["pci0008:00", "pci0009:00"]
    assert {gpu.pci.numa_node for gpu in found.gpus} == {None}  # -1 in sysfs


def test_gpus_linked_to_each_other(new_driver: Path, node: Path) -> None:
    found = record(run_probe(new_driver, "v100-peers", node))
    assert [[(link.peer, link.links) for link in gpu.nv_links] for gpu in found.gpus] == [
        [("0000:00:17.0", 2)],
        [("0000:00:16.0", 2)],
    ]
    assert {gpu.mig for gpu in found.gpus} == {None}
    assert {gpu.pci.root for gpu in found.gpus} == {None}  # not in this node's sysfs


def test_a_vgpu(new_driver: Path, node: Path) -> None:
    (gpu,) = record(run_probe(new_driver, "vgpu", node)).gpus
    assert (gpu.virtual, gpu.brand, gpu.mig, gpu.nv_links) == (True, "NvidiaVWS", None, ())


def test_placements_that_need_root_are_left_out_with_a_note(new_driver: Path, node: Path) -> None:
    outcome = run_probe(new_driver, "placements-denied", node)
    found = record(outcome)
    assert found.notes == ("MIG placements: not read, this needs root",)
    assert "note: MIG placements: not read, this needs root" in outcome.stderr
    assert {p.placements for gpu in found.gpus if gpu.mig for p in gpu.mig.profiles} == {None}


OLD_DRIVER_LACKS = [
    "architecture: not read, the driver is too old",
    "addressingMode: not read, the driver is too old",
    "moduleID: not read, the driver is too old",
    "NVLink peer types: not read, the driver is too old",
    "fabric: not read, the driver is too old",
]


def test_an_old_driver_says_less(old_driver: Path, node: Path) -> None:
    found = record(run_probe(old_driver, "h100", node))
    assert sorted(found.notes) == sorted(OLD_DRIVER_LACKS)
    gpu: Any = found.gpus[0]
    assert (gpu.architecture, gpu.addressing_mode, gpu.memory_bytes) == (None, None, 81559 * 2**20)
    profiles = gpu.mig.profiles  # by the first version of the call, which has no names
    assert [(profile.name, profile.id, profile.memory_mib) for profile in profiles][:2] == [
        (None, 19, 9984),
        (None, 14, 20096),
    ]
