"""The Google Cloud adapter keeps the guarantees of the contract on the fake, prompt or as slow as groups may be."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta

import pytest

from providers.conformance import CHECKS
from providers.conformance_harness import Check, Harness
from providers.conformance_waits import WAITS
from providers.contract import OfferingKey, Provider, TemplateRef
from tests.fakes.clocks import ShiftedClock
from tests.fakes.gce.errors import CUT_AFTER, CUT_BEFORE, THROTTLED, Fault, refused
from tests.fakes.gce.state import PROMPT, SLUGGISH, Behaviour
from tests.gcp import A2, A3, FLEX, TEMPLATE_REF, ZONE, Rig

NOT_APPLICABLE: dict[str, str] = {}


@dataclass
class GcpHarness:
    """A fake project with the adapter."""

    behaviour: Behaviour = PROMPT
    plenty: OfferingKey = A3
    other: OfferingKey = A2
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
        self.rig.advance(by)

    def settle(self) -> None:
        self.rig.settle()

    def limit(self, offering: OfferingKey, machines: int) -> None:
        self.rig.fake.project.stock[self.rig.key(offering)] = machines

    def withdraw(self, offering: OfferingKey) -> None:
        text = f"Machine type with name '{offering.instance_type}' does not exist in zone '{offering.zone}'."
        self.rig.fake.project.errors[self.rig.key(offering)] = ("INVALID_FIELD_VALUE", text)

    def reserve(self, *, count: int, starts_in: timedelta, lasts: timedelta) -> OfferingKey:
        return self.rig.hold(count=count, starts_in=starts_in, lasts=lasts)

    def take(self, reservation: str, machines: int) -> None:
        self.rig.holding.taken += machines

    def extend(self, reservation: str, by: timedelta) -> None:
        holding = self.rig.holding
        assert holding.ends is not None
        holding.ends += by

    def foreign(self) -> str:
        """A machine of the same group that somebody else has made: a surge upgrade, or a person."""
        group = self.rig.group(A3)
        machine = self.rig.fake.project.stranger(f"{group.base}-x7k2", ZONE, A3.instance_type, group=group.name)
        self.advance(self.behaviour.visibility)
        return str(machine.id)

    def skew(self, by: timedelta) -> None:
        self.rig.ours = ShiftedClock(self.rig.clock, by)
        self.restart()

    def _next_launch(self, fault: Fault) -> None:
        self.rig.fake.faults.inject("createInstances", fault)

    def deny(self) -> None:
        self._next_launch(refused("forbidden", 403, "Required 'compute.instanceGroupManagers.update' permission"))

    def answer_nonsense(self) -> None:
        self._next_launch(refused("somethingNew"))

    def lose_answer(self) -> None:
        self._next_launch(CUT_AFTER)

    def lose_request(self) -> None:
        self._next_launch(CUT_BEFORE)

    def throttle(self) -> None:
        self._next_launch(THROTTLED)


@pytest.mark.parametrize("behaviour", [pytest.param(PROMPT, id="prompt"), pytest.param(SLUGGISH, id="sluggish")])
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.name)
def test_the_gcp_provider_keeps(check: Check, behaviour: Behaviour) -> None:
    harness: Harness = GcpHarness(behaviour)
    check.run(harness)


@pytest.mark.parametrize("behaviour", [pytest.param(PROMPT, id="prompt"), pytest.param(SLUGGISH, id="sluggish")])
@pytest.mark.parametrize("check", WAITS, ids=lambda check: check.name)
def test_a_resize_request_keeps(check: Check, behaviour: Behaviour) -> None:
    harness = GcpHarness(behaviour)
    harness.rig.queue_gangs()
    check.run(harness)


@pytest.mark.parametrize("behaviour", [pytest.param(PROMPT, id="prompt"), pytest.param(SLUGGISH, id="sluggish")])
@pytest.mark.parametrize("check", WAITS, ids=lambda check: check.name)
def test_flex_start_keeps(check: Check, behaviour: Behaviour) -> None:
    harness = GcpHarness(behaviour, plenty=FLEX)
    harness.rig.flex(lasts=timedelta(days=7))
    check.run(harness)
