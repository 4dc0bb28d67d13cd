"""What is due without anything having changed: APScheduler marks it and rings the bell, and does nothing else.

The work itself is the loop's, in its own thread, after it has taken what is marked; so no two things ever happen at
once, and a duty that comes due twice while a round lasts is done once.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from datetime import UTC, timedelta
from enum import Enum
from typing import Final

from apscheduler.schedulers.background import BackgroundScheduler
from apscheduler.triggers.interval import IntervalTrigger

from autoscaler.settings import Settings

# Its machines cost what the catalog says.
_WITHOUT_PRICES: Final = frozenset({"kwok"})


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


def schedule(periods: Mapping[Duty, timedelta], mark: Callable[[Duty], None]) -> BackgroundScheduler:
    """A scheduler that marks each duty when its period is over; not started yet."""
    scheduler = BackgroundScheduler(timezone=UTC, daemon=True)
    for duty, period in periods.items():
        scheduler.add_job(
            mark,
            IntervalTrigger(seconds=period.total_seconds(), timezone=UTC),
            args=[duty],
            id=duty.value,
            # A mark that comes late is as good as one in time, and two are as good as one.
            coalesce=True,
            misfire_grace_time=None,
        )
    return scheduler
