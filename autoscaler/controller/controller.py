"""The controller's thread: it reconciles when something changes or falls due, and waits otherwise, until it is stopped.

A reconcile begins once something in the cluster has changed and nothing else changes for a moment. An error of the API
or of a provider is reported and tried again. Of several replicas only the leader reconciles and the others follow; a
replica that loses the Lease ends.
"""

from __future__ import annotations

import queue
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final, Protocol

from autoscaler.cluster.api import ApiError
from autoscaler.cluster.lease import LeadershipLostError
from autoscaler.controller.observers import TickObservers
from autoscaler.controller.periodic_tasks import PeriodicTasks, Task
from autoscaler.errors import ConfigurationError, InternalError
from autoscaler.loop.loop import Tick
from autoscaler.settings.settings import Settings
from providers.contract import Clock
from providers.errors import ProviderError

_FIRST_RETRY: Final = timedelta(seconds=1)
_UNBOUNDED: Final = timedelta(days=1)


class Wakeup:
    """Wakes one waiting thread.

    A queue, because a signal handler may call `set` in the middle of a `wait`: a SimpleQueue's `put` may interrupt its
    own `get`, while the lock of threading.Event could be held at that moment.
    """

    def __init__(self) -> None:
        self._pending: queue.SimpleQueue[None] = queue.SimpleQueue()

    def set(self) -> None:
        """Wake the thread. Any thread and any signal handler may call it."""
        if self._pending.empty():
            self._pending.put(None)

    def wait(self, seconds: float) -> bool:
        """Block until `set` is called or the seconds are over; True if it was called. Clears the wake-up."""
        try:
            self._pending.get(timeout=max(seconds, 0.0))
        except queue.Empty:
            return False
        while not self._pending.empty():  # two threads may have called `set` at once
            self._pending.get()
        return True


class Ticking(Protocol):
    """The part of autoscaler.loop.loop.Loop that the controller calls."""

    def tick(self) -> Tick:
        """Reconcile once."""

    def follow(self) -> None:
        """Read what changed in the cluster, and write nothing."""

    def warm_up(self) -> None:
        """Fill the caches that the first plan needs, once the cluster has been read."""


class Controller:
    """Reconciles until it is stopped. `leads`: whether this replica may act; `perform` runs a task that is due."""

    def __init__(
        self,
        loop: Ticking,
        wakeup: Wakeup,
        clock: Clock,
        settings: Settings,
        *,
        observers: TickObservers,
        tasks: PeriodicTasks,
        leads: Callable[[], bool] = lambda: True,
        perform: Callable[[Task], None] = lambda task: None,
    ) -> None:
        self._loop = loop
        self._wakeup = wakeup
        self._clock = clock
        self._settings = settings
        self._observers = observers
        self._leads = leads
        self._perform = perform
        self._tasks = tasks
        self._stopping = False
        self._failures = 0
        self._warmed_up = False
        self._wake_at: datetime | None = None

    def stop(self) -> None:
        """End after the reconcile in progress. Any signal handler may call it."""
        self._stopping = True
        self._wakeup.set()

    def mark_due(self, task: Task) -> None:
        """Run the task with the next reconcile. Any thread may call it."""
        moment = self._wake_at
        if task is not Task.BLOCK_CLOCK or (moment is not None and self._clock.now() >= moment):
            self._tasks.mark_due(task)

    def run(self) -> None:
        """Reconcile until stopped. Raises LeadershipLostError when this replica led and lost the Lease."""
        led = False
        while not self._stopping:
            if self._leads():
                led = True
                # A reconcile reads all changes so far, so only those that arrive during it need another reconcile.
                self._wakeup.wait(0)
                if not self._stopping:
                    self._rest(self._tick())
            elif led:
                raise LeadershipLostError("this replica could not renew its Lease in time, so another one may act")
            else:
                self._stand_by()

    def _stand_by(self) -> None:
        """Another replica leads. This one keeps its view of the cluster current, so that it can take over at once."""
        longest = self._settings.loop.resync
        self._observers.standing_by(longest)
        try:
            self._loop.follow()
            self._read()
        except ApiError as error:
            self._observers.not_followed(error)
            longest = self._next_attempt()
        self._wait(longest, unless=self._leads)

    def _tick(self) -> timedelta:
        """One reconcile; the longest time to wait for the next."""
        with self._observers.tick():
            try:
                for task in self._tasks.take_due():
                    self._perform(task)
                tick = self._loop.tick()
            except (ApiError, ConfigurationError, ProviderError) as error:
                self._observers.tick_failed(error)
                return self._next_attempt()
            except (LeadershipLostError, InternalError):
                raise
            except Exception as error:  # noqa: BLE001  # the next reconcile may succeed, and a restart would lose time
                self._observers.tick_raised(error)
                return self._next_attempt()
        self._wake_at = tick.wake_at
        self._observers.ticked(tick)
        self._read()
        return _UNBOUNDED if tick.wake_at is None else tick.wake_at - self._clock.now()

    def _read(self) -> None:
        """The cluster has been read; after the first time, fill the caches before a pod waits."""
        self._failures = 0
        if not self._warmed_up:
            self._warmed_up = True
            self._loop.warm_up()

    def _next_attempt(self) -> timedelta:
        """The wait after one more failure in a row: it doubles, up to `loop.resync`."""
        self._failures += 1
        return min(_FIRST_RETRY * (1 << min(self._failures - 1, 10)), self._settings.loop.resync)

    def _rest(self, longest: timedelta) -> None:
        """Wait until something changes or falls due."""
        # The timetable wakes this thread at least that often; if it fails to, /healthz reports it.
        self._observers.resting(min(longest, self._settings.loop.resync))
        self._wait(longest)

    def _wait(self, longest: timedelta, *, unless: Callable[[], bool] = lambda: False) -> None:
        """Wait for a change, then until no other follows for `batch.idle`; at most `batch.longest` in all."""
        if not self._wakeup.wait(longest.total_seconds()):
            return
        batch = self._settings.batch
        until = self._clock.monotonic() + batch.longest.total_seconds()
        while not self._stopping and not unless() and (left := until - self._clock.monotonic()) > 0:
            if not self._wakeup.wait(min(batch.idle.total_seconds(), left)):
                return
