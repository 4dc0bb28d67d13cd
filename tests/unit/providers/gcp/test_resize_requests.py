"""Resize requests where calls fail, and where the group decides between two of our calls."""

from __future__ import annotations

from datetime import timedelta

import pytest

from instance_catalog.dataclass import replace
from providers.contract import LaunchRequest
from providers.errors import AmbiguousError, CapacityError, ShortageError, WaitingError
from providers.gcp.errors import GroupRefusedError
from providers.gcp.node_template.template import GroupTemplate
from tests.fakes.gce.errors import CUT_AFTER, CUT_BEFORE, ApiError, Fault, LateError, refused
from tests.gcp import A2, A3, Rig, outcome, request

LOST = pytest.mark.parametrize("fault", [CUT_BEFORE, CUT_AFTER, Fault(ApiError(500, "internalError"), effect=True)])


def rig_that_queues(stock: int = 0) -> Rig:
    rig = Rig()
    rig.queue_gangs()
    rig.fake.project.stock[rig.key(A3)] = stock
    return rig


def gang(*nodes: str) -> LaunchRequest:
    names = nodes or ("a", "b")
    return request(*names, minimum=len(names))


def held(rig: Rig) -> LaunchRequest:
    asked = gang()
    with pytest.raises(WaitingError):
        rig.provider.launch(asked)
    rig.advance(timedelta(minutes=1))
    return asked


def machines(rig: Rig) -> int:
    rig.advance(timedelta(hours=1))
    return len(rig.fake.project.machines)


def test_what_waits_says_since_when_and_why() -> None:
    rig = rig_that_queues()
    began = rig.clock.now()
    asked = held(rig)
    why = r"until it can start 2 machines at once: .*\(ZONE_RESOURCE_POOL_EXHAUSTED\)"
    with pytest.raises(WaitingError, match=why) as told:
        rig.provider.launch(asked)
    assert (told.value.since, told.value.code) == (began, "ACCEPTED")
    assert (rig.fake.calls["resizeRequests.insert"], rig.fake.calls["createInstances"]) == (1, 0)


@LOST
def test_a_request_whose_answer_is_lost_is_made_once(fault: Fault) -> None:
    rig = rig_that_queues(stock=9)
    rig.fake.faults.inject("resizeRequests.insert", fault)
    with pytest.raises(AmbiguousError):
        rig.provider.launch(gang())
    rig.restart()
    assert len(outcome(rig, gang()).instances) == 2
    assert machines(rig) == 2


def test_an_operation_that_cannot_be_read_leaves_the_request_open() -> None:
    rig = rig_that_queues(stock=9)
    rig.fake.faults.inject("zoneOperations.get", refused("forbidden", 403))
    with pytest.raises(AmbiguousError):
        rig.provider.launch(gang())
    assert len(outcome(rig, gang()).instances) == 2
    assert machines(rig) == 2


def test_a_request_that_is_refused_late_lets_the_next_offering_be_tried() -> None:
    rig = rig_that_queues()
    rig.fake.faults.inject("resizeRequests.insert", Fault(LateError("QUOTA_EXCEEDED", status=403)))
    answer = rig.provider.launch(gang())
    assert (answer.instances, [type(one.error).__name__ for one in answer.failures]) == ((), ["QuotaError"])


def test_a_request_that_fails_is_deleted_and_its_token_asks_again() -> None:
    rig = rig_that_queues()
    asked = held(rig)
    rig.fake.project.errors[rig.key(A3)] = ("INVALID_FIELD_VALUE", "a disk type that is not there")
    rig.advance(timedelta(minutes=1))
    (failure,) = rig.provider.launch(asked).failures
    assert isinstance(failure.error, GroupRefusedError)
    assert "a disk type" in failure.error.message
    assert rig.group(A3).asked == {}
    del rig.fake.project.errors[rig.key(A3)]
    rig.fake.project.stock[rig.key(A3)] = 9
    assert len(outcome(rig, asked).instances) == 2


def test_a_request_that_a_person_cancels_is_a_shortage() -> None:
    rig = rig_that_queues()
    asked = held(rig)
    (found,) = rig.group(A3).asked.values()
    found.state = "CANCELLED"
    (failure,) = rig.provider.launch(asked).failures
    assert isinstance(failure.error, ShortageError)
    assert isinstance(failure.error, CapacityError)


def test_a_request_is_found_when_its_group_has_left_the_template() -> None:
    rig = rig_that_queues()
    asked = held(rig)
    rig.templates.found = GroupTemplate("gpu", groups=rig.templates.found.groups, resize_requests=True)
    with pytest.raises(WaitingError):
        rig.provider.launch(asked)
    assert rig.fake.calls["resizeRequests.insert"] == 1


