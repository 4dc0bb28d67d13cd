"""Pods of clouds in which nothing is launched: what to do there, and what to drop to plan them here."""

from __future__ import annotations

import pytest

from autoscaler.lint.other_systems import foreign_advice
from autoscaler.lint.pods.cloud_terms import cloud_named, cloud_of_machine
from autoscaler.model.node import Node
from autoscaler.model.pod import Container, Pod
from autoscaler.model.snapshot import DaemonSet
from instance_catalog.dataclass import replace
from instance_catalog.diagnostic import Diagnostic
from instance_catalog.files.loader import load_catalog
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes import labels
from instance_catalog.kubernetes.node_selector import NodeSelector, NodeSelectorTerm, Requirement
from instance_catalog.kubernetes.quantity import Quantity
from tests.builders import CATALOG, pod, snapshot

LABEL, RESOURCE = "machine.cluster.vke.volcengine.com/gpu-name", "vke.volcengine.com/rdma"


def waiting(*, selects: str = "", asks: str = "") -> Pod:
    container = Container("main", FrozenMap({asks: Quantity.of(1)} if asks else {}))
    selector = FrozenMap({selects: "a"} if selects else {})
    return replace(pod("p"), containers=(container,), node_selector=selector)


def told(*pods: Pod, nodes: tuple[Node, ...] = ()) -> list[Diagnostic]:
    found = foreign_advice(snapshot(pods, nodes=nodes), CATALOG)
    return [one for one in found if "only nodes of" in one.message]


@pytest.mark.parametrize(
    ("name", "cloud"),
    [
        (LABEL, "Volcengine"),
        ("aliyun.com/gpu-core.percentage", "Alibaba Cloud"),
        ("aliyun.com/gpu-mem", ""),  # of a device plugin that runs on any cluster
        ("kubernetes.azure.com/accelerator", "Azure"),
        ("node.k8s.ovh/type", "OVHcloud"),
        ("doks.digitalocean.com/node-pool", "DigitalOcean"),
        ("lke.linode.com/pool-id", "Akamai (Linode)"),
        ("k8s.scaleway.com/pool-name", "Scaleway"),
        ("vke.vultr.com/node-pool", "Vultr"),
        ("kubernetes.civo.com/civo-node-pool", "Civo"),
        ("node.exoscale.net/nodepool-id", "Exoscale"),
        ("ibm-cloud.kubernetes.io/worker-pool-name", "IBM Cloud"),
        ("node.alibabacloud.com/nodepool-id", "Alibaba Cloud"),
        ("node.tke.cloud.tencent.com/machineset", "Tencent Cloud"),
        ("node.kubernetes.io/instance-type", ""),
        ("huawei.com/Ascend910", ""),  # of a device plugin that runs wherever such NPUs are
        ("nvidia.com/gpu", ""),
        ("notaliyun.com/gpu", ""),
        ("volcengine.com", ""),
    ],
)
def test_whose_nodes_have_it(name: str, cloud: str) -> None:
    assert cloud_named(name) == cloud


def test_everything_that_keeps_the_pod_there_is_named() -> None:
    (found,) = told(waiting(selects=LABEL, asks=RESOURCE), waiting())
    assert found.message.startswith(f"selects {LABEL} and asks for {RESOURCE}, which only nodes of Volcengine have")
    assert f"drop the node selector or affinity on {LABEL} and the request of {RESOURCE}, and" in found.next_step


def test_a_pod_that_says_it_by_another_label_gets_a_message_of_its_own() -> None:
    other = replace(pod("q"), node_selector=FrozenMap({labels.INSTANCE_TYPE: "ecs.g3il.xlarge"}))
    same = replace(waiting(selects=LABEL), name="r")
    found = told(waiting(selects=LABEL), same, other, replace(other, name="s"), replace(same, name="t"))
    assert [one.message.split(",")[0] for one in found] == [
        f"selects {LABEL}",
        f"selects {labels.INSTANCE_TYPE}=ecs.g3il.xlarge",
    ]
    assert [one.others for one in found] == [2, 1]


def test_one_of_them_is_enough_and_is_said_once() -> None:
    given = snapshot([waiting(selects="pool", asks=RESOURCE)])
    about = [one for one in foreign_advice(given, CATALOG) if RESOURCE in one.message]
    assert [f"drop the request of {RESOURCE}; for RDMA, machines" in one.next_step for one in about] == [True]


def test_the_only_devices_of_a_pod_are_not_dropped() -> None:
    """A pod without them would run on any node, and not do its work."""
    own = "tencent.com/vcuda-core"
    (found,) = told(waiting(asks=own))
    assert f"no machine here replaces {own}; if a DRA driver publishes such devices, claim them" in found.next_step
    assert "drop" not in found.next_step
    both = FrozenMap({own: Quantity.of(1), "nvidia.com/gpu": Quantity.of(1)})
    (found,) = told(replace(waiting(), containers=(Container("main", both),)))
    assert f"to plan it here, drop the request of {own}" in found.next_step


