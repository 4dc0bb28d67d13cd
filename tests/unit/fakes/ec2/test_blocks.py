"""Reservations and Capacity Blocks on the clock: states, capacity, payment, extension, reclaim, notices."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError

from autoscaler.clock import VirtualClock
from tests.fakes.ec2 import SLUGGISH, FakeEc2
from tests.unit.fakes.ec2.account import ZONE, code, image, subnet

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
TYPE = "p5.48xlarge"


def into(aws: FakeEc2, reservation: str, count: int = 1, *, market: str = "capacity-block") -> list[dict[str, Any]]:
    answer = aws.client("ec2").run_instances(
        MinCount=1,
        MaxCount=count,
        ImageId=image(aws),
        InstanceType=TYPE,
        SubnetId=subnet(aws),
        InstanceMarketOptions={"MarketType": market},
        CapacityReservationSpecification={"CapacityReservationTarget": {"CapacityReservationId": reservation}},
    )
    instances: list[dict[str, Any]] = answer["Instances"]
    return instances


def described(aws: FakeEc2) -> dict[str, Any]:
    (found,) = aws.client("ec2").describe_capacity_reservations()["CapacityReservations"]
    return dict(found)


def buy(aws: FakeEc2) -> str:
    offer = aws.account.sell_block(TYPE, ZONE, 2, starts_in=24 * HOUR, lasts=DAY, fee="1920.00")
    answer = aws.client("ec2").purchase_capacity_block(CapacityBlockOfferingId=offer.id, InstancePlatform="Linux/UNIX")
    return str(answer["CapacityReservation"]["CapacityReservationId"])


class TestStates:
    def test_a_block_that_is_paid(self, aws: FakeEc2, clock: VirtualClock) -> None:
        buy(aws)
        states = []
        for wait in (timedelta(0), 5 * timedelta(minutes=1), DAY, DAY):
            clock.advance(wait)
            states.append(described(aws)["State"])
        assert states == ["payment-pending", "scheduled", "active", "expired"]

    def test_a_block_that_nobody_pays(self, aws: FakeEc2, clock: VirtualClock) -> None:
        aws.account.market.payment = None
        buy(aws)
        clock.advance(11 * HOUR)
        assert described(aws)["State"] == "payment-pending"
        clock.advance(HOUR)
        assert described(aws)["State"] == "payment-failed"

    def test_an_offering_can_be_bought_once(self, aws: FakeEc2) -> None:
        offer = aws.account.sell_block(TYPE, ZONE, 2, starts_in=HOUR, lasts=DAY, fee="1")
        asked = {"CapacityBlockOfferingId": offer.id, "InstancePlatform": "Linux/UNIX"}
        aws.client("ec2").purchase_capacity_block(**asked)
        with pytest.raises(ClientError):
            aws.client("ec2").purchase_capacity_block(**asked)

    def test_before_its_start_only_a_tag_says_how_many_there_will_be(self, aws: FakeEc2) -> None:
        aws.account.block(TYPE, ZONE, 4, starts_in=HOUR, lasts=DAY)
        found = described(aws)
        assert (found["TotalInstanceCount"], found["AvailableInstanceCount"]) == (0, 0)
        assert {"Key": "aws:ec2capacityreservation:incrementalRequestedQuantity", "Value": "4"} in found["Tags"]


class TestCapacity:
    def test_it_gives_its_machines_and_no_more(self, aws: FakeEc2) -> None:
        block = aws.account.block(TYPE, ZONE, 2, starts_in=timedelta(0), lasts=DAY)
        machines = into(aws, block.id, 3)
        assert {machine["InstanceLifecycle"] for machine in machines} == {"capacity-block"}
        assert {machine["CapacityReservationId"] for machine in machines} == {block.id}
        with pytest.raises(ClientError) as error:
            into(aws, block.id)
        assert code(error) == "ReservationCapacityExceeded"

    @pytest.mark.parametrize("market", ["on-demand", "spot"])
    def test_it_needs_the_market_of_blocks(self, aws: FakeEc2, market: str) -> None:
        block = aws.account.block(TYPE, ZONE, 2, starts_in=timedelta(0), lasts=DAY)
        with pytest.raises(ClientError) as error:
            into(aws, block.id, market=market)
        assert code(error) == "InvalidParameterCombination"

    def test_the_count_lags_behind(self, clock: VirtualClock) -> None:
        aws = FakeEc2(clock, behaviour=SLUGGISH)
        block = aws.account.block(TYPE, ZONE, 2, starts_in=timedelta(0), lasts=DAY)
        into(aws, block.id, 2)
        assert described(aws)["AvailableInstanceCount"] == 2
        clock.advance(SLUGGISH.counting)
        assert described(aws)["AvailableInstanceCount"] == 0

    def test_an_open_reservation_serves_launches_that_name_none(self, aws: FakeEc2) -> None:
        held = aws.account.reserve(TYPE, ZONE, 1, match="open")
        ec2 = aws.client("ec2")
        ec2.run_instances(MinCount=2, MaxCount=2, ImageId=image(aws), InstanceType=TYPE, SubnetId=subnet(aws))
        assert sorted(machine.reservation for machine in aws.account.alive()) == ["", held.id]


class TestEnd:
    @pytest.mark.parametrize(("ultraserver", "lead"), [("", 30), ("u-p6e-gb200x36", 60)], ids=["instances", "rack"])
    def test_machines_are_taken_back_before_the_end(
        self, aws: FakeEc2, clock: VirtualClock, ultraserver: str, lead: int
    ) -> None:
        block = aws.account.block(TYPE, ZONE, 2, starts_in=timedelta(0), lasts=DAY, ultraserver=ultraserver)
        into(aws, block.id, 2)
        clock.advance(DAY - timedelta(minutes=lead, seconds=1))
        assert len(aws.account.alive()) == 2
        clock.advance(timedelta(seconds=1))
        assert aws.account.alive() == []
        with pytest.raises(ClientError) as error:
            into(aws, block.id)
        assert code(error) == "ReservationCapacityExceeded"

    def test_machines_of_another_reservation_stay(self, aws: FakeEc2, clock: VirtualClock) -> None:
        held = aws.account.reserve(TYPE, ZONE, 1, lasts=DAY)
        into(aws, held.id, market="on-demand")
        clock.advance(2 * DAY)
        assert described(aws)["State"] == "expired"
        assert len(aws.account.alive()) == 1

    def test_an_extension_moves_the_end_once_it_is_paid(self, aws: FakeEc2, clock: VirtualClock) -> None:
        block = aws.account.block(TYPE, ZONE, 2, starts_in=timedelta(0), lasts=DAY)
        ec2, asked = aws.client("ec2"), {"CapacityReservationId": block.id}
        (offer,) = ec2.describe_capacity_block_extension_offerings(CapacityBlockExtensionDurationHours=24, **asked)[
            "CapacityBlockExtensionOfferings"
        ]
        name = offer["CapacityBlockExtensionOfferingId"]
        ec2.purchase_capacity_block_extension(CapacityBlockExtensionOfferingId=name, **asked)
        before = described(aws)["EndDate"]
        clock.advance(5 * timedelta(minutes=1))
        assert described(aws)["EndDate"] - before == DAY

    def test_too_late_for_an_extension(self, aws: FakeEc2, clock: VirtualClock) -> None:
        block = aws.account.block(TYPE, ZONE, 2, starts_in=timedelta(0), lasts=DAY)
        clock.advance(DAY - timedelta(minutes=59))
        with pytest.raises(ClientError) as error:
            aws.client("ec2").describe_capacity_block_extension_offerings(
                CapacityReservationId=block.id, CapacityBlockExtensionDurationHours=24
            )
        assert code(error) == "InvalidState"

    def test_the_notices_of_a_block(self, aws: FakeEc2, clock: VirtualClock) -> None:
        queue = aws.account.notices.queue("notices")
        aws.account.block(TYPE, ZONE, 1, starts_in=HOUR, lasts=DAY)
        clock.advance(HOUR + DAY)
        aws.account.catch_up()
        received = aws.client("sqs").receive_message(QueueUrl=queue.url, MaxNumberOfMessages=10)["Messages"]
        events = [json.loads(message["Body"]) for message in received]
        assert [(event["detail-type"], event["time"]) for event in events] == [
            ("Capacity Block Reservation Delivered", "2026-01-01T01:00:00Z"),
            ("Capacity Block Reservation Expiration Warning", "2026-01-02T00:20:00Z"),
        ]
