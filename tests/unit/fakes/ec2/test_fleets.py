"""CreateFleet of type instant: what one answer says of what was launched and what was not."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import ClientError

from autoscaler.clock import VirtualClock
from tests.fakes.ec2 import FakeEc2
from tests.unit.fakes.ec2.account import ZONE, code, subnet, template

P5, P4 = "p5.48xlarge", "p4d.24xlarge"


@pytest.fixture
def aws() -> FakeEc2:
    return FakeEc2(VirtualClock())


def fleet(aws: FakeEc2, count: int, *types: str, market: str = "on-demand", **params: Any) -> dict[str, Any]:
    """A fleet of these types in their order, all in one subnet."""
    overrides = [
        {"InstanceType": kind, "SubnetId": subnet(aws), "Priority": float(index)} for index, kind in enumerate(types)
    ]
    specification = {"LaunchTemplateId": params.pop("template", None) or template(aws), "Version": "$Latest"}
    answer: dict[str, Any] = aws.client("ec2").create_fleet(
        **{
            "Type": "instant",
            "LaunchTemplateConfigs": [{"LaunchTemplateSpecification": specification, "Overrides": overrides}],
            "TargetCapacitySpecification": {"TotalTargetCapacity": count, "DefaultTargetCapacityType": market},
        }
        | params
    )
    return answer


def obtained(answer: dict[str, Any]) -> dict[str, int]:
    return {row["InstanceType"]: len(row["InstanceIds"]) for row in answer["Instances"]}


def test_a_short_pool_is_an_error_in_an_answer_that_succeeded(aws: FakeEc2) -> None:
    aws.account.stock.limit(P5, ZONE, 2)
    answer = fleet(aws, 3, P5, P4)
    assert obtained(answer) == {P5: 2, P4: 1}
    (error,) = answer["Errors"]
    assert error["ErrorCode"] == "InsufficientInstanceCapacity"
    assert error["LaunchTemplateAndOverrides"]["Overrides"]["InstanceType"] == P5
    assert answer["ResponseMetadata"]["HTTPStatusCode"] == 200


def test_priorities_decide_where_the_strategy_says_so(aws: FakeEc2) -> None:
    assert obtained(fleet(aws, 1, P5, P4, OnDemandOptions={"AllocationStrategy": "prioritized"})) == {P5: 1}
    assert obtained(fleet(aws, 1, P5, P4, OnDemandOptions={"AllocationStrategy": "lowest-price"})) == {P4: 1}


def test_less_than_the_minimum_launches_nothing(aws: FakeEc2) -> None:
    aws.account.stock.limit(P5, ZONE, 1)
    answer = fleet(aws, 2, P5, OnDemandOptions={"SingleInstanceType": True, "MinTargetCapacity": 2})
    assert answer["Instances"] == []
    assert {error["ErrorCode"] for error in answer["Errors"]} == {"InsufficientInstanceCapacity"}
    assert aws.account.alive() == []


def test_a_repeated_token_answers_with_the_same_fleet(aws: FakeEc2) -> None:
    used = template(aws)
    first = fleet(aws, 2, P5, ClientToken="t", template=used)
    again = fleet(aws, 2, P5, ClientToken="t", template=used)
    assert first["Instances"] == again["Instances"]
    assert len(aws.account.alive()) == 2
    with pytest.raises(ClientError) as error:
        fleet(aws, 3, P5, ClientToken="t", template=used)
    assert code(error) == "IdempotentParameterMismatch"


def test_what_is_wrong_with_a_template_is_told_for_each_pool(aws: FakeEc2) -> None:
    answer = fleet(aws, 1, P5, P4, template=template(aws, SecurityGroupIds=["sg-gone"]))
    assert [error["ErrorCode"] for error in answer["Errors"]] == ["InvalidGroup.NotFound"] * 2
    assert answer["Instances"] == []


def test_reserved_capacity_takes_the_reservations_that_are_named(aws: FakeEc2) -> None:
    named, other = (aws.account.reserve(P5, ZONE, 2) for _ in range(2))
    options = {
        "ReservationTypes": ["on-demand-capacity-reservation"],
        "CapacityReservationTarget": {"CapacityReservationIds": [named.id]},
    }
    answer = fleet(aws, 3, P5, market="reserved-capacity", ReservedCapacityOptions=options)
    assert obtained(answer) == {P5: 2}
    assert [error["ErrorCode"] for error in answer["Errors"]] == ["ReservationCapacityExceeded"]
    assert {machine.reservation for machine in aws.account.alive()} == {named.id}
    assert aws.account.free_in(other) == 2


def test_reserved_capacity_falls_back_to_on_demand_only_when_told(aws: FakeEc2) -> None:
    named = aws.account.reserve(P5, ZONE, 1)
    options = {
        "CapacityReservationTarget": {"CapacityReservationIds": [named.id]},
        "ReservedCapacityFallbackOptions": {"MarketTypes": ["on-demand"]},
    }
    fleet(aws, 3, P5, market="reserved-capacity", ReservedCapacityOptions=options)
    assert sorted(machine.reservation for machine in aws.account.alive()) == ["", "", named.id]


def test_other_fleets_are_not_in_the_fake(aws: FakeEc2) -> None:
    with pytest.raises(ClientError) as error:
        fleet(aws, 1, P5, Type="maintain")
    assert code(error) == "NotInTheFake"
