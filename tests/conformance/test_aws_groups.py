"""AWS groups keep the guarantees of the contract, sized by LaunchInstances or by their desired capacity."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta

import pytest

from instance_catalog.dataclass import replace
from instance_catalog.types.instance_type import CapacityType
from providers.aws.node_groups.provider import AwsNodeGroups
from providers.aws.node_template.template import GroupTemplate
from providers.aws.provider import Account
from providers.conformance import CHECKS
from providers.conformance_harness import Check, Harness, NotApplicable
from providers.contract import OfferingKey, Provider, TemplateRef
from tests.aws import CLUSTER, P5, FakeAws, Rig, WrittenGroups, catalog
from tests.fakes.clocks import ShiftedClock
from tests.fakes.ec2 import CUT_BEFORE, PROMPT, SLUGGISH, THROTTLED, TIMEOUT_AFTER, Behaviour, refused

GROUPS_REF = TemplateRef("AWSGroupNodeTemplate", "gpu")
NOT_APPLICABLE = {
    "shortage then next offering": "a group starts what it starts: the next offering is another request",
    "unknown outcome can be undone": "machines of a group get their tags once they exist",
}


@dataclass
class GroupHarness:
    """An account with a group for on-demand machines and, once there is a block, one for its machines."""

    by_instances: bool
    behaviour: Behaviour = PROMPT
    plenty: OfferingKey = P5
    template: TemplateRef = GROUPS_REF
    rig: Rig = field(init=False)

    def __post_init__(self) -> None:
        self.rig = Rig(self.behaviour)
        self.names: tuple[str, ...] = ()
        self._add("plain", {})
        self.restart()

    @property
    def other(self) -> OfferingKey:
        raise NotApplicable(NOT_APPLICABLE["shortage then next offering"])

    @property
    def operation(self) -> str:
        return "LaunchInstances" if self.by_instances else "SetDesiredCapacity"

    def _add(self, name: str, launch: dict[str, object]) -> None:
        geography = self.rig.fake.account.geography
        image = next(image.id for image in geography.images.values() if image.architecture == "x86_64")
        data = {"ImageId": image, "InstanceType": P5.instance_type, **launch}
        FakeAws().ec2.create_launch_template(LaunchTemplateName=name, LaunchTemplateData=data)
        subnets = [subnet.id for subnet in geography.subnets.values() if subnet.zone == P5.zone]
        specification = {"LaunchTemplateName": name, "Version": "1"}
        self.rig.fake.groups.add(name, specification, subnets, maximum=1000)
        self.names = (*self.names, name)

    def restart(self) -> None:
        template = GroupTemplate("gpu", self.names, by_instances=self.by_instances)
        account = Account(self.rig.aws, self.rig.ours or self.rig.clock, catalog(), CLUSTER)
        self.provider: Provider = AwsNodeGroups(account, WrittenGroups(template))

    def advance(self, by: timedelta) -> None:
        self.rig.clock.advance(by)

    def settle(self) -> None:
        self.rig.settle()

    def limit(self, offering: OfferingKey, machines: int) -> None:
        self.rig.fake.account.stock.limit(offering.instance_type, offering.zone, machines)

    def withdraw(self, offering: OfferingKey) -> None:
        self.rig.fake.account.stock.withdraw(offering.instance_type, offering.zone)

    def reserve(self, *, count: int, starts_in: timedelta, lasts: timedelta) -> OfferingKey:
        block = self.rig.fake.account.block(P5.instance_type, P5.zone, count, starts_in=starts_in, lasts=lasts)
        target = {"CapacityReservationTarget": {"CapacityReservationId": block.id}}
        market = {"MarketType": "capacity-block"}
        self._add("block", {"InstanceMarketOptions": market, "CapacityReservationSpecification": target})
        self.restart()
        return replace(P5, capacity_type=CapacityType.CAPACITY_BLOCK, reservation=block.id)

    def take(self, reservation: str, machines: int) -> None:
        self.rig.fake.account.holdings[reservation].taken = machines

    def foreign(self) -> str:
        image = next(iter(self.rig.fake.account.geography.images))
        answer = self.rig.aws.ec2.run_instances(ImageId=image, InstanceType="p5.48xlarge", MinCount=1, MaxCount=1)
        self.advance(self.behaviour.visibility)
        return str(answer["Instances"][0]["InstanceId"])

    def extend(self, reservation: str, by: timedelta) -> None:
        self.rig.fake.account.extend(self.rig.fake.account.holdings[reservation], by)

    def skew(self, by: timedelta) -> None:
        self.rig.ours = ShiftedClock(self.rig.clock, by)
        self.restart()

    def deny(self) -> None:
        self.rig.fake.faults.inject(self.operation, refused("AccessDenied", status=403))

    def answer_nonsense(self) -> None:
        self.rig.fake.faults.inject(self.operation, refused("SomethingNew"))

    def lose_answer(self) -> None:
        self.rig.fake.faults.inject(self.operation, TIMEOUT_AFTER)

    def lose_request(self) -> None:
        self.rig.fake.faults.inject(self.operation, CUT_BEFORE)

    def throttle(self) -> None:
        self.rig.fake.faults.inject(self.operation, THROTTLED)


@pytest.mark.parametrize(
    "by_instances", [pytest.param(True, id="LaunchInstances"), pytest.param(False, id="desired capacity")]
)
@pytest.mark.parametrize("behaviour", [pytest.param(PROMPT, id="prompt"), pytest.param(SLUGGISH, id="sluggish")])
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.name)
def test_aws_groups_keep(check: Check, behaviour: Behaviour, by_instances: bool) -> None:
    harness: Harness = GroupHarness(by_instances, behaviour)
    reason = ""
    try:
        check.run(harness)
    except NotApplicable as missing:
        reason = str(missing)
    assert reason == NOT_APPLICABLE.get(check.name, "")