def test_what_nodes_that_are_there_have_is_not_said() -> None:
    there = Node("n", labels=FrozenMap({LABEL: "a"}), allocatable=FrozenMap({RESOURCE: Quantity.of(1)}))
    assert told(waiting(selects=LABEL, asks=RESOURCE), nodes=(there,)) == []
    assert told(waiting()) == []


def choosing(*requirements: Requirement, asks: str = "nvidia.com/gpu") -> Pod:
    return replace(waiting(asks=asks), affinity=NodeSelector((NodeSelectorTerm(requirements),)))


def on(*names: str, asks: str = "nvidia.com/gpu") -> Pod:
    return choosing(Requirement(labels.INSTANCE_TYPE, "In", names), asks=asks)


@pytest.mark.parametrize(
    ("name", "cloud"),
    [
        ("BM.GPU.GB200.4", "Oracle Cloud"),
        ("VM.GPU.A10.1", "Oracle Cloud"),
        ("Standard_NC24ads_A100_v4", "Azure"),
        ("ecs.gn7i-c8g1.2xlarge", "Alibaba Cloud or Volcengine"),
        ("gd-8xh100ib-i128", "CoreWeave"),
        ("gb200-4x", "CoreWeave"),
        *(
            (name, "")
            for name in ("p5.48xlarge", "a3-highgpu-8g", "n1-standard-8", "ct5lp-hightpu-4t", "box", "gpu-8x")
        ),
    ],
)
def test_whose_machine_it_is(name: str, cloud: str) -> None:
    assert cloud_of_machine(name) == cloud


def test_a_machine_of_another_cloud_is_no_type_to_add() -> None:
    found = [one for one in foreign_advice(snapshot([on("BM.GPU.B300.8")]), CATALOG) if "BM.GPU" in one.message]
    key = labels.INSTANCE_TYPE
    assert [one.message.partition(":")[0] for one in found] == [
        f"selects {key}=BM.GPU.B300.8, which only nodes of Oracle Cloud have"
    ]
    assert f"drop the node selector or affinity on {key}, and select its GPU by" in found[0].next_step
    assert "catalog add" not in found[0].next_step


def test_a_machine_that_is_there_or_may_be_another_is_not_said() -> None:
    there = Node("n", labels=FrozenMap({labels.INSTANCE_TYPE: "BM.GPU.B300.8"}))
    assert told(on("BM.GPU.B300.8"), nodes=(there,)) == []
    assert told(on("BM.GPU.B300.8", next(iter(CATALOG.types)))) == []
    added = replace(CATALOG, types=FrozenMap({"own": replace(next(iter(CATALOG)), machine="BM.GPU.B300.8")}))
    assert not [one for one in foreign_advice(snapshot([on("BM.GPU.B300.8")]), added) if "BM.GPU" in one.message]


@pytest.mark.parametrize("region", [labels.REGION, "failure-domain.beta.kubernetes.io/region"])
def test_a_region_of_coreweave_is_named_with_its_labels_of_gpus(region: str) -> None:
    model = Requirement("gpu.nvidia.com/model", "In", ("A40",))
    (found,) = told(choosing(model, Requirement(region, "In", ("LAS1",))))
    assert f"selects gpu.nvidia.com/model and {region}=LAS1, which only nodes of CoreWeave" in found.message
    assert "no type in the catalog has A40, so choose one with as much memory" in found.next_step
    assert told(choosing(Requirement(region, "In", ("us-east-1",)))) == []


@pytest.mark.parametrize("name", ["class", "count", "model", "nvlink", "vram"])
def test_a_label_of_gpus_is_coreweaves_whatever_the_region(name: str) -> None:
    of = Requirement(f"gpu.nvidia.com/{name}", "In", ("x",))
    (found,) = told(choosing(of))
    assert found.message.startswith(f"selects gpu.nvidia.com/{name}, which only nodes of CoreWeave have")
    there = Node("n", labels=FrozenMap({of.key: "x"}))
    assert told(choosing(of), nodes=(there,)) == told(choosing(Requirement("gpu.nvidia.com/own", "In", ("x",)))) == []


@pytest.mark.parametrize("card", ["Quadro_RTX_5000", "GeForce_GTX_1070_Ti"])
def test_a_desktop_card_is_a_model_that_the_catalog_lacks(card: str) -> None:
    (found,) = told(choosing(Requirement("gpu.nvidia.com/class", "In", (card,))))
    assert f"no type in the catalog has {card}, so choose one with as much memory" in found.next_step


