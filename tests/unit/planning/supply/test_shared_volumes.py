"""A volume for one node that pods on several nodes share: all of them are placed, and those of one node start."""

from __future__ import annotations

import pytest

from autoscaler.model.plan import Placement, Target
from autoscaler.model.reason import Code
from autoscaler.model.snapshot import Snapshot
from autoscaler.model.storage import PersistentVolume, PersistentVolumeClaim, StorageClass, VolumeBindingMode
from autoscaler.planning.supply.unprepared import not_working
from autoscaler.report.tables.plan_summary import summary_of
from instance_catalog.dataclass import replace
from instance_catalog.frozen_map import FrozenMap
from tests.builders import CATALOG, claim, gpus, plan, pod, shipped, snapshot, why_left

EBS, EFS, OTHER = "ebs.csi.aws.com", "efs.csi.aws.com", "disks.example.com"


def given(*modes: str, provisioner: str = EBS, volume: PersistentVolume | None = None) -> Snapshot:
    bound = volume.name if volume else None
    data = PersistentVolumeClaim("default", "data", storage_class="sc", volume=bound, access_modes=modes)
    return snapshot(
        [pod(name, volumes=("data",)) for name in ("p", "q", "r")],
        volume_claims=FrozenMap({data.key: data}),
        volumes=FrozenMap({volume.name: volume} if volume else {}),
        storage_classes=FrozenMap(
            {"sc": StorageClass("sc", VolumeBindingMode.WAIT_FOR_FIRST_CONSUMER, provisioner=provisioner)}
        ),
    )


def warned(state: Snapshot, *nodes: str) -> list[tuple[str, object]]:
    """The warnings of a plan that puts the pods there, with the number of pods that do not work."""
    placed = tuple(Placement(f"default/{n}", Target.NEW, node) for n, node in zip("pqr", nodes, strict=False))
    found = replace(plan(snapshot([])), placements=placed)
    return [
        (f"{one.detail['problem']}; {one.detail['next_step']}", one.detail.get("not_working"))
        for one in not_working(state, found, CATALOG)
    ]


@pytest.mark.parametrize("mode", ["ReadWriteOnce", "ReadWriteOncePod"])
def test_all_but_the_pods_of_one_node_do_not_start(mode: str) -> None:
    ((text, pods),) = warned(given(mode), "a", "a", "b")
    assert pods == 1
    assert f"spec.accessModes: has {mode} and pods on 2 nodes of the plan: the volume is attached to one node" in text
    assert "(Multi-Attach error); use ReadWriteMany with a StorageClass of a file system (such as efs.csi" in text


def test_the_first_line_counts_them() -> None:
    state = given("ReadWriteOnce")
    placed = tuple(Placement(one.key, Target.NEW, one.name) for one in state.pods)
    found = replace(plan(snapshot([])), placements=placed)
    first = summary_of(replace(found, warnings=tuple(not_working(state, found, CATALOG))))[0]
    assert "3 pods placed (2 of them where they do not work: see the warnings)" in first.text


@pytest.mark.parametrize(
    ("state", "nodes"),
    [
        pytest.param(given("ReadWriteOnce"), "aaa", id="one node"),
        pytest.param(given("ReadWriteOnce"), "a", id="one pod placed"),
        pytest.param(given("ReadWriteMany"), "abc", id="ReadWriteMany"),
        pytest.param(given("ReadWriteOnce", "ReadOnlyMany"), "abc", id="ReadOnlyMany besides"),
        pytest.param(given(), "abc", id="no mode, which is open"),
        pytest.param(given("ReadWriteOnce", provisioner=EFS), "abc", id="nothing is attached for a file system"),
        pytest.param(given("ReadWriteOnce", volume=PersistentVolume("nfs")), "abc", id="nor for NFS"),
        pytest.param(
            given("ReadWriteOnce", volume=PersistentVolume("v", driver=EBS, access_modes=("ReadWriteMany",))),
            "abc",
            id="the modes of the bound volume decide",
        ),
    ],
)
def test_no_warning(state: Snapshot, nodes: str) -> None:
    assert warned(state, *nodes) == []


def test_a_driver_that_may_attach_nothing_is_named() -> None:
    ((text, pods),) = warned(given("ReadWriteOnce", provisioner=OTHER), "a", "b", "c")
    assert pods is None
    assert f", unless {OTHER} attaches nothing (attachRequired: false in its CSIDriver); use ReadWriteMany" in text


def test_a_pod_that_runs_has_the_volume() -> None:
    state = given("ReadWriteOnce")
    running = replace(state, pods=(replace(state.pods[0], node_name="a"), *state.pods[1:2]))
    assert warned(running) == []
    found = replace(plan(snapshot([])), placements=(Placement("default/q", Target.NEW, "b"),))
    ((warning),) = not_working(running, found, CATALOG)
    assert warning.detail["not_working"] == 1


def test_a_volume_for_one_pod_has_one() -> None:
    """Whatever else keeps the pods apart: a node for the second one would stay empty."""
    state = given("ReadWriteOncePod")
    pods = [pod(name, name, volumes=("data",)) for name in "pq"]
    asking = snapshot(pods, [claim(name, gpus()) for name in "pq"])
    found = plan(replace(state, pods=asking.pods, claims=asking.claims), catalog=shipped("g4dn.xlarge"))
    assert [one.pod for one in found.placements] == ["default/p"]
    assert why_left(found, "q") == [Code.VOLUME_IN_USE]
