"""A node pool whose nodes register with something else than plans assume: the verdict says which side to change."""

from __future__ import annotations

from datetime import timedelta

import pytest

from instance_catalog.dataclass import replace
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.taint import Taint
from providers.contract import TemplateFault
from providers.gcp.node_template.template import BlockNodes, PoolNodes
from providers.registered import Registered
from tests.fakes.gce.gke import DRA_LABELS
from tests.gcp import A3, ZONE, Rig

PLACE = "--cluster c1 --location us-central1 --project gpu-project"
OF = f"h100 {PLACE}"
GPU = Taint("nvidia.com/gpu", "present")
OWN = {**DRA_LABELS, "foreslice.dev/pool": "gpu"}
OWN_LIST = (
    "cloud.google.com/gke-nvidia-gpu-dra-driver=true,foreslice.dev/pool=gpu,"
    "gke-no-default-nvidia-gpu-device-plugin=true,nvidia.com/gpu.present=true"
)
RIGHT = PoolNodes("gpu", "gpu", taints=(GPU,))


def faults(expected: PoolNodes, **pool: object) -> tuple[TemplateFault, ...]:
    rig = Rig(expected=[expected])
    rig.fake.clusters.pools["h100"] = replace(rig.fake.clusters.pools["h100"], **{"labels": OWN, **pool})
    rig.group(A3).kube_labels = {"cloud.google.com/gke-os-distribution": "cos"}
    (found,) = rig.provider.template_statuses()
    return found.faults


def test_nodes_that_register_as_planned() -> None:
    own = {"cloud.google.com/gke-nodepool": "h100", "cloud.google.com/gke-os-distribution": "cos"}
    assert faults(replace(RIGHT, labels=FrozenMap(own))) == ()


def test_a_taint_that_the_capacity_pool_does_not_name_is_known_all_the_same() -> None:
    assert faults(replace(RIGHT, taints=())) == ()


def test_plans_are_told_what_the_nodes_of_each_group_register_with() -> None:
    rig = Rig()
    pools = rig.fake.clusters.pools
    pools["h100"] = replace(pools["h100"], labels={**OWN, "team": "a"})
    rig.group(A3).kube_labels = {"cloud.google.com/gke-os-distribution": "cos"}
    (found,) = rig.provider.template_statuses()
    theirs = found.registers[A3]
    assert theirs.labels == {
        **OWN,
        "team": "a",
        "cloud.google.com/gke-nodepool": "h100",
        "cloud.google.com/gke-os-distribution": "cos",
    }
    assert theirs.taints == (GPU,)


def test_nodes_of_two_pools_that_start_the_same_have_what_both_have() -> None:
    """And they may have the taints of either."""
    one = Registered(FrozenMap({"team": "a", "cloud.google.com/gke-nodepool": "x"}), (GPU,))
    other = Registered(FrozenMap({"team": "a", "cloud.google.com/gke-nodepool": "y"}), (Taint("team", "a"), GPU))
    assert one.beside(other) == Registered(FrozenMap({"team": "a"}), (GPU, Taint("team", "a")))


def test_a_pool_of_another_template_assumes_nothing() -> None:
    assert faults(PoolNodes("other", "other", labels=FrozenMap({"team": "a"}))) == ()


@pytest.mark.parametrize(
    ("expected", "pool", "kind", "step"),
    [
        (
            RIGHT,
            {"labels": {key: value for key, value in OWN.items() if key != "foreslice.dev/pool"}},
            "PoolLabels",
            f"gcloud container node-pools update {OF} --node-labels={OWN_LIST}",
        ),
        (
            replace(RIGHT, labels=FrozenMap({"cloud.google.com/compute-class": "h100"})),
            {},
            "PoolLabels",
            f"gcloud container node-pools update {OF} --node-labels=cloud.google.com/compute-class=h100,{OWN_LIST}",
        ),
        (
            replace(RIGHT, labels=FrozenMap({"cloud.google.com/gke-nodepool": "h200"})),
            {},
            "PoolLabels",
            "correct cloud.google.com/gke-nodepool in spec.labels of CapacityPool gpu",
        ),
        (
            replace(RIGHT, labels=FrozenMap({"iam.gke.io/gke-metadata-server-enabled": "true"})),
            {},
            "PoolLabels",
            f"gcloud container node-pools update {OF} --workload-metadata=GKE_METADATA",
        ),
        (
            replace(RIGHT, taints=(GPU, Taint("team", "a", "NoExecute"))),
            {},
            "PoolTaints",
            f"gcloud container node-pools update {OF} --node-taints=nvidia.com/gpu=present:NoSchedule,team=a:NoExecute",
        ),
        (
            RIGHT,
            {"max_pods": 32, "taints": (("nvidia.com/gpu", "present", "NO_SCHEDULE"),)},
            "MaxPods",
            f"gcloud container node-pools create NEW {PLACE} --num-nodes 0 "
            f"--no-enable-autorepair --node-locations {ZONE} --machine-type a3-highgpu-8g "
            "--accelerator type=nvidia-h100-80gb,count=8,gpu-driver-version=disabled --max-pods-per-node 110 "
            f"--node-labels {OWN_LIST}",
        ),
    ],
)
def test_a_difference_comes_with_its_step(expected: PoolNodes, pool: dict[str, object], kind: str, step: str) -> None:
    (fault,) = faults(expected, **pool)
    assert (fault.field, fault.kind, fault.certain) == ("nodePools", kind, True)
    assert step in fault.next_step


