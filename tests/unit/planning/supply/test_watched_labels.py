"""Labels of volumes matter to pods that mount some: other plans do not read the thousands that a cluster has."""

from __future__ import annotations

import pytest

from autoscaler.model.pod import Pod
from autoscaler.model.snapshot import Snapshot
from autoscaler.model.storage import PersistentVolume, StorageClass
from autoscaler.planning.supply.hypothetical import watched_labels
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.labels import REGION, ZONE
from instance_catalog.kubernetes.node_selector import NodeSelector, NodeSelectorTerm, Requirement


def having(key: str) -> NodeSelector:
    return NodeSelector((NodeSelectorTerm((Requirement(key, "Exists"),)),))


@pytest.mark.parametrize(
    ("volumes", "expected"), [((), set()), (("c",), {ZONE, REGION, "example.com/disk", "example.com/rack"})]
)
def test_labels_of_volumes(volumes: tuple[str, ...], expected: set[str]) -> None:
    state = Snapshot(
        volumes=FrozenMap({"v": PersistentVolume("v", having("example.com/disk")), "w": PersistentVolume("w")}),
        storage_classes=FrozenMap({"s": StorageClass("s", topologies=having("example.com/rack"))}),
    )
    assert watched_labels(state, [Pod("ns", "p"), Pod("ns", "q", volumes=volumes)]) == expected
