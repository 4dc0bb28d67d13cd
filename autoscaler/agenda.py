"""What is due without anything having changed: a timetable marks it and rings the bell, and does nothing else.

The work itself is the loop's, in its own thread, after it has taken what is marked; so no two things ever happen at
once, and a duty that comes due twice while a round lasts is done once.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from datetime import timedelta
from enum import Enum
from typing import Final

from autoscaler.settings import Settings
from providers.contract import Clock

# Its machines cost what the catalog says.
_WITHOUT_PRICES: Final = frozenset({"kwok"})
_IDLE: Final = 3600.0  # seconds; a wait for longer would not fit into what threads can wait


class Duty(Enum):
    """What comes round."""

    RESYNC = "resync"  # another round, though nothing was reported: machines, orphans, time-outs
    CATALOG = "catalog"  # another look at its directories
    SYNC = "sync"  # another look at what clouds list, and at what price
    PRICES = "prices"  # another look at what providers ask for today
    BLOCK_CLOCK = "block clock"  # whether the wall clock has passed the moment the loop rests until


def periods_of(settings: Settings) -> Mapping[Duty, timedelta]:
    """How often each duty comes due; those are left out that could find nothing new."""
    periods = {
        Duty.RESYNC: settings.loop.resync,
        Duty.BLOCK_CLOCK: settings.periods.block_clock,
    }
    if settings.cluster.catalog:
        periods[Duty.CATALOG] = settings.periods.catalog
    if settings.sync.aws or settings.sync.gcp:
        periods[Duty.SYNC] = settings.sync.every
    if set(settings.cluster.providers) - _WITHOUT_PRICES:
        periods[Duty.PRICES] = settings.periods.prices
    return periods


class Agenda:
    """The duties that are due. `ring` wakes the loop."""

    def __init__(self, ring: Callable[[], None]) -> None:
        self._ring = ring
        self._lock = threading.Lock()
        self._due: set[Duty] = set()

    def mark(self, duty: Duty) -> None:
        """It is due. May be called from any thread."""
        with self._lock:
            self._due.add(duty)
        self._ring()

    def take(self) -> frozenset[Duty]:
        """What is due; it is not due any more afterwards."""
        with self._lock:
            due, self._due = frozenset(self._due), set()
        return due


class Timetable:
    """Marks each duty when its period is over, in a thread of its own.

    Periods are counted by the monotonic clock: one that was set back by hours must not put duties off by hours.
    """

    def __init__(self, periods: Mapping[Duty, timedelta], mark: Callable[[Duty], None], clock: Clock) -> None:
        self._periods = {duty: period.total_seconds() for duty, period in periods.items()}
        self._mark = mark
        self._clock = clock
        self._due_at = {duty: clock.monotonic() + period for duty, period in self._periods.items()}
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="agenda", daemon=True)

    def start(self) -> None:
        """Mark from now on."""
        self._thread.start()

    def stop(self) -> None:
        """Mark nothing any more."""
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join(timeout=10)

    def is_alive(self) -> bool:
        """Whether duties are marked."""
        return self._thread.is_alive()

    def step(self) -> float:
        """Mark what is due, however often its period has passed, and say in how many seconds the next duty is."""
        now = self._clock.monotonic()
        for duty, due_at in self._due_at.items():
            if now >= due_at:
                self._mark(duty)
                self._due_at[duty] = now + self._periods[duty]
        return max(min(self._due_at.values(), default=_IDLE) - now, 0.0)

    def _run(self) -> None:
        while not self._ended.wait(min(self.step(), _IDLE)):
            pass
