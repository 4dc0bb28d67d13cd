"""A PersistentVolume that is a directory of the node is empty on a new node, and a plan says so."""

from __future__ import annotations

import pytest

from autoscaler.kube.storage import parse_persistent_volume
from autoscaler.lint.other_systems import foreign_advice
from autoscaler.lint.supply_advice import supply_advice
from autoscaler.model.storage import PersistentVolume, PersistentVolumeClaim
from instance_catalog.dataclass import replace
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.node_selector import NodeSelector, NodeSelectorTerm, Requirement
from tests.builders import CATALOG, claim, plan, pod, snapshot

BY_HAND = {"metadata": {"name": "models"}, "spec": {"hostPath": {"path": "/srv/models"}}}
HERE = NodeSelector((NodeSelectorTerm((Requirement("kubernetes.io/arch", "In", ("amd64",)),)),))


@pytest.mark.parametrize(
    ("volume", "told"),
    [
        (parse_persistent_volume(BY_HAND), 1),
        (PersistentVolume("models", driver="efs.csi.aws.com"), 0),
        (replace(parse_persistent_volume(BY_HAND), node_affinity=HERE), 0),
    ],
)
def test_pods_on_new_nodes_are_told_that_the_directory_is_empty(volume: PersistentVolume, told: int) -> None:
    pods = [replace(pod(name, name), volumes=("models",)) for name in ("p", "q")]
    bound = PersistentVolumeClaim("default", "models", volume="models")
    state = replace(
        snapshot(pods, [claim("p"), claim("q")]),
        volumes=FrozenMap({"models": volume}),
        volume_claims=FrozenMap({bound.key: bound}),
    )
    found = plan(state)
    assert found.launches
    said = [one for one in supply_advice(state, found, CATALOG) if one.subject == "PersistentVolume models"]
    assert len(said) == told
    for one in said:
        assert (
            "is /srv/models of whichever node its pod is on, which is a new one for default/p and 1 more" in one.message
        )


@pytest.mark.parametrize("path", ["/data01/models", "/devices", "/mnt/models", "/var/models"])
def test_a_path_that_a_new_node_does_not_have(path: str) -> None:
    (found,) = foreign_advice(snapshot([pod("p", host_paths=(path,))]), CATALOG)
    assert found.message.startswith(f"mounts {path} of its node")


@pytest.mark.parametrize("path", ["/", "/dev/shm", "/etc/", "/mnt", "/root", "/var", "/var/lib/kubelet/pods"])
def test_a_path_that_every_node_has(path: str) -> None:
    assert list(foreign_advice(snapshot([pod("p", host_paths=(path,))]), CATALOG)) == []


def test_a_directory_whose_files_a_pod_needs_is_empty_on_a_new_node() -> None:
    (found,) = foreign_advice(snapshot([pod("p", paths_read=("/usr/lib/models", "/mnt"))]), CATALOG)
    assert found.message.startswith("mounts /mnt of its node (hostPath), which is empty on a new node")
