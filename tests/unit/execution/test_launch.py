"""A batch becomes machines: in order of its offerings, with every answer saved, and never twice."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta
from typing import cast

import pytest

from autoscaler.cluster.intents import token_of
from autoscaler.errors import ConfigurationError
from autoscaler.execution.executor import Executor, Trouble
from autoscaler.execution.launch import Providers, key_of, launch, request_of
from autoscaler.execution.observed import Observed
from autoscaler.model.provisioned_node import Phase
from autoscaler.model.snapshot import Snapshot
from instance_catalog.frozen_map import FrozenMap
from providers.contract import TAG_BATCH, TAG_CLUSTER, LaunchAnswer, LaunchRequest, Provider
from providers.errors import (
    GoneError,
    ProviderError,
    QuotaError,
    RefusedError,
    TemplateError,
    ThrottledError,
    TokenReusedError,
    UncertainError,
    UnknownRefusalError,
)
from providers.simulated.cloud import Call, Fault
from providers.simulated.provider import SimulatedProvider
from tests.desk import POOL, A, B, Desk, planned


def carry_out(desk: Desk) -> None:
    for batch in desk.journal.pending().launches:
        with suppress(UncertainError, ThrottledError):
            launch(batch, providers=desk.providers, journal=desk.journal, backoffs=desk.backoffs, now=desk.now)


def offerings_in_use(desk: Desk) -> list[str]:
    return sorted(machine.offering.zone for machine in desk.cloud.machines.values())


def test_the_first_offering_is_taken(desk: Desk) -> None:
    desk.record(planned("n1"), planned("n2"))
    carry_out(desk)
    (batch,) = desk.batches()
    assert batch.outcome == "Launched"
    assert [(n.phase, n.obtained) for n in desk.nodes()] == [(Phase.LAUNCHED, A)] * 2
    assert {machine.node for machine in desk.cloud.machines.values()} == {"n1", "n2"}
    assert all(m.tags[TAG_CLUSTER] == "uid-1" and m.tags[TAG_BATCH] == batch.name for m in desk.cloud.machines.values())


def test_launched_nodes_know_their_machine_and_their_way(desk: Desk) -> None:
    desk.record(planned("n1"))
    carry_out(desk)
    (node,) = desk.nodes()
    (machine,) = desk.cloud.machines.values()
    assert node.provider_id.endswith(machine.id)
    assert [phase for phase, _, _ in node.history] == [Phase.LAUNCHING, Phase.LAUNCHED]


def test_after_a_shortage_the_next_offering_is_asked_for_and_the_first_is_left_alone(desk: Desk) -> None:
    desk.cloud.withdraw(key_of(A))
    desk.record(planned("n1"))
    carry_out(desk)
    assert offerings_in_use(desk) == ["us-east-1b"]
    assert desk.nodes()[0].obtained == B
    (backoff,) = desk.pool_status()["backoffs"]
    assert (backoff["instanceType"], backoff["zone"], backoff["reason"]) == ("p5.48xlarge", "us-east-1a", "NotOffered")


def test_what_is_missing_comes_from_the_next_offering(desk: Desk) -> None:
    desk.cloud.limit(key_of(A), 1)
    desk.record(planned("n1"), planned("n2"))
    carry_out(desk)
    assert offerings_in_use(desk) == ["us-east-1a", "us-east-1b"]
    assert [node.obtained for node in desk.nodes()] == [A, B]


def test_a_gang_moves_as_a_whole(desk: Desk) -> None:
    desk.cloud.limit(key_of(A), 1)
    desk.record(planned("n1", pods=("default/a",)), planned("n2", pods=("default/b",)), gang=True)
    carry_out(desk)
    assert offerings_in_use(desk) == ["us-east-1b", "us-east-1b"]


def test_when_nothing_can_be_had_the_nodes_fail(desk: Desk) -> None:
    for offering in (A, B):
        desk.cloud.shortage(key_of(offering), since=desk.now, until=desk.now + timedelta(hours=1))
    desk.record(planned("n1"))
    carry_out(desk)
    assert desk.batches()[0].outcome == "Failed"
    assert desk.nodes()[0].phase is Phase.FAILED
    assert len(desk.pool_status()["backoffs"]) == 2


def test_a_backed_off_offering_is_skipped_without_a_call(desk: Desk) -> None:
    desk.cloud.shortage(key_of(A), since=desk.now, until=desk.now + timedelta(hours=1))
    desk.record(planned("n1"))
    carry_out(desk)
    restarted = desk.restarted()
    restarted.record(planned("n2"))
    calls = restarted.cloud.calls.count(Call.LAUNCH)
    carry_out(restarted)
    assert restarted.cloud.calls.count(Call.LAUNCH) == calls + 1
    assert restarted.nodes()[1].obtained == B


@pytest.mark.parametrize("fault", [Fault.LOST_REQUEST, Fault.LOST_ANSWER])
@pytest.mark.parametrize("times", [1, 2, 3, 5])
def test_an_unclear_outcome_is_repeated_unchanged_until_it_is_known(desk: Desk, fault: Fault, times: int) -> None:
    desk.cloud.inject(Call.LAUNCH, *[fault] * times)
    desk.record(planned("n1"))
    for _ in range(times + 1):
        carry_out(desk)
        desk.clock.advance(timedelta(minutes=5))
    assert offerings_in_use(desk) == ["us-east-1a"]
    assert desk.batches()[0].attempt == 0
    assert desk.nodes()[0].phase is Phase.LAUNCHED


def test_a_call_that_timed_out_is_not_repeated_in_the_same_tick(desk: Desk) -> None:
    desk.cloud.inject(Call.LAUNCH, Fault.LOST_REQUEST)
    desk.record(planned("n1"))
    carry_out(desk)
    assert (desk.cloud.calls.count(Call.LAUNCH), desk.batches()[0].outcome) == (1, "Calling")


def test_while_the_outcome_is_unclear_no_other_zone_is_asked(desk: Desk) -> None:
    desk.cloud.inject(Call.LAUNCH, Fault.LOST_ANSWER)
    desk.record(planned("n1"))
    carry_out(desk)
    (batch,) = desk.batches()
    assert (batch.outcome, batch.attempt) == ("Calling", 0)
    assert desk.nodes()[0].phase is Phase.LAUNCHING
    assert len(desk.cloud.launches) == 1


@pytest.mark.parametrize("fault", [Fault.THROTTLED, Fault.UNKNOWN_CODE])
def test_throttled_and_unknown_answers_wait_until_their_back_off_has_passed(desk: Desk, fault: Fault) -> None:
    desk.cloud.inject(Call.LAUNCH, fault)
    desk.record(planned("n1"))
    carry_out(desk)
    assert desk.cloud.calls.count(Call.LAUNCH) == 1
    assert desk.batches()[0].outcome == "Calling"
    carry_out(desk)
    assert desk.cloud.calls.count(Call.LAUNCH) == 1
    desk.clock.advance(timedelta(minutes=5))
    carry_out(desk)
    assert desk.batches()[0].outcome == "Launched"


def test_a_refused_request_backs_the_pool_off(desk: Desk) -> None:
    desk.cloud.break_template("default", "no such image")
    desk.record(planned("n1"))
    with pytest.raises(TemplateError, match="no such image") as caught:
        carry_out(desk)
    assert Trouble("LaunchBatch", "b", caught.value).text.startswith(
        "no such image\n  Correct the pool's node template"
    )
    (backoff,) = desk.pool_status()["backoffs"]
    assert (backoff["reason"], backoff.get("zone", "")) == ("Configuration", "")
    assert desk.nodes()[0].phase is Phase.FAILED
    assert desk.cloud.machines == {}


def test_the_request_is_the_same_whoever_derives_it(desk: Desk) -> None:
    desk.cloud.inject(Call.LAUNCH, Fault.LOST_REQUEST)
    desk.record(planned("n1"))
    carry_out(desk)
    before = request_of(desk.journal.batches[0], cluster="uid-1")
    assert request_of(desk.restarted().journal.batches[0], cluster="uid-1") == before


def test_a_template_kind_without_provider_is_a_configuration_error(desk: Desk) -> None:
    desk.record(planned("n1"))
    providers = Providers({"KwokNodeTemplate": next(iter(desk.providers.by_template.values()))}, cluster="uid-1")
    with pytest.raises(ConfigurationError, match="SimulatedNodeTemplate") as caught:
        launch(desk.journal.batches[0], providers=providers, journal=desk.journal, backoffs=desk.backoffs, now=desk.now)
    assert "KwokNodeTemplate" in caught.value.next_step


def test_a_token_that_was_used_otherwise_is_never_replaced(desk: Desk) -> None:
    desk.record(planned("n1"))
    token = token_of(desk.journal.batches[0], 0)
    other = LaunchRequest(token, ("x",), (key_of(A),), FrozenMap({TAG_CLUSTER: "uid-1"}))
    desk.providers.by_template["SimulatedNodeTemplate"].launch(other)
    with pytest.raises(TokenReusedError):
        carry_out(desk)
    (batch,) = desk.batches()
    assert (batch.outcome, batch.attempt, len(desk.cloud.machines)) == ("Calling", 0, 1)


class Picky(SimulatedProvider):
    """A provider that is never ready for n1."""

    def launch(self, request: LaunchRequest) -> LaunchAnswer:
        if "n1" in request.nodes:
            raise ThrottledError("the rate is exceeded")
        return super().launch(request)


def test_a_launch_that_keeps_failing_keeps_no_other_from_its_turn(desk: Desk) -> None:
    providers = Providers({"SimulatedNodeTemplate": Picky(desk.cloud)}, cluster="uid-1")
    executor = Executor(desk.api, desk.journal, desk.backoffs, providers, desk.clock)
    seen = Observed(Snapshot(pools=(POOL,)), {})
    desk.record(planned("n1"))
    executor.carry_out(desk.journal.pending(), seen, desk.now)
    desk.clock.advance(timedelta(minutes=10))
    desk.record(planned("n3"))
    # In the order of their names the one that fails would be first, and pause the pool before the other is asked for.
    assert [batch.nodes for batch in desk.journal.pending().launches] == [("n1",), ("n3",)]
    (trouble,) = executor.carry_out(desk.journal.pending(), seen, desk.now)
    assert trouble.reason == "Throttled"
    assert [machine.node for machine in desk.cloud.machines.values()] == ["n3"]


class Failing:
    """The simulated provider, whose launches raise an error and have no effect."""

    def __init__(self, desk: Desk, error: Exception) -> None:
        self._inner = next(iter(desk.providers.by_template.values()))
        self._error = error
        self.asked = 0

    def __getattr__(self, name: str) -> object:
        return getattr(self._inner, name)

    def launch(self, request: LaunchRequest) -> LaunchAnswer:
        self.asked += 1
        raise self._error


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(QuotaError("full"), id="capacity"),
        pytest.param(GoneError("no such launch template", code="InvalidLaunchTemplateId.NotFound"), id="gone"),
        pytest.param(UnknownRefusalError("no", code="SomethingNew"), id="unknown code of a 4xx answer"),
    ],
)
def test_a_refusal_lets_the_next_offering_be_asked_for_and_rests(desk: Desk, error: ProviderError) -> None:
    failing = Failing(desk, error)
    providers = Providers({kind: cast(Provider, failing) for kind in desk.providers.by_template}, "uid-1")
    desk.record(planned("n1"))
    for _ in range(3):
        for batch in desk.journal.pending().launches:
            with suppress(RefusedError):
                launch(batch, providers=providers, journal=desk.journal, backoffs=desk.backoffs, now=desk.now)
    assert desk.batches()[0].outcome == "Failed"
    assert failing.asked <= 2  # each of the two offerings at most once
    assert {backoff["reason"] for backoff in desk.pool_status()["backoffs"]} == {error.kind}


def test_an_error_of_unknown_kind_rests_and_the_same_call_is_repeated(desk: Desk) -> None:
    failing = Failing(desk, ProviderError("a third party's own"))
    providers = Providers({kind: cast(Provider, failing) for kind in desk.providers.by_template}, "uid-1")
    desk.record(planned("n1"))
    (batch,) = desk.journal.pending().launches
    with pytest.raises(ProviderError):
        launch(batch, providers=providers, journal=desk.journal, backoffs=desk.backoffs, now=desk.now)
    (calling,) = desk.batches()
    assert calling.outcome == "Calling"
    launch(calling, providers=providers, journal=desk.journal, backoffs=desk.backoffs, now=desk.now)
    assert failing.asked == 1  # not before the back-off has passed
