"""A few of the schedules over Google Cloud on every run of the tests."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import settings

from autoscaler.cluster.api import list_all
from autoscaler.cluster.resources import LAUNCH_BATCHES, PODS, PROVISIONED_NODES
from instance_catalog.dataclass import replace
from tests.crash.life import START, small_catalog
from tests.fakes.gce.recreation import repair
from tests.faults.drawing import AFRESH
from tests.faults.gcp.schedules import GANG_OF, PODS_OF, POOL, GcpSchedules, scenario
from tests.faults.gcp.world import ACCELERATORS, KIND, ZONES, GcpSimulation

TestGcpSchedules = pytest.mark.slow(GcpSchedules.TestCase)
TestGcpSchedules.settings = settings(
    max_examples=16, stateful_step_count=16, deadline=None, derandomize=True, backend=AFRESH
)


def begun() -> GcpSimulation:
    """A cluster with two pods, each of which needs a machine for ten minutes."""
    simulation = GcpSimulation(catalog=small_catalog(*ACCELERATORS), start=START)
    simulation.add(scenario(POOL.replace("KIND", KIND).replace("us-east-1a, us-east-1b", ", ".join(ZONES))))
    simulation.add(scenario(PODS_OF.format(number=1, copies=2, minutes=10, gang="")))
    return simulation


def test_pods_run_and_machines_go() -> None:
    simulation = begun()
    simulation.run(START + timedelta(minutes=5))
    assert len(simulation.ours()) == 2
    nodes = {pod["spec"].get("nodeName") for pod in list_all(simulation.api, PODS)[0]}
    assert nodes == {machine.name for machine in simulation.ours()}
    simulation.run(START + timedelta(hours=2))
    assert list_all(simulation.api, PODS)[0] == ()
    assert simulation.ours() == []
    assert all(group.members == {} for group in simulation.fake.project.groups.values())


def test_only_what_a_group_starts_is_asked_for() -> None:
    """The cheapest type of the catalog fits, and no group starts it: nothing is tried in vain."""
    simulation = begun()
    dearest = list(ACCELERATORS)[-1]
    groups = tuple(ref for ref in simulation.groups if ref.name.startswith(dearest))
    simulation.template.found = replace(simulation.template.found, groups=groups)
    simulation.run(START + timedelta(minutes=5))
    assert {machine.machine_type for machine in simulation.ours()} == {dearest}
    planned = [one["spec"]["offerings"] for one in list_all(simulation.api, PROVISIONED_NODES)[0]]
    assert len(planned) == 2
    assert {offering["instanceType"] for offerings in planned for offering in offerings} == {dearest}


def test_a_machine_that_is_taken_back_leaves_nothing_in_its_group() -> None:
    """It is stopped, and stays so until somebody deletes it."""
    simulation = begun()
    simulation.run(START + timedelta(minutes=5))
    (machine, _) = simulation.ours()
    simulation.fake.project.preempt(machine)
    simulation.run(START + timedelta(hours=2))
    assert simulation.ours() == []
    assert all(group.members == {} for group in simulation.fake.project.groups.values())


def test_a_machine_that_is_made_anew_is_ended() -> None:
    """What ran there is gone, and the new machine has the same name and provider id."""
    simulation = begun()
    simulation.run(START + timedelta(minutes=5))
    (machine, other) = simulation.ours()
    again = repair(simulation.fake.project, machine)
    simulation.run(START + timedelta(minutes=9))
    assert again.ended is not None
    assert other.ended is None
    simulation.run(START + timedelta(hours=2))
    assert simulation.ours() == []


def test_a_machine_that_was_taken_back_unseen_leaves_nothing_either() -> None:
    """The controller looks again only once the machine has stopped."""
    simulation = begun()
    simulation.run(START + timedelta(minutes=5))
    (machine, _) = simulation.ours()
    simulation.fake.project.preempt(machine)
    simulation.clock.advance(simulation.fake.behaviour.stopping)
    simulation.run(START + timedelta(hours=2))
    assert simulation.ours() == []


def waiting() -> GcpSimulation:
    """A gang whose machines nobody has yet: a resize request holds them."""
    simulation = GcpSimulation(catalog=small_catalog(*ACCELERATORS), start=START)
    project = simulation.fake.project
    project.stock.update({(one.machine_type, one.zone, one.model): 0 for one in project.groups.values()})
    simulation.template.found = replace(simulation.template.found, resize_requests=True)
    simulation.add(scenario(POOL.replace("KIND", KIND).replace("us-east-1a, us-east-1b", ", ".join(ZONES))))
    label = "scheduling.x-k8s.io/pod-group: gang-1"
    simulation.add(scenario(GANG_OF.format(number=1, copies=3)))
    simulation.add(scenario(PODS_OF.format(number=1, copies=3, minutes=10, gang=label)))
    simulation.run(START + timedelta(minutes=10))
    assert (len(held(simulation)), simulation.fake.calls["resizeRequests.insert"]) == (1, 1)
    assert project.machines == {}
    return simulation


def held(simulation: GcpSimulation) -> list[str]:
    """The resize requests that wait."""
    groups = simulation.fake.project.groups.values()
    return [name for group in groups for name, one in group.asked.items() if one.held]


def test_a_gang_that_waits_runs_once_there_are_machines() -> None:
    simulation = waiting()
    simulation.fake.project.stock.clear()
    simulation.run(START + timedelta(minutes=18))
    assert len(simulation.ours()) == 3
    simulation.run(START + timedelta(hours=2))
    assert list_all(simulation.api, PODS)[0] == ()
    assert (simulation.ours(), held(simulation), simulation.fake.calls["resizeRequests.cancel"]) == ([], [], 0)


def test_a_gang_whose_pods_are_deleted_waits_no_more() -> None:
    simulation = waiting()
    for pod in list_all(simulation.api, PODS)[0]:
        simulation.api.delete(PODS, pod["metadata"]["name"], namespace="default")
    simulation.run(START + timedelta(minutes=20))
    assert (held(simulation), simulation.fake.calls["resizeRequests.cancel"]) == ([], 1)
    assert all(list_all(simulation.api, kind)[0] == () for kind in (LAUNCH_BATCHES, PROVISIONED_NODES))
    simulation.fake.project.stock.clear()
    simulation.run(START + timedelta(minutes=40))
    assert simulation.fake.project.machines == {}
