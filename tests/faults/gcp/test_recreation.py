"""A machine that its group makes anew under the same name is never taken for the old one, whether or not an event says
so. Its node goes, and the new machine with it."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime, timedelta
from functools import partial

import pytest
from google.auth.credentials import AnonymousCredentials
from google.cloud import compute_v1

from autoscaler.cluster.api import Object, list_all
from autoscaler.cluster.resources import CAPACITY_POOLS, EVENTS, LAUNCH_BATCHES, NODES, PODS, PROVISIONED_NODES
from autoscaler.loop.loop import Tick
from autoscaler.model.provisioned_node import ProvisionedNode
from autoscaler.serve.recorder import Recorder
from tests.crash.life import START, CrashError, Dying, small_catalog
from tests.fakes.gce.recreation import recreate, repair
from tests.fakes.gce.state import PROJECT, Machine
from tests.faults.gcp.schedules import POOLS, scenario
from tests.faults.gcp.test_slices import begun as slices
from tests.faults.gcp.test_slices import hosts, sizes
from tests.faults.gcp.world import ACCELERATORS, GcpSimulation, machines_run
from tests.faults.scenes import PODS_OF
from tests.faults.witness import Witness
from tests.gcp import server

EITHER_WAY = pytest.mark.parametrize("unseen", [True, False], ids=["between two looks", "in minutes"])


def ask(simulation: GcpSimulation, machine: Machine) -> None:
    """What `gcloud compute instance-groups managed recreate-instances` sends."""
    server().fake = simulation.fake
    options = {"api_endpoint": server().url}
    client = compute_v1.InstanceGroupManagersClient(
        credentials=AnonymousCredentials(),  # type: ignore[no-untyped-call]  # not annotated
        transport="rest",
        client_options=options,
    )
    body = compute_v1.InstanceGroupManagersRecreateInstancesRequest(
        instances=[f"zones/{machine.zone}/instances/{machine.name}"]
    )
    client.recreate_instances(
        project=PROJECT,
        zone=machine.zone,
        instance_group_manager=machine.group,
        instance_group_managers_recreate_instances_request_resource=body,
        timeout=10,
    )


def happens(simulation: GcpSimulation, machine: Machine, *, unseen: bool) -> None:
    """Its group makes it anew, and no event says so."""
    project = simulation.fake.project
    repair(project, machine, told=False) if unseen else recreate(project, machine)


def cluster(*, minutes: int = 90) -> tuple[GcpSimulation, Machine, Machine]:
    """Two pods on the machines of one launch; the first machine is the one to which something happens."""
    simulation = GcpSimulation(catalog=small_catalog(*ACCELERATORS), start=START)
    simulation.add(scenario(POOLS))
    simulation.add(scenario(PODS_OF.format(number=1, copies=2, minutes=minutes, gang="")))
    simulation.run(after(0))
    assert len(list_all(simulation.api, LAUNCH_BATCHES)[0]) == 1
    machine, other = simulation.ours()
    return simulation, machine, other


def after(minutes: int) -> datetime:
    """So long after it has happened."""
    return START + timedelta(minutes=10 + minutes)


def newest(simulation: GcpSimulation, machine: Machine) -> Machine:
    """The last machine of its name."""
    return [one for one in simulation.fake.project.machines.values() if one.name == machine.name][-1]


def provisioned(simulation: GcpSimulation, machine: Machine) -> Object:
    """Its ProvisionedNode."""
    found = list_all(simulation.api, PROVISIONED_NODES)[0]
    return next(one for one in found if one["status"]["providerID"].endswith(f"/{machine.name}"))


def forget_ids(simulation: GcpSimulation) -> None:
    """As an older version has written the nodes."""
    for node in list_all(simulation.api, PROVISIONED_NODES)[0]:
        patch = {"status": {"instanceID": None}}
        simulation.api.patch(PROVISIONED_NODES, node["metadata"]["name"], patch, subresource="status")
    simulation.new_loop()


def bound(simulation: GcpSimulation, machine: Machine) -> set[str]:
    """The uids of the pods on its Node."""
    pods = list_all(simulation.api, PODS, fields={"spec.nodeName": machine.name})[0]
    return {pod["metadata"]["uid"] for pod in pods}


def nothing_is_left(simulation: GcpSimulation) -> bool:
    kept = [name for group in simulation.fake.project.groups.values() for name in group.members]
    objects = [one for kind in (LAUNCH_BATCHES, PROVISIONED_NODES, NODES) for one in list_all(simulation.api, kind)[0]]
    return not kept and not objects and simulation.ours() == []


def said(simulation: GcpSimulation, reason: str) -> str:
    return "\n".join(one["message"] for one in list_all(simulation.api, EVENTS)[0] if one["reason"] == reason)


def test_a_person_has_a_machine_made_anew() -> None:
    """The launch's other machine stays, and so does its LaunchBatch: neither hides the new machine."""
    simulation, machine, other = cluster(minutes=120)
    before = bound(simulation, machine)
    ask(simulation, machine)
    simulation.run(after(60))
    again = newest(simulation, machine)
    assert (again.id != machine.id, again.ended is not None, other.ended) == (True, True, None)
    assert not before & {pod["metadata"]["uid"] for pod in list_all(simulation.api, PODS)[0]}
    simulation.run(after(300))
    assert nothing_is_left(simulation)


