"""Warnings for pods that ask other systems for shares of GPUs or for nodes, and what to write instead."""

from __future__ import annotations

import pytest

from autoscaler.lint.other_systems import foreign_advice
from autoscaler.lint.pods.unknown_types import ec2_name
from autoscaler.model.capacity import CapacityPool, PodScope, Scope
from autoscaler.model.node import Node
from autoscaler.model.pod import Container, Pod
from autoscaler.model.snapshot import DaemonSet
from autoscaler.planning.planner import plan_for
from autoscaler.planning.policy import Policy
from instance_catalog.dataclass import replace
from instance_catalog.diagnostic import Diagnostic
from instance_catalog.drivers.facts import gpudirect_protocols
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes import labels
from instance_catalog.kubernetes.node_selector import NodeSelector, NodeSelectorTerm, Requirement
from instance_catalog.kubernetes.quantity import Quantity
from instance_catalog.types.catalog import Catalog
from instance_catalog.types.instance_type import Accelerator
from tests.builders import CATALOG, NOW, machine, pod, shipped, snapshot

TYPE = next(iter(CATALOG.types))


def told(*pods: Pod) -> list[Diagnostic]:
    return list(foreign_advice(snapshot(pods), CATALOG))


def asking(resource: str) -> Pod:
    return replace(pod("p"), containers=(Container("main", FrozenMap({resource: Quantity.of(1)})),))


def on(*names: str) -> Pod:
    required = Requirement(labels.INSTANCE_TYPE, "In", names)
    return replace(pod("p"), affinity=NodeSelector((NodeSelectorTerm((required,)),)))


@pytest.mark.parametrize(("annotations", "expected"), [({"gpu-fraction": "0.5"}, 1), ({"note": "0.5"}, 0)])
def test_a_part_of_a_gpu_by_annotation(annotations: dict[str, str], expected: int) -> None:
    found = told(replace(pod("p"), annotations=FrozenMap(annotations)))
    assert ["KAI" in one.message for one in found] == [True] * expected


def test_a_slice_that_gke_forms() -> None:
    whole = replace(pod("p"), annotations=FrozenMap({"cloud.google.com/gke-tpu-slice-topology": "8x8x8"}))
    (found,) = told(whole, replace(whole, name="q"))
    assert "one TPU slice of 8x8x8:" in found.message
    assert found.about == "Pod default/p and 1 more"
    assert "slice controller" in found.message


@pytest.mark.parametrize(("topology", "single"), [("4x4x4", True), ("4x12x16", False)])
def test_one_node_pool_is_named_where_it_holds_such_a_slice(topology: str, single: bool) -> None:
    catalog, whole = shipped("tpu7x-standard-4t"), FrozenMap({"cloud.google.com/gke-tpu-slice-topology": topology})
    (found,) = foreign_advice(snapshot([replace(pod("p"), annotations=whole)]), catalog)
    assert ("or, for a slice that one node pool holds" in found.next_step) == single


@pytest.mark.parametrize(
    ("resource", "system"),
    [
        ("nvidia.com/gpumem", "HAMi"),
        ("volcano.sh/gpu-memory", "Volcano"),
        ("aliyun.com/gpu-mem", "Alibaba Cloud's gpushare device plugin"),
        ("volcano.sh/vgpu-number", "Volcano"),
        ("example.com/x", ""),
    ],
)
def test_a_part_of_a_gpu_by_resource(resource: str, system: str) -> None:
    found = told(asking(resource), replace(asking(resource), name="q"))
    assert [(system in one.message, one.others) for one in found] == ([(True, 1)] if system else [])
    assert all("docs/examples/mig-parts.yaml" in one.next_step for one in found)
    assert all("or request nvidia.com/gpu " in one.next_step for one in found)  # to drop a share may leave no GPU
    assert all(f"or run {system}" in one.next_step and "on GPU nodes" in one.next_step for one in found)


