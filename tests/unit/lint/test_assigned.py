"""CPUs of a whole machine, which another scheduler assigns to claims."""

from __future__ import annotations

import pytest

from autoscaler.lint.supply_advice import supply_advice
from autoscaler.model.capacity import CapacityPool, Scope
from autoscaler.model.device_class import DeviceClass, Selector
from autoscaler.model.resource_claim import ClaimConfig, DeviceRequest, ResourceClaim
from autoscaler.planning.planner import plan_for
from autoscaler.planning.policy import Policy
from instance_catalog.dataclass import replace
from tests.builders import NOW, pod, shipped, snapshot

CPUS = DeviceClass("dra.cpu", (Selector("device.driver == 'dra.cpu'"),))


@pytest.mark.parametrize(
    ("drivers", "scheduler", "configured", "warned"),
    [
        ("dra-cpu:group-by=machine", "default-scheduler", "", True),
        ("dra-cpu:group-by=machine", "default-scheduler", "gpu.nvidia.com", True),
        ("dra-cpu:group-by=machine", "default-scheduler", "dra.cpu", False),
        ("dra-cpu:group-by=machine", "numa-scheduler", "", False),
        ("dra-cpu:mode=grouped", "default-scheduler", "", False),
    ],
)
def test_who_gets_the_cpus_of_a_machine_without_an_assignment(
    drivers: str, scheduler: str, configured: str, warned: bool
) -> None:
    config = (ClaimConfig((), configured, "{}"),) if configured else ()
    claims = [ResourceClaim("default", name, (DeviceRequest("r", "dra.cpu"),), config=config) for name in ("p", "q")]
    asking = [replace(pod(name, name), scheduler_name=scheduler) for name in ("p", "q")]
    pool = CapacityPool("cpu", drivers=(drivers,), scope=Scope(schedulers=(scheduler,)))
    state = replace(snapshot(asking, claims, pools=[pool]), classes=(CPUS,))
    catalog = shipped("p5.48xlarge")
    plan = plan_for(state, catalog, Policy(), NOW)
    assert plan.launches
    found = [one for one in supply_advice(state, plan, catalog) if "opaque configuration" in one.message]
    assert [one.about for one in found] == (["Pod default/p and 1 more"] if warned else [])
    assert all("gets device cpudevmachine of driver dra.cpu," in one.message for one in found)
