"""What the rules of project_rules.py do to a cluster, and that what they look for is found."""

from __future__ import annotations

from datetime import timedelta

from autoscaler.cluster.api import list_all
from autoscaler.cluster.resources import PODS, PROVISIONED_NODES
from tests.crash.life import START
from tests.fakes.gce.rates import LIMITS
from tests.faults import invariants
from tests.faults.gcp.test_schedules import begun
from tests.faults.gcp.world import GcpSimulation

MINUTE = timedelta(minutes=1)


def running() -> GcpSimulation:
    simulation = begun()
    simulation.run(START + 5 * MINUTE)
    assert len(simulation.ours()) == 2
    return simulation


def phases(simulation: GcpSimulation) -> list[str]:
    return sorted(node["status"]["phase"] for node in list_all(simulation.api, PROVISIONED_NODES)[0])


def test_machines_are_left_before_their_maintenance() -> None:
    simulation = running()
    machine, other = simulation.ours()
    machine.maintenance, machine.restarts = START + 9 * MINUTE, False
    simulation.run(START + 8 * MINUTE)
    assert (machine.ended is not None, other.ended) == (True, None)
    simulation.run(START + 120 * MINUTE)
    assert (simulation.ours(), list_all(simulation.api, PODS)[0]) == ([], ())


def test_nothing_is_concluded_from_a_zone_that_is_missing_in_a_list() -> None:
    simulation = running()
    before = phases(simulation)
    zones = {machine.zone for machine in simulation.ours()}
    for silent in (simulation.fake.partial, simulation.fake.unreachable):
        silent |= zones
        simulation.run(simulation.clock.now() + 2 * MINUTE)
        silent.clear()
        assert (phases(simulation), len(simulation.ours())) == (before, 2)


def test_nothing_is_concluded_with_credentials_that_have_expired() -> None:
    simulation = running()
    before = phases(simulation)
    simulation.fake.expired = True
    simulation.run(START + 9 * MINUTE)
    assert (phases(simulation), len(simulation.ours())) == (before, 2)
    simulation.fake.expired = False
    simulation.run(START + 120 * MINUTE)
    assert simulation.ours() == []


def test_a_machine_that_nothing_knows_of_is_noticed() -> None:
    since = {"m": START}
    assert not [*invariants.unbooked(since, now=START + 60 * MINUTE, patience=60 * MINUTE)]
    (found,) = invariants.unbooked(since, now=START + 61 * MINUTE, patience=60 * MINUTE)
    assert found.startswith("invariant 3: machine m costs money")


def test_a_minute_that_uses_its_quota_up_is_noticed() -> None:
    assert not [*invariants.over_quota({"changes": LIMITS["changes"] - 1}, LIMITS)]
    assert [*invariants.over_quota({"changes": LIMITS["changes"]}, LIMITS)]


def test_launches_of_pools_that_observe_are_noticed() -> None:
    assert not [*invariants.changed_in_observe({"deleteInstances": 1})]
    for call in ("createInstances", "resizeRequests.insert"):
        assert len([*invariants.changed_in_observe({call: 1})]) == 1


def test_a_host_that_goes_while_pools_observe_is_noticed_unless_its_slice_was_ordered_to_go() -> None:
    def node(batch: str, hosts: int, **metadata: str) -> dict[str, object]:
        return {"metadata": {"name": "n", **metadata}, "spec": {"batch": batch, "hosts": hosts}}

    ordered = node("slice", 2, deletionTimestamp="now")
    other, alone = node("another", 2), node("slice", 1)
    for left, found in ((node("slice", 2), 0), (ordered, 0), (other, 1), (alone, 1), (None, 1)):
        every = [ordered, *([left] if left else [])]
        assert len([*invariants.touched_in_observe("end it", left, every)]) == found
