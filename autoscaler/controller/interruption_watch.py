"""Wakes the controller when a provider announces an interruption, instead of at its next resync.

It runs in a thread of its own, because it waits in calls. It removes no message and decides nothing: the reconcile that
it starts asks the provider what happened. While it fails, interruptions are noticed at the next resync.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Final

import structlog

from providers.abilities import Announcer
from providers.errors import ProviderError

# SQS holds a question open for at most 20 seconds; a shorter wait ends sooner when the process does.
_WAIT: Final = timedelta(seconds=10)
# The reconcile that follows reads and removes the message; until then the queue returns it again.
_AFTER_A_WAKE_UP: Final = 5.0
_STANDING_BY: Final = 5.0
_LONGEST_REST: Final = 300.0

_LOG: Final = structlog.get_logger("foreslice")


class InterruptionWatch:
    """Polls one announcer from `start` to `stop`. `leads`: whether this replica acts; a follower polls nothing."""

    def __init__(
        self, announcer: Announcer, wake: Callable[[], None], *, leads: Callable[[], bool] = lambda: True
    ) -> None:
        self._announcer = announcer
        self._wake = wake
        self._leads = leads
        self._failures = 0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="interruptions", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """End the thread. Blocks until the poll in progress returns, at most as long as a poll lasts."""
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join(timeout=_WAIT.total_seconds())

    def listen(self) -> float:
        """Poll once; returns the seconds to wait before the next poll."""
        if not self._leads():
            return _STANDING_BY
        try:
            announced = self._announcer.announced(_WAIT)
        except ProviderError as error:
            return self._failed(error.kind, error.message, error.next_step)
        except Exception as error:  # noqa: BLE001  # a thread that ends would notice no interruption any more
            return self._failed(type(error).__name__, str(error), "please report this bug")
        self._failures = 0
        if not announced or self._ended.is_set():
            return 0.0
        self._wake()
        return _AFTER_A_WAKE_UP

    def _failed(self, kind: str, error: str, next_step: str) -> float:
        self._failures += 1
        _LOG.warning("interruptions_not_read", kind=kind, error=error, next_step=next_step)
        return min(_AFTER_A_WAKE_UP * float(1 << min(self._failures - 1, 10)), _LONGEST_REST)

    def _run(self) -> None:
        while not self._ended.is_set():
            self._ended.wait(self.listen())
