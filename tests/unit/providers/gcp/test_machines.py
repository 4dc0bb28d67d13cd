"""Machines: whose they are, what happens to them, and which are ended."""

from __future__ import annotations

from datetime import timedelta

import pytest

from providers.contract import TAG_BATCH, TAG_CLUSTER, TAG_POOL, Instance, InstanceState
from providers.errors import PermissionDeniedError, ProviderError, UnclassifiedError
from providers.gcp.node_template.template import Batch
from tests.fakes.gce.errors import refused
from tests.fakes.gce.recreation import repair
from tests.fakes.gce.state import Machine
from tests.gcp import A3, A3_SPOT, CLUSTER, ZONE, Rig, request


def launched(rig: Rig, spot: bool = False) -> Machine:
    """A machine that runs."""
    (found,) = rig.provider.launch(request(offerings=(A3_SPOT if spot else A3,))).instances
    rig.settle()
    return rig.fake.project.machines[int(found.id)]


def described(rig: Rig) -> list[Instance]:
    return list(rig.provider.describe({TAG_CLUSTER: CLUSTER}).instances)


def test_tags_come_from_the_launches_that_are_written_down() -> None:
    rig = Rig()
    launched(rig)
    (unknown,) = described(rig)
    assert (unknown.tags, unknown.hosts) == ({TAG_CLUSTER: CLUSTER}, 1)
    rig.batches.append(Batch("b1", "research"))
    (known,) = described(rig)
    assert known.tags == {TAG_CLUSTER: CLUSTER, TAG_BATCH: "b1", TAG_POOL: "research"}


def test_labels_of_the_instance_template_prove_nothing() -> None:
    """A surge upgrade, auto-repair or a person: the machine has the labels of ours, and not its name."""
    rig = Rig()
    ours = launched(rig)
    group = rig.group(A3)
    stranger = rig.fake.project.stranger(f"{group.base}-x7k2", ZONE, A3.instance_type, group=group.name)
    stranger.labels = ours.labels = {"foreslice": CLUSTER}
    assert [one.id for one in described(rig)] == [str(ours.id)]
    answer = rig.provider.terminate((str(stranger.id),))
    assert isinstance(answer.failures[str(stranger.id)], PermissionDeniedError)
    assert rig.fake.calls["deleteInstances"] == 0


def test_a_machine_outside_of_groups_is_a_strangers_whatever_its_name() -> None:
    rig = Rig()
    name = launched(rig).name
    rig.fake.project.machines.clear()
    stranger = rig.fake.project.stranger(name, ZONE, A3.instance_type)
    assert described(rig) == []
    assert tuple(rig.provider.terminate((str(stranger.id),)).failures) == (str(stranger.id),)


def test_an_id_that_is_gone_ends_nothing_although_its_name_lives_on() -> None:
    rig = Rig()
    old = launched(rig)
    new = repair(rig.fake.project, old)
    answer = rig.provider.terminate((str(old.id),))
    assert answer.gone == (str(old.id),)
    assert rig.fake.calls["deleteInstances"] == 0
    assert rig.provider.terminate((str(new.id),)).terminating == (str(new.id),)


def test_a_machine_that_was_made_anew_is_told_from_the_old_one_by_its_id_alone() -> None:
    """It has the old one's name and provider id, and what happened to the old one is no notice for it: a launch may
    have asked for the name again."""
    rig = Rig()
    old = launched(rig)
    (before,) = described(rig)
    assert before.reclaim_at is None
    rig.advance(timedelta(hours=1))
    new = repair(rig.fake.project, old)
    rig.settle()
    (after,) = described(rig)
    assert (after.id, after.provider_id) == (str(new.id), before.provider_id)
    assert (after.launched_at, after.reclaim_at) == (new.created, None)


def test_a_preempted_machine_has_ended_and_its_successor_is_another() -> None:
    rig = Rig()
    rig.group(A3_SPOT).repairs = True
    machine = launched(rig, spot=True)
    rig.fake.project.preempt(machine)
    (ending,) = described(rig)
    assert ending.state is InstanceState.TERMINATING
    assert "preempted" in ending.message
    rig.settle()
    rig.settle()
    (successor,) = described(rig)
    assert successor.id != str(machine.id)
    assert successor.reclaim_at is None


