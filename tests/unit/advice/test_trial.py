"""A change that takes another pod's place is none."""

from __future__ import annotations

from autoscaler.advice.advise import advise
from autoscaler.model.device_class import DeviceClass, Selector
from autoscaler.model.node import Node
from autoscaler.model.pod import Container, Pod, PodClaim
from autoscaler.model.resource_claim import DeviceRequest, ResourceClaim
from autoscaler.planning.planner import plan_for
from autoscaler.planning.policy import Policy
from instance_catalog.dataclass import replace
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.profile import profile_for
from instance_catalog.kubernetes.quantity import Quantity
from instance_catalog.kubernetes.resource_slice import (
    Device,
    NodeAllocatable,
    NodeMapping,
    NodeReach,
    Pool,
    ResourceSlice,
)
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


def test_cpus_that_claims_take_are_not_promised_twice() -> None:
    """Eight cores: a pod takes one, and its claim four more."""
    four = FrozenMap({"cpu": NodeAllocatable(NodeMapping(per_device=Quantity.of(4)))})
    cpus = replace(SLICE, devices=(Device("d0", node_allocatable=four), Device("d1", node_allocatable=four)))
    box = Container("main", FrozenMap({"cpu": Quantity.of(1)}))
    pods = [Pod("default", n, uid=n, containers=(box,), claims=(PodClaim("c", n),)) for n in ("first", "second")]
    claims = [ResourceClaim("default", pod.name, (DeviceRequest("r", "ex"),), uid=f"c-{pod.name}") for pod in pods]
    state = snapshot(
        pods,
        claims,
        classes=(replace(CLASS, extended_resource_name=None),),
        nodes=(Node("n1", ready=True, allocatable=ROOM),),
        slices=(cpus,),
        profile=profile_for("1.37.1").with_gates(node_allocatable_resources=True),
    )
    plan = plan_for(state, CATALOG, Policy(), NOW)
    assert [(found.pod, found.node) for found in plan.placements] == [("default/first", "n1")]
    assert advise(state.pods[1], state, CATALOG, plan, Policy(), NOW, most=3) == ()
