"""docs/crash.md: what became of lives in which the controller died, by operation, kind of write and provider.

UPDATE_GOLDEN=1 lives them all and rewrites the page (several minutes). Otherwise one life for each operation and
provider tells whether the page still names every write that there is.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Final, TypeAlias

import pytest

from tests.crash.life import check, live
from tests.crash.plots import DRAIN, HOLD, LAUNCH, Plot
from tests.crash.troubles import CHAPTERS, Chapter

# Kind of write → how many deaths at it came out whole, of how many.
Deaths: TypeAlias = dict[str, tuple[int, int]]

PAGE: Final = Path(__file__).parents[2] / "docs/crash.md"
PLOTS: Final = (LAUNCH, DRAIN, HOLD)
INTRODUCTION: Final = """\
# Dying at any moment

What happens to two pods and their nodes when the controller is killed. Each row is a kind of write to the Kubernetes
API, each column a provider: `aws` and `aws-groups` are the AWS adapters on the fake EC2, the latter with
LaunchInstances and with desired capacity. The controller is killed at each such write, once just before the API server
receives it and once just after, and starts again with nothing in memory. Every provider call is between two writes, so
a death before a write is also a death after the call that precedes it. A cell says after how many of these deaths the
run was *whole*.

The conditions are difficult: the first zone has one machine of the two that are needed, the answers to the first
launches are lost, and the cloud lists new machines only after half a minute (KWOK only loses answers). A run is
*whole* if each node had exactly one machine, both pods ran, no machine, object or claim is left at the end, and no
controller violated an invariant.

These invariants are checked in each of these runs and in `make faults`, `make soak` and the kill storm of `make e2e`.
Each is one function in tests/faults/invariants.py:

| invariant | rule |
|---|---|
| 1 | a pod is evicted, or loses its machine, only for a block's end, a reclaim, a deleted pool or a person's order |
| 2 | the process keeps running and reconciling; what cannot be handled delays nothing else |
| 3 | no node is given up, ended as unhealthy or removed while its machine runs and its Node is Ready |
| 4 | a Node is deleted only by uid, and only if it is a node of Foreslice |
| 8 | a batch has no more machines than nodes, no two batches buy for the same pods, no two objects have one machine |
| 9 | when nothing is requested any more, nothing is left |

They are checked whenever the controller writes or ends a machine, with the state of that moment: the end of a run does
not show that a healthy node was ended and bought again. Invariants 5 to 7 of docs/operations.md, about watches, time
and clocks, show as invariants 2 and 9: a pod waits, or something is left.

Except with KWOK, the cloud's controller manager removes the Node of a machine that is gone before the autoscaler looks
for it. tests/crash/test_burial.py covers the deaths around its removal by Foreslice.

- Launch and terminate: the pods end by themselves, then their nodes are idle.
- Drain: the pods would run on; the pool is deleted, so they are evicted.
- Hold: the nodes of a CapacityBlock are kept from its start; pods get a notice of its end and are evicted before it.
  KWOK has no reservations.

`UPDATE_GOLDEN=1 pytest tests/crash/test_table.py` writes this page, and `make test` fails when a kind of write is
missing from it. The other tests of that folder repeat a part of these deaths in every run: at every 8th write, or every
24th of the AWS adapters, and all of a simulated launch in five clusters.
"""


def lived(chapter: Chapter, plot: Plot) -> Deaths:
    """Every death of a provider in an operation."""
    kinds = live(chapter.trouble, cloud=chapter.cloud, plot=plot)[1][0].kinds
    deaths = [(at, before) for at in range(1, len(kinds) + 1) for before in (True, False)]
    whole = Counter(kinds[at - 1] for at, before in deaths if _survives(chapter, plot, at, before))
    return {kind: (whole[kind], 2 * times) for kind, times in Counter(kinds).items()}


def _survives(chapter: Chapter, plot: Plot, at: int, before: bool) -> bool:
    simulation, (dying, _) = live(chapter.trouble, (at, before), cloud=chapter.cloud, plot=plot)
    assert dying.step, f"write {at} was never reached"
    try:
        check(simulation, dying, dying.step, cloud=chapter.cloud, plot=plot)
    except AssertionError:
        return False
    return True


def table(plot: Plot, columns: dict[str, Deaths]) -> Iterator[str]:
    """The lines of an operation: writes in the order in which they first come."""
    yield f"## {plot.title}\n"
    yield f"| write | {' | '.join(columns)} |"
    yield "|---|" + "---|" * len(columns)
    for kind in dict.fromkeys(kind for deaths in columns.values() for kind in deaths):
        cells = ("{} of {}".format(*deaths[kind]) if kind in deaths else "" for deaths in columns.values())
        yield f"| {kind} | {' | '.join(cells)} |"


def _told(page: str, plot: Plot) -> dict[str, dict[str, str]]:
    """What the page says of an operation: provider → kind of write → outcome."""
    rows = [
        row.strip("|").split("|") for row in page.partition(f"## {plot.title}\n")[2].partition("\n## ")[0].splitlines()
    ]
    _, *titles = (cell.strip() for cell in rows[1])
    cells = [[cell.strip() for cell in row] for row in rows[3:]]
    return {title: {row[0]: row[place] for row in cells if row[place]} for place, title in enumerate(titles, start=1)}


def _cases() -> Iterable[tuple[Chapter, Plot]]:
    return ((chapter, plot) for plot in PLOTS for chapter in CHAPTERS if plot in chapter.plots())


@pytest.mark.parametrize(
    ("chapter", "plot"), [pytest.param(*case, id=f"{case[0].title}: {case[1].title}") for case in _cases()]
)
def test_the_page_names_every_write(chapter: Chapter, plot: Plot) -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert page.startswith(INTRODUCTION)
    times = Counter(live(chapter.trouble, cloud=chapter.cloud, plot=plot)[1][0].kinds)
    whole = {kind: f"{2 * count} of {2 * count}" for kind, count in times.items()}
    assert _told(page, plot)[chapter.title] == whole, "UPDATE_GOLDEN=1 pytest tests/crash/test_table.py"


if os.environ.get("UPDATE_GOLDEN"):

    @pytest.fixture(scope="module", autouse=True)
    def _written() -> None:
        cases = list(_cases())
        with ProcessPoolExecutor(os.cpu_count()) as pool:
            found = dict(zip(cases, pool.map(lived, *zip(*cases, strict=True)), strict=True))
        tables = [
            "\n".join(table(plot, {chapter.title: found[chapter, told] for chapter, told in cases if told is plot}))
            for plot in PLOTS
        ]
        PAGE.write_text("\n\n".join([INTRODUCTION.rstrip(), *tables]) + "\n", encoding="utf-8")
