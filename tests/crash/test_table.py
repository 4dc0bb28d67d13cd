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

What becomes of two pods and their nodes when the controller dies. Each line is a kind of write to the Kubernetes API,
each column a provider: `aws` and `aws-groups` are the AWS adapters on the fake EC2, the latter by LaunchInstances and
by desired capacity. The controller was killed at each such write of a life, once just before the API server got it and
once just after, and started again with nothing in memory. Every call to a provider lies between two writes, so dying
before a write is also dying after the call that precedes it. A cell says how many of these deaths came out whole.

The lives are troubled ones: the first zone has one machine of the two that are needed, the answers to the first
launches are lost, and the cloud lists new machines only after half a minute (KWOK only loses answers). A life is
*whole* when in the end each node had exactly one machine, no machine runs, no object and no claim is left, and both
pods ran, and when no controller did meanwhile what it must not do.

What is looked at, in each of these lives and in `make faults`, `make soak` and the kill storm of `make e2e`, is in
tests/faults/invariants.py, one function for each:

| invariant | what must hold |
|---|---|
| 1 | a pod is evicted, or loses its machine, only for a block's end, a reclaim, a deleted pool or a person's order |
| 2 | the process lives, rounds go on, and what cannot be handled keeps nobody else waiting |
| 3 | no node is given up, ended as unhealthy or buried while its machine runs and its Node is Ready |
| 4 | a Node is deleted only by uid, and only if it is ours |
| 8 | a batch has no more machines than nodes, no two batches buy for the same pods, no two objects have one machine |
| 9 | when nothing is asked for any more, nothing is left |

They are asked at the moment at which the controller writes, or ends a machine, with what is true then: what a life came
to in the end does not show that a healthy node was ended and bought again. Invariants 5 to 7 of docs/operations.md,
about watches, time and clocks, show as invariants 2 and 9: somebody waits, or something is left.

Except with KWOK, the Node of a machine that is gone is removed by the cloud's controller manager before the autoscaler
looks for it. tests/crash/test_burial.py lives the deaths around its removal where nobody else removes it.

- Launch and terminate: the pods end by themselves, then their nodes are idle.
- Drain: the pods would run on; the pool is deleted, so they are evicted.
- Hold: the nodes of a CapacityBlock are held from its start; pods are told of its end and evicted before it. KWOK
  reserves nothing.

This page is written by `UPDATE_GOLDEN=1 pytest tests/crash/test_table.py`, and `make test` fails when a kind of write
is missing from it. Each time they run, the tests beside that one live a part of these deaths, at every 8th write or, of
the AWS adapters, at every 24th; and all of a simulated launch in five worlds.
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
