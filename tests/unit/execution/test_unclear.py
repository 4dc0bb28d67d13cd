"""A launch of unknown outcome whose repetition is refused: nothing follows from the refusal, nothing stays stuck."""

from __future__ import annotations

from datetime import timedelta

import pytest

from autoscaler.execution.executor import Executor
from autoscaler.execution.launch import Providers
from autoscaler.model.provisioned_node import Phase
from providers.contract import LaunchAnswer, LaunchRequest
from providers.errors import (
    AddressesExhaustedError,
    NotOfferedError,
    PermissionDeniedError,
    ProviderError,
    TemplateError,
    TemplateGoneError,
    TokenReusedError,
    UnknownRefusalError,
)
from providers.simulated.cloud import Call, Fault
from providers.simulated.provider import SimulatedProvider
from tests.desk import planned
from tests.unit.execution.node_site import Site


class Refusing(SimulatedProvider):
    """Refuses launches while there is an error."""

    error: ProviderError | None = None

    def launch(self, request: LaunchRequest) -> LaunchAnswer:
        if self.error is not None:
            raise self.error
        return super().launch(request)


class Refusal:
    """A site with a second node whose launch had no answer, and a provider that refuses to repeat it."""

    def __init__(self, fault: Fault, error: ProviderError) -> None:
        self.site = site = Site()
        self.provider = Refusing(site.desk.cloud)
        providers = Providers({"SimulatedNodeTemplate": self.provider}, cluster="uid-1")
        site.executor = Executor(site.desk.api, site.desk.journal, site.desk.backoffs, providers, site.desk.clock)
        site.desk.record(planned("n2"))
        site.desk.cloud.inject(Call.LAUNCH, fault)
        site.carry_out()
        self.provider.error = error

    def live(self, minutes: int, *, blind: bool = False) -> list[str]:
        """What is told in so many minutes. `blind`: the provider lists nothing either."""
        told = []
        for _ in range(minutes):
            self.site.desk.clock.advance(timedelta(minutes=1))
            seen = self.site.seen()
            if blind:
                seen.machines.pop("simulated")  # type: ignore[attr-defined]
            told += [trouble.text for trouble in self.site.carry_out(seen=seen)]
        return told

    @property
    def zones(self) -> list[str]:
        """Where the machines are."""
        return sorted(machine.offering.zone for machine in self.site.desk.cloud.machines.values())


REFUSALS = [
    pytest.param(PermissionDeniedError("the request has expired"), id="of the caller"),
    pytest.param(UnknownRefusalError("no", code="SomethingNew"), id="of an unknown kind"),
    pytest.param(TemplateError("no such subnet"), id="of the parameters"),
    pytest.param(AddressesExhaustedError("full by now"), id="for want of addresses"),
    pytest.param(NotOfferedError("the group has changed"), id="of the offering"),
    pytest.param(TemplateGoneError("no launch template"), id="for want of a template"),
    pytest.param(TokenReusedError("other parameters"), id="because the template has changed"),
]


@pytest.mark.parametrize("fault", [Fault.LOST_REQUEST, Fault.LOST_ANSWER])
@pytest.mark.parametrize("error", REFUSALS)
def test_while_nothing_can_be_read_the_launch_stays_unknown(fault: Fault, error: ProviderError) -> None:
    refused = Refusal(fault, error)
    told = refused.live(90, blind=True)
    assert any("unknown outcome was repeated and refused" in text for text in told)
    (batch,) = [batch for batch in refused.site.desk.batches() if batch.nodes == ("n2",)]
    assert (batch.outcome, batch.attempt) == ("Calling", 0)
    refused.provider.error = None
    refused.live(61, blind=True)
    assert refused.zones == ["us-east-1a"] * 2
    assert [node.phase for node in refused.site.desk.nodes()] == [Phase.LAUNCHED] * 2


@pytest.mark.parametrize("error", REFUSALS)
def test_a_machine_that_is_listed_ends_the_question(error: ProviderError) -> None:
    refused = Refusal(Fault.LOST_ANSWER, error)
    refused.live(3)
    assert refused.zones == ["us-east-1a"] * 2
    assert [node.phase for node in refused.site.desk.nodes()] == [Phase.LAUNCHED] * 2


@pytest.mark.parametrize(
    "error",
    [UnknownRefusalError("no", code="SomethingNew"), TokenReusedError("other parameters")],
    ids=["unknown", "the template has changed"],
)
def test_when_no_machine_is_listed_long_enough_the_next_offering_is_asked_for(error: ProviderError) -> None:
    refused = Refusal(Fault.LOST_REQUEST, error)
    refused.live(1)
    assert len(refused.zones) == 1
    refused.provider.error = None
    refused.site.desk.clock.advance(timedelta(minutes=2))
    refused.live(2)
    assert refused.zones == ["us-east-1a", "us-east-1b"]


def test_a_settled_refusal_lets_the_next_offering_be_asked_for() -> None:
    error = UnknownRefusalError("no", code="SomethingNew")
    error.settled = True
    refused = Refusal(Fault.LOST_REQUEST, error)
    refused.live(1, blind=True)
    (batch,) = [batch for batch in refused.site.desk.batches() if batch.nodes == ("n2",)]
    assert (batch.outcome, batch.attempt) != ("Calling", 0)


def test_in_another_account_nothing_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    refused = Refusal(Fault.LOST_REQUEST, PermissionDeniedError("no"))
    refused.live(1)
    (batch,) = [batch for batch in refused.site.desk.batches() if batch.nodes == ("n2",)]
    monkeypatch.setattr(Refusing, "place", lambda self: "another/region")
    refused.live(10)
    assert [(b.outcome, b.attempt) for b in refused.site.desk.batches() if b.name == batch.name] == [("Calling", 0)]


def test_a_call_that_may_launch_begins_the_wait_anew() -> None:
    refused = Refusal(Fault.LOST_REQUEST, UnknownRefusalError("no", code="SomethingNew"))
    refused.live(1)
    (batch,) = [batch for batch in refused.site.desk.batches() if batch.nodes == ("n2",)]
    assert batch.name in refused.site.executor.unclear
    refused.provider.error = None
    refused.site.desk.cloud.inject(Call.LAUNCH, Fault.LOST_REQUEST)
    refused.live(1)
    assert batch.name not in refused.site.executor.unclear
