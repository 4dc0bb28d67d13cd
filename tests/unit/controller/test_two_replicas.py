"""Two replicas on one cluster: one acts, the other takes over, and quiet means that only the Lease is written."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from datetime import timedelta
from typing import Any

import pytest

from autoscaler.cluster.api import KubernetesApi, WatchEvent, list_all
from autoscaler.cluster.intercepted import InterceptedApi, leader_only
from autoscaler.cluster.lease import Election, LeadershipLostError
from autoscaler.cluster.resources import LEASES, NODES, PROVISIONED_NODES, Resource
from autoscaler.loop.loop import Loop
from autoscaler.settings.settings import LeaseSettings
from autoscaler.simulation.simulation import Simulation
from providers.contract import InstanceState
from tests.crash.life import START, scenario, small_catalog

LEASE = LeaseSettings()


class Replica:
    """A candidate with a loop whose writes pass the fence. `stall` makes it hang before its write of that number.

    `listed` are the kinds it has listed; while it is `blind`, its watches bring nothing.
    """

    def __init__(self, name: str, simulation: Simulation) -> None:
        self._simulation = simulation
        self.stall = 0
        self.blind = False
        self.listed: list[str] = []
        self._writes = 0
        self.election = Election(simulation.api, simulation.clock, LEASE, identity=name)
        fence = leader_only(self.election.leads)

        def attend(verb: str, resource: Resource) -> AbstractContextManager[None]:
            if verb == "list":
                self.listed.append(resource.kind)
            self._writes += verb in ("create", "update", "patch", "delete")
            if self.stall and self._writes == self.stall:
                simulation.clock.advance(LEASE.renew_deadline)
            return fence(verb, resource)

        self.loop: Loop = simulation.new_loop(_LateWatches(InterceptedApi(simulation.api, attend), self))


class _LateWatches:
    """An API whose watches of one replica may lag behind everything else."""

    def __init__(self, api: KubernetesApi, replica: Replica) -> None:
        self._api = api
        self._replica = replica

    def __getattr__(self, name: str) -> Any:
        return getattr(self._api, name)

    def watch(self, resource: Resource, *, resource_version: str, timeout_seconds: float = 0) -> Iterator[WatchEvent]:
        if self._replica.blind:
            return iter(())
        return self._api.watch(resource, resource_version=resource_version, timeout_seconds=timeout_seconds)


@pytest.fixture
def simulation() -> Simulation:
    simulation = Simulation(catalog=small_catalog(), start=START)
    simulation.add(scenario())
    simulation.settle_cluster()
    return simulation


def counts(simulation: Simulation) -> set[int]:
    """How many machines, nodes and records of them there are."""
    running = sum(machine.state is not InstanceState.TERMINATED for machine in simulation.cloud.machines.values())
    return {running, *(len(list_all(simulation.api, kind)[0]) for kind in (NODES, PROVISIONED_NODES))}


def live(simulation: Simulation, replica: Replica, *, minutes: int) -> None:
    """The replica renews and ticks every few seconds."""
    for _ in range(minutes * 12):
        replica.election.attempt()
        replica.loop.tick()
        simulation.settle_cluster()
        simulation.clock.advance(timedelta(seconds=5))


def tick_on(simulation: Simulation, replica: Replica) -> None:
    """The replica ticks, and does not renew."""
    for _ in range(20):
        replica.loop.tick()
        simulation.settle_cluster()
        simulation.clock.advance(timedelta(milliseconds=100))


def test_quiet_means_that_only_the_lease_is_written(simulation: Simulation) -> None:
    leader, waiting = Replica("a", simulation), Replica("b", simulation)
    live(simulation, leader, minutes=6)
    assert counts(simulation) == {2}  # a pod each
    before, written = simulation.api.list(LEASES).resource_version, simulation.api.writes
    for _ in range(30):
        assert leader.election.attempt()
        assert not waiting.election.attempt()
        leader.loop.tick()
        simulation.clock.advance(LEASE.retry)
    changes = [event for event in simulation.api.watch(LEASES, resource_version=before) if event.type != "BOOKMARK"]
    assert len(changes) == 30
    assert simulation.api.writes - written == 30


@pytest.mark.parametrize("write", [1, 2, 3, 5, 8])
def test_a_leader_that_hangs_is_replaced_and_changes_nothing_more(simulation: Simulation, write: int) -> None:
    first, second = Replica("a", simulation), Replica("b", simulation)
    first.election.attempt()
    second.election.attempt()
    first.stall = write
    with pytest.raises(LeadershipLostError):
        tick_on(simulation, first)
    at_death = simulation.api.writes
    with pytest.raises(LeadershipLostError):
        first.loop.tick()
    assert simulation.api.writes == at_death
    simulation.clock.advance(LEASE.duration)
    live(simulation, second, minutes=6)
    assert second.election.leads()
    assert counts(simulation) == {2}  # a pod each


OWN = {"CapacityPool", "CapacityBlock", "ProvisionedNode", "LaunchBatch", "Spending"}


def test_who_has_followed_lists_only_what_leaders_write(simulation: Simulation) -> None:
    first, second = Replica("a", simulation), Replica("b", simulation)
    live(simulation, first, minutes=1)
    second.loop.follow()
    assert {"Pod", "Node", "ResourceClaim"} <= set(second.listed)
    second.listed.clear()
    live(simulation, first, minutes=1)
    second.loop.follow()
    assert OWN.isdisjoint(second.listed)
    second.listed.clear()
    second.election.attempt()
    simulation.clock.advance(LEASE.duration)
    live(simulation, second, minutes=1)
    assert second.listed.count("ProvisionedNode") == 1
    assert set(second.listed) - OWN <= set()
    assert counts(simulation) == {2}  # a pod each


def test_a_watch_that_lags_makes_a_new_leader_buy_nothing_twice(simulation: Simulation) -> None:
    first, second = Replica("a", simulation), Replica("b", simulation)
    second.loop.follow()
    second.blind = True
    first.election.attempt()
    first.loop.tick()
    second.election.attempt()
    simulation.clock.advance(LEASE.duration)
    assert second.election.attempt()
    assert len(second.loop.tick().plan.nodes) == 2  # it knows what the first one asked for
    second.blind = False
    live(simulation, second, minutes=6)
    assert counts(simulation) == {2}  # a pod each
