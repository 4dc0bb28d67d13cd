"""Launches: errors that come late, names that failed, and what a repetition does."""

from __future__ import annotations

from datetime import timedelta

import pytest

from instance_catalog.dataclass import replace
from providers.contract import TAG_BATCH, TAG_CLUSTER, describe_all
from providers.errors import (
    AcceleratorQuotaError,
    AccountLimitError,
    AddressesExhaustedError,
    AmbiguousError,
    BackoffScope,
    BusyError,
    NotOfferedError,
    PermissionDeniedError,
    ProviderError,
    QuotaError,
    ReservationExhaustedError,
    ShortageError,
)
from providers.gcp.errors import GroupRefusedError
from tests.fakes.gce.errors import CUT_AFTER, CUT_BEFORE, ApiError, Fault, LateError, refused
from tests.fakes.gce.state import PROMPT
from tests.gcp import A2, A3, CLUSTER, ZONE, Rig, request


def names(rig: Rig) -> list[str]:
    """What the group of A3 keeps."""
    return sorted(rig.group(A3).members)


def test_machines_have_names_of_ours_and_the_ids_of_gke() -> None:
    rig = Rig()
    (machine,) = rig.provider.launch(request()).instances
    (name,) = names(rig)
    assert name.startswith(f"{rig.group(A3).base}-")
    assert machine.provider_id == f"gce://gpu-project/{ZONE}/{name}"
    assert machine.id == str(rig.fake.project.named(name, ZONE).id)  # type: ignore[union-attr]
    assert rig.fake.calls["createInstances"] == 1


@pytest.mark.parametrize(
    ("code", "message", "kind"),
    [
        ("ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS", "no more", ShortageError),
        (
            "QUOTA_EXCEEDED",
            "Quota 'NVIDIA_H100_GPUS' exceeded. Limit: 8.0 in region us-central1.",
            AcceleratorQuotaError,
        ),
        ("QUOTA_EXCEEDED", "Quota 'GPUS_ALL_REGIONS' exceeded. Limit: 8.0 globally.", AccountLimitError),
        ("QUOTA_EXCEEDED", "Exceeded limit 'GPUS-ALL-REGIONS-per-project' on metric", AccountLimitError),
        ("IP_SPACE_EXHAUSTED", "IP space is exhausted", AddressesExhaustedError),
        ("INVALID_USAGE", "Specified reservation r does not have available resources", ReservationExhaustedError),
        ("INVALID_USAGE", "Reservation r does not have sufficient capacity for it.", ReservationExhaustedError),
        ("X", "Machine type with name 'a3' does not exist in zone 'z'.", NotOfferedError),
    ],
)
@pytest.mark.parametrize("late", ["in the operation", "in the attempt"])
def test_what_is_lacking_is_told_however_late(code: str, message: str, kind: type[ProviderError], late: str) -> None:
    rig = Rig()
    if late == "in the operation":
        rig.fake.faults.inject("createInstances", Fault(LateError(code, message)))
    else:
        rig.fake.project.errors[rig.key(A3)] = (code, message)
    answer = rig.provider.launch(request())
    assert answer.instances == ()
    assert [type(failure.error) for failure in answer.failures] == [kind]
    assert answer.failures[0].error.code == code
    assert names(rig) == []


def test_a_quota_that_is_refused_at_once() -> None:
    rig = Rig()
    rig.fake.faults.inject("createInstances", refused("quotaExceeded", 403, "Quota 'CPUS' exceeded"))
    (failure,) = rig.provider.launch(request()).failures
    assert isinstance(failure.error, QuotaError)


@pytest.mark.parametrize("status", [408, 499])
def test_a_call_that_the_server_gave_up_may_have_launched(status: int) -> None:
    rig = Rig()
    rig.fake.faults.inject("createInstances", Fault(ApiError(status, "", "the request timed out"), effect=True))
    with pytest.raises(AmbiguousError):
        rig.provider.launch(request())
    assert len(rig.provider.launch(request()).instances) == 1
    assert rig.fake.calls["createInstances"] == 1


