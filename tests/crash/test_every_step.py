"""Kill the controller around the writes it makes, restart it with empty memory, and count the machines.

Between two writes lies every provider call, so dying before each write is dying after each call. In the simulated cloud
the controller dies at every write of a launch; of the rest, where what differs is the adapter and not the journal, each
run takes a part. `UPDATE_GOLDEN=1 pytest tests/crash/test_table.py` takes all of it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import pytest

from autoscaler.simulation.simulation import Simulation
from tests.crash.clouds import KWOK
from tests.crash.life import SIMULATED, check, live
from tests.crash.plots import LAUNCH, Plot
from tests.crash.troubles import CHAPTERS, Chapter, deaf, hazy, one_left, undisturbed, withdrawn

World = Callable[[Simulation], None]
WORLDS: list[World] = [undisturbed, withdrawn, one_left, deaf, hazy]
QUICK = (SIMULATED, KWOK)


CASES: Final = [
    pytest.param(chapter, plot, id=f"{chapter.title}: {plot.title}") for chapter in CHAPTERS for plot in chapter.plots()
]


def _stride(chapter: Chapter, plot: Plot) -> int:
    if chapter.cloud is SIMULATED and plot is LAUNCH:
        return 1
    return 8 if chapter.cloud in QUICK else 24


@pytest.mark.parametrize("prepare", WORLDS, ids=lambda world: world.__name__)
def test_a_life_without_crash(prepare: World) -> None:
    simulation, (process,) = live(prepare)
    check(simulation, process, "nothing")
    assert process.writes > 20


@pytest.mark.slow
@pytest.mark.parametrize("prepare", WORLDS, ids=lambda world: world.__name__)
def test_dying_before_any_write_of_a_launch_leaves_one_machine_a_node(prepare: World) -> None:
    writes = live(prepare)[1][0].writes
    for at in range(1, writes + 1):
        simulation, (dying, _) = live(prepare, (at, True))
        assert dying.step, f"write {at} of {writes} was never reached"
        check(simulation, dying, dying.step)


@pytest.mark.slow
@pytest.mark.parametrize("before", [True, False], ids=["before", "after"])
@pytest.mark.parametrize(("chapter", "plot"), CASES)
def test_dying_in_trouble_leaves_one_machine_a_node(chapter: Chapter, plot: Plot, before: bool) -> None:
    simulation, (process,) = live(chapter.trouble, cloud=chapter.cloud, plot=plot)
    check(simulation, process, "nothing", cloud=chapter.cloud, plot=plot)
    every = _stride(chapter, plot)
    for at in range(1 if before else 1 + every // 2, process.writes + 1, every):
        simulation, (dying, _) = live(chapter.trouble, (at, before), cloud=chapter.cloud, plot=plot)
        assert dying.step, f"write {at} of {process.writes} was never reached"
        check(simulation, dying, dying.step, cloud=chapter.cloud, plot=plot)