def test_a_machine_that_stays_stopped_after_maintenance_is_to_be_ended() -> None:
    """Nobody starts it again, it keeps its disks and counts against limits; so its node goes, and it with it."""
    rig = Rig()
    machine = launched(rig, spot=True)
    machine.maintenance, machine.restarts = rig.clock.now() + timedelta(minutes=5), False
    maintained_at = machine.maintenance
    rig.advance(timedelta(minutes=10))
    (found,) = described(rig)
    assert (found.state, found.reclaim_at) == (InstanceState.STOPPED, maintained_at)
    assert "does not start it" in found.message


def test_a_spot_machine_whose_host_failed_stays_stopped_and_is_to_be_ended() -> None:
    rig = Rig()
    machine = launched(rig, spot=True)
    rig.fake.project.host_error(machine)
    failed_at = rig.clock.now()
    (stopping,) = described(rig)
    assert (stopping.state, stopping.reclaim_at) == (InstanceState.TERMINATING, failed_at)
    rig.advance(timedelta(minutes=10))
    (found,) = described(rig)
    assert (found.state, found.reclaim_at) == (InstanceState.STOPPED, failed_at)
    assert found.message == "the machine's host failed, and Google does not start it again"


def test_a_machine_that_starts_again_after_maintenance_has_no_notice() -> None:
    rig = Rig()
    machine = launched(rig)
    machine.maintenance = rig.clock.now() + timedelta(minutes=5)
    rig.advance(timedelta(minutes=10))
    (found,) = described(rig)
    assert (found.state, found.reclaim_at) == (InstanceState.RUNNING, None)


def test_a_preempted_machine_that_no_group_makes_anew_is_to_be_ended() -> None:
    """It is stopped, keeps its disks and its name in the group, and has a notice: so its node goes, and it with it."""
    rig = Rig()
    machine = launched(rig, spot=True)
    rig.fake.project.preempt(machine)
    preempted_at = rig.clock.now()
    rig.settle()
    (found,) = described(rig)
    assert (found.state, found.reclaim_at) == (InstanceState.STOPPED, preempted_at)
    assert rig.provider.terminate((found.id,)).terminating == (found.id,)
    rig.settle()
    assert described(rig) == []
    assert rig.group(A3_SPOT).members == {}


@pytest.mark.parametrize("maintained", [False, True], ids=["preempted", "maintained"])
def test_a_machine_that_somebody_starts_after_google_stopped_it_is_not_over(maintained: bool) -> None:
    """While it boots its last start is the earlier one; that it has stopped since says the same."""
    rig = Rig()
    machine = launched(rig, spot=True)
    if maintained:
        machine.maintenance, machine.restarts = rig.clock.now() + timedelta(seconds=1), False
    else:
        rig.fake.project.preempt(machine)
    rig.settle()
    (stopped,) = described(rig)
    assert stopped.reclaim_at is not None
    rig.fake.project.start_again(machine)
    (booting,) = described(rig)
    rig.settle()
    (running,) = described(rig)
    assert (booting.state, booting.reclaim_at) == (InstanceState.PENDING, None)
    assert (running.id, running.state, running.reclaim_at) == (stopped.id, InstanceState.RUNNING, None)


def test_a_machine_that_is_preempted_once_more_after_somebody_started_it_is_over() -> None:
    rig = Rig()
    machine = launched(rig, spot=True)
    rig.fake.project.preempt(machine)
    rig.settle()
    rig.fake.project.start_again(machine)
    rig.settle()
    rig.fake.project.preempt(machine)
    again = rig.clock.now()
    (found,) = described(rig)
    assert (found.state, found.reclaim_at) == (InstanceState.TERMINATING, again)


def test_a_machine_that_starts_again_by_itself_after_a_host_error_keeps_its_notice() -> None:
    """Its devices may be others, whenever it last started."""
    rig = Rig()
    machine = launched(rig)
    rig.fake.project.host_error(machine)
    failed_at = rig.clock.now()
    rig.advance(timedelta(minutes=5))
    (found,) = described(rig)
    assert found.reclaim_at == failed_at