def test_a_conflict_with_another_call_is_waited_for() -> None:
    rig = Rig()
    rig.fake.faults.inject("createInstances", refused("conflict", 409))
    with pytest.raises(BusyError):
        rig.provider.launch(request())
    assert len(rig.provider.launch(request()).instances) == 1


def test_an_api_that_is_off_names_the_command() -> None:
    rig = Rig()
    text = "Compute Engine API has not been used in project 1 before or it is disabled."
    rig.fake.faults.inject("createInstances", refused("accessNotConfigured", 403, text))
    with pytest.raises(PermissionDeniedError) as raised:
        rig.provider.launch(request())
    assert "gcloud services enable compute.googleapis.com" in raised.value.next_step


def test_names_that_failed_are_deleted_before_the_launch_says_so() -> None:
    """The group would try again for ever, and a machine would come that nobody waits for."""
    rig = Rig()
    rig.fake.project.stock[rig.key(A3)] = 1
    answer = rig.provider.launch(request("a", "b", "c"))
    assert (len(answer.instances), len(answer.missing)) == (1, 2)
    assert len(names(rig)) == 1
    rig.fake.project.stock.clear()
    rig.advance(timedelta(minutes=30))
    assert len(rig.fake.project.machines) == 1


def test_names_without_a_url_are_deleted_by_name_and_never_together_with_others() -> None:
    """Google passes a URL of theirs over, and refuses a call that has both."""
    rig = Rig()
    rig.group(A3).queues_names = True
    rig.fake.project.stock[rig.key(A3)] = 1
    answer = rig.provider.launch(request("a", "b", "c", minimum=3))
    assert answer.instances == ()
    assert rig.fake.calls["deleteInstances"] == 2
    rig.settle()
    assert names(rig) == []
    rig.fake.project.stock.clear()
    rig.advance(timedelta(minutes=30))
    assert [one for one in rig.fake.project.machines.values() if rig.fake.project.status(one)] == []


def test_a_deletion_whose_answer_is_lost_leaves_the_launch_open() -> None:
    rig = Rig()
    rig.fake.project.stock[rig.key(A3)] = 0
    rig.fake.faults.inject("deleteInstances", CUT_BEFORE)
    with pytest.raises(AmbiguousError):
        rig.provider.launch(request("a", "b"))
    assert len(names(rig)) == 2
    rig.restart()
    assert [type(failure.error) for failure in rig.provider.launch(request("a", "b")).failures] == [ShortageError]
    assert names(rig) == []


def test_a_deletion_that_is_accepted_and_passes_a_name_over_leaves_the_launch_open() -> None:
    """As skipInstancesOnValidationError does."""
    rig = Rig()
    rig.fake.project.stock[rig.key(A3)] = 0
    rig.fake.faults.inject("deleteInstances", Fault(LateError("")))
    with pytest.raises(AmbiguousError, match="still has"):
        rig.provider.launch(request())
    assert isinstance(rig.provider.launch(request()).failures[0].error, ShortageError)


WRONG_GROUPS = {
    "an organization policy": ("CONDITION_NOT_MET", "constraint compute.vmExternalIpAccess violated", "take it out"),
    "a service account": ("RESOURCE_NOT_FOUND", "The resource 'serviceAccounts/x' was not found", "take it out"),
    "a subnet": (
        "PERMISSIONS_ERROR",
        "Required 'compute.subnetworks.use' permission",
        "@cloudservices.gserviceaccount",
    ),
}


