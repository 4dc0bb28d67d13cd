"""Kill the controller before and after every write it makes, restart it with empty memory, and count the machines.

Between two writes lies every provider call, so dying before each write is dying after each call.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest

from autoscaler.simulation.simulation import Simulation
from providers.contract import OfferingKey
from providers.simulated.cloud import Call, Fault
from tests.crash.life import check, live


def withdrawn(simulation: Simulation) -> None:
    """The first zone sells nothing, so the second attempt of the batch succeeds."""
    simulation.cloud.withdraw(OfferingKey("g6.xlarge", "us-east-1a", "on-demand"))


def one_left(simulation: Simulation) -> None:
    """One machine in the first zone, the other in the second."""
    simulation.cloud.limit(OfferingKey("g6.xlarge", "us-east-1a", "on-demand"), 1)


def deaf(simulation: Simulation) -> None:
    """The answers to the first launches are lost."""
    simulation.cloud.inject(Call.LAUNCH, *[Fault.LOST_ANSWER] * 4)


def hazy(simulation: Simulation) -> None:
    """The cloud lists new machines only after half a minute."""
    cloud = simulation.cloud
    cloud.behaviour = replace(cloud.behaviour, visibility=timedelta(seconds=30))


def undisturbed(simulation: Simulation) -> None:
    """Everything goes well."""


World = Callable[[Simulation], None]
WORLDS: list[World] = [undisturbed, withdrawn, one_left, deaf, hazy]


@pytest.mark.parametrize("prepare", WORLDS, ids=lambda world: world.__name__)
def test_a_life_without_crash(prepare: World) -> None:
    simulation, (process,) = live(prepare)
    check(simulation, "nothing")
    assert process.writes > 20


@pytest.mark.parametrize("before", [True, False], ids=["before", "after"])
@pytest.mark.parametrize("prepare", WORLDS, ids=lambda world: world.__name__)
def test_dying_at_any_write_leaves_exactly_one_machine_a_node(prepare: World, before: bool) -> None:
    writes = live(prepare)[1][0].writes
    for at in range(1, writes + 1):
        simulation, (dying, _) = live(prepare, (at, before))
        assert dying.step, f"write {at} of {writes} was never reached"
        check(simulation, dying.step)
