"""Machines by their ids, in one place: what EC2 does not know is left out, and costs the others nothing."""

from __future__ import annotations

from datetime import timedelta

import pytest

from providers.aws.place import Place
from providers.contract import TAG_CLUSTER, InstanceState
from providers.errors import PermissionDeniedError
from tests.aws import CLUSTER, Rig, request
from tests.fakes.ec2 import TIMEOUT_BEFORE, refused

UNKNOWN = "aws:///us-east-1a/i-00000000000000000"


def test_unknown_ids_are_left_out_whether_ec2_names_them_or_not() -> None:
    rig = Rig()
    found = rig.provider.launch(request("a", "b", "c")).instances
    rig.settle()
    ids = [one.provider_id for one in found]
    asked = [ids[0], UNKNOWN, *ids[1:]]
    calls = rig.fake.calls["DescribeInstances"]
    assert sorted(rig.provider.look_up(asked)) == sorted(ids)
    assert rig.fake.calls["DescribeInstances"] == calls + 2, "EC2 has named the unknown one"
    rig.fake.faults.inject("DescribeInstances", refused("InvalidInstanceID.NotFound"))
    assert sorted(rig.provider.look_up(asked)) == sorted(ids)
    assert rig.provider.look_up([UNKNOWN]) == {}
    assert rig.provider.look_up([]) == {}


def test_one_that_lost_its_token_is_found_without_tags() -> None:
    rig = Rig()
    (machine,) = rig.provider.launch(request()).instances
    rig.settle()
    rig.fake.account.machines[machine.id].tags.pop("foreslice.dev/launch-token")
    assert rig.provider.describe({TAG_CLUSTER: CLUSTER}).instances == ()
    (found,) = rig.provider.look_up([machine.provider_id]).values()
    assert (found.state, dict(found.tags)) == (InstanceState.RUNNING, {})


def test_one_that_was_terminated_is_said_to_be() -> None:
    rig = Rig()
    (machine,) = rig.provider.launch(request()).instances
    rig.settle()
    rig.fake.account.lose(machine.id)
    rig.clock.advance(timedelta(minutes=2))
    assert rig.provider.look_up([machine.provider_id])[machine.provider_id].state is InstanceState.TERMINATED


def test_a_look_up_that_is_refused_is_an_error() -> None:
    rig = Rig()
    rig.fake.faults.inject("DescribeInstances", refused("UnauthorizedOperation", status=403))
    with pytest.raises(PermissionDeniedError):
        rig.provider.look_up([UNKNOWN])


def test_the_place_is_asked_once_and_may_be_unknown() -> None:
    rig = Rig()
    place = Place(rig.aws, rig.clock)
    assert str(place) == str(place) == "123456789012/us-east-1"
    assert rig.fake.calls["GetCallerIdentity"] == 1
    silent = Place(rig.aws, rig.clock)
    rig.fake.faults.inject("GetCallerIdentity", *[TIMEOUT_BEFORE] * 9)
    assert str(silent) == str(silent) == "/us-east-1"
    calls = rig.fake.calls["GetCallerIdentity"]
    rig.fake.faults.clear()
    rig.clock.advance(timedelta(minutes=11))
    assert str(silent) == "123456789012/us-east-1"
    assert rig.fake.calls["GetCallerIdentity"] == calls + 1
