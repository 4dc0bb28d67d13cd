"""A few of the schedules over Google Cloud on every run of the tests."""

from __future__ import annotations

from datetime import timedelta

from hypothesis import settings

from autoscaler.cluster.api import list_all
from autoscaler.cluster.resources import PODS
from tests.crash.life import START, small_catalog
from tests.faults.gcp_schedules import PODS_OF, POOL, GcpSchedules, scenario
from tests.faults.gcp_world import ACCELERATORS, KIND, ZONES, GcpSimulation

TestGcpSchedules = GcpSchedules.TestCase
TestGcpSchedules.settings = settings(max_examples=8, stateful_step_count=16, deadline=None, derandomize=True)


def test_pods_run_and_machines_go() -> None:
    simulation = GcpSimulation(catalog=small_catalog(*ACCELERATORS), start=START)
    simulation.add(scenario(POOL.replace("KIND", KIND).replace("us-east-1a, us-east-1b", ", ".join(ZONES))))
    simulation.add(scenario(PODS_OF.format(number=1, copies=2, minutes=10, gang="")))
    simulation.run(START + timedelta(minutes=5))
    assert len(simulation.ours()) == 2
    nodes = {pod["spec"].get("nodeName") for pod in list_all(simulation.api, PODS)[0]}
    assert nodes == {machine.name for machine in simulation.ours()}
    simulation.run(START + timedelta(hours=2))
    assert list_all(simulation.api, PODS)[0] == ()
    assert simulation.ours() == []
    assert all(group.members == {} for group in simulation.fake.project.groups.values())