def test_nobody_sees_a_machine_being_made_anew() -> None:
    """A health check: between two looks there is another machine, and no event. The node says why it goes."""
    simulation, machine, other = cluster()
    before = bound(simulation, machine)
    assert provisioned(simulation, machine)["status"]["instanceID"] == str(machine.id)
    again = repair(simulation.fake.project, machine, told=False)
    recorder = Recorder(simulation.clock, version="1")
    nodes: list[ProvisionedNode] = []

    def observe(tick: Tick) -> None:
        recorder.ticked(tick.snapshot, tick.plan, tick.now)
        nodes.extend(node for node in tick.snapshot.provisioned if node.recreated_as)

    simulation.run(after(5), observe)
    assert {(node.instance_id, node.recreated_as) for node in nodes} == {(str(machine.id), str(again.id))}
    assert (again.ended is not None, other.ended) == (True, None)
    assert not before & bound(simulation, machine)
    assert f"another machine ({again.id}) was made under the name of its own ({machine.id})" in said(
        simulation, "Draining"
    )
    simulation.run(after(300))
    assert nothing_is_left(simulation)


def test_a_name_that_the_group_keeps_without_a_machine_goes_with_its_node() -> None:
    """The group cannot get another machine now; it would try for ever, and start one that nobody knows."""
    simulation, machine, other = cluster(minutes=120)
    group = simulation.fake.project.groups[machine.zone, machine.group]
    simulation.fake.project.stock[machine.machine_type, machine.zone, machine.model] = 1
    recreate(simulation.fake.project, machine)
    simulation.run(after(30))
    assert (list(group.members), other.ended) == ([other.name], None)
    simulation.fake.project.stock.clear()
    simulation.run(after(300))
    assert nothing_is_left(simulation)
    assert newest(simulation, machine).id == machine.id


def test_in_mode_observe_the_record_of_a_lost_machine_stays_as_long_as_its_name() -> None:
    """Nothing may be deleted, and without the record nobody would know of the name once its group gets a machine."""
    simulation, machine, other = cluster(minutes=300)
    group = simulation.fake.project.groups[machine.zone, machine.group]
    simulation.api.patch(CAPACITY_POOLS, "gpu", {"spec": {"mode": "Observe"}})
    simulation.fake.project.stock[machine.machine_type, machine.zone, machine.model] = 1
    recreate(simulation.fake.project, machine)
    simulation.run(after(30))
    for node in list_all(simulation.api, NODES)[0]:  # as the cloud's node lifecycle controller does
        if node["metadata"]["name"] == machine.name:
            simulation.api.delete(NODES, machine.name)
    simulation.run(after(60))
    assert (sorted(group.members), simulation.fake.calls["deleteInstances"]) == (sorted([machine.name, other.name]), 0)
    assert provisioned(simulation, machine)
    assert f"delete the name of gce://{PROJECT}/{machine.zone}/{machine.name} from its group" in said(
        simulation, "Observing"
    )
    simulation.api.patch(CAPACITY_POOLS, "gpu", {"spec": {"mode": "Act"}})
    simulation.run(after(90))
    assert list(group.members) == [other.name]


