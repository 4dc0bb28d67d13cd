"""A change that takes another pod's place is none."""

from __future__ import annotations

from autoscaler.advice.advise import advise
from autoscaler.model.device_class import DeviceClass, Selector
from autoscaler.model.node import Node
from autoscaler.model.pod import Container, Pod
from autoscaler.planning.planner import plan_for
from autoscaler.planning.policy import Policy
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.quantity import Quantity
from instance_catalog.kubernetes.resource_slice import Device, NodeReach, Pool, ResourceSlice
from tests.builders import CATALOG, NOW, snapshot

RESOURCE = "example.com/dev"
CLASS = DeviceClass("ex", (Selector('device.driver == "ex.example.com"'),), extended_resource_name=RESOURCE)
ROOM = FrozenMap({name: Quantity.parse(amount) for name, amount in (("cpu", "8"), ("memory", "64Gi"), ("pods", "99"))})
SLICE = ResourceSlice("s", "ex.example.com", Pool("n1", 1, 1), reach=NodeReach(node_name="n1"), devices=(Device("d0"),))


def asking(name: str) -> Pod:
    requests = FrozenMap({"cpu": Quantity.parse("1"), RESOURCE: Quantity.parse("1")})
    return Pod("default", name, uid=name, containers=(Container("main", requests),))


def test_the_only_device_of_a_node_is_not_promised_twice() -> None:
    """What an extended resource gets is written in no claim before kube-scheduler makes one."""
    state = snapshot(
        [asking("first"), asking("second")],
        classes=(CLASS,),
        nodes=(Node("n1", ready=True, allocatable=ROOM),),
        slices=(SLICE,),
    )
    plan = plan_for(state, CATALOG, Policy(), NOW)
    assert [(found.pod, found.node) for found in plan.placements] == [("default/first", "n1")]
    assert advise(state.pods[1], state, CATALOG, plan, Policy(), NOW, most=3) == ()
