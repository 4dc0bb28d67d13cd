"""The simulated cloud keeps every guarantee of the contract; and the checks notice when a provider does not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta

import pytest

from autoscaler.clock import VirtualClock
from instance_catalog.dataclass import replace
from instance_catalog.frozen_map import EMPTY
from instance_catalog.types.instance_type import CapacityType
from providers.conformance import CHECKS
from providers.conformance_harness import BrokenGuaranteeError, Check, Harness, request_of
from providers.contract import (
    InstancePage,
    LaunchAnswer,
    LaunchRequest,
    OfferingKey,
    Provider,
    TemplateRef,
    TerminateAnswer,
)
from providers.simulated.cloud import Call, Fault, SimulatedCloud
from providers.simulated.machines import PROMPT, Behaviour
from providers.simulated.provider import SimulatedProvider

PLENTY = OfferingKey("sim-gpu-8", "zone-a", CapacityType.ON_DEMAND)
NO_TEMPLATE = TemplateRef()
OTHER = OfferingKey("sim-gpu-4", "zone-a", CapacityType.ON_DEMAND)
SLOW = Behaviour(latency=timedelta(seconds=2), visibility=timedelta(seconds=90), page_size=7)


@dataclass
class SimulatedHarness:
    """A simulated cloud on a virtual clock."""

    behaviour: Behaviour = PROMPT
    kind: type[SimulatedProvider] = SimulatedProvider
    plenty: OfferingKey = PLENTY
    other: OfferingKey = OTHER
    template: TemplateRef = NO_TEMPLATE
    clock: VirtualClock = field(default_factory=VirtualClock)

    def __post_init__(self) -> None:
        self.cloud = SimulatedCloud(self.clock, self.behaviour)
        self.provider: Provider = self.kind(self.cloud)

    def restart(self) -> None:
        self.provider = self.kind(self.cloud)

    def advance(self, by: timedelta) -> None:
        self.clock.advance(by)

    def settle(self) -> None:
        self.clock.advance(self.behaviour.boot + self.behaviour.shutdown + self.behaviour.visibility)

    def limit(self, offering: OfferingKey, machines: int) -> None:
        self.cloud.limit(offering, machines)

    def withdraw(self, offering: OfferingKey) -> None:
        self.cloud.withdraw(offering)

    def reserve(self, *, count: int, starts_in: timedelta, lasts: timedelta) -> OfferingKey:
        starts_at = self.clock.now() + starts_in
        block = replace(self.plenty, capacity_type=CapacityType.CAPACITY_BLOCK)
        return self.cloud.reserve("cr-1", block, count=count, starts_at=starts_at, ends_at=starts_at + lasts)

    def take(self, reservation: str, machines: int) -> None:
        self.cloud.take(reservation, machines)

    def lose_answer(self) -> None:
        self.cloud.inject(Call.LAUNCH, Fault.LOST_ANSWER)

    def lose_request(self) -> None:
        self.cloud.inject(Call.LAUNCH, Fault.LOST_REQUEST)

    def foreign(self) -> str:
        (machine,) = self.provider.launch(request_of(self, batch="theirs")).instances
        self.cloud.machines[machine.id].tags = EMPTY
        self.advance(self.behaviour.visibility)
        return machine.id

    def extend(self, reservation: str, by: timedelta) -> None:
        ends_at = self.cloud.holdings[reservation].ends_at
        assert ends_at is not None
        self.cloud.extend(reservation, ends_at + by)

    def skew(self, by: timedelta) -> None:
        """It reads the cloud's clock and no other."""

    def deny(self) -> None:
        self.cloud.inject(Call.LAUNCH, Fault.DENIED)

    def answer_nonsense(self) -> None:
        self.cloud.inject(Call.LAUNCH, Fault.UNKNOWN_CODE)

    def throttle(self) -> None:
        self.cloud.inject(Call.LAUNCH, Fault.THROTTLED)


@pytest.mark.parametrize("behaviour", [pytest.param(PROMPT, id="prompt"), pytest.param(SLOW, id="slow")])
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.name)
def test_the_simulated_provider_keeps(check: Check, behaviour: Behaviour) -> None:
    harness: Harness = SimulatedHarness(behaviour)
    check.run(harness)


class Doubling(SimulatedProvider):
    """Forgets its tokens."""

    def launch(self, request: LaunchRequest) -> LaunchAnswer:
        return super().launch(replace(request, token=f"{request.token}-{len(self._cloud.calls)}"))


class Forgetful(SimulatedProvider):
    """Never tells the last page."""

    def describe(self, tags: dict[str, str], *, page: str = "") -> InstancePage:  # type: ignore[override]
        found = super().describe(tags, page=page)
        return replace(found, instances=found.instances[:5], next_page="")


class Deaf(SimulatedProvider):
    """Claims to terminate and does nothing."""

    def terminate(self, ids: Sequence[str]) -> TerminateAnswer:
        return TerminateAnswer(terminating=tuple(ids))


class Untagged(SimulatedProvider):
    """Leaves no trace of who owns its machines."""

    def launch(self, request: LaunchRequest) -> LaunchAnswer:
        answer = super().launch(request)
        for instance in answer.instances:
            machine = self._cloud.machines[instance.id]
            machine.tags = type(machine.tags)()
        return answer


@pytest.mark.parametrize(
    ("kind", "broken"),
    [
        pytest.param(
            Doubling,
            {"launch is idempotent", "reused token is refused", "lost answer is resolved by repeating"},
            id="doubling",
        ),
        pytest.param(Forgetful, {"listed by tags in pages"}, id="forgetful"),
        pytest.param(
            Deaf,
            {
                "terminate twice",
                "terminate unknown",
                "terminated machines free their place",
                "ended while it starts",
                "ended machines are not replaced",
                "machines of others are left alone",
                "looked up by id",
                "unknown outcome can be undone",
            },
            id="deaf",
        ),
    ],
)
def test_the_checks_notice_a_broken_provider(kind: type[SimulatedProvider], broken: set[str]) -> None:
    found = set()
    for check in CHECKS:
        try:
            check.run(SimulatedHarness(kind=kind))
        except BrokenGuaranteeError:
            found.add(check.name)
    assert found == broken


def test_every_check_states_its_guarantee_and_has_its_own_name() -> None:
    assert all(check.guarantee.endswith(".") for check in CHECKS)
    assert len({check.name for check in CHECKS}) == len(CHECKS)


def test_an_untagged_machine_is_noticed() -> None:
    check = next(check for check in CHECKS if check.name == "machines start running")
    with pytest.raises(BrokenGuaranteeError, match="expected running machines"):
        check.run(SimulatedHarness(kind=Untagged))
