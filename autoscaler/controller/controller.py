"""The controller's thread: it ticks when something has changed or falls due, rests otherwise, and ends when told.

A tick begins when something in the cluster has changed and then been quiet for a moment. What goes wrong with the API
or a provider is told and tried again; anything else ends the process, and the next one goes on from what the API holds.
Of several replicas only the leader ticks, while the others follow; one that has led and does not any more ends.
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
    """Tells one waiting thread that something has happened.

    A queue, because its `put` may interrupt its own `get`: a signal handler rings in the middle of a wait. The lock of
    threading.Event would be held then, now and then.
    """

    def __init__(self) -> None:
        self._rings: queue.SimpleQueue[None] = queue.SimpleQueue()

    def ring(self) -> None:
        """Something has happened. May be called from any thread and from signal handlers."""
        if self._rings.empty():
            self._rings.put(None)

    def wait(self, seconds: float) -> bool:
        """Until it rings, at most so long; whether it rang. Afterwards it is silent again."""
        try:
            self._rings.get(timeout=max(seconds, 0.0))
        except queue.Empty:
            return False
        while not self._rings.empty():  # two threads may have rung at once
            self._rings.get()
        return True


class Ticking(Protocol):
    """What the controller keeps going: autoscaler.loop.loop.Loop."""

    def tick(self) -> Tick:
        """One round."""

    def follow(self) -> None:
        """Take over what changed in the cluster, and do nothing about it."""

    def warm_up(self) -> None:
        """Work out what the first plan needs, once the cluster was read."""


class Controller:
    """Ticks until it is stopped. `leads` says whether this replica may act; `perform` does a duty that is due."""

    def __init__(
        self,
        loop: Ticking,
        bell: Wakeup,
        clock: Clock,
        settings: Settings,
        *,
        observers: TickObservers,
        leads: Callable[[], bool] = lambda: True,
        perform: Callable[[Task], None] = lambda duty: None,
    ) -> None:
        self._loop = loop
        self._bell = bell
        self._clock = clock
        self._settings = settings
        self._telling = observers
        self._leads = leads
        self._perform = perform
        self._agenda = PeriodicTasks(bell.ring)
        self._stopping = False
        self._failures = 0
        self._rehearsed = False
        self._wake_at: datetime | None = None

    def stop(self) -> None:
        """End after the tick that is under way; every step of it is written down anyway."""
        self._stopping = True
        self._bell.ring()

    def mark(self, duty: Task) -> None:
        """A duty is due. May be called from any thread."""
        moment = self._wake_at
        if duty is not Task.BLOCK_CLOCK or (moment is not None and self._clock.now() >= moment):
            self._agenda.mark(duty)

    def run(self) -> None:
        """Tick until stopped. Raises LeadershipLostError once this replica has led and may not act any more."""
        led = False
        while not self._stopping:
            if self._leads():
                led = True
                # A tick takes over all changes so far, so only those that come during it call for another.
                self._bell.wait(0)
                if not self._stopping:
                    self._rest(self._tick())
            elif led:
                raise LeadershipLostError("this replica could not renew its Lease in time, so another one may act")
            else:
                self._stand_by()

    def _stand_by(self) -> None:
        """Another replica acts; this one follows what it does, so that it can take its place at once."""
        longest = self._settings.loop.resync
        self._telling.standing_by(longest)
        try:
            self._loop.follow()
            self._read()
        except ApiError as error:
            self._telling.not_followed(error)
            longest = self._next_attempt()
        self._wait(longest, unless=self._leads)

    def _tick(self) -> timedelta:
        """One tick; how long to rest when nothing happens."""
        with self._telling.round():
            try:
                for duty in self._agenda.take():
                    self._perform(duty)
                tick = self._loop.tick()
            except (ApiError, ConfigurationError, ProviderError) as error:
                self._telling.cut_short(error)
                return self._next_attempt()
            except (LeadershipLostError, InternalError):
                raise
            except Exception as error:  # noqa: BLE001  # the boundary of a round: the next one may go well, a restart not
                self._telling.broken(error)
                return self._next_attempt()
        self._wake_at = tick.wake_at
        self._telling.ticked(tick)
        self._read()
        return _UNBOUNDED if tick.wake_at is None else tick.wake_at - self._clock.now()

    def _read(self) -> None:
        """The cluster was read. The first time there is something to get ready before anybody waits."""
        self._failures = 0
        if not self._rehearsed:
            self._rehearsed = True
            self._loop.warm_up()

    def _next_attempt(self) -> timedelta:
        """After another failure in a row: how long to wait."""
        self._failures += 1
        return min(_FIRST_RETRY * (1 << min(self._failures - 1, 10)), self._settings.loop.resync)

    def _rest(self, longest: timedelta) -> None:
        """Until something changes or falls due."""
        # The agenda rings at least that often; should it ever fall silent, the probe finds out.
        self._telling.resting(min(longest, self._settings.loop.resync))
        self._wait(longest)

    def _wait(self, longest: timedelta, *, unless: Callable[[], bool] = lambda: False) -> None:
        """Until something changes, and then until it has been quiet for a while, unless there is no time for that."""
        if not self._bell.wait(longest.total_seconds()):
            return
        batch = self._settings.batch
        until = self._clock.monotonic() + batch.longest.total_seconds()
        while not self._stopping and not unless() and (left := until - self._clock.monotonic()) > 0:
            if not self._bell.wait(min(batch.idle.total_seconds(), left)):
                return
