"""What a cloud itself does to nodes that pods select or get."""

from __future__ import annotations

from datetime import timedelta

import pytest

from autoscaler.lint.supply_advice import supply_advice
from autoscaler.model.capacity import CapacityBlock, CapacityPool, GroupNodes, NodeTemplateRef
from autoscaler.model.pod import Container, Pod
from autoscaler.planning.planner import plan_for
from autoscaler.planning.policy import Policy
from instance_catalog.dataclass import replace
from instance_catalog.diagnostic import Diagnostic
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes import labels
from instance_catalog.kubernetes.node_selector import NodeSelector, NodeSelectorTerm, Requirement
from instance_catalog.kubernetes.quantity import Quantity
from instance_catalog.kubernetes.taint import Toleration
from tests.builders import NOW, claim, pod, shipped, snapshot

HEALTH = "sagemaker.amazonaws.com/node-health-status"
DRIVER = "cloud.google.com/gke-gpu-driver-version"


def told(
    machine: str, *tolerations: Toleration, requested: str = "", pools: tuple[CapacityPool, ...] = ()
) -> list[Diagnostic]:
    asking = [replace(pod(name, name), tolerations=tolerations) for name in ("p", "q")]
    state, catalog = snapshot(asking, [claim(one.name) for one in asking], pools=pools), shipped(machine)
    plan = plan_for(state, catalog, Policy(), NOW)
    assert plan.launches
    if requested:
        container = Container("main", FrozenMap({requested: Quantity.of(1)}))
        state = replace(state, pods=tuple(replace(one, containers=(container,)) for one in asking))
    return [one for one in supply_advice(state, plan, catalog) if "does not tolerate" in one.message]


def test_claims_on_nodes_that_their_cloud_taints_need_the_toleration() -> None:
    (found,) = told("g2-standard-4")
    assert found.about == "Pod default/p and 1 more"
    assert found.message.startswith("does not tolerate nvidia.com/gpu=present:NoSchedule, the taint that GKE")
    assert found.next_step.startswith("add the toleration {key: nvidia.com/gpu, operator: Exists, effect: NoSchedule}")


@pytest.mark.parametrize(
    ("toleration", "warned"),
    [
        (Toleration("nvidia.com/gpu", "Exists", effect="NoSchedule"), False),
        (Toleration("nvidia.com/gpu", "Equal", "present"), False),
        (Toleration(operator="Exists"), False),
        (Toleration("nvidia.com/gpu", "Equal", "true"), True),
        (Toleration("nvidia.com/gpu", "Exists", effect="NoExecute"), True),
        (Toleration("google.com/tpu", "Exists"), True),
    ],
)
def test_who_tolerates_the_taint_is_told_nothing(toleration: Toleration, warned: bool) -> None:
    assert bool(told("g2-standard-4", toleration)) is warned


def test_nothing_of_nodes_without_such_a_taint_and_of_pods_whose_resource_tolerates_it() -> None:
    assert not told("g6.xlarge")
    assert not told("g2-standard-4", requested="nvidia.com/gpu")
    assert not told("g2-standard-4", pools=(CapacityPool("gpu"),))  # its spec.taints say it


_GB200 = (Requirement(labels.INSTANCE_TYPE, "In", ("a4x-highgpu-4g",)),)
_HELD = CapacityBlock("b", "a4x-highgpu-4g", "us-central1-a", 2, NOW - timedelta(days=1), NOW + timedelta(days=1))


def _told_of_arm(asking: Pod, template: str = "GCPNodeTemplate") -> list[Diagnostic]:
    """Of a pod on a machine of GCP with Arm, in a pool with a block of it."""
    pool = CapacityPool("gpu", requirements=_GB200, node_template=NodeTemplateRef(template, "t"))
    catalog = shipped("a4x-highgpu-4g")
    state = snapshot([asking], [claim("c")], pools=(pool,), blocks=(_HELD,))
    plan = plan_for(state, catalog, Policy(), NOW)
    assert plan.launches
    return [one for one in supply_advice(state, plan, catalog) if "kubernetes.io/arch=arm64:NoSchedule" in one.message]


def test_pods_on_arm_nodes_of_gke_need_the_toleration() -> None:
    (found,) = _told_of_arm(pod("p", "c"))
    assert found.message.startswith(
        "does not tolerate kubernetes.io/arch=arm64:NoSchedule, the taint that GKE gives all"
    )
    assert found.next_step == "add nodeSelector kubernetes.io/arch: arm64, so that GKE adds the toleration"


