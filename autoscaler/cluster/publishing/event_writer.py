"""The thread that writes events beside the reconciles, at a rate that leaves the API server's capacity to them."""

from __future__ import annotations

import threading
from typing import Final

from autoscaler.cluster.publishing.event_queue import EventQueue
from providers.contract import Clock

_A_SECOND: Final = 50.0
_BURST: Final = 200.0
_IDLE_SECONDS: Final = 0.25  # the longest delay of an event that finds the queue empty
_SILENCE_SECONDS: Final = 5.0  # after a request that was not answered


class Pace:
    """So many events at once, and then so many a second."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._tokens = _BURST
        self._at = clock.monotonic()

    def spend(self) -> float:
        """Take a token if there is one: 0. Otherwise how many seconds it takes until there is."""
        now = self._clock.monotonic()
        self._tokens = min(self._tokens + (now - self._at) * _A_SECOND, _BURST)
        self._at = now
        if self._tokens < 1:
            return (1 - self._tokens) / _A_SECOND
        self._tokens -= 1
        return 0.0


class EventWriter:
    """Writes what waits in a queue from `start` to `stop`."""

    def __init__(self, queue: EventQueue, clock: Clock) -> None:
        self._queue = queue
        self._clock = clock
        self._pace = Pace(clock)
        self._ended = threading.Event()
        self._until = 0.0
        self._thread = threading.Thread(target=self._run, name="events", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self, *, within: float = 3.0) -> None:
        """Write what still waits, as fast as possible, for at most `within` seconds."""
        self._until = self._clock.monotonic() + within
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join(timeout=within)

    def step(self) -> float:
        """Write one event if the pace allows; how many seconds to rest before the next step."""
        if not len(self._queue):
            return _IDLE_SECONDS
        rest = self._pace.spend()
        if rest:
            return rest
        return 0.0 if self._queue.write_next() is not False else _SILENCE_SECONDS

    def _run(self) -> None:
        while not self._ended.is_set():
            self._ended.wait(self.step())
        while self._clock.monotonic() < self._until and self._queue.write_next():
            pass