@pytest.mark.parametrize(("cores", "whole"), [(100, True), (30, False)])
def test_all_of_a_gpu_by_shares_is_a_whole_one(cores: int, *, whole: bool) -> None:
    shares = {"nvidia.com/gpumem-percentage": Quantity.of(100), "nvidia.com/gpucores": Quantity.of(cores)}
    (found,) = told(replace(pod("p"), containers=(Container("c", FrozenMap(shares)),)))
    assert ("drop both: nvidia.com/gpu alone is whole GPUs" in found.next_step) is whole
    assert ("claim a part of a GPU" in found.next_step) is not whole


@pytest.mark.parametrize("resource", ["cloud-tpus.google.com/v2", "cloud-tpus.google.com/preemptible-v3"])
def test_a_resource_that_a_cloud_has_ended(resource: str) -> None:
    (found,) = told(asking(resource), replace(asking(resource), name="q"))
    assert f"asks for {resource} of" in found.message
    assert "google.com/tpu" in found.next_step


NEURON = "aws.amazon.com/neuron"
INF2 = {labels.INSTANCE_TYPE: "inf2.48xlarge"}


def _of_neuron(amount: int, resource: str = NEURON, **fields: object) -> Pod:
    requests = FrozenMap({resource: Quantity.of(amount)})
    return replace(pod("p"), containers=(Container("main", requests),), **fields)


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        pytest.param(_of_neuron(17), "trn2u.48xlarge has most: 16 (Trainium2)", id="nothing in the catalog"),
        pytest.param(_of_neuron(16), "", id="some have as many"),
        pytest.param(
            _of_neuron(16, node_selector=FrozenMap(INF2)), "inf2.48xlarge has most: 12 (Inferentia2)", id="selected"
        ),
        pytest.param(_of_neuron(12, node_selector=FrozenMap(INF2)), "", id="as many as the selected one has"),
        pytest.param(_of_neuron(99, "example.com/fpga"), "", id="no plugin is known"),
    ],
)
def test_more_devices_than_any_machine_has(asked: Pod, expected: str) -> None:
    found = [one.message for one in foreign_advice(snapshot([asked]), shipped("trn2u.48xlarge", "inf2.48xlarge"))]
    assert [expected in message for message in found] == ([True] if expected else [])


RDMA = "rdma/ib"


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        pytest.param(_of_neuron(1, RDMA, node_selector=FrozenMap({"rack": "a"})), True, id="beside a label"),
        pytest.param(_of_neuron(1, RDMA), False, id="alone: the plan says so"),
        pytest.param(_of_neuron(1, node_selector=FrozenMap({"rack": "a"})), False, id="a plugin hands it out"),
    ],
)
def test_a_resource_that_nobody_has_beside_labels(asked: Pod, told: bool) -> None:
    found = list(foreign_advice(snapshot([asked]), shipped("inf2.48xlarge")))
    assert [f"asks for {RDMA}" in one.message and RDMA in one.next_step for one in found] == [True] * told
    both = replace(asked, containers=(*asked.containers, Container("side", FrozenMap({"a.com/x": Quantity.of(1)}))))
    found = list(foreign_advice(snapshot([both]), shipped("inf2.48xlarge")))
    assert any(f"{RDMA} and a.com/x" in one.message and "allocatable.a.com/x" in one.next_step for one in found) == told
    given = Node("n", allocatable=FrozenMap({RDMA: Quantity.of(1)}))
    assert not list(foreign_advice(replace(snapshot([asked]), nodes=(given,)), shipped("inf2.48xlarge")))


def test_daemon_sets_are_told_what_no_node_gives_them() -> None:
    asked = _of_neuron(16, "aws.amazon.com/neurondevice", node_selector=FrozenMap(INF2))
    running = replace(snapshot([]), daemon_sets=(DaemonSet("default", "burn", asked),))
    ended, beyond = foreign_advice(running, shipped("inf2.48xlarge"))
    assert {ended.subject, beyond.subject} == {"DaemonSet default/burn"}
    assert "ask for aws.amazon.com/neuron" in ended.next_step
    assert "asks for 16 aws.amazon.com/neuron" in beyond.message


