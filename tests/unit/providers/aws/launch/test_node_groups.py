"""Groups: which one serves an offering, whose turn it is to resize it, and when a managed one loses its machines."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest

from autoscaler.execution.launch import Providers, launch
from instance_catalog.dataclass import replace
from instance_catalog.types.instance_type import CapacityType
from providers.aws.node_groups.groups import Groups
from providers.aws.node_groups.provider import AwsNodeGroups
from providers.aws.node_template.template import GroupTemplate
from providers.aws.provider import Account, AwsProvider
from providers.contract import TAG_CLUSTER, LaunchForm, LaunchRequest, OfferingKey, TemplateRef
from providers.errors import (
    AmbiguousError,
    BusyError,
    NotInGroupsError,
    PermissionDeniedError,
    RefusedError,
    ShortageError,
    TemplateError,
)
from tests.aws import CLUSTER, P4, P5, Rig, catalog, in_reservation, request
from tests.desk import A, new_desk, planned
from tests.fakes.ec2 import CUT_BEFORE, TIMEOUT_AFTER, Behaviour, Fault, refused


class One:
    """A group template, as a test writes it."""

    def __init__(self, template: GroupTemplate) -> None:
        self._template = template

    def template(self, reference: TemplateRef) -> GroupTemplate:
        return self._template

    def references(self) -> tuple[TemplateRef, ...]:
        return (TemplateRef("AWSGroupNodeTemplate", self._template.name, 1),)


def group(rig: Rig, name: str, launch: dict[str, Any] | None = None, **details: Any) -> Any:
    """A group of p5.48xlarge in us-east-1a."""
    geography = rig.fake.account.geography
    image = next(image.id for image in geography.images.values() if image.architecture == "x86_64")
    data = {"ImageId": image, "InstanceType": P5.instance_type, **(launch or {})}
    rig.aws.ec2.create_launch_template(LaunchTemplateName=name, LaunchTemplateData=data)
    subnets = [subnet.id for subnet in geography.subnets.values() if subnet.zone == P5.zone]
    return rig.fake.groups.add(name, {"LaunchTemplateName": name, "Version": "1"}, subnets, **details)


def provider(rig: Rig, **template: Any) -> AwsNodeGroups:
    account = Account(rig.aws, rig.clock, catalog(), CLUSTER)
    return AwsNodeGroups(account, One(GroupTemplate("groups", **template)))


def asked(*nodes: str, batch: str = "b1", offering: OfferingKey = P5) -> LaunchRequest:
    return replace(
        request(*nodes, batch=batch, offerings=(offering,)), template=TemplateRef("AWSGroupNodeTemplate", "g")
    )


def test_a_managed_group_loses_the_machines_of_its_block_forty_minutes_before_the_end() -> None:
    rig = Rig()
    block = rig.fake.account.block(P5.instance_type, P5.zone, 2, starts_in=timedelta(0), lasts=timedelta(days=1))
    target = {"CapacityReservationTarget": {"CapacityReservationId": block.id}}
    launch = {"InstanceMarketOptions": {"MarketType": "capacity-block"}, "CapacityReservationSpecification": target}
    group(rig, "managed", launch, cluster="test", node_group="blocks", capacity_type="CAPACITY_BLOCK")
    groups = provider(rig, cluster="test", node_groups=("blocks",))
    (found,) = groups.reservations()
    assert found.form is LaunchForm.MANAGED_GROUP
    assert found.ends_at is not None
    assert found.reclaim_at == found.ends_at - timedelta(minutes=40)
    # Launched into directly it would last ten minutes longer, so only the group's provider lists it.
    assert len(rig.provider.reservations()) == 1
    account = Account(rig.aws, rig.clock, catalog(), CLUSTER)
    assert AwsProvider(account, rig.templates, held=groups.held).reservations() == ()
    assert len(groups.launch(asked("a", "b", offering=found.offering)).instances) == 2


@pytest.mark.parametrize(
    "offering",
    [
        pytest.param(P4, id="another type"),
        pytest.param(replace(P5, zone="us-east-1b"), id="another zone"),
        pytest.param(replace(P5, capacity_type=CapacityType.SPOT), id="another capacity type"),
    ],
)
def test_what_no_group_starts_is_not_offered(offering: OfferingKey) -> None:
    rig = Rig()
    group(rig, "plain")
    answer = provider(rig, groups=("plain",)).launch(asked("a", offering=offering))
    (failure,) = answer.failures
    assert isinstance(failure.error, NotInGroupsError)
    assert "plain (p5.48xlarge in us-east-1a)" in failure.error.message


def test_a_group_that_does_not_exist_is_the_templates_fault() -> None:
    with pytest.raises(TemplateError, match="no group 'none'") as caught:
        provider(Rig(), groups=("none",)).launch(asked("a"))
    assert caught.value.settled


def test_one_launch_at_a_time_resizes_a_group() -> None:
    rig = Rig()
    plain = group(rig, "plain")
    groups = provider(rig, groups=("plain",), by_instances=False)
    rig.fake.faults.inject("SetDesiredCapacity", CUT_BEFORE)
    with pytest.raises(AmbiguousError):
        groups.launch(asked("a"))
    with pytest.raises(BusyError, match="another launch"):
        groups.launch(asked("b", batch="b2"))
    assert len(groups.launch(asked("a")).instances) == 1
    assert len(groups.launch(asked("b", batch="b2")).instances) == 1
    assert plain.desired == 2


@pytest.mark.parametrize("first", [0, 1], ids=["that of the group first", "the other first"])
def test_two_batches_of_one_group_both_get_their_machines(first: int) -> None:
    desk = new_desk()
    rig = Rig(clock=desk.clock)
    plain = group(rig, "plain")
    groups = provider(rig, groups=("plain",), by_instances=False)
    providers = Providers({"SimulatedNodeTemplate": groups}, cluster=CLUSTER)
    rig.fake.faults.inject("SetDesiredCapacity", CUT_BEFORE)
    desk.record(planned("n1", A))
    with pytest.raises(AmbiguousError):
        launch(*desk.batches(), providers=providers, journal=desk.journal, backoffs=desk.backoffs, now=desk.now)
    desk.clock.advance(timedelta(minutes=1))
    desk.record(planned("n2", A))
    for _ in range(4):
        batches = sorted(desk.batches(), key=lambda batch: (batch.nodes == ("n1",)) == bool(first))
        for batch in batches:
            with suppress(AmbiguousError, BusyError):
                launch(batch, providers=providers, journal=desk.journal, backoffs=desk.backoffs, now=desk.now)
        desk.clock.advance(timedelta(minutes=1))
    assert [batch.outcome for batch in desk.batches()] == ["Launched", "Launched"]
    assert plain.desired == len(rig.fake.account.alive()) == 2


def test_a_group_that_grows_for_a_launch_loses_no_member_meanwhile() -> None:
    rig = Rig(Behaviour(visibility=timedelta(seconds=30)))
    plain = group(rig, "plain")
    groups = provider(rig, groups=("plain",), by_instances=False)
    with pytest.raises(AmbiguousError):
        groups.launch(asked("a"))
    rig.clock.advance(timedelta(minutes=1))
    (old,) = groups.launch(asked("a")).instances
    with pytest.raises(AmbiguousError):
        groups.launch(asked("b", batch="b2"))
    (error,) = groups.terminate((old.id,)).failures.values()
    assert isinstance(error, BusyError)
    rig.clock.advance(timedelta(minutes=1))
    (new,) = groups.launch(asked("b", batch="b2")).instances
    assert groups.terminate((old.id,)).terminating == (old.id,)
    assert plain.desired == 1
    assert [machine.id for machine in rig.fake.account.alive()] == [new.id]


def lost_to_a_boot(rig: Rig, *, by_instances: bool) -> None:
    """Machines were asked for, and neither the answer nor the machine has been seen yet."""
    group(rig, "plain")
    rig.fake.faults.inject("LaunchInstances" if by_instances else "SetDesiredCapacity", TIMEOUT_AFTER)
    with pytest.raises(AmbiguousError):
        provider(rig, groups=("plain",), by_instances=by_instances).launch(asked("a"))
    group(rig, "another")


@pytest.mark.parametrize("then", [True, False], ids=["now by LaunchInstances", "now by size"])
@pytest.mark.parametrize("began", [True, False], ids=["begun by LaunchInstances", "begun by size"])
@pytest.mark.parametrize(
    "names",
    [
        pytest.param(("another", "plain"), id="another one serves it first"),
        pytest.param(("another",), id="another one alone serves it"),
        pytest.param(("gone",), id="the only one left does not exist"),
        pytest.param((), id="none is left"),
    ],
)
def test_a_launch_goes_on_where_it_began_whatever_the_template_says_by_now(
    names: tuple[str, ...], began: bool, then: bool
) -> None:
    rig = Rig()
    lost_to_a_boot(rig, by_instances=began)
    groups = provider(rig, groups=names, by_instances=then)
    answer = groups.launch(asked("a"))
    (machine,) = rig.fake.account.alive()
    assert [one.id for one in answer.instances] == [machine.id]
    # What has ended is not begun again elsewhere either: a process may die before it writes the answer down.
    assert [one.id for one in groups.launch(asked("a")).instances] == [machine.id]
    assert len(rig.fake.account.machines) == 1
    assert machine.group == "plain"
    assert machine.tags["foreslice.dev/cluster"] == CLUSTER


def test_a_group_that_does_not_exist_hides_no_other() -> None:
    rig = Rig()
    block = rig.fake.account.block(P5.instance_type, P5.zone, 1, starts_in=timedelta(0), lasts=timedelta(days=1))
    target = {"CapacityReservationTarget": {"CapacityReservationId": block.id}}
    launch = {"InstanceMarketOptions": {"MarketType": "capacity-block"}, "CapacityReservationSpecification": target}
    group(rig, "blocks", launch)
    provider(rig, groups=("blocks",)).launch(asked("a", offering=replace(P5, **block_of(block.id))))
    groups = provider(rig, groups=("blocks", "gone"), cluster="test", node_groups=("gone, too",))
    (machine,) = groups.describe({"foreslice.dev/cluster": CLUSTER}).instances
    assert machine.reclaim_at is not None
    assert [found.id for found in groups.reservations()] == [block.id]
    assert groups.held() == {block.id}
    account = Account(rig.aws, rig.clock, catalog(), CLUSTER)
    assert AwsProvider(account, rig.templates, held=groups.held).reservations() == ()
    (verdict,) = groups.template_statuses()
    assert "gone" in verdict.faults[0].message


def test_a_group_in_an_on_demand_reservation_serves_the_capacity_block_that_names_it() -> None:
    rig = Rig()
    reservation = in_reservation(rig).reservation
    target = {"CapacityReservationTarget": {"CapacityReservationId": reservation}}
    group(rig, "reserved", {"CapacityReservationSpecification": target})
    groups = provider(rig, groups=("reserved",))
    assert len(groups.launch(asked("a", offering=replace(P5, **block_of(reservation)))).instances) == 1
    answer = groups.launch(asked("b", batch="b2", offering=replace(P5, **block_of("cr-another"))))
    assert [type(failure.error) for failure in answer.failures] == [NotInGroupsError]
    assert len(rig.fake.account.machines) == 1


def block_of(reservation: str) -> dict[str, str]:
    return {"capacity_type": "capacity-block", "reservation": reservation}


@pytest.mark.parametrize(("by_instances", "call"), [(False, "SetDesiredCapacity"), (True, "LaunchInstances")])
def test_a_refused_launch_leaves_the_group_to_the_next_one(by_instances: bool, call: str) -> None:
    rig = Rig()
    group(rig, "plain")
    groups = provider(rig, groups=("plain",), by_instances=by_instances)
    rig.fake.faults.inject(call, refused("ValidationError"))
    with pytest.raises(RefusedError):
        groups.launch(asked("a"))
    assert len(groups.launch(asked("b", batch="b2")).instances) == 1


def test_a_launch_whose_machines_are_tagged_holds_up_no_other() -> None:
    """Its list of machines may have told what came of it, so that nobody repeats the call."""
    rig = Rig()
    group(rig, "plain")
    groups = provider(rig, groups=("plain",))
    rig.fake.faults.inject("CreateOrUpdateTags", None, refused("Teapot"))
    with pytest.raises(AmbiguousError):
        groups.launch(asked("a"))
    assert len(groups.launch(asked("b", batch="b2")).instances) == 1
    assert len(groups.launch(asked("a")).instances) == 1
    assert len(rig.fake.account.machines) == 2


@pytest.mark.parametrize("short", [0, 1], ids=["had", "short"])
def test_a_group_serves_the_next_launch_once_the_one_before_is_known(short: int) -> None:
    rig = Rig()
    group(rig, "plain")
    groups = provider(rig, groups=("plain",))
    rig.fake.account.stock.limit(P5.instance_type, P5.zone, 2 - short)
    rig.fake.faults.inject("LaunchInstances", TIMEOUT_AFTER, refused("Teapot"))
    for error in (AmbiguousError, RefusedError):
        with pytest.raises(error):
            groups.launch(asked("a", "b"))
        with pytest.raises(BusyError, match="another launch"):
            groups.launch(asked("c", batch="b2"))
    assert len(groups.launch(asked("a", "b")).instances) == 2 - short
    rig.fake.account.stock.limit(P5.instance_type, P5.zone, 3)
    assert len(groups.launch(asked("c", batch="b2")).instances) == 1
    assert len(rig.fake.account.alive()) == 3 - short


@pytest.mark.parametrize(
    ("by_instances", "call", "skipped"),
    [
        pytest.param(True, "CreateTags", 0, id="tags of LaunchInstances"),
        pytest.param(True, "DescribeInstances", 1, id="zones of LaunchInstances"),
        pytest.param(False, "CreateTags", 0, id="tags of members"),
        pytest.param(False, "DescribeAutoScalingGroups", 2, id="members"),
        pytest.param(False, "CreateOrUpdateTags", 1, id="the end of the resizing"),
    ],
)
@pytest.mark.parametrize("code", ["Teapot", "RequestExpired"])
def test_what_is_refused_after_a_machine_was_launched_is_repeated(
    by_instances: bool, call: str, skipped: int, code: str
) -> None:
    rig = Rig()
    group(rig, "plain")
    groups = provider(rig, groups=("plain",), by_instances=by_instances)
    rig.fake.faults.inject(call, *[None] * skipped, refused(code))
    with pytest.raises(AmbiguousError, match=code):
        groups.launch(asked("a"))
    (found,) = groups.launch(asked("a")).instances
    assert [(machine.id, machine.tags[TAG_CLUSTER]) for machine in rig.fake.account.alive()] == [(found.id, CLUSTER)]
    assert groups.terminate((found.id,)).terminating == (found.id,)


@pytest.mark.parametrize("call", ["SetDesiredCapacity", "CreateOrUpdateTags", "DescribeScalingActivities"])
def test_what_is_refused_before_the_size_changes_settles_the_launch(call: str) -> None:
    rig = Rig()
    plain = group(rig, "plain")
    rig.fake.faults.inject(call, refused("Teapot"))
    with pytest.raises(RefusedError) as caught:
        provider(rig, groups=("plain",), by_instances=False).launch(asked("a"))
    assert (caught.value.settled, plain.desired) == (True, 0)


def test_a_group_that_is_deleted_during_a_launch_is_named() -> None:
    rig = Rig()
    group(rig, "plain")
    groups = Groups(rig.aws, rig.clock)
    (seen,) = groups.of(GroupTemplate("groups", groups=("plain",)))
    rig.fake.groups.by_name.clear()
    with pytest.raises(TemplateError, match="plain was deleted"):
        groups.named(seen)


def test_a_shortage_is_read_from_the_activities_and_the_size_comes_down() -> None:
    rig = Rig()
    plain = group(rig, "plain")
    rig.fake.account.stock.limit(P5.instance_type, P5.zone, 0)
    groups = provider(rig, groups=("plain",), by_instances=False)
    answer = groups.launch(asked("a", "b"))
    assert [type(failure.error) for failure in answer.failures] == [ShortageError]
    assert answer.missing == ("a", "b")
    assert plain.desired == 0


def test_a_group_at_its_largest_is_told() -> None:
    rig = Rig()
    group(rig, "plain", maximum=1)
    with pytest.raises(TemplateError, match="cannot have 2 machines") as caught:
        provider(rig, groups=("plain",), by_instances=False).launch(asked("a", "b"))
    assert "raise the maximum size of plain" in caught.value.next_step


def test_a_group_at_its_smallest_keeps_its_machines() -> None:
    rig = Rig()
    plain = group(rig, "plain")
    groups = provider(rig, groups=("plain",))
    (machine,) = groups.launch(asked("a")).instances
    plain.minimum = 1
    (error,) = groups.terminate((machine.id,)).failures.values()
    assert isinstance(error, TemplateError)
    assert error.next_step == "lower the minimum size of its group"


@pytest.mark.parametrize(
    "trouble",
    [
        pytest.param(None, id="that EC2 does not show yet"),
        pytest.param(CUT_BEFORE, id="that cannot be ended at first"),
        pytest.param(refused("ScalingActivityInProgress"), id="of a group that is busy"),
        pytest.param(refused("ValidationError"), id="that its group refuses to end"),
    ],
)
def test_machines_below_the_minimum_are_ended(trouble: Fault | None) -> None:
    rig = Rig(Behaviour(visibility=timedelta(seconds=30)))
    plain = group(rig, "plain")
    rig.fake.account.stock.limit(P5.instance_type, P5.zone, 1)
    groups, gang = provider(rig, groups=("plain",)), replace(asked("a", "b"), minimum=2)
    if trouble is not None:
        rig.fake.faults.inject("TerminateInstanceInAutoScalingGroup", trouble)
        with pytest.raises((AmbiguousError, BusyError)):
            groups.launch(gang)
    answer = groups.launch(gang)
    assert (answer.instances, answer.missing) == ((), ("a", "b"))
    assert rig.fake.account.alive() == []
    assert plain.desired == 0


def test_members_are_not_listed_by_the_provider_of_single_machines() -> None:
    rig = Rig()
    group(rig, "plain")
    groups = provider(rig, groups=("plain",))
    groups.launch(asked("a"))
    rig.provider.launch(request("b", batch="b2"))
    tags = {"foreslice.dev/cluster": CLUSTER}
    assert len(groups.describe(tags).instances) == len(rig.provider.describe(tags).instances) == 1


def test_members_that_no_launch_asked_for_are_neither_listed_nor_ended() -> None:
    """The console ticks "tag new instances" by default, so the cluster's tag says nothing about who asked."""
    rig = Rig()
    members = group(rig, "people", maximum=4)
    groups = provider(rig, groups=("people",))
    (ours,) = groups.launch(asked("a")).instances
    rig.aws.autoscaling.set_desired_capacity(AutoScalingGroupName="people", DesiredCapacity=members.desired + 1)
    rig.clock.advance(timedelta(minutes=1))
    (person,) = (machine for machine in rig.fake.account.alive() if machine.id != ours.id)
    propagated = [{"Key": TAG_CLUSTER, "Value": CLUSTER}]
    rig.aws.ec2.create_tags(Resources=[person.id], Tags=propagated)
    assert [one.id for one in groups.describe({TAG_CLUSTER: CLUSTER}).instances] == [ours.id]
    assert isinstance(groups.terminate((person.id,)).failures[person.id], PermissionDeniedError)
    assert person in rig.fake.account.alive()
