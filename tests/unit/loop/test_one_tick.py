"""One tick does things in their order: it stops while it is uninstalled, and charges a launch before it asks for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest

from autoscaler.clock import ClockJumps
from autoscaler.cluster.api import ForbiddenError, list_all
from autoscaler.cluster.intercepted import InterceptedApi
from autoscaler.cluster.resources import (
    CAPACITY_POOLS,
    CUSTOM_RESOURCE_DEFINITIONS,
    LAUNCH_BATCHES,
    PROVISIONED_NODES,
    SPENDINGS,
    Resource,
)
from autoscaler.errors import ConfigurationError
from autoscaler.loop import loop as loop_module
from autoscaler.loop import observation
from autoscaler.loop.loop import Tick
from autoscaler.model.provisioned_node import Phase
from autoscaler.model.spending import Spending
from autoscaler.simulation.simulation import Simulation
from providers.simulated.machines import Behaviour
from tests.crash.life import START, scenario, small_catalog


@pytest.fixture
def simulation() -> Simulation:
    """Pods wait for machines."""
    made = Simulation(catalog=small_catalog(), start=START)
    made.add(scenario())
    made.settle_cluster()
    return made


def tick(simulation: Simulation, before_write: Callable[[Resource], None]) -> Tick:
    @contextmanager
    def attend(verb: str, resource: Resource) -> Iterator[None]:
        if verb not in ("get", "list", "watch"):
            before_write(resource)
        yield

    return simulation.new_loop(InterceptedApi(simulation.api, attend)).tick()


def test_a_launch_is_charged_before_it_is_written_down(simulation: Simulation) -> None:
    written: list[Resource] = []
    done = tick(simulation, written.append)
    assert len(simulation.cloud.machines) == len(done.plan.launches) > 0
    assert written.index(SPENDINGS) < written.index(LAUNCH_BATCHES) < written.index(PROVISIONED_NODES)
    (account,) = list_all(simulation.api, SPENDINGS)[0]
    assert float(account["status"]["recentLaunches"]) == len(done.plan.launches)


def test_without_an_account_nothing_is_launched(simulation: Simulation) -> None:
    def refuse(resource: Resource) -> None:
        if resource == SPENDINGS:
            raise ForbiddenError("spendings may not be written")

    done = tick(simulation, refuse)
    assert [trouble.kind for trouble in done.troubles] == ["Spending"]
    assert done.plan.launches != ()
    assert simulation.cloud.machines == {}
    assert list_all(simulation.api, LAUNCH_BATCHES)[0] == ()


def test_an_account_that_cannot_be_computed_stops_launches_alone(
    simulation: Simulation, monkeypatch: pytest.MonkeyPatch
) -> None:
    def breaks(*_: object) -> Spending:
        raise ArithmeticError("too many digits")

    monkeypatch.setattr(loop_module, "charged", breaks)
    done = simulation.new_loop().tick()
    assert [(trouble.kind, trouble.reason) for trouble in done.troubles] == [("Spending", "Unexpected")]
    assert done.plan.launches != ()
    assert simulation.cloud.machines == {}
    assert list_all(simulation.api, CAPACITY_POOLS)[0][0]["status"]["conditions"]


def test_a_type_that_failed_is_not_launched_again_before_that_is_written_down() -> None:
    simulation = Simulation(catalog=small_catalog(), start=START, behaviour=Behaviour(boot=timedelta(days=2)))
    simulation.add(scenario())
    refused: set[Resource] = set()

    @contextmanager
    def attend(verb: str, resource: Resource) -> Iterator[None]:
        if verb == "patch" and resource in refused:
            raise ForbiddenError(f"{resource} may not be written")
        yield

    simulation.new_loop(InterceptedApi(simulation.api, attend))
    simulation.run(START + timedelta(minutes=1))
    refused.add(CAPACITY_POOLS)
    known = [len(simulation.cloud.machines)]
    unsaved = []

    def observe(done: Tick) -> None:
        known.append(len(simulation.cloud.machines))
        if any((Phase.FAILED, done.now) == entry[:2] for node in done.snapshot.provisioned for entry in node.history):
            unsaved.append((done.plan.launches != (), known[-1] - known[-2]))

    simulation.run(START + timedelta(minutes=30), observe)
    assert known[0] > 0
    assert unsaved != []
    assert {launched for _, launched in unsaved} == {0}
    assert any(planned for planned, _ in unsaved)


def test_ages_by_the_clock_of_another_process_count_only_after_a_while(
    simulation: Simulation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is known of the clock by which an earlier process, or another replica, has recorded moments."""
    doubtful: list[bool] = []
    ask = observation.ask

    def asked(*given: Any, jumps: ClockJumps, **others: Any) -> Any:
        doubtful.append(jumps.within(timedelta(minutes=5)))
        return ask(*given, jumps=jumps, **others)

    def observe_after(wait: timedelta) -> bool:
        simulation.clock.advance(wait)
        loop.tick()
        return doubtful[-1]

    monkeypatch.setattr(observation, "ask", asked)
    loop = simulation.new_loop()
    assert [observe_after(wait) for wait in (timedelta(0), timedelta(minutes=4), timedelta(minutes=2))] == [
        True,
        True,
        False,
    ]
    loop.follow()
    assert [observe_after(wait) for wait in (timedelta(0), timedelta(minutes=6))] == [True, False]