def test_pods_that_select_the_architecture_or_tolerate_its_taint_are_told_nothing() -> None:
    """Nor those of simulated nodes, which GKE does not make."""
    either = NodeSelectorTerm((Requirement(labels.ARCHITECTURE, "In", ("amd64", "arm64")),))
    assert not _told_of_arm(pod("p", "c", node_selector=FrozenMap({labels.ARCHITECTURE: "arm64"})))
    assert not _told_of_arm(replace(pod("p", "c"), affinity=NodeSelector((either,))))
    assert not _told_of_arm(replace(pod("p", "c"), tolerations=(Toleration(labels.ARCHITECTURE, "Equal", "arm64"),)))
    assert not _told_of_arm(pod("p", "c"), template="KwokNodeTemplate")


@pytest.mark.parametrize(
    ("value", "of_pool", "warned"),
    [("latest", "", True), ("default", "", True), ("disabled", "", False), ("latest", "latest", False)],
)
def test_the_driver_that_the_cloud_installs(value: str, of_pool: str, warned: bool) -> None:
    asking = pod("p", "c", node_selector=FrozenMap({DRIVER: value}))
    pools = (CapacityPool("gpu", labels=FrozenMap({DRIVER: of_pool})),) if of_pool else ()
    state, catalog = snapshot([asking], [claim("c")], pools=pools), shipped("g2-standard-4")
    found = [o for o in supply_advice(state, plan_for(state, catalog, Policy(), NOW), catalog) if DRIVER in o.message]
    assert [f"selects {DRIVER}={value}, the label of node pools on which GKE installs" in o.message for o in found] == [
        True
    ] * warned
    assert all("for Foreslice drop the label" in one.next_step for one in found)


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        (HEALTH, "Schedulable", "which Amazon SageMaker HyperPod writes on the nodes of its instance groups"),
        (HEALTH, "Unschedulable", ""),
        (labels.GKE_COMPUTE_CLASS, "autopilot", "a class that GKE Autopilot has built in"),
    ],
)
def test_labels_of_nodes_that_a_cloud_makes_itself(key: str, value: str, said: str) -> None:
    state, catalog = (
        snapshot([pod("p", "c", node_selector=FrozenMap({key: value}))], [claim("c")]),
        shipped("p5.48xlarge"),
    )
    found = supply_advice(state, plan_for(state, catalog, Policy(), NOW), catalog)
    told = [one.message for one in found if one.message.startswith(f"selects {key}={value}, ")]
    assert [said in message for message in told] == [True] * bool(said)


@pytest.mark.parametrize(
    ("cloud", "listed", "said", "step"),
    [
        ("aws", "", "the pool admits no machine of gcp, so none of its nodes has it", "drop the label"),
        ("gcp", "", "the plan takes any that the pool admits", "drop the label, list training alone in spec.nodePools"),
        ("gcp", "other", "the node template of the pool lists other", "write training there, or drop the label here"),
        ("gcp", "training", "", ""),
    ],
)
def test_the_name_of_a_node_pool_in_spec_labels_puts_no_machine_there(
    cloud: str, listed: str, said: str, step: str
) -> None:
    key = labels.GKE_NODE_POOL
    registers = (GroupNodes(None, FrozenMap({key: listed})),) if listed else ()
    pool = CapacityPool(
        "gpu",
        requirements=(Requirement(labels.CLOUD, "In", (cloud,)),),
        labels=FrozenMap({key: "training"}),
        registers=registers,
    )
    state, catalog = snapshot([pod("p", "c")], [claim("c")], pools=(pool,)), shipped("g2-standard-4", "g6.xlarge")
    told_of = supply_advice(state, plan_for(state, catalog, Policy(), NOW), catalog)
    found = [one for one in told_of if one.path == ("spec", "labels", key)]
    assert [said in one.message for one in found] == [True] * bool(said)
    assert all(one.subject == "CapacityPool gpu" and one.next_step.startswith(step) for one in found)


@pytest.mark.parametrize(("name", "placeholder"), [("NODEPOOL_NAME", True), ("Pool", True), ("gpu-pool-1", False)])
def test_a_name_that_no_node_pool_can_have_is_a_placeholder(name: str, placeholder: bool) -> None:
    asking = [pod(each, "c", node_selector=FrozenMap({labels.GKE_NODE_POOL: name})) for each in ("p", "q")]
    state, catalog = snapshot(asking, [claim("c")]), shipped("g2-standard-4")
    told_of = supply_advice(state, plan_for(state, catalog, Policy(), NOW), catalog)
    found = [one for one in told_of if "placeholder" in one.message]
    said = f"selects cloud.google.com/gke-nodepool={name}, and no node pool has such a name"
    assert [(one.message.startswith(said), one.others) for one in found] == [(True, 1)] * placeholder
