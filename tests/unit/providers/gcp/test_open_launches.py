"""Once a launch may have been accepted, an error of a later call does not say that it had no effect."""

from __future__ import annotations

from datetime import timedelta

import pytest

from instance_catalog.dataclass import replace
from providers.errors import AmbiguousError, RefusedError, TemplateError
from providers.gcp.node_template.template import GroupRef
from tests.fakes.gce.errors import CUT_AFTER, CUT_BEFORE, THROTTLED, ApiError, Fault, refused
from tests.fakes.gce.state import PROMPT, Operation
from tests.gcp import A2, A3, ZONE, Rig, request

FAULTS = {
    "a code nobody knows": refused("teapot"),
    "no permission": refused("forbidden", 403),
    "not found": refused("notFound", 404),
    "a quota": refused("quotaExceeded", 403),
    "throttled": THROTTLED,
    "cut": CUT_BEFORE,
    "a fault inside": Fault(ApiError(500, "internalError")),
}
NONE_LEFT = ("ZONE_RESOURCE_POOL_EXHAUSTED", "no more")
faults = pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)


def kept(rig: Rig) -> int:
    """Names that the groups have in the end, each of which is a machine or becomes one."""
    rig.settle()
    return sum(len(group.members) for group in rig.fake.project.groups.values())


def fails_after_the_operation(rig: Rig, patch: pytest.MonkeyPatch, fault: Fault) -> None:
    """Let the group be listed before the launch, and not once after the operation was read."""
    ending = rig.fake.faults.next

    def following(method: str) -> Fault | None:
        if method == "zoneOperations.get":
            patch.setattr(rig.fake.faults, "next", ending)
            rig.fake.faults.inject("listManagedInstances", fault)
        return ending(method)

    patch.setattr(rig.fake.faults, "next", following)


@faults
def test_an_operation_that_cannot_be_read_leaves_the_launch_open(fault: Fault) -> None:
    rig = Rig()
    asked = request("a", "b", offerings=(A3, A2))
    rig.fake.faults.inject("zoneOperations.get", fault)
    with pytest.raises(AmbiguousError):
        rig.provider.launch(asked)
    rig.restart()
    assert [one.offering for one in rig.provider.launch(asked).instances] == [A3, A3]
    assert (rig.fake.calls["createInstances"], kept(rig)) == (1, 2)


@faults
def test_a_group_that_cannot_be_listed_leaves_the_launch_open(fault: Fault, monkeypatch: pytest.MonkeyPatch) -> None:
    rig = Rig()
    asked = request("a", "b", offerings=(A3, A2))
    fails_after_the_operation(rig, monkeypatch, fault)
    with pytest.raises(AmbiguousError):
        rig.provider.launch(asked)
    assert [one.offering for one in rig.provider.launch(asked).instances] == [A3, A3]
    assert (rig.fake.calls["createInstances"], kept(rig)) == (1, 2)


@faults
@pytest.mark.parametrize("call", ["deleteInstances", "zoneOperations.get"])
def test_names_that_cannot_be_deleted_leave_the_launch_open(call: str, fault: Fault) -> None:
    """The group would make machines of them after the next offering was bought."""
    rig = Rig()
    rig.fake.project.errors[rig.key(A3)] = NONE_LEFT
    rig.fake.faults.inject("createInstances", CUT_AFTER)
    asked = request("a", "b", offerings=(A3, A2))
    with pytest.raises(AmbiguousError):
        rig.provider.launch(asked)
    rig.fake.faults.inject(call, fault)
    with pytest.raises(AmbiguousError):
        rig.provider.launch(asked)
    assert rig.fake.calls["createInstances"] == 1


