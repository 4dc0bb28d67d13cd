"""Rings the controller's bell when a provider announces something, so that its next look is not a minute away.

In a thread of its own, because it waits in calls. It takes nothing away and concludes nothing: what happened is seen by
describing, in the tick that the bell begins. Without it, or while it fails, everything is seen a little later.
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
# The tick that a ring begins reads and removes what was announced; until then it is still there.
_AFTER_A_RING: Final = 5.0
_STANDING_BY: Final = 5.0
_LONGEST_REST: Final = 300.0

_LOG: Final = structlog.get_logger("foreslice")


class NoticeWatch:
    """Listens to one announcer from `start` to `stop`. `leads`: whether this replica acts; another one only waits."""

    def __init__(
        self, announcer: Announcer, ring: Callable[[], None], *, leads: Callable[[], bool] = lambda: True
    ) -> None:
        self._announcer = announcer
        self._ring = ring
        self._leads = leads
        self._failures = 0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="notices", daemon=True)

    def start(self) -> None:
        """Listen from now on."""
        self._thread.start()

    def stop(self) -> None:
        """Ring no more. Waits for the question under way, at most as long as one is held open."""
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join(timeout=_WAIT.total_seconds())

    def listen(self) -> float:
        """Wait once for an announcement and ring; how many seconds to rest before the next time."""
        if not self._leads():
            return _STANDING_BY
        try:
            heard = self._announcer.announced(_WAIT)
        except ProviderError as error:
            self._failures += 1
            _LOG.warning("notices_not_heard", kind=error.kind, error=error.message, next_step=error.next_step)
            return min(_AFTER_A_RING * float(1 << min(self._failures - 1, 10)), _LONGEST_REST)
        except Exception as error:  # noqa: BLE001  # a thread that ends would hear no notice any more
            self._failures += 1
            _LOG.warning("notices_not_heard", kind=type(error).__name__, error=str(error), next_step="please report it")
            return min(_AFTER_A_RING * float(1 << min(self._failures - 1, 10)), _LONGEST_REST)
        self._failures = 0
        if not heard or self._ended.is_set():
            return 0.0
        self._ring()
        return _AFTER_A_RING

    def _run(self) -> None:
        while not self._ended.is_set():
            self._ended.wait(self.listen())