def test_a_machine_that_is_made_anew_while_it_boots_is_not_that_of_the_launch() -> None:
    """The id is that of the launch's answer, and not of whatever machine is seen first."""
    simulation = GcpSimulation(catalog=small_catalog(*ACCELERATORS), start=START)
    simulation.add(scenario(POOLS))
    simulation.add(scenario(PODS_OF.format(number=1, copies=1, minutes=90, gang="")))
    simulation.run(START + timedelta(minutes=1))
    (machine,) = simulation.ours()
    again = repair(simulation.fake.project, machine, told=False)
    simulation.run(after(0))
    assert again.ended is not None


@EITHER_WAY
def test_a_record_of_an_older_version_has_no_id(unseen: bool) -> None:
    """What was created long after its launch is another machine all the same."""
    simulation, machine, _ = cluster()
    forget_ids(simulation)
    simulation.clock.advance(timedelta(minutes=10))
    happens(simulation, machine, unseen=unseen)
    simulation.run(after(60))
    assert newest(simulation, machine).ended is not None
    simulation.run(after(300))
    assert nothing_is_left(simulation)


def test_a_record_of_an_older_version_gets_the_id_of_its_machine() -> None:
    simulation, machine, _ = cluster()
    forget_ids(simulation)
    simulation.run(after(4))
    simulation.settle()  # a controller that has just begun concludes nothing of ages
    assert provisioned(simulation, machine)["status"]["instanceID"] == str(machine.id)
    assert machine.ended is None


def test_in_mode_observe_nothing_is_touched_and_everything_is_said() -> None:
    simulation, machine, _ = cluster(minutes=300)
    simulation.api.patch(CAPACITY_POOLS, "gpu", {"spec": {"mode": "Observe"}})
    again = repair(simulation.fake.project, machine, told=False)
    calls = simulation.fake.calls["deleteInstances"]
    simulation.run(after(30))
    assert (again.ended, simulation.fake.calls["deleteInstances"]) == (None, calls)
    assert f"another machine ({again.id})" in said(simulation, "Observing")
    simulation.api.patch(CAPACITY_POOLS, "gpu", {"spec": {"mode": "Act"}})
    simulation.run(after(40))
    assert again.ended is not None


@EITHER_WAY
def test_one_host_that_is_made_anew_breaks_its_slice(unseen: bool) -> None:
    simulation = slices(minutes=300)
    simulation.run(after(0))
    machine, project = hosts(simulation)[0], simulation.fake.project
    happens(simulation, machine, unseen=unseen)
    simulation.run(after(30))
    broken = [one for one in project.machines.values() if one.group == machine.group and one.created <= after(2)]
    assert len(broken) == 5
    assert all(one.ended is not None for one in broken)
    assert simulation.fake.calls["deleteInstances"] == 0
    simulation.run(after(900))
    assert sizes(simulation) == []


def lives(at: int, *, unseen: bool) -> int:
    """How many writes there were in a life in which the controller dies before its write number `at` after a machine
    was made anew. Raises AssertionError unless all went well."""
    simulation, machine, other = cluster(minutes=45)
    before = bound(simulation, machine)
    witness = Witness(simulation.api, partial(machines_run, simulation))
    dying, lasting = (Dying(simulation.api, number, before=True, witness=witness) for number in (at, 0))
    happens(simulation, machine, unseen=unseen)
    for process in (dying, lasting):
        simulation.new_loop(process)
        with suppress(CrashError):
            simulation.run(after(60))
    assert newest(simulation, machine).ended is not None, dying.step
    assert not before & bound(simulation, machine), dying.step
    assert other.ended is None or other.ended >= START + timedelta(minutes=45), dying.step
    simulation.run(after(300))
    assert nothing_is_left(simulation), dying.step
    assert witness.found == [], dying.step
    return dying.writes


@pytest.mark.slow
@EITHER_WAY
def test_dying_before_any_write_takes_no_machine_for_another(unseen: bool) -> None:
    writes = lives(0, unseen=unseen)
    assert writes > 5
    for at in range(1, writes + 1):
        lives(at, unseen=unseen)
