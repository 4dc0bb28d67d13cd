"""Lives of TPU slices of several hosts: from pods that wait to nothing left, and a few random schedules."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta

import pytest
from hypothesis import Phase, settings

from autoscaler.cluster.api import list_all
from autoscaler.cluster.resources import LAUNCH_BATCHES, NODES, PODS, PROVISIONED_NODES
from tests.crash.life import START, small_catalog
from tests.fakes.gce.state import PROMPT, SLUGGISH, Machine
from tests.faults.drawing import AFRESH
from tests.faults.gcp.schedules import PODS_OF, scenario
from tests.faults.gcp.slices import HOSTS, POOL, TYPE, ZONE, SliceSchedules, SliceSimulation
from tests.faults.gcp.world import GcpSimulation

TestSliceSchedules = pytest.mark.slow(SliceSchedules.TestCase)
TestSliceSchedules.settings = settings(
    max_examples=8, stateful_step_count=14, deadline=None, derandomize=True, phases=[Phase.generate], backend=AFRESH
)


def begun(pods: int = 4, *, minutes: int = 30) -> SliceSimulation:
    """A cluster with pods, each of which takes a host."""
    simulation = SliceSimulation(catalog=small_catalog(TYPE), start=START)
    simulation.add(scenario(POOL))
    simulation.add(scenario(PODS_OF.format(number=1, copies=pods, minutes=minutes, gang="")))
    return simulation


def sizes(simulation: GcpSimulation) -> list[int]:
    """How many machines the slices have."""
    return sorted(Counter(machine.group for machine in hosts(simulation)).values())


def placed(simulation: GcpSimulation) -> int:
    """How many pods are bound to nodes."""
    nodes = {node["metadata"]["name"] for node in list_all(simulation.api, NODES)[0]}
    return sum(pod["spec"].get("nodeName") in nodes for pod in list_all(simulation.api, PODS)[0])


def hosts(simulation: GcpSimulation) -> list[Machine]:
    return sorted((one for one in simulation.ours() if one.ended is None), key=lambda one: one.name)


def nothing_is_left(simulation: SliceSimulation) -> bool:
    groups = simulation.fake.project.groups.values()
    kept = [name for group in groups for name in (*group.members, *(n for n, one in group.asked.items() if one.held))]
    objects = [one for kind in (LAUNCH_BATCHES, PROVISIONED_NODES) for one in list_all(simulation.api, kind)[0]]
    return not kept and not objects and simulation.ours() == []


def test_pods_run_on_a_slice_that_comes_and_goes_as_a_whole() -> None:
    simulation = begun()
    simulation.run(START + timedelta(minutes=10))
    assert (sizes(simulation), placed(simulation)) == ([HOSTS], 4)
    (batch,) = list_all(simulation.api, LAUNCH_BATCHES)[0] or ({},)
    nodes = list_all(simulation.api, PROVISIONED_NODES)[0]
    assert [node["spec"]["hosts"] for node in nodes] == [HOSTS] * HOSTS
    assert batch == {} or (batch["spec"]["minimum"], batch["spec"]["whole"]) == (HOSTS, True)
    assert simulation.fake.calls["resizeRequests.insert"] == 1
    simulation.run(START + timedelta(hours=3))
    assert list_all(simulation.api, PODS)[0] == ()
    assert nothing_is_left(simulation)
    assert (simulation.fake.calls["resize"], simulation.fake.calls["deleteInstances"]) == (1, 0)
    assert simulation.fake.calls["createInstances"] == 0


def test_one_pod_buys_the_whole_slice_and_keeps_it() -> None:
    """Three hosts are empty all the time, and stay as long as the fourth is in use."""
    simulation = begun(1, minutes=90)
    simulation.run(START + timedelta(minutes=80))
    assert (sizes(simulation), placed(simulation)) == ([HOSTS], 1)
    simulation.run(START + timedelta(hours=4))
    assert nothing_is_left(simulation)


def test_five_pods_take_two_slices_in_two_groups() -> None:
    simulation = begun(5)
    simulation.run(START + timedelta(minutes=10))
    assert (sizes(simulation), placed(simulation)) == ([HOSTS, HOSTS], 5)
    simulation.run(START + timedelta(hours=3))
    assert nothing_is_left(simulation)


def test_a_host_too_few_waits_and_costs_nothing() -> None:
    simulation = begun()
    simulation.fake.project.stock[TYPE, ZONE, "STANDARD"] = HOSTS - 1
    simulation.run(START + timedelta(hours=2))
    assert (sizes(simulation), simulation.fake.calls["resizeRequests.insert"]) == ([], 1)
    simulation.fake.project.stock.clear()
    simulation.run(START + timedelta(hours=2, minutes=10))
    assert (sizes(simulation), placed(simulation)) == ([HOSTS], 4)
    simulation.run(START + timedelta(hours=5))
    assert nothing_is_left(simulation)


def test_a_lost_host_takes_its_slice_with_it() -> None:
    simulation = begun(minutes=300)
    simulation.run(START + timedelta(minutes=10))
    simulation.fake.project.preempt(hosts(simulation)[0])
    simulation.run(START + timedelta(minutes=40))
    assert sizes(simulation) == []
    assert simulation.fake.calls["deleteInstances"] == 0
    simulation.run(START + timedelta(hours=3))
    assert nothing_is_left(simulation)


@pytest.mark.parametrize("minutes", [1, 5], ids=["before-it-joins", "after"])
def test_a_host_that_a_person_stops_does_not_keep_an_empty_slice(minutes: int) -> None:
    """One pod runs on another host meanwhile, and the three hosts that run cost as much as before."""
    simulation = begun(1, minutes=20)
    simulation.run(START + timedelta(minutes=minutes))
    simulation.fake.project.stop(hosts(simulation)[0])
    simulation.run(START + timedelta(minutes=15))
    assert (sizes(simulation), placed(simulation)) == ([HOSTS - 1], 1)
    simulation.run(START + timedelta(hours=1))
    assert nothing_is_left(simulation)


def test_a_part_of_a_slice_is_ended_and_the_slice_is_tried_again() -> None:
    simulation = begun()
    for group in simulation.fake.project.groups.values():
        simulation.fake.project.parts[group.name] = 2
    simulation.run(START + timedelta(hours=2))
    assert list_all(simulation.api, PODS)[0] == ()
    simulation.run(START + timedelta(hours=4))
    assert nothing_is_left(simulation)


def test_a_slice_that_shall_go_before_it_is_listed_ends() -> None:
    """Lists lag behind the launch. The Nodes register after the drain is over: they have no taint, and get pods."""
    simulation = SliceSimulation(catalog=small_catalog(TYPE), start=START, gce=SLUGGISH)
    simulation.add(scenario(POOL))
    simulation.add(scenario(PODS_OF.format(number=1, copies=2, minutes=20, gang="")))
    simulation.run(START + timedelta(seconds=1))
    simulation.add(scenario(PODS_OF.format(number=2, copies=2, minutes=4, gang="")))
    simulation.run(simulation.clock.now() + timedelta(seconds=1))
    node = list_all(simulation.api, PROVISIONED_NODES)[0][0]
    simulation.api.delete(PROVISIONED_NODES, node["metadata"]["name"])
    simulation.run(simulation.clock.now() + timedelta(seconds=1))
    phases = [node["status"]["phase"] for node in list_all(simulation.api, PROVISIONED_NODES)[0]]
    assert sorted(phases) == ["Draining", "Launched", "Launched", "Launched"]
    simulation.run(simulation.clock.now() + timedelta(minutes=5))
    simulation.run(START + timedelta(hours=4))
    assert nothing_is_left(simulation)


def test_a_person_who_deletes_a_node_ends_its_slice() -> None:
    simulation = begun(minutes=300)
    simulation.run(START + timedelta(minutes=10))
    simulation.api.delete(PROVISIONED_NODES, list_all(simulation.api, PROVISIONED_NODES)[0][0]["metadata"]["name"])
    simulation.run(START + timedelta(minutes=40))
    assert sizes(simulation) == []


def test_a_host_whose_object_is_removed_by_force_stays_with_its_slice() -> None:
    """Its pod and those of the other hosts run on; the slice ends as a whole when they are done."""
    simulation = begun(minutes=60)
    simulation.run(START + timedelta(minutes=10))
    name = list_all(simulation.api, PROVISIONED_NODES)[0][0]["metadata"]["name"]
    simulation.api.delete(PROVISIONED_NODES, name)
    simulation.api.patch(PROVISIONED_NODES, name, {"metadata": {"finalizers": None}})
    simulation.run(START + timedelta(minutes=50))
    nodes = list_all(simulation.api, PROVISIONED_NODES)[0]
    assert (sizes(simulation), placed(simulation)) == ([HOSTS], 4)
    assert [(node["spec"]["hosts"], node["status"]["phase"]) for node in nodes] == [(HOSTS, "Ready")] * HOSTS
    simulation.run(START + timedelta(hours=4))
    assert nothing_is_left(simulation)


@pytest.mark.parametrize("objects", [0, 1, HOSTS], ids=["", "and-an-object", "and-all-objects"])
def test_a_slice_whose_launch_batch_is_deleted_ends_as_a_whole(objects: int) -> None:
    """Nothing holds a LaunchBatch that is finished. Objects are lost with their CustomResourceDefinitions: then only
    the names of the machines say which hosts belong together."""
    simulation = begun(minutes=30)
    simulation.run(START + timedelta(minutes=10))
    for batch in list_all(simulation.api, LAUNCH_BATCHES)[0]:
        simulation.api.delete(LAUNCH_BATCHES, batch["metadata"]["name"])
    for node in list_all(simulation.api, PROVISIONED_NODES)[0][:objects]:
        simulation.api.delete(PROVISIONED_NODES, node["metadata"]["name"])
        simulation.api.patch(PROVISIONED_NODES, node["metadata"]["name"], {"metadata": {"finalizers": None}})
    simulation.run(START + timedelta(minutes=25))
    nodes = list_all(simulation.api, PROVISIONED_NODES)[0]
    assert (sizes(simulation), placed(simulation)) == ([HOSTS], 4)
    assert [(node["spec"]["hosts"], node["status"]["phase"]) for node in nodes] == [(HOSTS, "Ready")] * HOSTS
    simulation.run(START + timedelta(hours=3))
    assert nothing_is_left(simulation)


def test_a_host_whose_node_is_deleted_has_its_time_to_boot_to_come_back() -> None:
    simulation = begun(minutes=300)
    simulation.run(START + timedelta(minutes=10))
    simulation.api.delete(NODES, list_all(simulation.api, NODES)[0][0]["metadata"]["name"])
    simulation.run(START + timedelta(minutes=20))
    assert (sizes(simulation), placed(simulation)) == ([HOSTS], 3)
    simulation.run(START + timedelta(minutes=40))
    assert sizes(simulation) == []


def test_pods_that_wait_again_keep_the_slice_that_is_bought_for_them() -> None:
    """The names of its nodes follow from the pods. Those of the first slice are forgotten but one, whose name stays in
    the group for now, when the same pods wait again; and Google lets the second slice wait."""
    schedule = SliceSchedules()
    schedule.begin(pace=PROMPT, copies=3, lead=600, queues=False, scarce=9)
    api = schedule.simulation.api
    schedule.trouble(call="zoneOperations.get", name="exceeds a quota", times=4)
    schedule.deletes_a_node(index=0)
    schedule.passes(seconds=30)
    assert len(list_all(api, PROVISIONED_NODES)[0]) == 1
    schedule.limits_hosts(machines=0)
    schedule.simulation.add(scenario(PODS_OF.format(number=1, copies=3, minutes=20, gang="")))
    schedule.passes(seconds=170)
    schedule.limits_hosts(machines=HOSTS)
    schedule.passes(seconds=900)
    assert placed(schedule.simulation) == 3
    machines = {node["status"]["providerID"].rpartition("/")[2] for node in list_all(api, PROVISIONED_NODES)[0]}
    assert machines == {machine.name for machine in hosts(schedule.simulation)}
    schedule.everything_holds()
    schedule.teardown()


def test_a_part_stays_while_its_pool_observes_and_ends_after() -> None:
    schedule = SliceSchedules()
    schedule.begin(pace=PROMPT, copies=2, lead=600, queues=False, scarce=9)
    schedule.sets_the_mode(observes=True)
    schedule.loses(index=3)
    for _ in range(4):
        schedule.passes(seconds=900)
    assert sizes(schedule.simulation) == [HOSTS - 1]
    schedule.sets_the_mode(observes=False)
    schedule.passes(seconds=900)
    assert sizes(schedule.simulation) == []
    schedule.everything_holds()
    schedule.teardown()
