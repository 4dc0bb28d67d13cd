"""Node templates are looked at apart from launches: what they come to, and what is wrong with which field."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from instance_catalog.dataclass import replace
from providers.aws.node_groups.provider import AwsNodeGroups
from providers.aws.node_template.template import GroupTemplate, Image, Selector
from providers.aws.provider import Account
from providers.contract import TemplateJudge, TemplateRef, TemplateStatus
from tests.aws import CLUSTER, PARAMETER, TEMPLATE_REF, Rig, catalog, request
from tests.fakes.ec2 import CUT_BEFORE, THROTTLED, refused
from tests.unit.providers.aws.launch.test_node_groups import One, group

WHILE_WRONG = timedelta(minutes=2)
LOOK_AGAIN = timedelta(minutes=10)


def verdict(rig: Rig) -> TemplateStatus:
    assert isinstance(rig.provider, TemplateJudge)
    (found,) = rig.provider.template_statuses()
    return found


def test_a_template_that_can_be_used() -> None:
    rig = Rig()
    rack = {"GroupName": "rack", "Strategy": "cluster", "State": "available"}
    rig.fake.account.geography.placement_groups["rack"] = rack
    rig.write(placement_group="rack")
    found = verdict(rig)
    assert (found.template, found.faults, found.drift) == (replace(TEMPLATE_REF, generation=1), (), "")
    assert found.zones == ("us-east-1a", "us-east-1b", "us-east-1c", "us-east-1d")
    assert found.resolved["subnets"][0] == {"id": "subnet-00000000000000000", "zone": "us-east-1a"}
    assert found.resolved["securityGroups"] == ["sg-0123456789abcdef0"]
    assert found.resolved["image"]["id"] == rig.fake.account.geography.parameters[PARAMETER]
    assert (found.resolved["nodeRole"], found.resolved["placementStrategy"]) == ("nodes", "cluster")


@pytest.mark.parametrize(
    ("change", "field", "message", "step"),
    [
        pytest.param({"subnets": (Selector("subnet-1"),)}, "spec.subnets", "in region us-east-1", "tag", id="subnet"),
        pytest.param({"security_groups": (Selector("sg-1"),)}, "spec.securityGroups", "(sg-1)", "tag", id="group"),
        pytest.param({"image": Image("ami-1")}, "spec.ami", "ami-1", "node template", id="image"),
        pytest.param(
            {"image": Image(parameter="/foreslice/none")},
            "spec.ami",
            "/foreslice/none",
            "node template",
            id="parameter",
        ),
        pytest.param({"instance_profile": "none"}, "spec.instanceProfile", "none", "node template", id="profile"),
        pytest.param({"placement_group": "none"}, "spec.placementGroup", "none", "node template", id="placement"),
    ],
)
def test_what_is_wrong_names_its_field_and_the_rest_is_resolved(
    change: dict[str, Any], field: str, message: str, step: str
) -> None:
    rig = Rig()
    rig.write(**change)
    (fault,) = verdict(rig).faults
    assert (fault.field, fault.kind, fault.certain) == (field, "Configuration", True)
    assert message in fault.message
    assert step in fault.next_step
    assert len(verdict(rig).resolved) >= 4


def test_several_faults_are_told_at_once() -> None:
    rig = Rig()
    rig.write(subnets=(Selector("subnet-1"),), instance_profile="none")
    assert [fault.field for fault in verdict(rig).faults] == ["spec.subnets", "spec.instanceProfile"]
    assert verdict(rig).zones == ()


@pytest.mark.parametrize(
    ("fault", "kind", "certain"),
    [
        pytest.param(refused("ExpiredToken", status=403), "Permission", True, id="credentials"),
        pytest.param(CUT_BEFORE, "Ambiguous", False, id="no answer"),
        pytest.param(THROTTLED, "Throttled", False, id="throttled"),
        pytest.param(refused("SomethingNew"), "UnknownRefusal", False, id="unknown code"),
    ],
)
def test_what_every_call_would_meet_is_told_once(fault: Any, kind: str, certain: bool) -> None:
    rig = Rig()
    rig.fake.faults.inject("DescribeSubnets", fault)
    (found,) = verdict(rig).faults
    assert (found.field, found.kind, found.certain) == ("", kind, certain)
    assert found.next_step
    assert rig.fake.calls["GetInstanceProfile"] == 0


@pytest.mark.parametrize(
    ("action", "certain"),
    [
        pytest.param("ec2:DescribeSubnets", True, id="launches make this call too"),
        pytest.param("iam:GetInstanceProfile", False, id="launches do not make this call"),
    ],
)
def test_a_missing_permission_is_a_fault_where_launches_need_it(action: str, certain: bool) -> None:
    rig = Rig()
    rig.fake.denied.add(action)
    (found,) = verdict(rig).faults
    assert (found.kind, found.certain) == ("Permission", certain)


def test_templates_are_looked_at_now_and_then() -> None:
    rig = Rig()
    first = verdict(rig)
    rig.fake.account.geography.subnets.clear()
    assert verdict(rig) == first
    rig.clock.advance(LOOK_AGAIN - timedelta(seconds=1))
    assert verdict(rig) == first
    rig.clock.advance(timedelta(seconds=1))
    assert [fault.field for fault in verdict(rig).faults] == ["spec.subnets"]


def test_what_is_wrong_is_looked_at_sooner() -> None:
    rig = Rig()
    subnets = dict(rig.fake.account.geography.subnets)
    rig.fake.account.geography.subnets.clear()
    assert verdict(rig).faults
    rig.fake.account.geography.subnets |= subnets
    rig.clock.advance(WHILE_WRONG - timedelta(seconds=1))
    assert verdict(rig).faults
    rig.clock.advance(timedelta(seconds=1))
    assert verdict(rig).faults == ()


def test_an_image_that_has_moved_on_is_drift_and_not_followed() -> None:
    rig = Rig()
    rig.provider.launch(request())
    geography = rig.fake.account.geography
    used = geography.parameters[PARAMETER]
    geography.parameters[PARAMETER] = newer = next(i.id for i in geography.images.values() if "1.34" in i.name)
    found = verdict(rig)
    assert (found.resolved["image"]["id"], found.faults) == (used, ())
    assert f"launches use {used}" in found.drift
    assert newer in found.drift
    assert "change spec.ami" in found.drift


def test_a_pinned_image_that_is_gone_names_the_one_to_take() -> None:
    rig = Rig()
    rig.provider.launch(request())
    geography = rig.fake.account.geography
    used = geography.parameters[PARAMETER]
    geography.parameters[PARAMETER] = newer = next(i.id for i in geography.images.values() if "1.34" in i.name)
    del geography.images[used]
    (fault,) = verdict(rig).faults
    assert fault.field == "spec.ami"
    assert f"{used}, which" in fault.message
    assert newer in fault.next_step


def groups(rig: Rig, template: GroupTemplate) -> AwsNodeGroups:
    return AwsNodeGroups(Account(rig.aws, rig.clock, catalog(), CLUSTER), One(template))


@pytest.mark.parametrize(
    ("named", "check"),
    [
        pytest.param(
            "gpus",
            lambda found: (
                found.zones == ("us-east-1a",)
                and found.resolved["groups"][0]["instanceTypes"] == ["p5.48xlarge"]
                and found.resolved["groups"][0]["capacityType"] == "on-demand"
            ),
            id="a group that exists",
        ),
        pytest.param(
            "other",
            lambda found: "no group 'other'" in found.faults[0].message and "create it" in found.faults[0].next_step,
            id="a group that does not",
        ),
    ],
)
def test_group_templates_come_to_their_groups(named: str, check: Callable[[TemplateStatus], bool]) -> None:
    rig = Rig()
    group(rig, "gpus")
    (found,) = groups(rig, GroupTemplate("gpu", (named,))).template_statuses()
    assert found.template == TemplateRef("AWSGroupNodeTemplate", "gpu", 1)
    assert check(found), found


def test_iam_that_cannot_be_reached_is_not_asked_at_every_look() -> None:
    rig = Rig()
    rig.fake.faults.inject("GetInstanceProfile", *[CUT_BEFORE] * 100)
    for _ in range(30):
        (fault,) = verdict(rig).faults
        assert (fault.field, fault.certain) == ("spec.instanceProfile", False)
        rig.clock.advance(WHILE_WRONG)
    assert rig.fake.calls["GetInstanceProfile"] == 1
    rig.fake.faults.clear()
    rig.clock.advance(WHILE_WRONG)
    assert verdict(rig).faults == ()
