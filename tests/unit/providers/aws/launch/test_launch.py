"""What a launch asks EC2 for, and what it makes of the answer."""

from __future__ import annotations

from typing import Any

import pytest

from instance_catalog.dataclass import replace
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.types.instance_type import CapacityType
from providers.aws.node_template.template import Cluster, Image, Interfaces, Selector, Volume
from providers.contract import TemplateRef
from providers.errors import (
    AddressesExhaustedError,
    AmbiguousError,
    BackoffScope,
    NoSubnetError,
    PermissionDeniedError,
    ProviderError,
    QuotaError,
    RefusedError,
    ReservationExhaustedError,
    ShortageError,
    TemplateError,
    UnknownRefusalError,
)
from tests.aws import P4, P5, PARAMETER, Rig, in_reservation, request, running
from tests.fakes.ec2 import INTERNAL_ERROR_AFTER, refused

ANYWHERE = replace(P5, zone="any")


# --- the call ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "operation"),
    [
        pytest.param(request("a", "b"), "CreateFleet", id="any of several subnets"),
        pytest.param(request("a", offerings=(replace(P5, capacity_type=CapacityType.SPOT),)), "CreateFleet", id="spot"),
        pytest.param(request("a", "b", minimum=2), "RunInstances", id="a gang"),
    ],
)
def test_a_launch_is_one_call(asked: Any, operation: str) -> None:
    rig = Rig()
    answer = rig.provider.launch(asked)
    assert len(answer.instances) == len(asked.nodes)
    assert rig.fake.calls[operation] == 1
    assert rig.fake.calls["CreateFleet"] + rig.fake.calls["RunInstances"] == 1


def test_a_hundred_nodes_are_one_call() -> None:
    rig = Rig()
    answer = rig.provider.launch(request(*(f"n{number}" for number in range(100))))
    assert len(answer.instances) == 100
    assert rig.fake.calls["CreateFleet"] == 1


def test_machines_are_owned_and_traceable_from_the_first_moment() -> None:
    rig = Rig()
    rig.provider.launch(request())
    (machine,) = running(rig)
    tags = machine.tags
    assert tags["foreslice.dev/cluster"] == "11111111-2222-3333-4444-555555555555"
    assert (tags["foreslice.dev/pool"], tags["foreslice.dev/launch-batch"]) == ("gpu", "b1")
    assert tags["kubernetes.io/cluster/test"] == "owned"
    assert tags["foreslice.dev/launch-token"] == "token-b1"


def test_a_template_cannot_take_ownership_away() -> None:
    rig = Rig()
    rig.write(tags=FrozenMap({"foreslice.dev/cluster": "other", "team": "x"}))
    rig.provider.launch(request())
    (machine,) = running(rig)
    assert machine.tags["foreslice.dev/cluster"] == "11111111-2222-3333-4444-555555555555"
    assert machine.tags["team"] == "x"


def test_instance_metadata_needs_a_session_and_volumes_are_encrypted() -> None:
    rig = Rig()
    rig.write(volumes=(Volume("/dev/xvda", 200, snapshot="snap-0a1b2c3d4e5f60718", throughput=500),))
    rig.provider.launch(request())
    (machine,) = running(rig)
    assert machine.order.launch["MetadataOptions"]["HttpTokens"] == "required"
    (mapping,) = machine.order.launch["BlockDeviceMappings"]
    assert mapping["Ebs"]["Encrypted"] is True
    assert mapping["Ebs"]["SnapshotId"] == "snap-0a1b2c3d4e5f60718"
    assert mapping["Ebs"]["DeleteOnTermination"] is True


@pytest.mark.parametrize(
    ("instance_type", "interfaces", "kinds"),
    [
        pytest.param("p5.48xlarge", Interfaces.EFA, ["efa", *["efa-only"] * 31], id="one for each card"),
        pytest.param(
            "p6-b300.48xlarge", Interfaces.EFA, ["interface", *["efa-only"] * 16], id="first card without EFA"
        ),
        pytest.param("p5.48xlarge", Interfaces.SINGLE, ["interface"], id="not wanted"),
        pytest.param("g6.xlarge", Interfaces.EFA, ["interface"], id="a type without EFA"),
    ],
)
@pytest.mark.parametrize("minimum", [pytest.param(1, id="fleet"), pytest.param(2, id="gang")])
def test_efa_has_an_interface_on_every_card(
    instance_type: str, interfaces: Interfaces, kinds: list[str], minimum: int
) -> None:
    rig = Rig()
    rig.write(interfaces=interfaces)
    offering = replace(P5, instance_type=instance_type)
    rig.provider.launch(request("a", "b", offerings=(offering,), minimum=minimum))
    found = running(rig)[0].order.launch["NetworkInterfaces"]
    assert [one["InterfaceType"] for one in found] == kinds
    assert [one["NetworkCardIndex"] for one in found] == list(range(len(kinds)))
    assert {one["Groups"][0] for one in found} == {"sg-0123456789abcdef0"}


