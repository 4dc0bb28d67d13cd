"""TPU slices of several hosts: all machines of a group or none, and never two slices in one."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from decimal import Decimal

import pytest

from instance_catalog.dataclass import replace
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes import labels
from instance_catalog.types.instance_type import ANY_ZONE
from providers.contract import TAG_BATCH, LaunchRequest
from providers.errors import AmbiguousError, CapacityError, RefusedError, WaitingError
from providers.gcp.node_template.template import Batch, GroupRef, GroupTemplate
from providers.gcp.provider import GcpProvider, Project
from providers.gcp.trial import Trial, cluster_of_trials
from providers.registered import Room
from tests.fakes.gce.errors import CUT_AFTER, CUT_BEFORE, ApiError, Fault, LateError, refused
from tests.gcp import CLUSTER, V6E, ZONE, Rig, Written, gcp, outcome, request, whole

LOST = pytest.mark.parametrize("fault", [CUT_BEFORE, CUT_AFTER, Fault(ApiError(500, "internalError"), effect=True)])


def rig_with(slices: int = 1, *, stock: int = 99) -> Rig:
    rig = Rig()
    rig.slices(slices)
    rig.fake.project.stock[rig.key(V6E)] = stock
    return rig


def running(rig: Rig) -> dict[str, int]:
    """How many machines run in each group."""
    found: dict[str, int] = {}
    for machine in rig.fake.project.machines.values():
        if machine.ended is None and machine.group:
            found[machine.group] = found.get(machine.group, 0) + 1
    return found


def members(rig: Rig) -> int:
    return sum(len(group.members) for group in rig.fake.project.groups.values())


def test_a_slice_comes_as_a_whole_under_our_names() -> None:
    rig = rig_with()
    answer = outcome(rig, whole())
    assert [one.node for one in answer.instances] == ["b1-0", "b1-1", "b1-2", "b1-3"]
    assert len(answer.instances) == len({one.provider_id for one in answer.instances}) == 4
    assert (rig.fake.calls["resizeRequests.insert"], rig.fake.calls["createInstances"]) == (1, 0)
    rig.settle()
    assert len(rig.provider.describe({}).instances) == 4


def test_the_hosts_of_a_slice_have_a_name_in_common_that_is_written_down_nowhere() -> None:
    """It tells them from the hosts of other launches."""
    rig = rig_with(2)
    for batch in ("b1", "b2"):
        outcome(rig, whole(batch))
    rig.settle()
    found = rig.provider.describe({}).instances
    assert [one.hosts for one in found] == [4] * 8
    names = Counter(one.tags[TAG_BATCH] for one in found)
    assert (list(names.values()), {name[:5] for name in names}) == ([4, 4], {"lost-"})
    rig.batches.append(Batch("b2", "research"))
    names = Counter(one.tags[TAG_BATCH] for one in rig.provider.describe({}).instances)
    assert (names["b2"], list(names.values())) == (4, [4, 4])


def test_a_repetition_finds_the_slice() -> None:
    rig = rig_with(2)
    first = outcome(rig, whole())
    rig.restart()
    again = outcome(rig, whole())
    assert [one.id for one in again.instances] == [one.id for one in first.instances]
    assert running(rig) == {"gke-c1-slice0-0a1b2c3d-grp": 4}


@LOST
def test_a_slice_whose_answer_is_lost_is_asked_for_once(fault: Fault) -> None:
    rig = rig_with(2)
    rig.fake.faults.inject("resizeRequests.insert", fault)
    with pytest.raises(AmbiguousError):
        rig.provider.launch(whole())
    rig.restart()
    assert len(outcome(rig, whole()).instances) == 4
    assert sum(running(rig).values()) == 4


def test_two_slices_are_two_groups_and_a_third_has_no_room() -> None:
    rig = rig_with(2)
    for batch in ("b1", "b2"):
        assert len(outcome(rig, whole(batch)).instances) == 4
    assert set(running(rig).values()) == {4}
    assert len(running(rig)) == 2
    third = rig.provider.launch(whole("b3"))
    assert third.instances == ()
    assert [isinstance(one.error, CapacityError) for one in third.failures] == [True]
    assert "it is one slice" in third.failures[0].error.message
    assert rig.fake.calls["resizeRequests.insert"] == 2


def test_a_group_with_a_request_that_waits_is_not_asked_again() -> None:
    rig = rig_with(stock=3)
    with pytest.raises(WaitingError):
        rig.provider.launch(whole())
    other = rig.provider.launch(whole("b2"))
    assert (other.instances, rig.fake.calls["resizeRequests.insert"]) == ((), 1)


def test_a_group_with_a_strangers_machine_is_left_alone() -> None:
    rig = rig_with()
    rig.fake.project.member(rig.group(V6E), f"{rig.group(V6E).base}-x1yz")
    assert rig.provider.launch(whole()).instances == ()
    assert rig.fake.calls["resizeRequests.insert"] == 0


def test_one_host_too_few_in_stock_starts_none() -> None:
    rig = rig_with(stock=3)
    asked = whole()
    with pytest.raises(WaitingError):
        rig.provider.launch(asked)
    rig.advance(timedelta(hours=2))
    assert rig.fake.project.machines == {}
    assert rig.provider.waits(asked)
    assert rig.provider.withdraw(asked).instances == ()
    assert not rig.provider.waits(asked)
    rig.advance(timedelta(hours=2))
    assert (rig.fake.project.machines, rig.group(V6E).asked) == ({}, {})


@pytest.mark.parametrize("come", [0, 1, 3])
def test_a_part_of_a_slice_is_ended_before_the_launch_says_anything(come: int) -> None:
    """Google promises all or none; what it does all the same is not paid for."""
    rig = rig_with()
    rig.fake.project.parts[rig.group(V6E).name] = come
    answer = outcome(rig, whole())
    assert (answer.instances, answer.missing) == ((), whole().nodes)
    rig.settle()
    assert (running(rig), members(rig)) == ({}, 0)
    assert (rig.fake.calls["resize"], rig.fake.calls["deleteInstances"]) == (1, 0)
    assert len(outcome(rig, whole("b2")).instances) == 4


@LOST
def test_a_part_whose_end_is_not_known_leaves_the_launch_open(fault: Fault) -> None:
    rig = rig_with(stock=2)
    rig.fake.project.parts[rig.group(V6E).name] = 2
    rig.fake.faults.inject("resize", fault)
    answer = outcome(rig, whole())
    rig.settle()
    assert (answer.instances, running(rig), members(rig)) == ((), {}, 0)


def test_a_part_that_nobody_lets_us_end_leaves_the_launch_open() -> None:
    rig = rig_with(stock=2)
    rig.fake.project.parts[rig.group(V6E).name] = 2
    rig.fake.faults.inject("resize", *[refused("forbidden", 403)] * 30)
    with pytest.raises(AssertionError, match="never comes to an end"):
        outcome(rig, whole())


def test_a_refusal_in_the_operation_lets_the_next_offering_be_tried() -> None:
    rig = rig_with()
    rig.fake.faults.inject("resizeRequests.insert", Fault(LateError("QUOTA_EXCEEDED", status=403)))
    answer = rig.provider.launch(whole())
    assert (answer.instances, [type(one.error).__name__ for one in answer.failures]) == ((), ["QuotaError"])
    assert members(rig) == 0


@pytest.mark.parametrize("asked", [whole(hosts=3), replace(whole(), minimum=1)])
def test_no_part_of_a_slice_is_asked_for(asked: LaunchRequest) -> None:
    rig = rig_with()
    with pytest.raises(RefusedError, match="is one slice of 4 hosts"):
        rig.provider.launch(asked)
    assert rig.fake.calls["resizeRequests.insert"] == 0


def test_a_slice_is_not_launched_into_a_group_of_single_machines_nor_the_reverse() -> None:
    rig = rig_with()
    group = rig.group(V6E)
    group.kube_labels = {labels.GKE_TPU_TOPOLOGY: "2x2"}
    rig.restart()
    assert "4x4" in rig.provider.launch(whole()).failures[0].error.message
    group.kube_labels = {labels.GKE_TPU_TOPOLOGY: "4x4"}
    rig.restart()
    alone = request("n", offerings=(V6E,), labels=FrozenMap({labels.GKE_TPU_TOPOLOGY: "2x2"}))
    assert rig.provider.launch(alone).instances == ()
    assert rig.fake.calls["resizeRequests.insert"] + rig.fake.calls["createInstances"] == 0


def test_a_group_that_no_trial_has_proven_gets_no_slice() -> None:
    rig = Rig()
    rig.slices(tried=False)
    failure = rig.provider.launch(whole()).failures[0].error
    assert "no trial has started machines in it by a resize request" in failure.message
    assert rig.fake.calls["resizeRequests.insert"] == 0


def test_the_hosts_of_a_slice_end_together() -> None:
    rig = rig_with()
    ids = [one.id for one in outcome(rig, whole()).instances]
    rig.settle()
    part = rig.provider.terminate(ids[:3])
    assert part.terminating == ()
    assert "ends as a whole" in part.failures[ids[0]].message
    assert running(rig) == {rig.group(V6E).name: 4}
    answer = rig.provider.terminate(ids)
    assert (sorted(answer.terminating), dict(answer.failures)) == (sorted(ids), {})
    rig.settle()
    assert (running(rig), members(rig)) == ({}, 0)
    assert rig.provider.terminate(ids).gone == tuple(ids)


def test_a_slice_beside_a_strangers_machine_is_not_ended_by_its_size() -> None:
    rig = rig_with()
    ids = [one.id for one in outcome(rig, whole()).instances]
    rig.settle()
    name = f"{rig.group(V6E).base}-x1yz"
    rig.fake.project.member(rig.group(V6E), name)
    stranger = rig.fake.project.stranger(name, ZONE, V6E.instance_type, group=rig.group(V6E).name)
    assert set(rig.provider.terminate(ids).failures) == set(ids)
    assert (stranger.ended, rig.fake.calls["resize"]) == (None, 0)


def test_a_slice_that_has_lost_a_host_still_ends() -> None:
    rig = rig_with()
    ids = [one.id for one in outcome(rig, whole()).instances]
    rig.settle()
    rig.fake.project.preempt(rig.fake.project.machines[int(ids[0])])
    assert sorted(rig.provider.terminate(ids).terminating) == sorted(ids)
    rig.settle()
    assert (running(rig), members(rig)) == ({}, 0)


def test_a_trial_starts_and_ends_a_whole_slice() -> None:
    rig = rig_with()
    ref = GroupRef(ZONE, rig.group(V6E).name)
    template = GroupTemplate("gpu", groups=(ref,), on_trial=True, resize_requests=True)
    project = Project(gcp(), rig.clock, cluster_of_trials(CLUSTER))
    launcher = GcpProvider(project, Written(template)).launcher
    found = Trial(launcher, template, launcher.groups.group(ref), Decimal(10), queued=True)
    assert (found.machines, found.cost()) == (4, Decimal(40))
    found.run()
    assert [one for one in found.outcomes if one.passed is not True] == []
    assert found.proven
    rig.settle()
    assert (running(rig), members(rig)) == ({}, 0)
    assert rig.fake.calls["createInstances"] + rig.fake.calls["deleteInstances"] == 0


def test_a_group_that_starts_its_machines_in_bulk_is_not_offered() -> None:
    rig = rig_with()
    rig.group(V6E).bulk = True
    rig.restart()
    assert "target size policy BULK" in rig.provider.launch(whole()).failures[0].error.message
    (fault,) = rig.provider.template_statuses()[0].faults
    assert (fault.field, fault.kind) == ("nodePools", "BulkMode")
    assert fault.next_step == "name another node pool than slice0: GKE has made its group so"


def test_a_launch_that_leaves_the_zone_open_is_withdrawn_as_well() -> None:
    """A catalog that was not synchronised knows no zones."""
    rig = rig_with(stock=3)
    asked = replace(whole(), offerings=(replace(V6E, zone=ANY_ZONE),))
    with pytest.raises(WaitingError):
        rig.provider.launch(asked)
    rig.advance(timedelta(minutes=1))
    assert rig.provider.waits(asked)
    rig.fake.project.stock.clear()
    rig.advance(timedelta(minutes=5))
    assert len(rig.provider.withdraw(asked).instances) == 4


def test_the_status_counts_slices_that_are_in_use_whoever_started_them() -> None:
    rig = rig_with(3)
    outcome(rig, whole())
    rig.settle()
    rig.restart()
    (found,) = rig.provider.template_statuses()
    assert {key.instance_type: room for key, room in found.rooms.items()} == {"ct6e-standard-4t": Room(12)}
    assert found.rooms.keys() <= (found.groups or frozenset())
