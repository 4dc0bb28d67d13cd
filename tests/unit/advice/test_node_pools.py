"""What the name of a node pool of GKE says about its machines, and what only the node pool itself does."""

from __future__ import annotations

import pytest

from autoscaler.advice.advise import advise
from autoscaler.advice.trial import Advice
from autoscaler.model.device_class import DeviceClass, Selector
from autoscaler.model.labels import LabelSelector
from autoscaler.model.pod import Container, Pod, PodAffinityTerm
from autoscaler.model.resource_claim import ClaimConfig, DeviceRequest
from autoscaler.planning.planner import plan_for
from autoscaler.planning.policy import Policy
from instance_catalog.dataclass import replace
from instance_catalog.drivers.opaque import CHANNEL_CLASS, CHANNEL_DRIVER
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes import labels
from instance_catalog.kubernetes.node_selector import NodeSelector, NodeSelectorTerm, Requirement
from instance_catalog.kubernetes.quantity import Quantity
from tests.builders import GPU, NOW, claim, pod, shipped, snapshot
from tests.one_line_advice import advice_lines

_CATALOG = shipped(
    "a4-highgpu-8g", "a3-highgpu-8g", "a3-highgpu-1g", "a3-megagpu-8g", "g2-standard-96", "g2-standard-4"
)
_CHECK = "says which one it has and how it is paid for, so check it"


def _advice(selecting: Pod, count: int = 8) -> tuple[Advice, ...]:
    asking = Container("main", FrozenMap({"nvidia.com/gpu": Quantity.of(count)}))
    served = (replace(GPU, extended_resource_name="nvidia.com/gpu"),)
    given, policy = snapshot([replace(selecting, containers=(asking,))], classes=served), Policy(considered=1000)
    return advise(given.pods[0], given, _CATALOG, plan_for(given, _CATALOG, policy, NOW), policy, NOW, most=1)


def _in_affinity(name: str, *others: Requirement) -> Pod:
    requirements = (Requirement(labels.GKE_NODE_POOL, "In", (name,)), *others)
    return pod("p", affinity=NodeSelector((NodeSelectorTerm(requirements),)))


@pytest.mark.parametrize(
    ("name", "count", "machine", "sold_as"),
    [
        ("a4-highgpu-ubuntu", 8, "a4-highgpu-8g", "capacity-block"),
        ("a4-pool", 8, "a4-highgpu-8g", "capacity-block"),
        ("a3-megagpu-train", 8, "a3-megagpu-8g", "on-demand"),
        ("g2-standard-small", 1, "g2-standard-4", "on-demand"),
        ("a3-highgpu", 8, "a3-highgpu-8g", "on-demand"),
        ("my-g2", 8, "g2-standard-96", "on-demand"),
        ("g2-spot-pool", 8, "g2-standard-96", "spot"),
    ],
)
def test_the_series_and_spot_are_read_from_the_name(name: str, count: int, machine: str, sold_as: str) -> None:
    for selecting in (pod("p", node_selector=FrozenMap({labels.GKE_NODE_POOL: name})), _in_affinity(name)):
        found = _advice(selecting, count)
        ((ref, _),) = found[0].result.launches
        assert (ref.instance_type, ref.capacity_type) == (machine, sold_as)
        assert _CHECK in advice_lines(found)[0]


def test_that_a_label_is_there_says_nothing_about_the_machine() -> None:
    (line,) = advice_lines(_advice(_in_affinity("np-2", Requirement(labels.GKE_ACCELERATOR, "Exists"))))
    assert "this is the cheapest that fits, because only that node pool says which machines it has" in line


def test_the_image_of_a_node_pool_is_a_label_of_its_pool() -> None:
    """And the node pool is not given up for a machine that fits without it."""
    image = Requirement("cloud.google.com/gke-os-distribution", "In", ("ubuntu",))
    (line,) = advice_lines(_advice(_in_affinity("a4-highgpu-ubuntu", image)))
    assert "cloud.google.com/gke-os-distribution=ubuntu in spec.labels" in line
    assert "1 × a4-highgpu-8g" in line


def test_a_node_pool_whose_machine_another_label_names_is_to_be_checked() -> None:
    selector = {labels.GKE_NODE_POOL: "np-2", labels.GKE_ACCELERATOR: "nvidia-l4"}
    (line,) = advice_lines(_advice(pod("p", node_selector=FrozenMap(selector))))
    assert "only node pool np-2 says which machine it has and how it is paid for, so check it" in line


@pytest.mark.parametrize(("app", "listed"), [("x", True), ("other", False)])
def test_pods_beside_their_copies_need_a_pool_of_one_node_pool(app: str, listed: bool) -> None:
    """Where they have to be beside other pods, no pool of their own helps."""
    beside = PodAffinityTerm(LabelSelector((Requirement("app", "In", (app,)),)), labels.GKE_NODE_POOL, ("default",))
    found = advice_lines(_advice(pod("p", labels=FrozenMap({"app": "x"}), pod_affinity=(beside,))))
    assert any("NAME alone in spec.nodePools of a GCPNodeTemplate" in line for line in found) is listed


@pytest.mark.parametrize(
    "selector",
    [
        pytest.param({labels.GKE_NODE_POOL: "np-3"}, id="a node pool that the cloud names"),
        pytest.param({"team": "research"}, id="a label of one's own"),
    ],
)
def test_pods_with_imex_channels_get_a_pool_of_machines_with_multi_node_nvlink(selector: dict[str, str]) -> None:
    """As in a plan without pools: a pool says which machines it has, so the smallest change names one of these."""
    channel = DeviceRequest("channel", CHANNEL_CLASS)
    config = ClaimConfig((), CHANNEL_DRIVER, '{"kind": "ComputeDomainChannelConfig", "domainID": "a"}')
    wanted = replace(claim("c", DeviceRequest("gpus", "gpu.nvidia.com", count=4), channel), config=(config,))
    classes = (GPU, DeviceClass(CHANNEL_CLASS, (Selector(f'device.driver == "{CHANNEL_DRIVER}"'),)))
    given = snapshot([pod("p", "c", node_selector=FrozenMap(selector))], [wanted], classes=classes)
    catalog, policy = shipped("g4-standard-192", "a4x-highgpu-4g"), Policy(considered=1000)
    (found,) = advise(given.pods[0], given, catalog, plan_for(given, catalog, policy, NOW), policy, NOW, most=1)
    assert [ref.instance_type for ref, _ in found.result.launches] == ["a4x-highgpu-4g"]
    (line,) = advice_lines([found])
    assert f"{labels.INSTANCE_TYPE} In [a4x-highgpu-4g] in spec.requirements" in line
    assert "select kubernetes.io/arch=arm64, so that GKE adds the toleration of taint kubernetes.io/arch=arm64:" in line
    after = found.change.edit(given)
    (node,) = plan_for(after, catalog, policy, NOW).launches
    assert node.offering.instance_type == "a4x-highgpu-4g"
