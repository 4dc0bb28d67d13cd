"""docs/crash.md: what became of a life in which the controller died, by the kind of write at which it died.

UPDATE_GOLDEN=1 lives them all and rewrites the page (a few minutes). Otherwise one life for each cloud tells whether
the page still names every write that there is; that the outcomes still hold is what the tests beside this one are for.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from autoscaler.simulation.simulation import Simulation
from tests.crash.life import SIMULATED, Cloud, check, live
from tests.crash.test_every_step import deaf, hazy, one_left
from tests.crash.test_every_step_aws import AWS, troubled

PAGE: Final = Path(__file__).parents[2] / "docs/crash.md"
INTRODUCTION: Final = """\
# Dying at any moment

What becomes of two pods and their nodes when the controller dies. Each line is a kind of write to the Kubernetes API.
The controller was killed at each such write of a life (launch, drain, terminate), once just before the API server got
it and once just after, and started again with nothing in memory. Every call to a provider lies between two writes, so
dying before a write is also dying after the call that precedes it.

The life is a troubled one: the first zone has one machine of the two that are needed, the answers to the first launches
are lost, and the cloud lists new machines only after half a minute. It is *whole* when in the end each node had exactly
one machine, no machine runs, no object is left, and both pods ran to their end. The pods end by themselves, so no
eviction is among the writes.

This page is written by `UPDATE_GOLDEN=1 pytest tests/crash/test_table.py`, and `make test` fails when a kind of write
is missing from it. The tests beside that one live such deaths in other worlds each time they run.
"""


def trouble(simulation: Simulation) -> None:
    """What `troubled` is for the fake EC2."""
    for one in (one_left, deaf, hazy):
        one(simulation)


@dataclass(frozen=True)
class Chapter:
    """A cloud and the trouble it makes."""

    title: str
    cloud: Cloud
    prepare: Callable[[Any], None]

    def counts(self) -> Counter[str]:
        """How often each kind of write is made when nobody dies, in order."""
        return Counter(live(self.prepare, cloud=self.cloud)[1][0].kinds)

    def head(self, kind: str, times: int) -> str:
        """The beginning of a line of the table: what can be compared without dying."""
        return f"| {kind} | {times} |"

    def lines(self) -> Iterator[str]:
        """The table, with every death that it tells of."""
        kinds = live(self.prepare, cloud=self.cloud)[1][0].kinds
        whole: dict[bool, Counter[str]] = {True: Counter(), False: Counter()}
        for before, counter in whole.items():
            counter.update(kind for at, kind in enumerate(kinds, start=1) if self._survives(at, before))
        yield f"## {self.title}\n\n| write | times | killed before it | killed after it |\n|---|---|---|---|"
        for kind, times in Counter(kinds).items():
            yield f"{self.head(kind, times)} {whole[True][kind]} whole | {whole[False][kind]} whole |"

    def _survives(self, at: int, before: bool) -> bool:
        simulation, (dying, _) = live(self.prepare, (at, before), cloud=self.cloud)
        assert dying.step, f"write {at} was never reached"
        try:
            check(simulation, dying.step, cloud=self.cloud)
        except AssertionError:
            return False
        return True


CHAPTERS: Final = (
    Chapter("Simulated cloud", SIMULATED, trouble),
    Chapter("AWS adapter on the fake EC2", AWS, troubled),
)


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda chapter: chapter.cloud.kind)
def test_the_page_names_every_write(chapter: Chapter) -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert page.startswith(INTRODUCTION)
    table = page.partition(f"## {chapter.title}\n")[2].partition("\n## ")[0]
    rows = [line for line in table.splitlines() if line.startswith("| ")][1:]
    told = {(cells[1].strip(), int(cells[2])): cells[3:5] for cells in (row.split("|") for row in rows)}
    assert list(told) == list(chapter.counts().items()), "UPDATE_GOLDEN=1 pytest tests/crash/test_table.py"
    for (kind, times), outcomes in told.items():
        assert [outcome.strip() for outcome in outcomes] == [f"{times} whole"] * 2, kind


if os.environ.get("UPDATE_GOLDEN"):

    @pytest.fixture(scope="module", autouse=True)
    def _written() -> None:
        tables = ["\n".join(chapter.lines()) for chapter in CHAPTERS]
        PAGE.write_text("\n\n".join([INTRODUCTION.rstrip(), *tables]) + "\n", encoding="utf-8")