@pytest.mark.parametrize(("code", "message", "step"), WRONG_GROUPS.values(), ids=WRONG_GROUPS)
@pytest.mark.parametrize("late", ["in the operation", "in the attempt"])
def test_a_group_that_google_can_create_no_machine_of_rests_alone(
    code: str, message: str, step: str, late: str
) -> None:
    """It is no shortage. Each group has an instance template of its own: another one may start what is needed."""
    rig = Rig()
    where = rig.fake.project.late if late == "in the operation" else rig.fake.project.errors
    where[rig.key(A3)] = (code, message)
    (failure,) = rig.provider.launch(request()).failures
    if (code, late) == ("PERMISSIONS_ERROR", "in the operation"):  # a permission of the controller's
        assert type(failure.error) is PermissionDeniedError
        return
    assert isinstance(failure.error, GroupRefusedError)
    assert (failure.error.scope, failure.error.code) == (BackoffScope.OFFERING, code)
    assert step in failure.error.next_step
    assert names(rig) == []
    (machine,) = rig.provider.launch(request(batch="b2", offerings=(A3, A2))).instances
    assert machine.offering == A2


def test_a_group_that_refuses_the_call_rests_alone() -> None:
    rig = Rig()
    rig.fake.faults.inject("createInstances", refused("conditionNotMet", 412, "Constraint constraints/x violated"))
    with pytest.raises(GroupRefusedError, match="constraints/x") as raised:
        rig.provider.launch(request())
    assert (raised.value.scope, raised.value.settled) == (BackoffScope.OFFERING, False)


def test_a_machine_that_is_deleted_because_its_creation_failed_has_not_started() -> None:
    """The group lists it for a while, with an id. Taken for started, the shortage would never be known."""
    rig = Rig()
    rig.group(A3).undoes = True
    rig.fake.project.stock[rig.key(A3)] = 0
    answer = rig.provider.launch(request())
    assert [type(one.error) for one in answer.failures] == [ShortageError]
    assert (answer.instances, names(rig)) == ((), [])


def test_an_error_that_passes_is_waited_out() -> None:
    """The group tries again by itself; whether it succeeds is known later."""
    rig = Rig()
    rig.fake.project.errors[rig.key(A3)] = ("RESOURCE_OPERATION_RATE_EXCEEDED", "too fast")
    with pytest.raises(AmbiguousError, match="has not started 1 of 1"):
        rig.provider.launch(request())
    rig.fake.project.errors.clear()
    rig.advance(timedelta(minutes=1))
    assert len(rig.provider.launch(request()).instances) == 1
    assert rig.fake.calls["createInstances"] == 1


def test_an_error_that_only_the_groups_history_has_is_found() -> None:
    """A group tries for ever, and a member that is being tried shows no error."""
    rig = Rig()
    project = rig.fake.project
    project.forgets = True
    rig.group(A3).history.append((rig.clock.now(), "gke-c1-other", ("QUOTA_EXCEEDED", "of another name")))
    project.stock[rig.key(A3)] = 0
    answer = rig.provider.launch(request(offerings=(A3, A2)))
    assert [one.offering for one in answer.instances] == [A2]
    (failure,) = answer.failures
    assert isinstance(failure.error, ShortageError)
    assert names(rig) == []


@pytest.mark.parametrize(
    ("ago", "action"),
    [(timedelta(minutes=30), "CREATING"), (None, "CREATING"), (timedelta(minutes=1), "DELETING")],
    ids=["an old one", "one without a moment", "one of a deletion"],
)
def test_an_error_that_is_not_of_this_launch_says_nothing_about_it(ago: timedelta | None, action: str) -> None:
    """A name may be asked for again, and the group's history has what became of it before."""
    rig = Rig()
    rig.fake.project.errors[rig.key(A3)] = ("RESOURCE_OPERATION_RATE_EXCEEDED", "too many at once")
    with pytest.raises(AmbiguousError):
        rig.provider.launch(request())
    (name,) = names(rig)
    group = rig.group(A3)
    group.history = [(rig.clock.now() - ago if ago else None, name, ("ZONE_RESOURCE_POOL_EXHAUSTED", "none left"))]
    group.history_of = action
    with pytest.raises(AmbiguousError):
        rig.provider.launch(request())
    assert names(rig) == [name]


