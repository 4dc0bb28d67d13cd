"""However often the loop is woken, what fails is asked for ever more rarely: at most 60 times an hour."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from itertools import cycle
from typing import cast

import pytest

from autoscaler.execution.executor import Executor
from autoscaler.execution.launch import Providers
from autoscaler.execution.observed import Observed
from autoscaler.execution.patience import Patience
from autoscaler.execution.providers_seen import ask
from autoscaler.lifecycle.provisioned_node import last_edge
from autoscaler.model.provisioned_node import Phase
from autoscaler.model.snapshot import Snapshot
from instance_catalog.frozen_map import FrozenMap
from providers.contract import InstanceState, Provider, TerminateAnswer
from providers.errors import ERRORS, AmbiguousError, PermissionDeniedError, ProviderError, ThrottledError
from tests.desk import POOL, A, new_desk, planned
from tests.unit.execution.node_site import Site

TICK = timedelta(seconds=5)
MOST = 60


class Broken:
    """The simulated provider, of which one call raises these errors by turns."""

    def __init__(self, inner: Provider, call: str, errors: Sequence[Exception]) -> None:
        self._inner = inner
        self._call = call
        self._errors = cycle(errors)
        self.asked = 0

    def __getattr__(self, name: str) -> object:
        return self._fail if name == self._call else getattr(self._inner, name)

    def _fail(self, *_: object, **__: object) -> object:
        self.asked += 1
        raise next(self._errors)


ONE_BY_ONE = [pytest.param((kind("no"),), id=kind.kind) for kind in (*ERRORS, ProviderError)]
BY_TURNS = pytest.param((AmbiguousError("cut"), ThrottledError("slowly")), id="by turns")
A_BUG = pytest.param((KeyError("AvailabilityZone"),), id="a bug")
every_failure = pytest.mark.parametrize("errors", [*ONE_BY_ONE, BY_TURNS, A_BUG])


@every_failure
def test_a_launch_that_fails(errors: Sequence[Exception]) -> None:
    desk = new_desk()
    inner = desk.providers.by_template["SimulatedNodeTemplate"]
    broken = Broken(inner, "launch", errors)
    providers = Providers({"SimulatedNodeTemplate": cast(Provider, broken)}, "uid-1")
    executor = Executor(desk.api, desk.journal, desk.backoffs, providers, desk.clock)
    for number in range(720):
        pending = desk.journal.pending()
        # The planner asks for nothing that rests.
        if not pending.launches and not desk.backoffs.forbid("gpu", A, desk.now):
            desk.record(planned(f"n{number}", A))
            pending = desk.journal.pending()
        executor.carry_out(pending, Observed(Snapshot(pools=(POOL,)), {}), desk.now)
        desk.clock.advance(TICK)
    assert 0 < broken.asked <= MOST


@pytest.mark.parametrize("errors", [BY_TURNS, A_BUG])
def test_a_launch_that_fails_in_process_after_process(errors: Sequence[Exception]) -> None:
    """What one process remembers in memory hides what is missing in the pool's status: here each round is a process."""
    desk = new_desk()
    desk.record(planned("n1", A))
    broken = Broken(desk.providers.by_template["SimulatedNodeTemplate"], "launch", errors)
    providers = Providers({"SimulatedNodeTemplate": cast(Provider, broken)}, "uid-1")
    for _ in range(720):
        desk = desk.restarted()
        executor = Executor(desk.api, desk.journal, desk.backoffs, providers, desk.clock)
        executor.carry_out(desk.journal.pending(), Observed(Snapshot(pools=(POOL,)), {}), desk.now)
        assert broken.asked <= MOST
        desk.clock.advance(TICK)
    assert broken.asked > 0


def test_launches_of_a_pool_that_fail_by_a_bug_share_their_wait() -> None:
    desk = new_desk()
    broken = Broken(desk.providers.by_template["SimulatedNodeTemplate"], "launch", (KeyError("AvailabilityZone"),))
    providers = Providers({"SimulatedNodeTemplate": cast(Provider, broken)}, "uid-1")
    executor = Executor(desk.api, desk.journal, desk.backoffs, providers, desk.clock)
    for number in range(10):
        desk.record(planned(f"n{number}", A))
    for _ in range(720):
        executor.carry_out(desk.journal.pending(), Observed(Snapshot(pools=(POOL,)), {}), desk.now)
        assert broken.asked <= MOST
        desk.clock.advance(TICK)
    assert broken.asked > 0