def test_an_annotation_that_nothing_reads_any_more() -> None:
    (found,) = told(replace(pod("p"), annotations=FrozenMap({"tf-version.cloud-tpus.google.com": "1.9"})))
    assert "nothing reads it any more" in found.message


@pytest.mark.parametrize("bound", [False, True])
def test_a_type_that_is_not_in_the_catalog(bound: bool) -> None:
    node = "n" if bound else None
    found = told(replace(on("nobody.sells"), node_name=node), replace(on(TYPE), name="q", node_name=node))
    assert ["nobody.sells" in one.message for one in found] == ([] if bound else [True])


def test_one_known_type_of_several_is_enough() -> None:
    assert told(on("nobody.sells", TYPE)) == []


def test_names_of_sagemaker_are_explained() -> None:
    (found,) = told(replace(pod("p"), node_selector=FrozenMap({labels.INSTANCE_TYPE: f"ml.{TYPE}"})))
    assert "SageMaker" in found.message
    assert found.next_step.endswith(f"write {TYPE}")
    assert (ec2_name(f"ml.{TYPE}", CATALOG), ec2_name(TYPE, CATALOG), ec2_name("ml.none", CATALOG)) == (TYPE, "", "")


@pytest.mark.parametrize(
    ("key", "value", "near"),
    [
        (labels.GKE_ACCELERATOR, "nvidia-l40s", "nvidia-l4"),
        (labels.GKE_TPU_ACCELERATOR, "tpu8x", "tpu7x"),
        (labels.GKE_ACCELERATOR, "nvidia-l4", None),
        (labels.GKE_TPU_ACCELERATOR, "tpu7x", None),
        (labels.NVIDIA_GPU_PRODUCT, "NVIDIA_L4", "NVIDIA-L4"),
        (labels.NVIDIA_GPU_PRODUCT, "NVIDIA-L4", None),
        (labels.NVIDIA_GPU_PRODUCT, "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb", None),
    ],
)
@pytest.mark.parametrize("required", [False, True])
def test_an_accelerator_that_is_not_in_the_catalog(key: str, value: str, near: str | None, required: bool) -> None:
    affinity = NodeSelector((NodeSelectorTerm((Requirement(key, "In", (value,)),)),))
    chosen = {"affinity": affinity} if required else {"node_selector": FrozenMap({key: value})}
    catalog = shipped("g2-standard-4", "tpu7x-standard-4t")
    found = list(foreign_advice(snapshot([replace(pod("p"), **chosen)]), catalog))  # type: ignore[arg-type]
    assert ["is not in the catalog" in one.message for one in found] == ([True] if near else [])
    assert all(f"did you mean {near}?" in one.next_step for one in found)
    assert all(f"select one that it has ({near})" in one.next_step for one in found)


@pytest.mark.parametrize(("value", "told"), [("l4", "nvidia-l4"), ("nvidia-l5", "nvidia-l4"), ("nvidia-l4", "")])
def test_a_label_of_foreslice_that_nothing_has_is_completed(value: str, told: str) -> None:
    selecting = replace(pod("p"), node_selector=FrozenMap({labels.ACCELERATOR: value}))
    found = list(foreign_advice(snapshot([selecting]), shipped("g2-standard-4")))
    assert [one.next_step.split("?")[0] for one in found] == ([f"did you mean {told}"] if told else [])
    assert all("select one that it has (`foreslice catalog list -o wide`)" in one.next_step for one in found)


@pytest.mark.parametrize(
    ("value", "near"),
    [
        ("Tesla-V100-PCIE-32GB", "Tesla-V100-SXM2-32GB or Tesla-V100-SXM2-16GB"),
        ("Tesla-V100-PCIE-16GB", "Tesla-V100-SXM2-16GB or Tesla-V100-SXM2-32GB"),
        ("Tesla_V100_24GB", "Tesla-V100-SXM2-16GB or Tesla-V100-SXM2-32GB"),
    ],
)
def test_a_product_that_is_not_in_the_catalog_may_be_another_of_its_model(value: str, near: str) -> None:
    """Its memory first; a P100 is spelled more alike."""
    selecting = replace(pod("p"), node_selector=FrozenMap({labels.NVIDIA_GPU_PRODUCT: value}))
    (found,) = foreign_advice(
        snapshot([selecting]), shipped("p3.2xlarge", "p3dn.24xlarge", "n1-standard-2+1xnvidia-tesla-p100")
    )
    assert found.next_step.startswith(f"did you mean {near}? If not, ")


