"""In-process times in microseconds, with as little of the machine's noise in them as possible."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

_ROUNDS = 5
_SAMPLES = 9


def best_median(run: Callable[[], object], *, batch: int = 1, before: Callable[[], object] | None = None) -> float:
    """CPU microseconds of one `run`: the smallest of several medians over batches of calls.

    `before` sets up each batch of one and is not counted.
    """
    assert before is None or batch == 1
    gc.disable()  # as every command but `run` has it, and as timeit does
    try:
        return min(statistics.median(_sample(run, batch, before) for _ in range(_SAMPLES)) for _ in range(_ROUNDS))
    finally:
        gc.enable()


def _sample(run: Callable[[], object], batch: int, before: Callable[[], object] | None) -> float:
    if before is not None:
        before()
    started = time.process_time_ns()
    for _ in range(batch):
        run()
    return (time.process_time_ns() - started) / batch / 1000


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a table: microseconds here and upstream (None where only an absolute target counts)."""

    name: str
    ours: float
    theirs: float | None = None
    note: str = ""

    @property
    def ratio(self) -> float:
        """Upstream's time through ours: above 1 is faster than upstream."""
        assert self.theirs is not None
        return self.theirs / self.ours

    def __str__(self) -> str:
        left = f"  {self.name:<58} {self.ours:>11,.1f} µs"
        if self.theirs is None:
            return f"{left}  {self.note}"
        return f"{left} {self.theirs:>11,.1f} µs upstream  {self.ratio:>7.2f}x  {self.note}"


def median_ratio(rows: Sequence[Row]) -> float:
    """The median of upstream's time through ours."""
    return statistics.median(row.ratio for row in rows)
