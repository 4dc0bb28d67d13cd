"""Probed MIG profiles against the shipped partition tables."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from instance_catalog.drivers.facts import mig_tables
from instance_catalog.probe.entry import mig_differences
from instance_catalog.probe.record import GpuRecord, Probe
from tests.fakes.nvml.library import run_probe


def probed(scenario: str, library: Path, node: Path) -> GpuRecord:
    return Probe.model_validate(yaml.safe_load(run_probe(library, scenario, node).stdout)).gpus[0]


@pytest.mark.parametrize(
    ("scenario", "table"), [("a100-mig", "a100-40gb"), ("h100", "h100-80gb"), ("placements-denied", "h100-80gb")]
)
def test_a_gpu_like_its_table(scenario: str, table: str, new_driver: Path, node: Path) -> None:
    gpu = probed(scenario, new_driver, node)
    assert gpu.mig is not None
    assert len(gpu.mig.profiles) == 7
    assert list(mig_differences(gpu, mig_tables()[table])) == []


def test_what_differs_is_said(new_driver: Path, node: Path) -> None:
    gpu = probed("h100", new_driver, node)
    assert gpu.mig is not None
    first, *others = gpu.mig.profiles
    changed = first.model_copy(update={"multiprocessors": 14, "memory_mib": 9856, "placements": ((0, 1),)})
    without_last = gpu.model_copy(update={"mig": gpu.mig.model_copy(update={"profiles": (changed, *others[:-1])})})
    assert list(mig_differences(without_last, mig_tables()["h100-80gb"])) == [
        "MIG profile 1g.10gb of table h100-80gb: multiprocessors 16, but the GPU says 14",
        "MIG profile 1g.10gb of table h100-80gb: memory 9984Mi, but the GPU says 9856Mi",
        "MIG profile 1g.10gb of table h100-80gb: placements 0:1 1:1 2:1 3:1 4:1 5:1 6:1, but the GPU says 0:1",
        "MIG profile 1g.20gb of table h100-80gb: the GPU has none with id 15",
    ]


def test_a_gpu_without_mig_says_nothing(new_driver: Path, node: Path) -> None:
    assert list(mig_differences(probed("vgpu", new_driver, node), mig_tables()["h100-80gb"])) == []
