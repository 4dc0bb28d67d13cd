"""What is written is what was read, in the form upstream writes it."""

from __future__ import annotations

import pytest

from autoscaler.kube.node import parse_node
from autoscaler.kube.problem import Problems
from autoscaler.kube.resource_claim import parse_resource_claim
from autoscaler.kube.writing.objects import write_claim, write_node
from autoscaler.model.node import Node
from autoscaler.model.resource_claim import AllocatedDevice, Allocation, Consumer
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.node_selector import NodeSelector
from instance_catalog.kubernetes.quantity import Quantity
from instance_catalog.kubernetes.taint import Taint

RESULT = {"request": "r", "driver": "d", "pool": "p", "device": "x"}
CLAIM = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceClaim",
    "metadata": {"name": "c", "namespace": "ns", "uid": "u"},
    "spec": {
        "devices": {
            "requests": [
                {
                    "name": "r",
                    "exactly": {
                        "deviceClassName": "k",
                        "selectors": [{"cel": {"expression": "true"}}],
                        "allocationMode": "ExactCount",
                        "count": 2,
                        "adminAccess": False,
                        "tolerations": [{"key": "t", "operator": "Exists"}],
                        "capacity": {"requests": {"memory": "40Gi"}},
                    },
                },
                {"name": "all", "exactly": {"deviceClassName": "k", "allocationMode": "All"}},
                {
                    "name": "f",
                    "firstAvailable": [
                        {"name": "s", "deviceClassName": "k", "allocationMode": "ExactCount", "count": 1}
                    ],
                },
            ],
            "constraints": [
                {"matchAttribute": "a/b", "requests": ["r"]},
                {"distinctAttribute": "a/c"},
            ],
            "config": [{"requests": ["r"], "opaque": {"driver": "d", "parameters": {"a": [1]}}}],
        }
    },
    "status": {
        "allocation": {
            "devices": {
                "results": [
                    RESULT,
                    {
                        **RESULT,
                        "adminAccess": True,
                        "shareID": "s",
                        "consumedCapacity": {"m": "1Gi"},
                        "tolerations": [{"operator": "Exists", "effect": "NoSchedule"}],
                        "bindingConditions": ["b"],
                        "bindingFailureConditions": ["f"],
                    },
                ]
            },
            "nodeSelector": {
                "nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]}]
            },
            "allocationTimestamp": "2027-01-01T00:00:00Z",
        },
        "reservedFor": [{"resource": "pods", "name": "p", "uid": "v"}],
    },
}


def test_a_claim_survives_reading_and_writing() -> None:
    problems = Problems()
    claim = parse_resource_claim(CLAIM, problems)
    assert list(problems) == []
    assert write_claim(claim) == CLAIM
    assert parse_resource_claim(write_claim(claim)) == claim


def test_an_unallocated_claim_has_no_status() -> None:
    claim = parse_resource_claim({key: value for key, value in CLAIM.items() if key != "status"})
    assert "status" not in write_claim(claim)


@pytest.mark.parametrize("ready", [True, False])
def test_a_node_survives_writing_and_reading(ready: bool) -> None:
    node = Node(
        name="n",
        labels=FrozenMap({"a": "b"}),
        annotations=FrozenMap({"c": "d"}),
        taints=(Taint("t", "v", "NoExecute"), Taint("u")),
        unschedulable=True,
        allocatable=FrozenMap({"cpu": Quantity.parse("1500m"), "memory": Quantity.parse("1Gi")}),
        provider_id="aws:///x",
        ready=ready,
        uid="w",
        declared_features=("A", "B"),
    )
    problems = Problems()
    assert parse_node(write_node(node), problems) == node
    assert list(problems) == []


def test_an_allocation_alone() -> None:
    allocation = Allocation((AllocatedDevice("r", "d", "p", "x"),), NodeSelector.for_node("n"))
    raw = {**CLAIM, "status": None}
    claim = parse_resource_claim(raw)
    bound = type(claim)(
        claim.namespace, claim.name, claim.requests, allocation=allocation, reserved_for=(Consumer("pods", "p", "u"),)
    )
    assert parse_resource_claim(write_claim(bound)).allocation == allocation
