"""NodePools of Karpenter as pools of a plan."""

from __future__ import annotations

from typing import Any

import pytest

from autoscaler.kube.autoscalers.karpenter import parse_node_pool
from autoscaler.kube.problem import Problems
from autoscaler.model.capacity import DEFAULT_CAPACITY_TYPES, CapacityPool
from instance_catalog.kubernetes import labels
from instance_catalog.kubernetes.node_selector import Requirement
from instance_catalog.kubernetes.taint import Taint
from instance_catalog.types.instance_type import CapacityType

EC2 = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "gpu"}


def read(*requirements: tuple[str, str, *tuple[str, ...]], **spec: Any) -> tuple[CapacityPool | None, str]:
    """The pool, and what is said of it."""
    asked = [{"key": key, "operator": operator, "values": list(values)} for key, operator, *values in requirements]
    nodes = {"requirements": asked, "nodeClassRef": spec.pop("node_class", EC2), "taints": spec.pop("taints", [])}
    nodes["startupTaints"] = spec.pop("startup_taints", [])
    template = {"metadata": {"labels": spec.pop("labels", {})}, "spec": nodes}
    problems = Problems()
    found = parse_node_pool({"metadata": {"name": "gpu"}, "spec": {"template": template, **spec}}, problems)
    assert not problems.errors
    return found, " ".join(one.message for one in problems)


def pool(*requirements: tuple[str, str, *tuple[str, ...]], **spec: Any) -> CapacityPool:
    found, _ = read(*requirements, **spec)
    assert found is not None
    return found


def test_its_nodes_have_its_labels_and_taints_and_what_its_requirements_admit() -> None:
    taint = {"key": "nvidia.com/gpu", "value": "true", "effect": "NoSchedule"}
    found = pool(
        (labels.KARPENTER_FAMILY, "In", "g5", "g6"),
        ("team", "In", "search"),
        ("tier", "In", "a", "b"),
        labels={"kind": "gpu"},
        taints=[taint],
        limits={"cpu": 1000, "nvidia.com/gpu": 8, "nodes": 3},
        weight=20,
    )
    assert found.requirements == (
        Requirement(labels.CLOUD, "In", ("aws",)),
        Requirement(labels.KARPENTER_FAMILY, "In", ("g5", "g6")),
    )
    assert dict(found.labels) == {"kind": "gpu", "team": "search", labels.KARPENTER_NODE_POOL: "gpu"}
    assert found.taints == (Taint("nvidia.com/gpu", "true", "NoSchedule"),)
    assert (found.limits.accelerators, found.limits.nodes, found.weight, found.of_karpenter) == (8, 3, 20, True)
    assert found.limits.path("accelerators") == 'spec.limits["nvidia.com/gpu"]'
    assert found.limits.path("nodes") == "spec.limits.nodes"


def test_operators_that_karpenter_alone_has() -> None:
    found = pool((labels.KARPENTER_GPU_MEMORY, "Gte", "24576"), (labels.KARPENTER_GPU_COUNT, "Lte", "4"))
    assert found.requirements[1:] == (
        Requirement(labels.KARPENTER_GPU_MEMORY, "Gt", ("24575",)),
        Requirement(labels.KARPENTER_GPU_COUNT, "Lt", ("5",)),
    )


def test_one_that_keeps_a_number_of_nodes_launches_none_for_pods() -> None:
    found, said = read(replicas=2)
    assert found is None
    assert "spec.replicas" in said


def test_taints_that_go_away_are_told_apart() -> None:
    found, _ = read(startup_taints=[{"key": "agent", "effect": "NoExecute"}])
    assert found is not None
    assert (found.taints, found.startup_taints) == ((), (Taint("agent", "", "NoExecute"),))


def test_keys_of_eks_auto_mode_say_the_same() -> None:
    auto = {"group": "eks.amazonaws.com", "kind": "NodeClass", "name": "default"}
    found = pool(("eks.amazonaws.com/instance-gpu-name", "In", "l4"), node_class=auto)
    assert found.requirements[1] == Requirement(labels.KARPENTER_GPU_NAME, "In", ("l4",))


def test_what_is_not_considered_is_said() -> None:
    found, said = read(("karpenter.k8s.aws/instance-hypervisor", "In", "nitro"), ("tier", "In", "a", "b"))
    assert found is not None
    assert len(found.requirements) == 1
    assert "tier" not in found.labels
    assert "nor are its requirements on karpenter.k8s.aws/instance-hypervisor, tier" in said
    assert "nor are" not in read((labels.ARCHITECTURE, "In", "amd64"))[1]


@pytest.mark.parametrize(
    ("requirement", "expected"),
    [
        ((), DEFAULT_CAPACITY_TYPES),
        (("In", "on-demand"), (CapacityType.ON_DEMAND,)),
        (("In", "on-demand", "spot"), (CapacityType.SPOT, CapacityType.ON_DEMAND)),
        (("In", "reserved"), (CapacityType.CAPACITY_BLOCK, CapacityType.RESERVED)),
        (("NotIn", "reserved"), (CapacityType.SPOT, CapacityType.ON_DEMAND)),
    ],
)
def test_how_it_buys(requirement: tuple[str, ...], expected: tuple[CapacityType, ...]) -> None:
    asked = [(labels.KARPENTER_CAPACITY_TYPE, *requirement)] if requirement else []
    assert pool(*asked).capacity_types == expected  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("node_class", "cloud"),
    [
        ({"name": "default"}, "aws"),
        ({"apiVersion": "karpenter.k8s.aws/v1beta1", "kind": "EC2NodeClass", "name": "a"}, "aws"),
        ({"group": "karpenter.k8s.gcp", "kind": "GCENodeClass", "name": "a"}, "gcp"),
        ({"group": "karpenter.azure.com", "kind": "AKSNodeClass", "name": "a"}, None),
        ({"kind": "AKSNodeClass", "name": "a"}, None),
    ],
)
def test_of_whose_machines_it_makes_nodes(node_class: dict[str, str], cloud: str | None) -> None:
    found, said = read(node_class=node_class)
    assert (found and found.requirements) == (cloud and (Requirement(labels.CLOUD, "In", (cloud,)),))
    assert ("no cloud of Foreslice's catalog" in said) == (cloud is None)