@pytest.mark.parametrize("value", ["Quadro_RTX_5000", "Quadro RTX 5000"])
def test_a_product_that_is_written_otherwise_and_not_in_the_catalog(value: str) -> None:
    selecting = replace(pod("p"), node_selector=FrozenMap({labels.NVIDIA_GPU_PRODUCT: value}))
    (found,) = foreign_advice(snapshot([selecting]), shipped("g2-standard-4"))
    assert f"{value}, which GPU feature discovery would write Quadro-RTX-5000, is not in the catalog" in found.message
    assert found.next_step.startswith("select one that it has (NVIDIA-L4)")
    node = Node("n", labels=FrozenMap({labels.NVIDIA_GPU_PRODUCT: value}))
    assert not list(foreign_advice(replace(snapshot([selecting]), nodes=(node,)), shipped("g2-standard-4")))


@pytest.mark.parametrize(
    ("resource", "whose"),
    [
        ("intel.com/gpu", "GPU of Intel"),
        ("gpu.intel.com/dxg", "GPU of Intel"),
        ("microsoft.com/directx", "GPU of a Windows node"),
        ("hygon.com/dcunum", "DCU of Hygon"),
        ("nvidia.com/gpu", ""),
    ],
)
def test_a_device_that_no_cloud_sells(resource: str, whose: str) -> None:
    found = told(asking(resource))
    expected = [f"asks for {resource}, and no instance type in the catalog has a {whose}"] if whose else []
    assert [one.message[: len(expected[0])] for one in found] == expected
    node = Node("n", allocatable=FrozenMap({resource: Quantity.of(1)}))
    assert not list(foreign_advice(replace(snapshot([asking(resource)]), nodes=(node,)), CATALOG))


@pytest.mark.parametrize(
    "resource",
    ["cambricon.com/mlu", "metax-tech.com/sgpu", "huawei.com/Ascend310P", "iluvatar.com/gpu", "fpga.intel.com/x"],
)
def test_a_device_that_no_catalog_file_describes_is_left_to_existing_nodes(resource: str) -> None:
    (found,) = told(asking(resource))
    assert "no machine of aws replaces it: leave such pods to existing nodes, and give these with -f" in found.next_step
    assert "catalog add" not in found.next_step
    assert "drop" not in found.next_step


@pytest.mark.parametrize("resource", ["gpu.intel.com/i915", "intel.com/gpu"])
def test_a_gpu_of_intel_needs_its_resource_in_the_file_or_a_claim(resource: str) -> None:
    (found,) = told(asking(resource))
    assert f"with extendedResources: {{{resource}: N}} in its file, unless pods claim DeviceClass gpu.intel.com" in (
        found.next_step
    )


def test_devices_of_two_vendors_are_told_each() -> None:
    found = told(asking("gpu.intel.com/dxg"), replace(asking("hygon.com/dcunum"), name="q"))
    assert [(one.subject, "(and" in one.message) for one in found] == [
        ("Pod default/p", False),
        ("Pod default/q", False),
    ]


@pytest.mark.parametrize(("resource", "added"), [("intel.com/sriov_left", False), ("example.com/camera", True)])
def test_network_cards_of_other_systems_are_not_added_to_machines(resource: str, added: bool) -> None:
    """Cameras may be: somebody's device plugin hands them out on any machine."""
    selecting = replace(asking(resource), node_selector=FrozenMap({labels.INSTANCE_TYPE: next(iter(CATALOG)).name}))
    (found,) = told(selecting)
    assert f"asks for {resource}, which no instance type in the catalog has" in found.message
    assert ("foreslice catalog set" in found.next_step) == added
    assert ("for RDMA, machines of AWS have vpc.amazonaws.com/efa" in found.next_step) != added