OF_BLOCK = "foreslice.dev/capacity-block"
DAY = timedelta(days=1)


def held(block: str, taint: tuple[str, str, str] | None, *, reservation: str = "") -> list[str]:
    """What is said of a node pool with this label and taint, whose machines start in the reservation of block march."""
    rig = Rig()
    offering = rig.hold(starts_in=DAY, lasts=DAY)
    march = BlockNodes("march", reservation or offering.reservation, Taint(OF_BLOCK, "march"))
    rig.expected.append(replace(RIGHT, taints=(), blocks=(march,)))
    group = rig.templates.found.groups[-1]
    pool = replace(
        rig.fake.clusters.pools["h100"],
        groups=((group.zone, group.name),),
        labels={**OWN, **({OF_BLOCK: block} if block else {})},
        taints=(taint,) if taint else (),
    )
    rig.fake.clusters.pools["h100"] = pool
    (found,) = rig.provider.template_statuses()
    return [f"{fault.kind}: {fault.next_step}" for fault in found.faults]


def test_the_node_pool_of_a_block_has_its_label_and_its_taint() -> None:
    taint = (OF_BLOCK, "march", "NO_SCHEDULE")
    assert held("march", taint) == []
    (missing,) = held("", taint)
    start = f"BlockLabel: gcloud container node-pools update {OF} --node-labels="
    assert (missing.startswith(start), f"{OF_BLOCK}=march," in missing) == (True, True)
    (missing,) = held("march", None)
    assert missing == f"BlockTaint: gcloud container node-pools update {OF} --node-taints={OF_BLOCK}=march:NoSchedule"
    assert [fault.partition(":")[0] for fault in held("april", (OF_BLOCK, "april", "NO_SCHEDULE"))] == [
        "BlockLabel",
        "BlockTaint",
    ]
    assert held("", None, reservation=f"zones/{ZONE}/reservations/other") == []


def test_a_node_pool_that_has_the_label_of_a_block_and_not_its_reservation() -> None:
    march = BlockNodes("march", f"zones/{ZONE}/reservations/march")
    (fault,) = faults(replace(RIGHT, blocks=(march,)), labels={**OWN, OF_BLOCK: "march"})
    assert (fault.kind, OF_BLOCK in fault.next_step) == ("BlockLabel", False)


def test_one_command_sets_all_labels_and_one_all_taints() -> None:
    """gcloud replaces the labels and taints of a node pool: commands for some of them would undo each other."""
    held = replace(RIGHT, taints=(GPU, Taint("team", "a")), labels=FrozenMap({"team": "a"}))
    found = faults(held, labels={"own": "x"}, taints=(), driver="", max_pods=32)
    by_kind = {one.kind: one.next_step for one in found}
    everything = f"{OWN_LIST},own=x,team=a"
    relabel = f"gcloud container node-pools update {OF} --node-labels={everything}"
    assert (by_kind["LabelsMissing"], by_kind["PoolLabels"]) == (relabel, relabel)
    assert by_kind["PoolTaints"].endswith("--node-taints=nvidia.com/gpu=present:NoSchedule,team=a:NoSchedule")
    assert by_kind["DriverInstalled"].endswith(f"make another node pool: {by_kind['MaxPods']}")
    assert by_kind["MaxPods"].endswith(f"--node-labels {everything} --node-taints team=a:NoSchedule")
