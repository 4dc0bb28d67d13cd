"""What the AWS adapters never do: end or adopt machines of others, take a number of EC2 for more than it is."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from instance_catalog.kubernetes import labels
from providers.aws.capacity import Reservations
from providers.aws.describe import GROUP_TAG, instance_of
from providers.aws.node_groups.provider import AwsNodeGroups
from providers.aws.node_template.template import GroupTemplate
from providers.aws.provider import Account
from providers.contract import TAG_CLUSTER, InstanceState
from providers.errors import PermissionDeniedError, TokenReusedError
from tests.aws import CLUSTER, Rig, WrittenGroups, catalog, in_reservation, request, running
from tests.fakes.ec2 import refused


def groups_of(rig: Rig) -> AwsNodeGroups:
    return AwsNodeGroups(Account(rig.aws, rig.clock, catalog(), CLUSTER), WrittenGroups(GroupTemplate("groups", ())))


@pytest.mark.parametrize("by_groups", [False, True], ids=["instances", "groups"])
def test_a_machine_of_another_cluster_stays(by_groups: bool) -> None:
    rig = Rig()
    (launched,) = rig.provider.launch(request()).instances
    rig.settle()
    running(rig)[0].tags[TAG_CLUSTER] = "99999999-2222-3333-4444-555555555555"
    running(rig)[0].tags[GROUP_TAG] = "members"
    provider = groups_of(rig) if by_groups else rig.provider
    answer = provider.terminate((launched.id,))
    assert isinstance(answer.failures[launched.id], PermissionDeniedError)
    assert [machine.id for machine in running(rig)] == [launched.id]


def test_a_machine_that_no_launch_started_is_neither_listed_nor_ended() -> None:
    """Groups and launch templates of others propagate the cluster's tag; the launch token is in none of them."""
    rig = Rig()
    (launched,) = rig.provider.launch(request()).instances
    rig.settle()
    del running(rig)[0].tags[labels.LAUNCH_TOKEN]
    assert rig.provider.describe({TAG_CLUSTER: CLUSTER}).instances == ()
    answer = rig.provider.terminate((launched.id,))
    assert isinstance(answer.failures[launched.id], PermissionDeniedError)
    assert [machine.id for machine in running(rig)] == [launched.id]


def test_one_machine_that_is_gone_keeps_no_other_running() -> None:
    rig = Rig()
    launched = rig.provider.launch(request("a", "b")).instances
    rig.settle()
    rig.fake.faults.inject("TerminateInstances", refused("InvalidInstanceID.NotFound"))
    answer = rig.provider.terminate(tuple(machine.id for machine in launched))
    assert sorted(answer.terminating) == sorted(machine.id for machine in launched)
    assert running(rig) == []


def test_machines_of_a_token_that_was_used_otherwise_are_not_adopted() -> None:
    rig = Rig()
    rig.provider.launch(request("a"))
    rig.settle()
    with pytest.raises(TokenReusedError):
        rig.provider.launch(request("a", "b"))
    assert len(running(rig)) == 1


def test_a_repetition_gives_nodes_the_same_machines_whatever_the_order_of_the_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rig = Rig()

    def answer(*ids: str) -> Any:
        found = {"InstanceType": "p5.48xlarge", "AvailabilityZone": "us-east-1a", "InstanceIds": list(ids)}
        return lambda **_: {"Instances": [found], "Errors": []}

    mapped = []
    for ids in (("i-1", "i-2"), ("i-2", "i-1")):
        monkeypatch.setattr(rig.aws.ec2, "create_fleet", answer(*ids))
        launched = rig.provider.launch(request("a", "b")).instances
        mapped.append({machine.node: machine.id for machine in launched})
    assert mapped == [{"a": "i-1", "b": "i-2"}] * 2


@pytest.mark.parametrize(
    ("state", "meant"),
    [
        ("pending", InstanceState.PENDING),
        ("running", InstanceState.RUNNING),
        ("stopping", InstanceState.STOPPED),
        ("shutting-down", InstanceState.TERMINATING),
        ("stopped", InstanceState.STOPPED),
        ("terminated", InstanceState.TERMINATED),
    ],
)
def test_a_machine_that_stops_takes_no_pods(state: str, meant: InstanceState) -> None:
    described = {
        "InstanceId": "i-1",
        "InstanceType": "p5.48xlarge",
        "Placement": {"AvailabilityZone": "us-east-1a"},
        "State": {"Name": state},
        "LaunchTime": Rig().clock.now(),
    }
    assert instance_of(described).state is meant


def test_a_reservation_into_which_nothing_can_be_launched_has_nothing_available() -> None:
    rig = Rig()
    in_reservation(rig, count=4)
    (found,) = rig.aws.ec2.describe_capacity_reservations()["CapacityReservations"]
    reservations = Reservations(rig.aws, rig.clock, window=timedelta(minutes=1))
    assert reservations.reservation(found).available == 4
    closed = reservations.reservation({**found, "LaunchStatus": "unlaunchable"})
    assert (closed.available, "cannot be launched into" in closed.note) == (0, True)


def test_a_reservation_that_has_just_refused_has_nothing_available() -> None:
    rig = Rig()
    offering = in_reservation(rig, count=4)
    reservations = Reservations(rig.aws, rig.clock, window=timedelta(minutes=1))
    assert [found.available for found in reservations.all()] == [4]
    reservations.exhausted(offering.reservation)
    assert [found.available for found in reservations.all()] == [0]
    rig.clock.advance(timedelta(minutes=2))
    assert [found.available for found in reservations.all()] == [4]
