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

from autoscaler.settings.settings import Settings
from providers.contract import Clock

# Its machines cost what the catalog says.
_WITHOUT_PRICES: Final = frozenset({"kwok"})
_SLEW: Final = 1.0  # seconds by which clocks may part between two looks without having been set
_LOOK: Final = 30.0  # seconds until the wall clock is looked at again, whatever is due


class Task(Enum):
    """What comes round."""

    RESYNC = "resync"  # another round, though nothing was reported: machines, orphans, time-outs
    CATALOG = "catalog"  # another look at its directories
    SYNC = "sync"  # another look at what clouds list, and at what price
    PRICES = "prices"  # another look at what providers ask for today
    BLOCK_CLOCK = "block clock"  # whether the wall clock has passed the moment the loop rests until


def periods_of(settings: Settings) -> Mapping[Task, timedelta]:
    """How often each duty comes due; those are left out that could find nothing new."""
    periods = {
        Task.RESYNC: settings.loop.resync,
        Task.BLOCK_CLOCK: settings.periods.block_clock,
    }
    if settings.cluster.catalog:
        periods[Task.CATALOG] = settings.periods.catalog
    if settings.sync.aws or settings.sync.gcp:
        periods[Task.SYNC] = settings.sync.every
    if set(settings.cluster.providers) - _WITHOUT_PRICES:
        periods[Task.PRICES] = settings.periods.prices
    return periods


class PeriodicTasks:
    """The duties that are due. `ring` wakes the loop."""

    def __init__(self, ring: Callable[[], None]) -> None:
        self._ring = ring
        self._lock = threading.Lock()
        self._due: set[Task] = set()

    def mark(self, duty: Task) -> None:
        """It is due. May be called from any thread."""
        with self._lock:
            self._due.add(duty)
        self._ring()

    def take(self) -> frozenset[Task]:
        """What is due; it is not due any more afterwards."""
        with self._lock:
            due, self._due = frozenset(self._due), set()
        return due


class Timetable:
    """Marks each duty when its period is over, in a thread of its own."""

    def __init__(self, periods: Mapping[Task, timedelta], mark: Callable[[Task], None], clock: Clock) -> None:
        self.scheduler: Final = SteadyScheduler(clock)
        for duty, period in periods.items():
            self.scheduler.add_job(
                mark,
                IntervalTrigger(seconds=period.total_seconds(), timezone=UTC),
                args=[duty],
                id=duty.value,
                # A mark that comes late is as good as one in time, and two are as good as one.
                coalesce=True,
                misfire_grace_time=None,
            )

    def start(self) -> None:
        """Mark from now on."""
        self.scheduler.start()

    def stop(self) -> None:
        """Mark nothing any more."""
        self.scheduler.shutdown()

    def is_alive(self) -> bool:
        """Whether duties are marked."""
        return self.scheduler.is_alive()


class SteadyScheduler(BackgroundScheduler):  # type: ignore[misc]  # APScheduler ships no type information
    """APScheduler's, whose jobs do not wait for hours when the wall clock is set back, nor run early when it is set on.

    It knows the wall clock alone. Where that and the monotonic clock part, the times of all jobs move with the former.
    """

    def __init__(self, clock: Clock) -> None:
        super().__init__(timezone=UTC, daemon=True)
        self._clock = clock
        self._offset = self._measured()

    def is_alive(self) -> bool:
        """Whether its thread runs."""
        return bool(self.running) and self._thread is not None and self._thread.is_alive()

    def follow(self) -> None:
        """Move the times of all jobs by as much as the wall clock was set since the last call."""
        offset = self._measured()
        jumped, self._offset = offset - self._offset, offset
        if abs(jumped) > _SLEW:
            for job in self.get_jobs():
                job.modify(next_run_time=job.next_run_time + timedelta(seconds=jumped))

    def _measured(self) -> float:
        return self._clock.now().timestamp() - self._clock.monotonic()

    def _process_jobs(self) -> float:
        """Called by APScheduler's thread; the answer is after how many seconds it wants to be called again."""
        self.follow()
        due_in: float | None = super()._process_jobs()
        return _LOOK if due_in is None else min(due_in, _LOOK)
