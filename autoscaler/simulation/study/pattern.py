"""Arrivals and durations of a workload: fixed, at intervals, or drawn with the scenario's seed."""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import timedelta
from random import Random
from typing import Final

from instance_catalog.dataclass import dataclass

_DAY: Final = timedelta(days=1)
_Z95: Final = 1.6448536269514722  # the 95th percentile of the normal distribution
# No task runs longer than a simulation lasts.
_LONGEST: Final = timedelta(days=3650)


@dataclass(frozen=True, slots=True)
class Arrivals:
    """The arrivals of a workload, one of the three: `at` these times; `every` interval; a Poisson process with
    `per_hour` arrivals. The latter two only from `since` until `until` of each day; the simulation begins at 00:00."""

    at: tuple[timedelta, ...] = ()
    every: timedelta | None = None
    per_hour: float = 0.0
    since: timedelta = timedelta(0)
    until: timedelta = _DAY

    def expected(self, length: timedelta) -> float:
        """The approximate number of arrivals that are drawn before `length`: also those outside the part of the day."""
        if self.at:
            return len(self.at)
        hours = length.total_seconds() / 3600
        return hours * self.per_hour if self.every is None else length / self.every

    def times(self, length: timedelta, random: Random) -> Iterator[timedelta]:
        """The arrivals before `length`, ascending, in whole seconds."""
        if self.at:
            yield from (moment for moment in sorted(self.at) if moment < length)
            return
        now = timedelta(0)
        while True:
            if self.every is None:
                # A rate may be so small that the time to the first arrival is no number.
                seconds = random.expovariate(1.0) * (3600 / self.per_hour)
                if not seconds < (length - now).total_seconds():
                    return
                now += timedelta(seconds=seconds)
            if now >= length:
                return
            if self.since <= now % _DAY < self.until:
                yield timedelta(seconds=int(now.total_seconds()))
            if self.every is not None:
                now += self.every


@dataclass(frozen=True, slots=True)
class Durations:
    """The run time of a task: always `median`, or drawn from the lognormal distribution with this median and 95th
    percentile, which is typical for jobs, at most ten years. None: to the end of the simulation."""

    median: timedelta | None
    p95: timedelta | None = None

    def draw(self, random: Random) -> timedelta | None:
        """The duration of one task, at least a second."""
        if self.median is None or self.p95 is None:
            return self.median
        middle = math.log(self.median.total_seconds())
        sigma = (math.log(self.p95.total_seconds()) - middle) / _Z95
        drawn = math.exp(min(random.gauss(middle, sigma), math.log(_LONGEST.total_seconds())))
        return timedelta(seconds=max(1, round(drawn)))
