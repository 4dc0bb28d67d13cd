"""What EC2 promises about launches, on the fake: tokens, partial answers, visibility, states; asked by the real SDK."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError, ConnectionClosedError, ReadTimeoutError

from autoscaler.clock import VirtualClock
from tests.fakes.ec2 import CUT_AFTER, SLUGGISH, TIMEOUT_AFTER, TIMEOUT_BEFORE, FakeEc2, Fault, Server, refused
from tests.unit.fakes.ec2.account import ZONE, code, image, subnet


def run(aws: FakeEc2, count: int = 1, *, minimum: int = 1, zone: str = ZONE, **params: Any) -> list[dict[str, Any]]:
    given = {"ImageId": image(aws), "InstanceType": "p5.48xlarge", "SubnetId": subnet(aws, zone)} | params
    answer = aws.client("ec2").run_instances(MinCount=minimum, MaxCount=count, **given)
    instances: list[dict[str, Any]] = answer["Instances"]
    return instances


def ids(instances: list[dict[str, Any]]) -> list[str]:
    return [instance["InstanceId"] for instance in instances]


def described(aws: FakeEc2, **params: Any) -> list[dict[str, Any]]:
    answer = aws.client("ec2").describe_instances(**params)
    return [instance for group in answer["Reservations"] for instance in group["Instances"]]


class TestTokens:
    def test_a_repetition_answers_with_the_same_machines(self, aws: FakeEc2) -> None:
        assert ids(run(aws, 2, ClientToken="t")) == ids(run(aws, 2, ClientToken="t"))
        assert len(aws.account.alive()) == 2

    def test_other_parameters_are_refused(self, aws: FakeEc2) -> None:
        run(aws, ClientToken="t")
        with pytest.raises(ClientError) as error:
            run(aws, 2, ClientToken="t")
        assert code(error) == "IdempotentParameterMismatch"

    def test_tokens_are_zonal(self, aws: FakeEc2) -> None:
        assert ids(run(aws, ClientToken="t")) != ids(run(aws, ClientToken="t", zone="us-east-1b"))

    def test_a_failed_launch_does_not_use_its_token_up(self, aws: FakeEc2) -> None:
        aws.account.stock.limit("p5.48xlarge", ZONE, 0)
        with pytest.raises(ClientError) as error:
            run(aws, ClientToken="t")
        assert code(error) == "InsufficientInstanceCapacity"
        aws.account.stock.limit("p5.48xlarge", ZONE, 1)
        assert len(run(aws, ClientToken="t")) == 1

    @pytest.mark.parametrize("fault", [TIMEOUT_AFTER, CUT_AFTER], ids=["time-out", "cut"])
    def test_a_lost_answer_is_found_by_repeating(self, aws: FakeEc2, fault: Fault) -> None:
        aws.faults.inject("RunInstances", fault)
        with pytest.raises((ReadTimeoutError, ConnectionClosedError)):
            run(aws, ClientToken="t")
        (machine,) = aws.account.alive()
        assert ids(run(aws, ClientToken="t")) == [machine.id]

    def test_the_filter_client_token_finds_them(self, aws: FakeEc2) -> None:
        run(aws, ClientToken="other")
        found = described(aws, Filters=[{"Name": "client-token", "Values": ["t"]}])
        assert found == []
        launched = run(aws, 2, ClientToken="t")
        assert ids(described(aws, Filters=[{"Name": "client-token", "Values": ["t"]}])) == ids(launched)


class TestCounts:
    def test_as_many_as_there_are(self, aws: FakeEc2) -> None:
        aws.account.stock.limit("p5.48xlarge", ZONE, 2)
        assert len(run(aws, 3)) == 2

    def test_the_minimum_or_nothing(self, aws: FakeEc2) -> None:
        aws.account.stock.limit("p5.48xlarge", ZONE, 2)
        with pytest.raises(ClientError) as error:
            run(aws, 3, minimum=3)
        assert code(error) == "InsufficientInstanceCapacity"
        assert error.value.response["ResponseMetadata"]["HTTPStatusCode"] == 500
        assert aws.account.alive() == []


class TestStates:
    def test_a_life(self, aws: FakeEc2, clock: VirtualClock) -> None:
        (machine,) = ids(run(aws))
        states = []
        for wait in (0, 20):
            clock.advance(timedelta(seconds=wait))
            states.append(described(aws)[0]["State"]["Name"])
        aws.client("ec2").terminate_instances(InstanceIds=[machine])
        for wait in (0, 40):
            clock.advance(timedelta(seconds=wait))
            states.append(described(aws)[0]["State"]["Name"])
        assert states == ["pending", "running", "shutting-down", "terminated"]
        clock.advance(timedelta(hours=1))
        assert described(aws) == []

    def test_a_young_machine_is_not_visible(self, clock: VirtualClock) -> None:
        aws = FakeEc2(clock, behaviour=SLUGGISH)
        (machine,) = ids(run(aws))
        assert described(aws) == []
        with pytest.raises(ClientError) as error:
            aws.client("ec2").terminate_instances(InstanceIds=[machine])
        assert code(error) == "InvalidInstanceID.NotFound"
        clock.advance(SLUGGISH.visibility)
        assert ids(described(aws)) == [machine]

    def test_a_place_is_free_minutes_after_its_machine_has_ended(self, clock: VirtualClock) -> None:
        aws = FakeEc2(clock, behaviour=SLUGGISH)
        aws.account.stock.limit("p5.48xlarge", ZONE, 1)
        (machine,) = ids(run(aws))
        clock.advance(timedelta(minutes=1))
        aws.client("ec2").terminate_instances(InstanceIds=[machine])
        clock.advance(timedelta(minutes=4))
        with pytest.raises(ClientError):
            run(aws)
        clock.advance(timedelta(minutes=1))
        assert len(run(aws)) == 1

    def test_one_unknown_id_keeps_the_others_running(self, aws: FakeEc2) -> None:
        (machine,) = ids(run(aws))
        with pytest.raises(ClientError) as error:
            aws.client("ec2").terminate_instances(InstanceIds=["i-00000000000000000", machine])
        assert code(error) == "InvalidInstanceID.NotFound"
        assert len(aws.account.alive()) == 1


class TestPages:
    def test_each_machine_is_on_one_page(self, aws: FakeEc2) -> None:
        launched = ids(run(aws, 23))
        pages = list(aws.client("ec2").get_paginator("describe_instances").paginate(PaginationConfig={"PageSize": 5}))
        found = [i["InstanceId"] for page in pages for group in page["Reservations"] for i in group["Instances"]]
        assert found == launched
        assert len(pages) == 5

    def test_ids_and_a_page_size_exclude_each_other(self, aws: FakeEc2) -> None:
        with pytest.raises(ClientError) as error:
            described(aws, InstanceIds=ids(run(aws)), MaxResults=5)
        assert code(error) == "InvalidParameterCombination"

    def test_an_unknown_filter_is_an_error(self, aws: FakeEc2) -> None:
        with pytest.raises(ClientError, match="filter 'colour' is invalid"):
            described(aws, Filters=[{"Name": "colour", "Values": ["red"]}])


@pytest.mark.parametrize(
    ("params", "expected"),
    [
        pytest.param({"ImageId": "ami-gone"}, "InvalidAMIID.NotFound", id="image"),
        pytest.param({"SubnetId": "subnet-gone"}, "InvalidSubnetID.NotFound", id="subnet"),
        pytest.param({"SecurityGroupIds": ["sg-gone"]}, "InvalidGroup.NotFound", id="security group"),
        pytest.param({"InstanceType": "g5g.xlarge"}, "InvalidParameterValue", id="architecture"),
        pytest.param({"IamInstanceProfile": {"Name": "gone"}}, "InvalidParameterValue", id="profile"),
        pytest.param({"Placement": {"GroupName": "gone"}}, "InvalidPlacementGroup.Unknown", id="placement group"),
        pytest.param(
            {"LaunchTemplate": {"LaunchTemplateName": "gone"}},
            "InvalidLaunchTemplateName.NotFoundException",
            id="template",
        ),
        pytest.param(
            {"InstanceMarketOptions": {"MarketType": "capacity-block"}}, "InvalidParameterCombination", id="no block"
        ),
        pytest.param({"KernelId": "aki-1"}, "NotInTheFake", id="what the fake does not know"),
        pytest.param({"DryRun": True}, "DryRunOperation", id="dry run"),
    ],
)
def test_what_is_wrong_is_refused_and_launches_nothing(aws: FakeEc2, params: dict[str, Any], expected: str) -> None:
    with pytest.raises(ClientError) as error:
        run(aws, **params)
    assert code(error) == expected
    assert aws.account.alive() == []


def test_a_denied_action(aws: FakeEc2) -> None:
    aws.denied.add("ec2:RunInstances")
    with pytest.raises(ClientError) as error:
        run(aws, DryRun=True)
    assert code(error) == "UnauthorizedOperation"


def test_faults_hit_one_call_each_in_order(aws: FakeEc2) -> None:
    aws.faults.inject("RunInstances", refused("Teapot"), TIMEOUT_BEFORE)
    with pytest.raises(ClientError, match="Teapot"):
        run(aws)
    with pytest.raises(ReadTimeoutError):
        run(aws)
    assert len(run(aws)) == 1


class TestOverHttp:
    def test_the_same_answers_come_over_a_socket(self, aws: FakeEc2) -> None:
        launched = ids(run(aws, 3))
        with Server(aws) as server:
            groups = server.client("ec2").describe_instances()["Reservations"]
        assert [i["InstanceId"] for group in groups for i in group["Instances"]] == launched

    def test_a_time_out_after_the_effect_looks_like_one(self, aws: FakeEc2) -> None:
        aws.faults.inject("CreatePlacementGroup", TIMEOUT_AFTER)
        with Server(aws) as server, pytest.raises(ReadTimeoutError):
            server.client("ec2", read_timeout=0.2).create_placement_group(GroupName="g", Strategy="cluster")
        assert list(aws.account.geography.placement_groups) == ["g"]

    def test_a_cut_connection_looks_like_one(self, aws: FakeEc2) -> None:
        aws.faults.inject("DescribeSubnets", CUT_AFTER)
        with Server(aws) as server, pytest.raises(ConnectionClosedError):
            server.client("ec2").describe_subnets()