def test_a_gpu_that_the_device_plugin_does_not_serve() -> None:
    """g4ad has GPUs of AMD, and no pod gets them as amd.com/gpu unless somebody says that its node hands them out."""
    state = snapshot([asking("amd.com/gpu")])
    (found,) = foreign_advice(state, shipped("g4ad.xlarge"))
    assert "has a GPU of AMD but the Radeon Pro V520: ROCm does not support it" in found.message
    handing = replace(
        shipped("g4ad.xlarge").get("g4ad.xlarge"), extended_resources=FrozenMap({"amd.com/gpu": Quantity.of(1)})
    )
    assert list(foreign_advice(state, Catalog.of([handing]))) == []


def test_a_gpu_that_somebody_added_to_the_catalog() -> None:
    own = Catalog.of([machine("flex", Accelerator(key="flex", vendor="Intel", model="Flex 170"), 1, "1.00")])
    assert list(foreign_advice(snapshot([asking("intel.com/gpu")]), own)) == []


@pytest.mark.parametrize(("there", "expected"), [(False, 1), (True, 0)])
def test_one_node_by_its_name(there: bool, expected: int) -> None:
    named = FrozenMap({labels.HOSTNAME: "gpu-7"})
    given = snapshot([pod("p", node_selector=named)], nodes=[Node("n", labels=named)] if there else [])
    assert ["selects the node gpu-7" in one.message for one in foreign_advice(given, CATALOG)] == [True] * expected


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (("a", "b"), "selects the nodes a, b: they are not among the nodes that are given, and no node of a plan has"),
        (("a", "b", "c", "d", "e"), "selects the nodes a, b, c and 2 more: they are"),
    ],
)
def test_several_nodes_by_their_names(names: tuple[str, ...], expected: str) -> None:
    term = NodeSelectorTerm((Requirement(labels.HOSTNAME, "In", names),))
    (found,) = told(pod("p", affinity=NodeSelector((term,))))
    assert expected in found.message


def test_the_nodes_that_any_of_the_pods_names_are_told_together() -> None:
    (found,) = told(*(pod(name, node_selector=FrozenMap({labels.HOSTNAME: name})) for name in "ab"))
    assert "selects the nodes a, b: they are" in found.message


@pytest.mark.parametrize("name", ["IGHS-DUMMY-VAL", "<node-name>", "NODE_NAME", "your-node", "REPLACE_ME", "node-name"])
def test_a_placeholder_for_the_name_of_a_node_says_what_to_write(name: str) -> None:
    (found,) = told(pod("p", node_selector=FrozenMap({labels.HOSTNAME: name})))
    assert "it is not among the nodes that are given" in found.message
    assert found.next_step.startswith("it looks like a placeholder: write the name of one of your Nodes")
    assert "; then give the Node with -f" in found.next_step


@pytest.mark.parametrize(("name", "step"), [("gpu-node-7", "give the Node"), ("${NODE}", "it looks like a variable")])
def test_a_real_name_and_a_variable_are_no_placeholders_for_a_node(name: str, step: str) -> None:
    (found,) = told(pod("p", node_selector=FrozenMap({labels.HOSTNAME: name})))
    assert found.next_step.startswith(step)


@pytest.mark.parametrize("key", [labels.HOSTNAME, labels.INSTANCE_TYPE, labels.NVIDIA_GPU_PRODUCT])
def test_a_required_affinity_is_named_as_such_beside_a_selector_of_another_label(key: str) -> None:
    selector = FrozenMap({labels.OPERATING_SYSTEM: "linux"})
    required = NodeSelector((NodeSelectorTerm((Requirement(key, "In", ("nowhere",)),)),))
    (found,) = told(replace(asking("nvidia.com/gpu"), node_selector=selector, affinity=required))
    assert found.field == "spec.affinity.nodeAffinity"
    (found,) = told(replace(asking("nvidia.com/gpu"), node_selector=selector.with_items({key: "nowhere"})))
    assert found.field.startswith("spec.nodeSelector")


