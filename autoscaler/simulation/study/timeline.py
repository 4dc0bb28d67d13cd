"""The cluster over time: exact sums, and averages over a few hundred equal stretches for pictures."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from autoscaler.report.study.outcome import Point
from instance_catalog.dataclass import dataclass

_POINTS: Final = 240
_HOUR: Final = 3600


@dataclass(frozen=True, slots=True)
class State:
    """The state between two changes. `rate`: $/h of all machines; the others are GPUs, and tasks that wait."""

    rate: float = 0.0
    paid: float = 0.0
    starting: float = 0.0
    allocated: float = 0.0
    fragmented: float = 0.0
    waiting: float = 0.0

    def times(self, hours: float) -> State:
        """Each figure times so many hours."""
        return State(*(value * hours for value in self._figures))

    def plus(self, other: State) -> State:
        return State(*(a + b for a, b in zip(self._figures, other._figures, strict=True)))

    @property
    def _figures(self) -> tuple[float, ...]:
        return (self.rate, self.paid, self.starting, self.allocated, self.fragmented, self.waiting)


class Timeline:
    """States with the time until which each held."""

    def __init__(self, start: datetime) -> None:
        self._start = self._last = start
        self._held: list[tuple[float, float, State]] = []  # from and until, in hours
        self.hours = State()
        """Each figure times the hours for which it held: dollars, GPU-hours, and hours of waiting."""

    def hold(self, state: State, until: datetime) -> None:
        """Extends the state from the last call until now. Raises ValueError if the clock is set back."""
        if until < self._last:
            raise ValueError(f"the clock goes back from {self._last} to {until}")
        since, now = ((moment - self._start).total_seconds() / _HOUR for moment in (self._last, until))
        self._last = until
        if now == since:
            return
        self.hours = self.hours.plus(state.times(now - since))
        if self._held and self._held[-1][2] == state:
            since = self._held.pop()[0]
        self._held.append((since, now, state))

    def points(self) -> tuple[Point, ...]:
        """Averages over equal stretches, and the dollars spent by the end of each."""
        end = self._held[-1][1] if self._held else 0.0
        if not end:
            return ()
        width = end / _POINTS
        sums = [State() for _ in range(_POINTS)]
        for since, until, state in self._held:
            first, last = int(since / width), min(int(until / width), _POINTS - 1)
            for index in range(min(first, _POINTS - 1), last + 1):
                share = min(until, (index + 1) * width) - max(since, index * width)
                if share > 0:
                    sums[index] = sums[index].plus(state.times(share))
        return tuple(_points(sums, width))


def _points(sums: list[State], width: float) -> list[Point]:
    spent, found = 0.0, [Point(0.0, 0.0, 0.0, 0.0, 0.0, 0.0)]
    for index, total in enumerate(sums):
        spent += total.rate
        starting, allocated = total.starting / width, total.allocated / width
        idle = max(0.0, total.paid / width - starting - allocated)
        found.append(Point((index + 1) * width, spent, starting, allocated, idle, total.waiting / width))
    return found