def test_a_machine_without_a_host_is_not_launched_yet() -> None:
    """Its creation may still fail."""
    rig = Rig(replace(PROMPT, provisioning=timedelta(minutes=2)))
    with pytest.raises(AmbiguousError, match="has not started 1 of 1"):
        rig.provider.launch(request())
    rig.advance(timedelta(minutes=2))
    assert len(rig.provider.launch(request()).instances) == 1


def test_a_repetition_of_a_partial_launch_asks_for_nothing() -> None:
    rig = Rig()
    rig.fake.project.stock[rig.key(A3)] = 1
    first = rig.provider.launch(request("a", "b"))
    rig.fake.project.stock.clear()
    rig.restart()
    again = rig.provider.launch(request("a", "b"))
    assert [one.id for one in again.instances] == [one.id for one in first.instances]
    assert [one.node for one in again.instances] == [one.node for one in first.instances]
    assert again.missing == first.missing
    assert rig.fake.calls["createInstances"] == 1


def test_a_repetition_goes_on_where_the_launch_began() -> None:
    """The first offering can be had by now; the machines are of the second all the same."""
    rig = Rig()
    rig.fake.project.stock[rig.key(A3)] = 0
    asked = request("a", offerings=(A3, A2))
    assert [one.offering for one in rig.provider.launch(asked).instances] == [A2]
    rig.fake.project.stock.clear()
    rig.restart()
    assert [one.offering for one in rig.provider.launch(asked).instances] == [A2]
    assert len(rig.fake.project.machines) == 1


def test_an_equal_request_id_is_ignored_so_each_call_has_its_own() -> None:
    """Google answers with the first operation, and starts nothing: a token that yielded nothing is asked for again."""
    rig = Rig()
    rig.fake.project.stock[rig.key(A3)] = 0
    rig.provider.launch(request())
    rig.fake.project.stock.clear()
    assert len(rig.provider.launch(request()).instances) == 1
    assert len(rig.fake.project.requests) == rig.fake.calls["createInstances"] + rig.fake.calls["deleteInstances"]


def test_a_lost_answer_is_found_before_any_machine_exists() -> None:
    rig = Rig()
    rig.fake.faults.inject("createInstances", CUT_AFTER)
    with pytest.raises(AmbiguousError):
        rig.provider.launch(request("a", "b"))
    rig.restart()
    assert len(rig.provider.launch(request("a", "b")).instances) == 2
    assert rig.fake.calls["createInstances"] == 1


def test_a_launch_that_is_given_up_is_found_by_its_batch() -> None:
    rig = Rig()
    rig.provider.launch(request("a", "b"))
    rig.settle()
    found = describe_all(rig.provider, {TAG_CLUSTER: CLUSTER, TAG_BATCH: "b1"})
    assert len(list(found)) == 2
    assert list(describe_all(rig.provider, {TAG_CLUSTER: CLUSTER, TAG_BATCH: "b2"})) == []


@pytest.mark.parametrize("queues_names", [False, True])
def test_names_that_are_given_up_in_several_calls_all_go(monkeypatch: pytest.MonkeyPatch, queues_names: bool) -> None:
    """Google ignores a second call with the request id of the first one."""
    monkeypatch.setattr("providers.gcp.in_group.attempt.CHUNK", 2)
    rig = Rig(replace(PROMPT, operation=timedelta(0)))  # so all of them come in one moment
    rig.group(A3).queues_names = queues_names
    rig.fake.project.stock[rig.key(A3)] = 0
    answer = rig.provider.launch(request(*(f"n{number}" for number in range(5))))
    assert [type(one.error) for one in answer.failures] == [ShortageError]
    assert rig.fake.calls["deleteInstances"] == 3
    assert rig.group(A3).members == {}