@pytest.mark.parametrize("code", ["teapot", "QUOTA_EXCEEDED", "CONDITION_NOT_MET", "INTERNAL_ERROR"])
def test_names_that_a_failed_operation_has_accepted_are_the_launch(code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the group has decides, not what the operation says."""
    rig = Rig()
    begin = rig.fake.project.begin

    def failing(kind: str, zone: str, target: str, error: tuple[str, str, int] | None = None) -> Operation:
        return begin(kind, zone, target, (code, "failed in part", 400) if "createInstances" in kind else error)

    monkeypatch.setattr(rig.fake.project, "begin", failing)
    answer = rig.provider.launch(request("a", "b", offerings=(A3, A2)))
    assert [one.offering for one in answer.instances] == [A3, A3]
    assert kept(rig) == 2


def test_a_refusal_settles_the_launch_once_its_names_are_deleted() -> None:
    """Also when it is the answer to a repetition."""
    rig = Rig()
    rig.fake.project.errors[rig.key(A3)] = ("CONDITION_NOT_MET", "constraint compute.vmExternalIpAccess violated")
    rig.fake.faults.inject("createInstances", CUT_AFTER)
    with pytest.raises(AmbiguousError):
        rig.provider.launch(request())
    (failure,) = rig.provider.launch(request()).failures
    assert "vmExternalIpAccess" in failure.error.message
    assert kept(rig) == 0


@pytest.mark.parametrize("call", ["listManagedInstances", "createInstances"])
def test_a_refusal_of_the_call_itself_says_nothing_about_earlier_ones(call: str) -> None:
    rig = Rig()
    rig.fake.faults.inject(call, refused("teapot"))
    with pytest.raises(RefusedError) as raised:
        rig.provider.launch(request())
    assert not raised.value.settled
    assert kept(rig) == 0


def test_a_group_that_is_not_found_says_nothing_about_earlier_calls() -> None:
    """A GoneError would let the next offering be bought."""
    rig = Rig()
    rig.fake.faults.inject("createInstances", CUT_AFTER)
    with pytest.raises(AmbiguousError):
        rig.provider.launch(request())
    rig.fake.faults.inject("listManagedInstances", refused("notFound", 404))
    with pytest.raises(TemplateError, match="no instance group") as raised:
        rig.provider.launch(request())
    assert not raised.value.settled


def test_a_group_that_starts_another_type_by_now_has_the_names_of_the_launch_all_the_same() -> None:
    """As "not offered" the answer would say that nothing was launched."""
    rig = Rig()
    asked = request("a", "b", offerings=(A3,))
    rig.fake.faults.inject("createInstances", CUT_AFTER)
    with pytest.raises(AmbiguousError):
        rig.provider.launch(asked)
    rig.group(A3).machine_type = "a3-megagpu-8g"
    rig.restart()
    answer = rig.provider.launch(asked)
    assert [one.node for one in answer.instances] == ["a", "b"]
    assert (rig.fake.calls["createInstances"], kept(rig)) == (1, 2)


@pytest.mark.parametrize("errors", [pytest.param((), id="machines"), pytest.param(NONE_LEFT, id="names alone")])
@pytest.mark.parametrize("left", [pytest.param(False, id="another group serves"), pytest.param(True, id="none does")])
def test_a_launch_in_a_group_that_left_the_template_is_found(errors: tuple[str, ...], left: bool) -> None:
    """The repetition would ask for the same machines in another group."""
    rig = Rig()
    asked = request("a", "b", offerings=(A3,))
    first = rig.group(A3)
    if errors:
        rig.fake.project.errors[rig.key(A3)] = errors
    rig.fake.faults.inject("createInstances", CUT_AFTER)
    with pytest.raises(AmbiguousError):
        rig.provider.launch(asked)
    rig.advance(timedelta(seconds=2))
    rig.templates.found = replace(rig.templates.found, node_pools=())
    if not left:
        other = rig.fake.project.add(replace(first, name="other-grp", base="gke-c1-other", members={}, history=[]))
        groups = (*rig.templates.found.groups, GroupRef(ZONE, other.name))
        rig.templates.found = replace(rig.templates.found, groups=groups)
    rig.restart()
    answer = rig.provider.launch(asked)
    assert rig.fake.calls["createInstances"] == 1
    assert [one.node for one in answer.instances] == ([] if errors else ["a", "b"])
    assert kept(rig) == (0 if errors else 2)


@pytest.mark.parametrize("errors", [pytest.param((), id="machines"), pytest.param(NONE_LEFT, id="names alone")])
def test_a_launch_in_a_group_that_got_another_base_name_is_found(errors: tuple[str, ...]) -> None:
    """Names of the new base are free, and the machines would come twice."""
    rig = Rig()
    asked = request("a", "b", offerings=(A2,))
    group = rig.group(A2)
    if errors:
        rig.fake.project.errors[rig.key(A2)] = errors
    rig.fake.faults.inject("createInstances", CUT_AFTER)
    with pytest.raises(AmbiguousError):
        rig.provider.launch(asked)
    rig.advance(timedelta(seconds=2))
    group.base = "own-a2-v2"
    rig.restart()
    answer = rig.provider.launch(asked)
    assert rig.fake.calls["createInstances"] == 1
    assert [one.node for one in answer.instances] == ([] if errors else ["a", "b"])
    assert kept(rig) == (0 if errors else 2)


def test_a_group_that_goes_away_while_it_is_looked_at_leaves_the_launch_open() -> None:
    rig = Rig()
    asked = request()
    rig.fake.project.errors[rig.key(A3)] = NONE_LEFT
    rig.fake.faults.inject("createInstances", CUT_AFTER)
    with pytest.raises(AmbiguousError):
        rig.provider.launch(asked)
    rig.templates.found = replace(rig.templates.found, node_pools=(), groups=())
    rig.restart()
    rig.fake.faults.inject("listManagedInstances", refused("notFound", 404))
    with pytest.raises(AmbiguousError, match="was deleted"):
        rig.provider.launch(asked)


def test_names_that_a_group_tries_only_once_are_found_in_a_group_that_left_the_template() -> None:
    rig = Rig()
    asked = request("a", "b", offerings=(A3,))
    rig.fake.project.errors[rig.key(A3)] = NONE_LEFT
    rig.fake.faults.inject("createInstances", CUT_AFTER)
    with pytest.raises(AmbiguousError):
        rig.provider.launch(asked)
    rig.advance(timedelta(seconds=2))
    for member in rig.group(A3).members.values():
        member.action = "CREATING_WITHOUT_RETRIES"
    rig.templates.found = replace(rig.templates.found, node_pools=())
    rig.restart()
    assert rig.provider.launch(asked).instances == ()
    assert kept(rig) == 0


def test_a_machine_that_its_group_verifies_is_found_before_lists_show_it() -> None:
    rig = Rig(replace(PROMPT, visibility=timedelta(minutes=3)))
    asked = request(offerings=(A3,))
    rig.fake.faults.inject("createInstances", CUT_AFTER)
    with pytest.raises(AmbiguousError):
        rig.provider.launch(asked)
    rig.advance(timedelta(minutes=1))
    for member in rig.group(A3).members.values():
        member.action = "VERIFYING"
    rig.templates.found = replace(rig.templates.found, node_pools=())
    rig.restart()
    assert len(rig.provider.launch(asked).instances) == 1