def test_a_node_pool_takes_no_request_before_a_trial_has_proven_it() -> None:
    rig = Rig()
    rig.queue_gangs(tried=False)
    assert len(rig.provider.launch(gang()).instances) == 2
    assert (rig.fake.calls["resizeRequests.insert"], rig.fake.calls["createInstances"]) == (0, 1)
    # A2's group is no node pool's: Google documents resize requests for it.
    assert len(rig.provider.launch(request("c", "d", batch="b2", minimum=2, offerings=(A2,))).instances) == 2
    assert rig.fake.calls["resizeRequests.insert"] == 1
    (status,) = rig.provider.template_statuses()
    (fault,) = status.faults
    assert (fault.field, fault.kind) == ("nodePools", "GangsNotTried")
    assert (
        fault.next_step
        == f"foreslice gcp trial --template gpu --type {A3.instance_type} --resize-requests --max-usd DOLLARS --yes"
    )
    assert status.groups is not None
    assert A3 in status.groups


def test_a_request_holds_when_the_template_stops_to_use_them() -> None:
    rig = rig_that_queues()
    asked = held(rig)
    rig.templates.found = replace(rig.templates.found, resize_requests=False)
    with pytest.raises(WaitingError):
        rig.provider.launch(asked)
    assert rig.fake.calls["createInstances"] == 0


def test_one_machine_is_asked_for_by_itself() -> None:
    rig = rig_that_queues(stock=9)
    assert len(rig.provider.launch(request("a")).instances) == 1
    assert len(rig.provider.launch(request("c", "d", batch="b2")).instances) == 2
    assert rig.fake.calls["resizeRequests.insert"] == 0


@LOST
def test_a_withdrawal_whose_answer_is_lost_is_repeated(fault: Fault) -> None:
    rig = rig_that_queues()
    asked = held(rig)
    rig.fake.faults.inject("resizeRequests.cancel", fault)
    with pytest.raises(AmbiguousError):
        rig.provider.withdraw(asked)
    rig.restart()
    assert rig.provider.withdraw(asked).instances == ()
    rig.fake.project.stock[rig.key(A3)] = 9
    assert (rig.provider.withdraw(asked).instances, machines(rig)) == ((), 0)


def test_what_succeeds_while_it_is_cancelled_is_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    """The group starts the machines between our look and the call."""
    rig = rig_that_queues()
    asked = held(rig)
    ending = rig.fake.faults.next

    def just_before(method: str) -> Fault | None:
        if method == "resizeRequests.cancel":
            rig.fake.project.stock[rig.key(A3)] = 9
            rig.clock.advance(timedelta(minutes=1))
            rig.fake.project.catch_up()
        return ending(method)

    monkeypatch.setattr(rig.fake.faults, "next", just_before)
    answer = rig.provider.withdraw(asked)
    assert [one.node for one in answer.instances] == ["a", "b"]
    assert machines(rig) == 2


def test_what_is_not_cancelled_is_not_called_withdrawn() -> None:
    """Its operation fails, and it waits on: its machines may still come."""
    rig = rig_that_queues()
    asked = held(rig)
    rig.fake.faults.inject("resizeRequests.cancel", Fault(LateError("")))
    with pytest.raises(AmbiguousError, match="not cancelled yet"):
        rig.provider.withdraw(asked)
    assert rig.provider.waits(asked)
    assert (rig.provider.withdraw(asked).instances, rig.provider.waits(asked)) == ((), False)


def test_a_request_is_withdrawn_without_its_template() -> None:
    rig = rig_that_queues()
    asked = held(rig)
    rig.templates.found = GroupTemplate("gpu")
    rig.provider.withdraw(asked)
    assert [one.asked for one in rig.fake.project.groups.values()] == [{}, {}, {}]


def test_machines_that_ended_since_are_not_waited_for() -> None:
    rig = rig_that_queues()
    asked = held(rig)
    rig.fake.project.stock[rig.key(A3)] = 9
    rig.advance(timedelta(minutes=1))
    rig.settle()
    group = rig.group(A3)
    for machine in rig.fake.project.machines.values():
        machine.ended, machine.deleting = rig.clock.now(), True
    rig.advance(timedelta(minutes=5))
    group.members.clear()
    answer = rig.provider.launch(asked)
    assert (answer.instances, answer.missing, group.asked) == ((), asked.nodes, {})
