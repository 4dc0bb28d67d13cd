"""Clocks: the system's, a shifted one, and a virtual one; jumps of the wall clock. Only here is the system clock read.

Everything else gets a `providers.contract.Clock` or a `now`. The virtual clock makes a day of a cluster's life take
milliseconds: it advances only when a test or a simulation advances it.
"""

from __future__ import annotations

import threading
import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:  # every command reads the time, and few ask a provider for something
    from providers.contract import Clock

EPOCH: Final = datetime(2026, 1, 1, tzinfo=UTC)
_SLEW: Final = 1.0  # seconds by which wall clock and monotonic clock may diverge between two measurements
# Linux's monotonic clock stands still while the machine is suspended, and this one does not.
_SUSPENDED: Final[int | None] = getattr(time, "CLOCK_BOOTTIME", None)


class SystemClock:
    def now(self) -> datetime:
        """The current time, aware UTC."""
        return datetime.now(UTC)  # noqa: TID251  # this is the one place

    def monotonic(self) -> float:
        """Seconds since an arbitrary moment, also those for which the machine was suspended.

        A leader that was suspended for longer than its Lease must know on waking that it does not lead any more.
        """
        return time.monotonic() if _SUSPENDED is None else time.clock_gettime(_SUSPENDED)

    def wait(self, seconds: float) -> None:
        """Block the calling thread."""
        time.sleep(max(seconds, 0.0))  # noqa: TID251  # this is the one place


class ClockJumps:
    """Jumps of the wall clock: where it and the monotonic clock diverge between two measurements.

    `inherits`: somebody else has written moments before, by a clock of which nothing is known: that counts as a jump.
    """

    def __init__(self, clock: Clock, *, inherits: bool = False) -> None:
        self._clock = clock
        self._offset = self._measured()
        self._jumped: float | None = clock.monotonic() if inherits else None

    def measure(self) -> timedelta:
        """By how much the wall clock has jumped since the last measurement; zero while it only runs a little fast or
        slow."""
        offset = self._measured()
        jumped, self._offset = offset - self._offset, offset
        if abs(jumped) <= _SLEW:
            return timedelta(0)
        self._jumped = self._clock.monotonic()
        return timedelta(seconds=jumped)

    def within(self, window: timedelta) -> bool:
        """True if it has jumped so short a while ago that ages by the wall clock mean nothing."""
        self.measure()
        return self._jumped is not None and self._clock.monotonic() < self._jumped + window.total_seconds()

    def _measured(self) -> float:
        return self._clock.now().timestamp() - self._clock.monotonic()


class VirtualClock:
    """Time that advances only by `wait` and `advance`: a simulated day takes as long as its work."""

    def __init__(self, start: datetime = EPOCH) -> None:
        if start.tzinfo is None:
            raise ValueError("a clock needs an aware start time, such as datetime(2026, 1, 1, tzinfo=UTC)")
        self._start = start.astimezone(UTC)
        self._elapsed = timedelta(0)
        self._lock = threading.Lock()

    def now(self) -> datetime:
        return self._start + self._elapsed

    def monotonic(self) -> float:
        """Virtual seconds since the clock was made."""
        return self._elapsed.total_seconds()

    def wait(self, seconds: float) -> None:
        """Advance the clock; does nothing unless `seconds` are positive."""
        if seconds > 0:
            self.advance(timedelta(seconds=seconds))

    def advance(self, by: timedelta) -> None:
        """Move the time on; it never goes back."""
        if by < timedelta(0):
            raise ValueError(f"time cannot go back by {-by}")
        with self._lock:
            self._elapsed += by

    def advance_to(self, moment: datetime) -> None:
        """Advance to a moment; does nothing when it has passed."""
        self.advance(max(moment - self.now(), timedelta(0)))