def test_any_zone_is_told_as_the_one_that_was_obtained() -> None:
    rig = Rig()
    for zone in ("us-east-1a", "us-east-1b", "us-east-1d"):
        rig.fake.account.stock.limit("p5.48xlarge", zone, 0)
    answer = rig.provider.launch(request(offerings=(ANYWHERE,)))
    (instance,) = answer.instances
    assert instance.offering.zone == "us-east-1c"
    assert instance.provider_id.startswith("aws:///us-east-1c/i-")
    assert answer.failures == ()  # the offering was had, though not everywhere


def test_a_gang_stays_in_one_zone_and_the_same_one_when_repeated() -> None:
    rig = Rig()
    asked = request("a", "b", "c", offerings=(ANYWHERE,), minimum=3)
    first = rig.provider.launch(asked)
    rig.restart()
    assert rig.provider.launch(asked) == first
    assert len({instance.offering.zone for instance in first.instances}) == 1


# --- what goes wrong -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "kind", "message"),
    [
        pytest.param({"subnets": (Selector("subnet-gone"),)}, TemplateError, "finds nothing", id="subnet deleted"),
        pytest.param({"image": Image("ami-0123")}, TemplateError, "ami-0123", id="image deleted"),
        pytest.param(
            {"image": Image(parameter="/foreslice/nowhere")},
            TemplateError,
            "/foreslice/nowhere",
            id="no such parameter",
        ),
        pytest.param({"instance_profile": "nobody"}, TemplateError, "Invalid IAM Instance Profile", id="profile"),
        pytest.param({"placement_group": "none"}, RefusedError, "none", id="placement group"),
        pytest.param({"cluster": Cluster("other")}, TemplateError, "other", id="cluster unknown to EKS"),
        pytest.param({"user_data_text": "x" * 17000}, TemplateError, "neither a script", id="user data"),
        pytest.param({"user_data_text": "#!" + "x" * 17000}, TemplateError, "17", id="user data too long"),
    ],
)
def test_a_wrong_template_is_the_templates_fault(change: dict[str, Any], kind: type[Exception], message: str) -> None:
    rig = Rig()
    rig.write(**change)
    with pytest.raises(kind, match=message) as caught:
        rig.provider.launch(request())
    assert isinstance(caught.value, ProviderError)
    assert caught.value.next_step
    assert running(rig) == []


def test_a_block_in_a_zone_without_subnet() -> None:
    rig = Rig()
    rig.write(subnets=(Selector(next(iter(rig.fake.account.geography.subnets))),))
    with pytest.raises(NoSubnetError, match="selects no subnet in us-east-1b") as caught:
        rig.provider.launch(request(offerings=(replace(P5, zone="us-east-1b"),)))
    assert "create a subnet in us-east-1b" in caught.value.next_step


def test_a_subnet_that_is_deleted_meanwhile_is_looked_for_again() -> None:
    rig = Rig()
    rig.provider.launch(request(batch="b1"))
    subnets = rig.fake.account.geography.subnets
    gone = next(s.id for s in subnets.values() if s.zone == "us-east-1a")
    del subnets[gone]
    with pytest.raises(TemplateError):
        rig.provider.launch(request(batch="b2"))
    with pytest.raises(NoSubnetError, match="selects no subnet in us-east-1a"):
        rig.provider.launch(request(batch="b3"))


def test_quota_and_shortage_of_two_offerings_are_told_apart() -> None:
    rig = Rig()
    rig.fake.account.stock.limit("p5.48xlarge", "us-east-1a", 0)
    rig.fake.account.stock.limit("p4d.24xlarge", "us-east-1a", 0)
    answer = rig.provider.launch(request(offerings=(P5, P4)))
    assert {f.offering: type(f.error) for f in answer.failures} == {P5: ShortageError, P4: ShortageError}
    rig.fake.account.stock.quota("on-demand", 8)
    answer = rig.provider.launch(request(batch="b2"))
    assert [type(failure.error) for failure in answer.failures] == [QuotaError]


