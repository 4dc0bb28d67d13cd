"""Lives of capacity that Google holds: flex-start machines and CapacityBlocks, and a few random schedules of them."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import settings

from autoscaler.cluster.api import list_all
from autoscaler.cluster.resources import CAPACITY_BLOCKS, LAUNCH_BATCHES, PODS, PROVISIONED_NODES
from instance_catalog.dataclass import replace
from tests.crash.life import START
from tests.faults.drawing import AFRESH
from tests.faults.gcp.held import (
    BLOCK,
    CALENDAR,
    HELD,
    KINDS,
    WORK,
    ZONE,
    HeldSchedules,
    HeldSimulation,
    priced_catalog,
)
from tests.faults.gcp.schedules import PODS_OF, RESYNC, scenario
from tests.faults.gcp.world import KIND

TestHeldSchedules = pytest.mark.slow(HeldSchedules.TestCase)
TestHeldSchedules.settings = settings(
    max_examples=4, stateful_step_count=16, deadline=None, derandomize=True, backend=AFRESH
)


def begun() -> HeldSimulation:
    simulation = HeldSimulation(catalog=priced_catalog(), start=START)
    simulation.add(scenario(HeldSchedules.pools))
    return simulation


def models(simulation: HeldSimulation) -> list[str]:
    """How the machines that run are paid for."""
    return sorted(one.model for one in simulation.ours() if one.ended is None)


@pytest.mark.parametrize("kind", KINDS)
def test_a_reservation_is_filled_and_emptied(kind: str) -> None:
    simulation = begun()
    simulation.hold(kind, 2, timedelta(minutes=20), timedelta(hours=1))
    simulation.add(scenario(WORK.format(number=1, copies=2, minutes=600)))
    simulation.run(START + timedelta(minutes=40))
    held = [one for one in simulation.ours() if one.reservation and one.ended is None]
    assert [one.model for one in held] == ["RESERVATION_BOUND" if kind == CALENDAR else "STANDARD"] * 2
    while simulation.clock.now() < START + timedelta(hours=2):
        simulation.run(simulation.clock.now() + RESYNC)
    assert [one for one in simulation.ours() if one.reservation] == []


def test_a_reservation_is_filled_beside_one_that_no_group_starts() -> None:
    """Both are paid for. What the other lacks is said on its CapacityBlock, and keeps nothing from being launched."""
    simulation = begun()
    held = simulation.hold(CALENDAR, 1, timedelta(0), timedelta(hours=4))
    simulation.fake.project.holdings.append(replace(held, name="bare-res", future="bare"))
    reservation = f"zones/{ZONE}/futureReservations/bare"
    own = {"reservation": reservation, "instance_type": HELD, "zone": ZONE, "count": 1}
    bare = BLOCK.rpartition("---\n")[2].replace("name: block", "name: bare")
    simulation.add(scenario(bare.format(starts_at=START, ends_at=START + timedelta(hours=4), **own)))
    simulation.add(scenario(WORK.format(number=1, copies=1, minutes=600)))
    simulation.run(START + timedelta(minutes=30))
    assert models(simulation) == ["RESERVATION_BOUND"]
    status = simulation.api.get(CAPACITY_BLOCKS, "bare")["status"]
    (ready,) = (one for one in status["conditions"] if one["type"] == "Ready")
    assert ready["status"] == "False"
    assert ready["message"].startswith(f"no group of {KIND} gpu starts machines of reservation {reservation}: ")
    assert simulation.fake.calls["createInstances"] == 1


def test_flex_start_machines_end_with_their_run() -> None:
    simulation = begun()
    simulation.add(scenario(PODS_OF.format(number=1, copies=2, minutes=300, gang="")))
    simulation.run(START + timedelta(minutes=10))
    assert models(simulation) == ["FLEX_START", "FLEX_START"]
    while simulation.clock.now() < START + timedelta(hours=2):
        simulation.run(simulation.clock.now() + RESYNC)
    assert list_all(simulation.api, PODS)[0] == ()
    assert all(list_all(simulation.api, kind)[0] == () for kind in (LAUNCH_BATCHES, PROVISIONED_NODES))
    assert simulation.ours() == []