def test_a_gpu_that_the_catalog_has_is_selected() -> None:
    model = next(iter(CATALOG)).accelerator
    assert model is not None
    of = Requirement("gpu.nvidia.com/model", "In", (f"{model.model.split()[0]}_NVLINK_80GB",))
    (found,) = told(choosing(of, Requirement(labels.REGION, "In", ("ORD1",))))
    assert "so choose" not in found.next_step


def test_what_nothing_here_has_is_dropped_with_it_and_not_added() -> None:
    found = list(foreign_advice(snapshot([on("gd-8xa100-i128", asks="rdma/ib")]), CATALOG))
    (about,) = [one for one in found if "rdma/ib" in f"{one.message}{one.next_step}"]
    assert "and the request of rdma/ib, and select" in about.next_step
    assert (
        "for RDMA, machines of AWS have vpc.amazonaws.com/efa (that of g4dn and g5 has no RDMA read), and DRANET"
        in about.next_step
    )


def test_the_gpu_that_its_machine_has_is_the_one_to_select() -> None:
    (found,) = told(on("gd-8xL9-i128"))
    assert f"select its GPU by {labels.ACCELERATOR} (large, which gd-8xL9-i128 means); then plan" in found.next_step


@pytest.mark.parametrize(
    ("key", "value", "choice"),
    [
        (labels.INSTANCE_TYPE, "BM.GPU.B4.8", "nvidia-a100-40gb, which BM.GPU.B4.8 means"),
        (labels.INSTANCE_TYPE, "BM.GPU.A10.4", "nvidia-a10g, the nearest to BM.GPU.A10.4"),
        ("gpu.nvidia.com/class", "A40", "nvidia-l40s, the nearest to A40"),
        (
            labels.INSTANCE_TYPE,
            "BM.GPU.X1.8",
            "choose one with as much memory: `foreslice catalog list -o wide` shows the values",
        ),
        (labels.INSTANCE_TYPE, "BM.GPU.RTXPRO.8", "nvidia-rtx-pro-6000, which BM.GPU.RTXPRO.8 means"),
    ],
)
def test_no_smaller_gpu_than_that_of_its_machine_is_an_example(key: str, value: str, choice: str) -> None:
    given = snapshot([choosing(Requirement(key, "In", (value,)))])
    (found,) = [one for one in foreign_advice(given, load_catalog()) if "only nodes of" in one.message]
    assert f"select its GPU by {labels.ACCELERATOR} ({choice}" in found.next_step


def test_devices_that_no_machine_here_has_are_planned_nowhere_here() -> None:
    (found,) = told(on("BM.GPU.MI300X.8", asks="amd.com/gpu"))
    last = "leave the pod to that cloud's own autoscaler: no machine here has a GPU of AMD that serves it"
    assert found.next_step.endswith(last)


def test_the_pod_with_devices_is_named_and_not_its_launcher() -> None:
    launcher = replace(on("BM.GPU.B300.8", asks=""), name="launcher")
    (found,) = told(launcher, on("BM.GPU.B300.8"))
    assert found.subject == "Pod default/p"
    (alone,) = told(launcher)
    assert "select its GPU" not in alone.next_step


def test_labels_that_kueue_adds_are_dropped_where_they_are_written() -> None:
    key = labels.INSTANCE_TYPE
    of_flavor = FrozenMap({key: "b300s", "nvidia.com/gpu": "b300s", labels.ARCHITECTURE: "b300s"})
    (found,) = told(replace(on("BM.GPU.B300.8"), flavor_labels=of_flavor))
    assert f"and the nodeLabels {key} and nvidia.com/gpu of ResourceFlavor b300s (Kueue adds" in found.next_step
    assert labels.ARCHITECTURE not in found.next_step


def test_a_daemon_set_for_machines_of_another_cloud_is_told() -> None:
    shape = FrozenMap({labels.INSTANCE_TYPE: "BM.GPU.H100.8"})
    of_oracle = DaemonSet("default", "a", pod("", node_selector=shape))
    state = replace(snapshot([]), daemon_sets=(DaemonSet("default", "b", pod("")), of_oracle))
    (found,) = foreign_advice(state, CATALOG)
    assert found.subject == "DaemonSet default/a"
    assert "BM.GPU.H100.8, which only nodes of Oracle Cloud have: its pods run on no node of a plan" in found.message


def test_only_pods_that_select_the_same_are_counted_with_the_first() -> None:
    first, same, other = (
        replace(waiting(selects=key), name=name)
        for key, name in ((LABEL, "a"), (LABEL, "b"), ("vke.volcengine.com/gpu-name", "c"))
    )
    found = told(first, same, other)
    assert [(one.subject, one.others) for one in found] == [("Pod default/a", 1), ("Pod default/c", 0)]
