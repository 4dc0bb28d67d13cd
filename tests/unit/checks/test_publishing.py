"""Nodes that exist tell what will go wrong with those to be."""

from __future__ import annotations

import pytest

from autoscaler.checks.publishing import without_gpudirect
from autoscaler.model.node import Node
from autoscaler.model.snapshot import Snapshot
from autoscaler.report.reasons import text_of
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes import labels
from instance_catalog.kubernetes.resource_slice import Device, NodeReach, Pool, ResourceSlice, Version
from tests.builders import snapshot


def with_driver(instance_type: str, version: str, driver: str = "gpu.nvidia.com") -> Snapshot:
    """A node whose driver has published two GPUs."""
    node = Node("n1", labels=FrozenMap({labels.INSTANCE_TYPE: instance_type}))
    gpus = tuple(Device(f"gpu-{i}", FrozenMap({"driverVersion": Version(version)})) for i in range(2))
    piece = ResourceSlice("n1-gpus", driver, Pool("n1"), gpus, NodeReach("n1"))
    return snapshot([], [], nodes=(node,), slices=(piece,))


@pytest.mark.parametrize(
    ("instance_type", "version", "driver", "broken"),
    [
        pytest.param("p6e-gb200.36xlarge", "595.91.7", "gpu.nvidia.com", True, id="GB200"),
        pytest.param("p6e-gb300r.36xlarge", "600.1.0", "gpu.nvidia.com", True, id="GB300, a later branch"),
        pytest.param("p6e-gb200.36xlarge", "580.173.2", "gpu.nvidia.com", False, id="the branch before"),
        pytest.param("p6-b200.48xlarge", "595.91.7", "gpu.nvidia.com", False, id="another type"),
        pytest.param("p6e-gb200.36xlarge", "595.91.7", "compute-domain.nvidia.com", False, id="another driver"),
    ],
)
def test_a_driver_without_gpudirect_is_told_once_a_node(
    instance_type: str, version: str, driver: str, broken: bool
) -> None:
    found = list(without_gpudirect(with_driver(instance_type, version, driver)))
    assert len(found) == broken
    for reason in found:
        told = text_of(reason)
        assert f"on {instance_type}" in told
        assert "run branch 580 with the module parameter NVreg_GrdmaPciTopoCheckOverride=1" in told
