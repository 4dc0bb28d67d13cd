"""Nothing is launched or ended on a view that a silent watch has frozen."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from autoscaler.cluster.api import ApiError, KubernetesApi, MalformedAnswerError, Page, WatchEvent
from autoscaler.cluster.resources import PODS, Resource
from autoscaler.settings.settings import DEFAULTS
from autoscaler.simulation.simulation import Simulation
from tests.crash.life import START, scenario, small_catalog

HALF = DEFAULTS.loop.stale / 2


class Frozen:
    """An API whose watches are open and bring nothing. `refusal` is what lists of pods are answered with."""

    def __init__(self, api: KubernetesApi) -> None:
        self._api = api
        self.refusal: ApiError | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._api, name)

    def list(self, resource: Resource, **query: Any) -> Page:
        if self.refusal is not None and resource == PODS:
            raise self.refusal
        return self._api.list(resource, **query)

    def watch(self, resource: Resource, *, resource_version: str, timeout_seconds: float = 0) -> Iterator[WatchEvent]:
        return iter(())


@pytest.fixture
def simulation() -> Simulation:
    return Simulation(catalog=small_catalog(), start=START)


def test_what_a_silent_watch_hides_is_seen_once_it_is_old(simulation: Simulation) -> None:
    loop = simulation.new_loop(Frozen(simulation.api))
    loop.tick()
    simulation.add(scenario())
    simulation.settle_cluster()
    simulation.clock.advance(HALF - timedelta(seconds=1))
    assert loop.tick().plan.launches == ()
    assert max(loop.ages().values()) == HALF.total_seconds() - 1
    simulation.clock.advance(timedelta(seconds=1))
    assert loop.tick().plan.launches != ()
    assert max(loop.ages().values()) == 0


def test_without_the_list_nothing_is_done_and_the_age_shows(simulation: Simulation) -> None:
    api = Frozen(simulation.api)
    loop = simulation.new_loop(api)
    simulation.add(scenario())
    simulation.settle_cluster()
    loop.follow()  # it has seen the pods and would launch for them now
    api.refusal = MalformedAnswerError("<html>")
    simulation.clock.advance(HALF)
    for _ in range(3):
        writes, machines = simulation.api.writes, len(simulation.cloud.machines)
        with pytest.raises(MalformedAnswerError):
            loop.tick()
        assert (simulation.api.writes, len(simulation.cloud.machines)) == (writes, machines)
        simulation.clock.advance(HALF)
    assert loop.ages()["pods"] == 4 * HALF.total_seconds()
    api.refusal = None
    assert loop.tick().plan.launches != ()
    assert loop.ages()["pods"] == 0