@pytest.mark.parametrize("errors", [(AmbiguousError("cut"),), (PermissionDeniedError("no"),), (KeyError("Tags"),)])
@pytest.mark.parametrize("call", ["describe", "look_up"])
def test_a_look_that_fails(errors: Sequence[Exception], call: str) -> None:
    desk = new_desk()
    desk.record(planned("n1"))
    inner = desk.providers.by_template["SimulatedNodeTemplate"]
    executor = Executor(desk.api, desk.journal, desk.backoffs, desk.providers, desk.clock)
    executor.carry_out(desk.journal.pending(), Observed(Snapshot(pools=(POOL,)), {}), desk.now)
    desk.cloud.machines.clear()
    broken = Broken(inner, call, errors)
    providers = Providers({"SimulatedNodeTemplate": cast(Provider, broken)}, "uid-1")
    patience = Patience(desk.clock, longest=timedelta(minutes=1))
    for _ in range(240):
        seen = ask(providers, desk.nodes(), now=desk.now, patience=patience)
        assert (len(seen.silent), dict(seen.windows)) == (1, {}), "nothing is concluded, also while it is left alone"
        desk.clock.advance(TICK)
    assert 0 < broken.asked <= MOST // 3 + 5  # in 20 minutes; the first waits are shorter than one


class Refusing:
    """A provider that does not end machines, as one whose machines are protected."""

    def __init__(self, inner: Provider, error: ProviderError) -> None:
        self._inner = inner
        self.error: ProviderError | None = error
        self.asked = 0

    def __getattr__(self, name: str) -> object:
        return getattr(self._inner, name)

    def terminate(self, ids: Sequence[str]) -> TerminateAnswer:
        self.asked += 1
        if self.error is None:
            return self._inner.terminate(ids)
        return TerminateAnswer(failures=FrozenMap(dict.fromkeys(ids, self.error)))


def refusing(site: Site, error: ProviderError) -> Refusing:
    """Let the site's provider refuse to end machines."""
    found = Refusing(site.desk.providers.by_template["SimulatedNodeTemplate"], error)
    providers = Providers({"SimulatedNodeTemplate": cast(Provider, found)}, "uid-1")
    site.executor = Executor(site.desk.api, site.desk.journal, site.desk.backoffs, providers, site.desk.clock)
    return found


@pytest.mark.parametrize("error", [AmbiguousError("cut"), PermissionDeniedError("protected")], ids=lambda e: e.kind)
def test_a_termination_that_fails_is_told_each_time_and_asked_rarely(error: ProviderError) -> None:
    site = Site()
    found = refusing(site, error)
    site.at(Phase.TERMINATING)
    site.carry_out()  # the taint
    for _ in range(100):
        (trouble,) = site.carry_out()
        assert trouble.reason == error.kind
        site.desk.clock.advance(timedelta(seconds=6))
    assert 0 < found.asked <= MOST // 6
    found.error = None
    site.desk.clock.advance(timedelta(minutes=5))
    assert site.carry_out() == ()
    assert site.machine_state() is InstanceState.TERMINATING


def come(site: Site) -> None:
    """The machine runs, its end was asked for once, and then a pod comes to its Node."""
    site.desk.clock.advance(timedelta(minutes=2))
    site.at(Phase.TERMINATING)
    site.carry_out()
    site.carry_out()
    site.pod("late")


def test_a_node_whose_end_was_refused_takes_the_pod_that_came() -> None:
    site = Site()
    refusing(site, PermissionDeniedError("protected"))
    come(site)
    site.carry_out()
    assert (site.node.phase, last_edge(site.node), site.evicted("late")) == (Phase.READY, "PodFound", False)
    site.consider()
    assert site.taints == []


@pytest.mark.parametrize("why", ["the answer was lost", "it does not run"])
def test_a_node_that_may_be_ending_is_not_taken_back(why: str) -> None:
    site = Site()
    lost = why == "the answer was lost"
    refusing(site, AmbiguousError("cut") if lost else PermissionDeniedError("protected"))
    come(site)
    seen = site.seen()
    if not lost:
        site.desk.cloud.stop(next(iter(site.desk.cloud.machines)))
        seen = site.seen()
    (trouble,) = site.carry_out(seen=seen)
    assert (site.node.phase, trouble.reason) == (Phase.TERMINATING, "Blocked")
