"""The wait before a failed request to a provider is repeated: it grows, however often the loop is woken.

Kept in memory. A new process asks once more, which is one call and no danger; failures of launches are kept in the
pools' statuses instead (cluster/status_memory.py).
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from datetime import timedelta
from typing import Final

from autoscaler.errors import ForesliceError
from instance_catalog.dataclass import dataclass, field
from providers.contract import Clock
from providers.errors import ProviderError, UnclassifiedError

# The longest wait of a user who corrected the cause of an error until it has an effect.
LONGEST: Final = timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class _Failure:
    error: Exception
    count: int
    until: float


@dataclass(slots=True)
class Patience:
    """The failures, by a key of the caller's. `longest` bounds every wait."""

    clock: Clock
    longest: timedelta = LONGEST
    _failed: dict[str, _Failure] = field(default_factory=dict)

    def attempt(self, key: str, call: Callable[[], None]) -> None:
        """Calls, unless the call failed recently. Raises the call's error, or the error of that failure."""
        before = self._failed.get(key)
        if before is not None and self.clock.monotonic() < before.until:
            raise before.error.with_traceback(None)  # or it grows with every raise
        try:
            call()
        except Exception as error:
            count = 1 + (before.count if before is not None else 0)
            known = error if isinstance(error, (ProviderError, ForesliceError)) else _unforeseen(error)
            wait = known.backoff(count) if isinstance(known, ProviderError) else self.longest
            until = self.clock.monotonic() + min(wait, self.longest).total_seconds()
            self._failed[key] = _Failure(known, count, until)
            raise
        self._failed.pop(key, None)

    def error(self, key: str) -> Exception | None:
        """The error of the last call of this key; None if that call succeeded."""
        known = self._failed.get(key)
        return None if known is None else known.error

    def keep(self, keys: Collection[str]) -> None:
        """Forget all others."""
        self._failed = {key: known for key, known in self._failed.items() if key in keys}


class Until:
    """The time in which a reconcile may still begin launches."""

    def __init__(self, clock: Clock, span: timedelta) -> None:
        self._clock, self._span = clock, span.total_seconds()
        self._began: float | None = None

    def over(self) -> bool:
        """True if the span has passed since the first call."""
        now = self._clock.monotonic()
        self._began = now if self._began is None else self._began
        return now - self._began >= self._span


def _unforeseen(error: Exception) -> UnclassifiedError:
    """The error for an exception that no provider should raise. The log has its traceback, once for each request."""
    step = "report it with the log line `unexpected_error`; it is tried again"
    return UnclassifiedError(f"it failed unexpectedly: {type(error).__name__}", next_step=step)
