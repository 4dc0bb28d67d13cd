"""Launches in ordinary networks, and answers as EC2 may give them: two subnets in a zone, optional members missing."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from instance_catalog.dataclass import replace
from providers.aws.node_template.network import Network
from providers.errors import AddressesExhaustedError, AmbiguousError, QuotaError
from tests.aws import CLUSTER, OWNED, P4, P5, TEMPLATE, Rig, request, running
from tests.fakes.ec2 import PROMPT, refused
from tests.fakes.ec2.geography import Subnet

ANYWHERE = replace(P5, zone="any")


# --- subnets -------------------------------------------------------------------------------------------------------


def second_subnet(rig: Rig, *, addresses: int, zone: str = "us-east-1a") -> str:
    """Another subnet of a zone, as an ordinary EKS VPC has them: public and private ones with one tag."""
    added = Subnet(f"subnet-{zone[-1]}second00000000", zone, addresses=addresses, tags=dict(OWNED))
    rig.fake.account.geography.subnets[added.id] = added
    return added.id


def test_a_fleet_names_a_type_once_in_each_zone() -> None:
    rig = Rig()
    for zone in ("us-east-1a", "us-east-1b"):
        second_subnet(rig, addresses=4091, zone=zone)
    answer = rig.provider.launch(request("a", "b", offerings=(ANYWHERE,)))
    assert len(answer.instances) == 2


def test_the_subnet_with_most_free_addresses_is_taken() -> None:
    rig = Rig()
    (first,) = (s for s in rig.fake.account.geography.subnets.values() if s.zone == "us-east-1a")
    first.addresses = 20
    roomy = second_subnet(rig, addresses=4091)
    rig.provider.launch(request("a"))
    rig.provider.launch(request("b", "c", batch="b2", minimum=2))
    assert {machine.order.subnet for machine in running(rig)} == {roomy}


@pytest.mark.parametrize("full", [False, True], ids=["room", "full"])
def test_a_private_subnet_is_taken_before_a_public_one(full: bool) -> None:
    """In an ordinary EKS VPC both have the tag, and a machine with EFA gets no address in the public one."""
    rig = Rig()
    (first,) = (s for s in rig.fake.account.geography.subnets.values() if s.zone == "us-east-1a")
    first.public = True
    private = second_subnet(rig, addresses=20)
    if full:
        rig.fake.account.geography.subnets[private].addresses = 0
        assert not rig.provider.launch(request("a")).instances
    rig.provider.launch(request("b", batch="b2"))
    rig.provider.launch(request("c", "d", batch="b3", minimum=2))
    assert {machine.order.subnet for machine in running(rig)} == {first.id if full else private}


def test_a_repetition_names_the_same_subnet_although_machines_came_and_went() -> None:
    """EC2 refuses a token that comes with other parameters."""
    rig = Rig()
    other = second_subnet(rig, addresses=3000)
    subnets = rig.fake.account.geography.subnets
    (first,) = (s for s in subnets.values() if s.zone == "us-east-1a" and s.id != other)
    first.addresses = 3000
    taken = []
    for spare in (3001, 2999):
        subnets[other].addresses = spare
        network = Network(rig.aws, rig.clock)
        taken.append([network.subnet_for(TEMPLATE, "us-east-1a", f"token-{number}").id for number in range(20)])
    assert taken[0] == taken[1]
    assert set(taken[0]) == {first.id, other}


@pytest.mark.parametrize("minimum", [pytest.param(1, id="fleet"), pytest.param(2, id="gang")])
def test_after_a_full_subnet_the_next_launch_takes_another(minimum: int) -> None:
    rig = Rig()
    other = second_subnet(rig, addresses=100)
    assert len(rig.provider.launch(request("a", batch="b1")).instances) == 1  # the subnets are remembered now
    (first,) = (s for s in rig.fake.account.geography.subnets.values() if s.zone == "us-east-1a" and s.id != other)
    first.addresses = 0
    failed = rig.provider.launch(request("b", "c", batch="b2", minimum=minimum))
    assert [type(failure.error) for failure in failed.failures] == [AddressesExhaustedError]
    first.addresses = 4091  # EC2's count may be old
    answer = rig.provider.launch(request("d", "e", batch="b3", minimum=minimum))
    assert {machine.order.subnet for machine in running(rig)[1:]} == {other}
    assert len(answer.instances) == 2


# --- answers that lack optional members ----------------------------------------------------------------------------


def test_a_fleets_answer_without_zone_and_subnet_is_placed_by_its_override() -> None:
    rig = Rig()
    shorten(rig, "AvailabilityZone", "AvailabilityZoneId", "SubnetId", "InstanceType")
    (instance,) = rig.provider.launch(request()).instances
    assert instance.offering.zone == "us-east-1a"
    assert instance.offering.instance_type == "p5.48xlarge"


def test_a_fleets_answer_with_ids_alone_is_described() -> None:
    rig = Rig()
    shorten(rig, "AvailabilityZone", "SubnetId", "InstanceType", "LaunchTemplateAndOverrides")
    (instance,) = rig.provider.launch(request()).instances
    assert instance.provider_id.startswith("aws:///us-east-1a/i-")


def test_machines_that_cannot_be_placed_yet_are_found_by_the_same_call_later() -> None:
    rig = Rig(behaviour=replace(PROMPT, visibility=timedelta(seconds=30)))
    shorten(rig, "AvailabilityZone", "SubnetId", "InstanceType", "LaunchTemplateAndOverrides")
    with pytest.raises(AmbiguousError, match="does not show yet"):
        rig.provider.launch(request(offerings=(P5, P4)))
    rig.clock.advance(timedelta(seconds=31))
    assert len(rig.provider.launch(request(offerings=(P5, P4))).instances) == 1
    assert len(running(rig)) == 1


def test_machines_of_a_call_for_one_type_in_one_zone_need_not_be_described() -> None:
    rig = Rig(behaviour=replace(PROMPT, visibility=timedelta(seconds=30)))
    shorten(rig, "AvailabilityZone", "SubnetId", "InstanceType", "LaunchTemplateAndOverrides")
    (found,) = rig.provider.launch(request()).instances
    assert found.offering == P5


@pytest.mark.parametrize("minimum", [pytest.param(1, id="fleet"), pytest.param(2, id="gang")])
def test_a_launch_template_that_ec2_refuses_as_a_whole_answer_is_made_again(minimum: int) -> None:
    rig = Rig()
    rig.provider.launch(request(batch="b1"))
    rig.fake.account.templates.clear()
    operation = "CreateFleet" if minimum == 1 else "RunInstances"
    rig.fake.faults.inject(operation, refused("InvalidLaunchTemplateName.NotFoundException"))
    assert len(rig.provider.launch(request("a", "b", batch="b2", minimum=minimum)).instances) == 2


def test_a_used_up_quota_as_a_whole_answer_is_a_failure_of_the_offering() -> None:
    rig = Rig()
    rig.fake.faults.inject("CreateFleet", refused("MaxFleetCountExceeded"))
    answer = rig.provider.launch(request())
    assert [type(failure.error) for failure in answer.failures] == [QuotaError]


def test_network_interfaces_get_their_tags_from_the_launch_template() -> None:
    rig = Rig()
    rig.provider.launch(request())
    (found,) = rig.fake.account.templates.values()
    ((data, _, _),) = found.versions.values()
    (specification,) = data["TagSpecifications"]
    assert specification["ResourceType"] == "network-interface"
    assert {"Key": "foreslice.dev/cluster", "Value": CLUSTER} in specification["Tags"]


def shorten(rig: Rig, *members: str) -> None:
    """Leave optional members out of the rows of CreateFleet's answers, as older partitions and moto do."""
    whole = rig.fake.operations["ec2"]["CreateFleet"]

    class Shortened:
        def __call__(self, account: Any, params: Any, *, name: str) -> Any:
            answer = whole(account, params, name=name)
            rows = [{k: v for k, v in row.items() if k not in members} for row in answer["Instances"]]
            return {**answer, "Instances": rows}

    ec2 = {**rig.fake.operations["ec2"], "CreateFleet": Shortened()}
    rig.fake.operations = {**rig.fake.operations, "ec2": ec2}  # type: ignore[dict-item]