def test_nothing_is_ended_while_the_definitions_go(simulation: Simulation) -> None:
    loop = simulation.new_loop()
    loop.tick()
    name = str(PROVISIONED_NODES)
    simulation.api.create(
        CUSTOM_RESOURCE_DEFINITIONS, {"metadata": {"name": name, "finalizers": ["customresourcecleanup"]}, "spec": {}}
    )
    for node in list_all(simulation.api, PROVISIONED_NODES)[0]:
        simulation.api.delete(PROVISIONED_NODES, node["metadata"]["name"])
    simulation.api.delete(CUSTOM_RESOURCE_DEFINITIONS, name)
    machines = dict(simulation.cloud.machines)
    with pytest.raises(ConfigurationError, match="all machines stay"):
        loop.tick()
    assert dict(simulation.cloud.machines) == machines
    assert list_all(simulation.api, PROVISIONED_NODES)[0] == ()


def test_what_was_written_down_before_the_clock_was_set_back_is_past(simulation: Simulation) -> None:
    loop = simulation.new_loop()
    loop.tick()
    for node in list_all(simulation.api, PROVISIONED_NODES)[0]:
        node["status"]["phaseSince"] = "2026-01-05T12:00:00Z"
        simulation.api.update(PROVISIONED_NODES, node, subresource="status")
    known = loop.tick().snapshot.provisioned
    assert {node.phase_since for node in known} == {START}


def test_what_fails_for_long_does_not_slow_down_what_failed_just_now(simulation: Simulation) -> None:
    refused = {SPENDINGS}

    @contextmanager
    def attend(verb: str, resource: Resource) -> Iterator[None]:
        if verb not in ("get", "list", "watch") and resource in refused:
            raise ForbiddenError(f"{resource} may not be written")
        yield

    loop = simulation.new_loop(InterceptedApi(simulation.api, attend))

    def wait() -> timedelta:
        done = loop.tick()
        assert done.wake_at is not None
        return done.wake_at - done.now

    first, *others = [wait() for _ in range(3)]
    assert others == [2 * first, 4 * first]
    refused.add(CAPACITY_POOLS)
    (pool,) = list_all(simulation.api, CAPACITY_POOLS)[0]
    simulation.api.create(CAPACITY_POOLS, {"metadata": {"name": "other"}, "spec": pool["spec"]})
    assert [wait(), wait()] == [first, 2 * first]
    refused.discard(CAPACITY_POOLS)
    assert wait() > 2 * first