def test_a_preempted_machine_runs_on_for_as_long_as_its_template_says() -> None:
    rig = Rig()
    machine = launched(rig, spot=True)
    machine.warning = timedelta(minutes=2)
    rig.fake.project.preempt(machine)
    end = rig.clock.now() + machine.warning
    (warned,) = described(rig)
    assert (warned.state, warned.reclaim_at) == (InstanceState.RUNNING, end)
    assert "preempted" in warned.message
    rig.clock.advance(machine.warning)
    (ending,) = described(rig)
    assert (ending.state, ending.reclaim_at) == (InstanceState.TERMINATING, end)


def test_a_stop_is_no_end() -> None:
    rig = Rig()
    machine = launched(rig)
    rig.fake.project.stop(machine)
    (stopping,) = described(rig)
    assert stopping.state is InstanceState.STOPPED
    rig.settle()
    (found,) = described(rig)
    assert (found.state, found.reclaim_at) == (InstanceState.STOPPED, None)
    assert rig.provider.look_up((found.provider_id,))[found.provider_id].state is InstanceState.STOPPED


def test_a_host_error_and_announced_maintenance_are_notices() -> None:
    rig = Rig()
    machine = launched(rig)
    machine.maintenance = rig.clock.now() + timedelta(days=3)
    (found,) = described(rig)
    assert (found.reclaim_at, found.message) == (machine.maintenance, "maintenance of its host is announced")
    rig.fake.project.host_error(machine)
    (found,) = described(rig)
    assert found.reclaim_at == rig.clock.now()
    assert "host failed" in found.message


def test_a_list_that_is_not_whole_is_an_error() -> None:
    rig = Rig()
    launched(rig)
    rig.fake.unreachable.add("us-central1-b")
    with pytest.raises(ProviderError):
        described(rig)


def test_an_unknown_status_is_an_error_of_the_look(monkeypatch: pytest.MonkeyPatch) -> None:
    rig = Rig()
    launched(rig)
    monkeypatch.setattr(Machine, "status", lambda *_: "REBALANCING")
    with pytest.raises(UnclassifiedError, match="REBALANCING"):
        described(rig)


def test_a_machine_of_another_project_is_not_looked_up() -> None:
    rig = Rig()
    name = launched(rig).name
    assert rig.provider.look_up((f"gce://other/{ZONE}/{name}", f"gce://gpu-project/{ZONE}/none", "aws:///z/i-1")) == {}


def test_many_machines_end_in_calls_of_a_thousand_per_group() -> None:
    rig = Rig()
    ids = [one.id for one in rig.provider.launch(request(*(f"n{i}" for i in range(100)))).instances]
    rig.settle()
    assert len(rig.provider.terminate(ids).terminating) == 100
    assert rig.fake.calls["deleteInstances"] == 1
    rig.settle()
    assert described(rig) == []


def test_a_machine_that_its_group_has_abandoned_comes_with_the_command_that_ends_it() -> None:
    """deleteInstances passes over it, and the operation succeeds."""
    rig = Rig()
    abandoned, member = rig.provider.launch(request("a", "b")).instances
    rig.settle()
    name = abandoned.provider_id.rpartition("/")[2]
    del rig.group(A3).members[name]
    rig.fake.calls.clear()
    answer = rig.provider.terminate([abandoned.id, member.id])
    assert answer.terminating == (member.id,)
    error = answer.failures[abandoned.id]
    assert error.next_step == f"gcloud compute instances delete {name} --zone {ZONE}"
    assert rig.fake.calls["listManagedInstances"] == 1


def test_members_that_cannot_be_listed_after_the_deletion_say_nothing() -> None:
    rig = Rig()
    (one,) = rig.provider.launch(request()).instances
    rig.settle()
    rig.fake.faults.inject("listManagedInstances", refused("teapot"))
    assert rig.provider.terminate([one.id]).terminating == (one.id,)
