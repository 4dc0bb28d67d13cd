"""A node pool whose nodes register with something else than plans assume: the verdict says which side to change."""

from __future__ import annotations

from dataclasses import replace

import pytest

from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.taint import Taint
from providers.contract import TemplateFault
from providers.gcp.node_template.template import PoolNodes
from tests.gcp import A3, Rig

OF = "h100 --cluster c1 --location us-central1"
GPU = Taint("nvidia.com/gpu", "present")
OWN = {"gke-no-default-nvidia-gpu-device-plugin": "true", "nvidia.com/gpu.present": "true", "foreslice.dev/pool": "gpu"}
RIGHT = PoolNodes("gpu", "gpu", taints=(GPU,))


def faults(expected: PoolNodes, **pool: object) -> tuple[TemplateFault, ...]:
    rig = Rig(expected=[expected])
    rig.fake.clusters.pools["h100"] = replace(rig.fake.clusters.pools["h100"], **{"labels": OWN, **pool})
    rig.group(A3).kube_labels = {"cloud.google.com/gke-nvidia-gpu-dra-driver": "true"}
    (found,) = rig.provider.template_statuses()
    return found.faults


def test_nodes_that_register_as_planned() -> None:
    own = {"cloud.google.com/gke-nodepool": "h100", "cloud.google.com/gke-nvidia-gpu-dra-driver": "true"}
    assert faults(replace(RIGHT, labels=FrozenMap(own))) == ()


def test_a_taint_that_something_removes_is_no_difference() -> None:
    assert faults(replace(RIGHT, taints=(), startup_taints=(GPU,))) == ()


def test_the_taint_of_a_capacity_block_is_no_difference() -> None:
    taints = (("nvidia.com/gpu", "present", "NO_SCHEDULE"), ("foreslice.dev/capacity-block", "b", "NO_SCHEDULE"))
    assert faults(RIGHT, taints=taints) == ()


def test_a_pool_of_another_template_assumes_nothing() -> None:
    assert faults(PoolNodes("other", "other", labels=FrozenMap({"team": "a"}))) == ()


@pytest.mark.parametrize(
    ("expected", "pool", "kind", "step"),
    [
        (
            RIGHT,
            {"labels": {key: value for key, value in OWN.items() if key != "foreslice.dev/pool"}},
            "PoolLabels",
            f"gcloud container node-pools update {OF} --node-labels=foreslice.dev/pool=gpu,"
            "gke-no-default-nvidia-gpu-device-plugin=true,nvidia.com/gpu.present=true",
        ),
        (
            replace(RIGHT, labels=FrozenMap({"cloud.google.com/gke-nodepool": "h200"})),
            {},
            "PoolLabels",
            "correct cloud.google.com/gke-nodepool in spec.labels of CapacityPool gpu",
        ),
        (replace(RIGHT, taints=()), {}, "PoolTaints", "add it to spec.taints of CapacityPool gpu"),
        (
            replace(RIGHT, taints=(GPU, Taint("team", "a", "NoExecute"))),
            {},
            "PoolTaints",
            f"gcloud container node-pools update {OF} --node-taints=nvidia.com/gpu=present:NoSchedule,team=a:NoExecute",
        ),
        (RIGHT, {"max_pods": 32}, "MaxPods", "--max-pods-per-node 110"),
    ],
)
def test_a_difference_comes_with_its_step(expected: PoolNodes, pool: dict[str, object], kind: str, step: str) -> None:
    (fault,) = faults(expected, **pool)
    assert (fault.field, fault.kind, fault.certain) == ("nodePools", kind, True)
    assert step in fault.next_step
