"""Auto Scaling groups keep their size, node groups end with their block, rates refuse, messages come back."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError

from autoscaler.clock import VirtualClock
from tests.fakes.ec2 import FakeEc2
from tests.fakes.ec2.groups import RETRY, Group
from tests.unit.fakes.ec2.account import ZONE, code, image, subnet, template

TYPE = "p5.48xlarge"


def group(aws: FakeEc2, **details: Any) -> Group:
    specification = {"LaunchTemplateId": template(aws, **details.pop("data", {})), "Version": "1"}
    return aws.groups.add("g", specification, [subnet(aws)], **details)


class TestGroups:
    def test_a_size_is_reached_and_kept(self, aws: FakeEc2) -> None:
        found = group(aws)
        aws.client("autoscaling").set_desired_capacity(AutoScalingGroupName="g", DesiredCapacity=2)
        first, second = aws.groups.members(found)
        aws.client("ec2").terminate_instances(InstanceIds=[first.id])
        (shown,) = aws.client("autoscaling").describe_auto_scaling_groups()["AutoScalingGroups"]
        members = {member["InstanceId"] for member in shown["Instances"]}
        assert len(members) == 2
        assert first.id not in members
        assert second.id in members

    def test_a_named_member_goes_and_the_group_shrinks(self, aws: FakeEc2) -> None:
        found = group(aws, desired=2)
        aws.groups.catch_up()
        first, second = aws.groups.members(found)
        aws.client("autoscaling").terminate_instance_in_auto_scaling_group(
            InstanceId=first.id, ShouldDecrementDesiredCapacity=True
        )
        aws.groups.catch_up()
        assert [member.id for member in aws.groups.members(found)] == [second.id]

    def test_a_shortage_shows_in_activities_and_is_tried_again(self, aws: FakeEc2, clock: VirtualClock) -> None:
        found = group(aws)
        aws.account.stock.limit(TYPE, ZONE, 0)
        scaling = aws.client("autoscaling")
        scaling.set_desired_capacity(AutoScalingGroupName="g", DesiredCapacity=1)
        (activity,) = scaling.describe_scaling_activities(AutoScalingGroupName="g")["Activities"]
        assert activity["StatusCode"] == "Failed"
        assert "InsufficientInstanceCapacity" in activity["StatusMessage"]
        aws.account.stock.limit(TYPE, ZONE, 1)
        clock.advance(RETRY)
        aws.groups.catch_up()
        assert len(aws.groups.members(found)) == 1

    def test_launch_instances_answers_at_once_and_is_idempotent(self, aws: FakeEc2) -> None:
        found = group(aws)
        scaling, asked = aws.client("autoscaling"), {"AutoScalingGroupName": "g", "ClientToken": "t"}
        first = scaling.launch_instances(RequestedCapacity=2, **asked)
        assert scaling.launch_instances(RequestedCapacity=2, **asked)["Instances"] == first["Instances"]
        assert found.desired == len(aws.groups.members(found)) == 2

    def test_launch_instances_tells_its_errors_in_the_answer(self, aws: FakeEc2) -> None:
        group(aws)
        aws.account.stock.withdraw(TYPE, ZONE)
        answer = aws.client("autoscaling").launch_instances(
            AutoScalingGroupName="g", RequestedCapacity=1, ClientToken="t"
        )
        assert [error["ErrorCode"] for error in answer["Errors"]] == ["Unsupported"]
        assert answer["Instances"] == []

    def test_a_node_group_of_a_block_scales_itself_down_40_minutes_before_the_end(
        self, aws: FakeEc2, clock: VirtualClock
    ) -> None:
        block = aws.account.block(TYPE, ZONE, 1, starts_in=timedelta(0), lasts=timedelta(days=1))
        data = {
            "InstanceMarketOptions": {"MarketType": "capacity-block"},
            "CapacityReservationSpecification": {"CapacityReservationTarget": {"CapacityReservationId": block.id}},
        }
        found = group(aws, desired=1, reservation=block.id, cluster="test", node_group="ng", data=data)
        aws.groups.catch_up()
        clock.advance(timedelta(days=1, minutes=-41))
        aws.groups.catch_up()
        assert len(aws.groups.members(found)) == 1
        clock.advance(timedelta(minutes=1))
        shown = aws.client("eks").describe_nodegroup(clusterName="test", nodegroupName="ng")["nodegroup"]
        assert shown["scalingConfig"]["desiredSize"] == 0
        assert aws.groups.members(found) == []


class TestRates:
    def test_five_launches_at_once_and_then_two_a_second(self, aws: FakeEc2, clock: VirtualClock) -> None:
        def launch() -> None:
            asked = {"ImageId": image(aws), "InstanceType": TYPE, "SubnetId": subnet(aws)}
            aws.client("ec2").run_instances(MinCount=1, MaxCount=1, **asked)

        for _ in range(5):
            launch()
        with pytest.raises(ClientError) as error:
            launch()
        assert code(error) == "RequestLimitExceeded"
        clock.advance(timedelta(seconds=1))
        launch()
        launch()
        with pytest.raises(ClientError):
            launch()
        assert len(aws.account.alive()) == 7

    def test_instances_have_a_bucket_of_their_own(self, aws: FakeEc2) -> None:
        asked = {"ImageId": image(aws), "InstanceType": TYPE, "SubnetId": subnet(aws)}
        aws.client("ec2").run_instances(MinCount=1, MaxCount=1000, **asked)
        with pytest.raises(ClientError) as error:
            aws.client("ec2").run_instances(MinCount=1, MaxCount=1, **asked)
        assert code(error) == "RequestLimitExceeded"

    def test_block_offerings_may_be_asked_for_rarely(self, aws: FakeEc2, clock: VirtualClock) -> None:
        def ask() -> None:
            aws.client("ec2").describe_capacity_block_offerings(InstanceType=TYPE, CapacityDurationHours=24)

        for _ in range(10):
            ask()
        clock.advance(timedelta(seconds=6))
        with pytest.raises(ClientError):
            ask()
        clock.advance(timedelta(seconds=1))
        ask()


class TestQueues:
    def test_what_is_not_deleted_comes_back(self, aws: FakeEc2, clock: VirtualClock) -> None:
        queue, sqs = aws.account.notices.queue("notices"), aws.client("sqs")
        aws.account.notices.send("EC2 Instance Rebalance Recommendation", {"instance-id": "i-1"}, at=clock.now())
        (first,) = sqs.receive_message(QueueUrl=queue.url)["Messages"]
        assert "Messages" not in sqs.receive_message(QueueUrl=queue.url)
        clock.advance(timedelta(seconds=30))
        (again,) = sqs.receive_message(QueueUrl=queue.url)["Messages"]
        assert again["MessageId"] == first["MessageId"]
        old, new = ({"Id": "a", "ReceiptHandle": one["ReceiptHandle"]} for one in (first, again))
        sqs.delete_message_batch(QueueUrl=queue.url, Entries=[old])
        assert len(queue.messages) == 1, "an old receipt deletes nothing"
        sqs.delete_message_batch(QueueUrl=queue.url, Entries=[new])
        assert queue.messages == []

    def test_a_spot_interruption_is_announced_and_happens(self, aws: FakeEc2, clock: VirtualClock) -> None:
        queue = aws.account.notices.queue("notices")
        asked = {"ImageId": image(aws), "InstanceType": TYPE, "SubnetId": subnet(aws)}
        spot = {"InstanceMarketOptions": {"MarketType": "spot"}}
        aws.client("ec2").run_instances(MinCount=1, MaxCount=1, **asked, **spot)
        (machine,) = aws.account.alive()
        aws.account.interrupt(machine.id)
        assert "EC2 Spot Instance Interruption Warning" in queue.messages[-1].body
        clock.advance(timedelta(minutes=2))
        assert aws.account.alive() == []
        (group,) = aws.client("ec2").describe_instances()["Reservations"]
        assert group["Instances"][0]["StateReason"]["Code"] == "Server.SpotInstanceTermination"