@pytest.mark.parametrize(
    ("image", "types"),
    [
        ("us-docker.pkg.dev/gce-ai-infra/gpudirect-tcpx/tcpgpudmarxd-dev:v2.0.12", "a3-highgpu-8g, a3-edgegpu-8g"),
        ("us-docker.pkg.dev/gce-ai-infra/gpudirect-tcpxo/tcpgpudmarxd-dev:v1.0.21", "a3-megagpu-8g"),
        ("example.com/gpudirect-tcpx/nccl", ""),
    ],
)
def test_gpudirect_of_google_cloud_names_the_machines_that_have_it(image: str, types: str) -> None:
    used = replace(pod("p"), containers=(Container("main", image=image),))
    found = [one for one in told(used, replace(used, name="q")) if "GPUDirect" in one.message]
    assert [(f"), which works only on {types}," in one.message, one.others) for one in found] == (
        [(True, 1)] if types else []
    )
    chosen = replace(used, node_selector=FrozenMap({labels.GKE_ACCELERATOR: "nvidia-h100-80gb"}))
    assert not [one for one in told(chosen) if "GPUDirect" in one.message]


@pytest.mark.parametrize(("pool", "expected"), [("a3-pool", 0), ("", 1)])
def test_a_node_pool_selects_a_machine_only_where_a_capacity_pool_says_which(pool: str, expected: int) -> None:
    image = "us-docker.pkg.dev/gce-ai-infra/gpudirect-tcpxo/tcpgpudmarxd-dev:v1.0.21"
    selected = FrozenMap({labels.GKE_NODE_POOL: "a3-pool"})
    used = replace(pod("p", node_selector=selected), containers=(Container("main", image=image),))
    pools = [CapacityPool("a3", labels=FrozenMap({labels.GKE_NODE_POOL: pool} if pool else {}))]
    found = list(foreign_advice(snapshot([used], pools=pools), CATALOG))
    assert ["GPUDirect" in one.message for one in found] == [True] * expected


def test_types_with_gpudirect_are_in_the_catalog() -> None:
    named = {name for protocol in gpudirect_protocols() for name in protocol.types}
    assert named == shipped(*named).types.keys()


@pytest.mark.parametrize("pools", [(), (CapacityPool("gpu", scope=Scope(PodScope.ALL)),)], ids=["none", "one"])
def test_devices_without_a_driver_are_told_so_with_and_without_a_pool(pools: tuple[CapacityPool, ...]) -> None:
    """Whatever else keeps the pod from the machine; nor does the reason say that no machine has them."""
    wants = FrozenMap({"habana.ai/gaudi": Quantity.of(8), "hugepages-2Mi": Quantity.parse("95000Mi")})
    waiting = replace(pod("p"), containers=(Container("main", wants),))
    given, catalog = snapshot([waiting], pools=pools, from_files=True), shipped("dl1.24xlarge", "g6.xlarge")
    plan = plan_for(given, catalog, Policy(), NOW)
    (found,) = (one for one in foreign_advice(given, catalog, plan) if "no driver" in one.message)
    assert "and only dl1.24xlarge has it (Gaudi HL-205): the node images of aws have no driver for" in found.message
    short = [miss.reason.detail["resource"] for entry in plan.left_out for miss in entry.near_misses]
    assert sorted(map(str, short)) == (["habana.ai/gaudi", "hugepages-2Mi"] if pools else [])
    node = Node("n", allocatable=FrozenMap({"habana.ai/gaudi": Quantity.of(1)}))
    ready = (replace(CapacityPool("gpu"), drivers=("gaudi",)),)
    for other in (replace(given, nodes=(node,)), replace(given, pools=ready)):
        assert not [one for one in foreign_advice(other, catalog, plan) if "no driver" in one.message]
