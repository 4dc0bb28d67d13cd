"""Clocks whose wall time is set, as by ntpd or a person, while everything that measures goes on."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from autoscaler.clock import VirtualClock
from providers.contract import Clock


class Jumping:
    """A virtual clock of which only `now` jumps. Several may share the time of one, as machines share the world's.

    `offset` is how far the wall clock is ahead.
    """

    def __init__(self, clock: VirtualClock) -> None:
        self._clock = clock
        self.offset = timedelta(0)

    def jump(self, by: timedelta) -> None:
        """Set the wall clock forward, or back."""
        self.offset += by

    def advance(self, by: timedelta) -> None:
        """Let time pass."""
        self._clock.advance(by)

    def now(self) -> datetime:
        """What the wall clock shows."""
        return self._clock.now() + self.offset

    def monotonic(self) -> float:
        """Untouched by jumps."""
        return self._clock.monotonic()

    def wait(self, seconds: float) -> None:
        """As the clock below."""
        self._clock.wait(seconds)


@dataclass(frozen=True, slots=True)
class ShiftedClock:
    """Another clock whose `now` is moved by `offset`, to meet the end of a block on a real cluster. The rest stays."""

    clock: Clock
    offset: timedelta

    def now(self) -> datetime:
        """The shifted time."""
        return self.clock.now() + self.offset

    def monotonic(self) -> float:
        """Not shifted: leases and rates depend on it."""
        return self.clock.monotonic()

    def wait(self, seconds: float) -> None:
        """Wait as the other clock does."""
        self.clock.wait(seconds)