def test_full_subnets_are_the_zones_fault() -> None:
    rig = Rig()
    for subnet in rig.fake.account.geography.subnets.values():
        subnet.addresses = 0
    answer = rig.provider.launch(request())
    assert [type(failure.error) for failure in answer.failures] == [AddressesExhaustedError]


def test_a_shortage_inside_a_reservation_is_the_reservations() -> None:
    rig = Rig()
    offering = in_reservation(rig, count=1)
    rig.fake.account.holdings[offering.reservation].taken = 1
    answer = rig.provider.launch(request(offerings=(offering,)))
    assert [type(failure.error) for failure in answer.failures] == [ReservationExhaustedError]


def test_a_missing_permission_is_told_with_the_call() -> None:
    rig = Rig()
    rig.fake.denied.add("ec2:CreateFleet")
    with pytest.raises(PermissionDeniedError, match="ec2:CreateFleet"):
        rig.provider.launch(request())


def test_a_fault_after_the_effect_is_ambiguous_and_resolved_by_repeating() -> None:
    rig = Rig()
    rig.fake.faults.inject("RunInstances", INTERNAL_ERROR_AFTER)
    asked = request("a", "b", minimum=2)
    with pytest.raises(AmbiguousError):
        rig.provider.launch(asked)
    rig.restart()
    assert len(rig.provider.launch(asked).instances) == 2
    assert len(running(rig)) == 2


def test_an_unknown_code_of_a_4xx_answer_is_a_refusal_of_the_offering() -> None:
    rig = Rig()
    rig.fake.faults.inject("CreateFleet", refused("SomethingNew"))
    with pytest.raises(UnknownRefusalError) as caught:
        rig.provider.launch(request())
    assert caught.value.scope is BackoffScope.OFFERING
    assert isinstance(caught.value, RefusedError)


def test_a_pool_without_template_is_told() -> None:
    with pytest.raises(TemplateError):
        Rig().provider.launch(replace(request(), template=TemplateRef()))


# --- launch templates and images -----------------------------------------------------------------------------------


def test_equal_content_is_one_version_also_after_a_restart() -> None:
    rig = Rig()
    rig.provider.launch(request(batch="b1"))
    rig.restart()
    rig.provider.launch(request(batch="b2"))
    assert rig.fake.calls["CreateLaunchTemplate"] == 1
    assert rig.fake.calls["CreateLaunchTemplateVersion"] == 0
    rig.provider.launch(request(batch="b3", labels=FrozenMap({"team": "x"})))
    assert rig.fake.calls["CreateLaunchTemplateVersion"] == 1


def test_what_the_parameter_named_first_stays() -> None:
    rig = Rig()
    rig.provider.launch(request(batch="b1"))
    images = rig.fake.account.geography.images
    newer = next(i.id for i in images.values() if i.architecture == "x86_64" and "1.34" in i.name)
    rig.fake.account.geography.parameters[PARAMETER] = newer
    rig.restart()
    # Other labels make another version, of the same image.
    rig.provider.launch(request(batch="b2", labels=FrozenMap({"team": "x"})))
    assert len({machine.order.image for machine in running(rig)}) == 1
    rig.write(image=Image(parameter=PARAMETER, follow=True))
    rig.provider.launch(request(batch="b3"))
    assert newer in {machine.order.image for machine in running(rig)}


def test_a_deleted_launch_template_is_made_again_once() -> None:
    rig = Rig()
    rig.provider.launch(request(batch="b1"))
    rig.fake.account.templates.clear()
    assert len(rig.provider.launch(request(batch="b2")).instances) == 1
    assert rig.fake.calls["CreateLaunchTemplate"] == 2


def test_a_template_that_changed_during_a_lost_answer_does_not_double() -> None:
    rig = Rig()
    rig.fake.faults.inject("CreateFleet", INTERNAL_ERROR_AFTER)
    with pytest.raises(AmbiguousError):
        rig.provider.launch(request("a", "b"))
    rig.write(monitoring=True)
    rig.restart()
    answer = rig.provider.launch(request("a", "b"))
    assert [instance.node for instance in answer.instances] == ["a", "b"]
    assert len(running(rig)) == 2
