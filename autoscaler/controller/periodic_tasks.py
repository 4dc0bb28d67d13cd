"""Tasks that fall due by the clock. APScheduler marks them as due and wakes the controller; it runs none of them.

The controller's thread runs them before its next reconcile, so no two run at once, and a task that falls due twice
during one reconcile runs once.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from datetime import UTC, timedelta
from enum import Enum
from typing import Final

from apscheduler.schedulers.background import BackgroundScheduler
from apscheduler.triggers.interval import IntervalTrigger

from autoscaler.clock import ClockJumps
from autoscaler.settings.settings import Settings
from providers.contract import Clock

# The prices of its machines are those of the catalog.
_WITHOUT_PRICES: Final = frozenset({"kwok"})
_LOOK: Final = 30.0  # the longest time in seconds between two readings of the wall clock


class Task(Enum):
    RESYNC = "resync"  # a reconcile without a change: machines, orphans, time-outs
    CATALOG = "catalog"  # read the catalog's directories
    SYNC = "sync"  # read what clouds list, with list prices
    PRICES = "prices"  # read today's prices of the providers
    BLOCK_CLOCK = "block clock"  # has the wall clock passed the moment for which the loop waits?


def periods_of(settings: Settings) -> Mapping[Task, timedelta]:
    """The period of each task, without the tasks that these settings leave nothing to do."""
    periods = {
        Task.RESYNC: settings.loop.resync,
        Task.BLOCK_CLOCK: settings.periods.block_clock,
    }
    if settings.cluster.catalog:
        periods[Task.CATALOG] = settings.periods.catalog
    if settings.sync.lists:
        periods[Task.SYNC] = settings.sync.every
    if set(settings.cluster.providers) - _WITHOUT_PRICES:
        periods[Task.PRICES] = settings.periods.prices
    return periods


class PeriodicTasks:
    """The tasks that are due. `wake` wakes the controller's thread."""

    def __init__(self, wake: Callable[[], None]) -> None:
        self._wake = wake
        self._lock = threading.Lock()
        self._due: set[Task] = set()

    def mark_due(self, task: Task) -> None:
        """Any thread may call it."""
        with self._lock:
            self._due.add(task)
        self._wake()

    def take_due(self) -> frozenset[Task]:
        """The tasks that are due, which are then due no more."""
        with self._lock:
            due, self._due = frozenset(self._due), set()
        return due


class Timetable:
    """Marks each task when its period is over, in a thread of its own."""

    def __init__(self, periods: Mapping[Task, timedelta], mark_due: Callable[[Task], None], clock: Clock) -> None:
        self.scheduler: Final = SteadyScheduler(clock)
        for task, period in periods.items():
            self.scheduler.add_job(
                mark_due,
                IntervalTrigger(seconds=period.total_seconds(), timezone=UTC),
                args=[task],
                id=task.value,
                # A late mark serves as well as one in time, and two serve as well as one.
                coalesce=True,
                misfire_grace_time=None,
            )

    def start(self) -> None:
        self.scheduler.start()

    def stop(self) -> None:
        self.scheduler.shutdown()

    def is_alive(self) -> bool:
        return self.scheduler.is_alive()


class SteadyScheduler(BackgroundScheduler):  # type: ignore[misc]  # APScheduler ships no type information
    """APScheduler's BackgroundScheduler, made safe against jumps of the wall clock.

    APScheduler knows the wall clock alone: jobs wait for hours when it is set back, and run early when it is set
    forward. When the wall clock and the monotonic clock diverge, the times of all jobs move with the wall clock.
    """

    def __init__(self, clock: Clock) -> None:
        super().__init__(timezone=UTC, daemon=True)
        self._jumps = ClockJumps(clock)

    def is_alive(self) -> bool:
        return bool(self.running) and self._thread is not None and self._thread.is_alive()

    def follow(self) -> None:
        """Move the times of all jobs by the jump of the wall clock since the last call."""
        jumped = self._jumps.measure()
        if jumped:
            for job in self.get_jobs():
                job.modify(next_run_time=job.next_run_time + jumped)

    def _process_jobs(self) -> float:
        """APScheduler's thread calls it; returns the seconds until the next call."""
        self.follow()
        due_in: float | None = super()._process_jobs()
        return _LOOK if due_in is None else min(due_in, _LOOK)
