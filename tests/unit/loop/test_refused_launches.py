"""Launches that the API server refuses to write down use up nothing of what may be launched in an hour."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from autoscaler.cluster.api import ApiError, InvalidError, Object, UnavailableError, list_all
from autoscaler.cluster.resources import CAPACITY_POOLS, LAUNCH_BATCHES, PROVISIONED_NODES, SPENDINGS
from autoscaler.settings.settings import Settings, SpendingSettings
from autoscaler.simulation.simulation import Simulation
from tests.builders import pool_manifest, shipped
from tests.unit.simulation.queue import Gang, Queue, condition

START = datetime(2026, 1, 5, 9, tzinfo=UTC)
REFUSED = InvalidError("denied the request", next_step="correct the policy")
UNANSWERED = UnavailableError("no answer", next_step="wait")


class Refusing:
    """An API server that writes no LaunchBatch while `error` is set."""

    def __init__(self, api: Any, error: ApiError | None) -> None:
        self._api = api
        self.error = error
        self.refused = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._api, name)

    def create(self, resource: Any, manifest: Object) -> Object:
        if resource is LAUNCH_BATCHES and self.error is not None:
            self.refused += 1
            raise self.error
        found: Object = self._api.create(resource, manifest)
        return found


def cluster(error: ApiError | None) -> tuple[Simulation, Queue, Refusing]:
    settings = Settings(spending=SpendingSettings(max_launches_per_hour=2))
    simulation = Simulation(catalog=shipped("g6.xlarge"), start=START, settings=settings)
    simulation.api.create(CAPACITY_POOLS, pool_manifest(nodes=6))
    refusing = Refusing(simulation.api, error)
    simulation.new_loop(refusing)  # type: ignore[arg-type]
    return simulation, Queue(simulation.api), refusing


def charged(simulation: Simulation) -> float:
    (found,) = list_all(simulation.api, SPENDINGS)[0]
    return float(found["status"].get("recentLaunches", 0))


def test_a_request_has_what_it_may_have_once_the_refusal_is_over() -> None:
    simulation, queue, refusing = cluster(REFUSED)
    queue.ask(Gang("train", ((2, 1, "1"),)))
    simulation.run(START + timedelta(minutes=5))
    assert refusing.refused > 1, "it is tried again"
    assert charged(simulation) == 0
    assert "guard" not in condition(queue.request("train"), "Provisioned")["message"]
    refusing.error = None
    simulation.run(START + timedelta(minutes=15))
    assert len(list_all(simulation.api, PROVISIONED_NODES)[0]) == 2
    assert charged(simulation) > 0


@pytest.mark.parametrize("error", [UNANSWERED, None], ids=["it-may-have-been-written", "it-was-written"])
def test_what_may_have_been_written_stays_charged(error: ApiError | None) -> None:
    simulation, queue, _ = cluster(error)
    queue.ask(Gang("train", ((2, 1, "1"),)))
    simulation.run(START + timedelta(seconds=5))
    assert charged(simulation) >= 1.9
