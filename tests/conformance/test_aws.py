"""The AWS adapter keeps the guarantees of the contract on the fake EC2: prompt, as slow as AWS says it may
be, and with answers that lack optional members."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta

import pytest

from instance_catalog.dataclass import replace
from instance_catalog.types.instance_type import CapacityType
from providers.conformance import CHECKS
from providers.conformance_harness import Check, Harness
from providers.contract import OfferingKey, Provider, TemplateRef
from tests.aws import P4, P5, TEMPLATE_REF, Rig
from tests.fakes.clocks import ShiftedClock
from tests.fakes.ec2 import CUT_BEFORE, PROMPT, SLUGGISH, THROTTLED, TIMEOUT_AFTER, Behaviour, refused

LAUNCHES = ("CreateFleet", "RunInstances")


@dataclass
class AwsHarness:
    """A fake account with the adapter."""

    behaviour: Behaviour = PROMPT
    plenty: OfferingKey = P5
    other: OfferingKey = P4
    template: TemplateRef = TEMPLATE_REF
    rig: Rig = field(init=False)

    def __post_init__(self) -> None:
        self.rig = Rig(self.behaviour)

    @property
    def provider(self) -> Provider:
        return self.rig.provider

    def restart(self) -> None:
        self.rig.restart()

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
        self._refuse("UnauthorizedOperation", 403)

    def answer_nonsense(self) -> None:
        self._refuse("SomethingNew", 400)

    def _refuse(self, code: str, status: int) -> None:
        for operation in LAUNCHES:
            self.rig.fake.faults.inject(operation, refused(code, status=status))

    def lose_answer(self) -> None:
        for operation in LAUNCHES:
            self.rig.fake.faults.inject(operation, TIMEOUT_AFTER)

    def lose_request(self) -> None:
        for operation in LAUNCHES:
            self.rig.fake.faults.inject(operation, CUT_BEFORE)

    def throttle(self) -> None:
        for operation in LAUNCHES:
            self.rig.fake.faults.inject(operation, THROTTLED)


SPARSE = replace(SLUGGISH, leaves_out=1, refuses_templates=True)


@pytest.mark.parametrize(
    "behaviour",
    [
        pytest.param(PROMPT, id="prompt"),
        pytest.param(SLUGGISH, id="sluggish"),
        pytest.param(SPARSE, id="sluggish, with answers that lack optional members"),
    ],
)
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.name)
def test_the_aws_provider_keeps(check: Check, behaviour: Behaviour) -> None:
    harness: Harness = AwsHarness(behaviour)
    check.run(harness)
