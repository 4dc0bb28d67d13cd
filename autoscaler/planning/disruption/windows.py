"""Cron windows of baselines and disruption budgets: a window is open in every minute that the expression matches.

"* 8-18 * * 1-5" is open on working days from 8:00 to 18:59. As in cron(5), if both days are restricted, one of them is
enough. This module does not know the purpose of a window.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from autoscaler.errors import ConfigurationError
from instance_catalog.dataclass import dataclass

_LOOK_AHEAD = 24 * 60  # minutes
_RANGES = {"minute": (0, 59), "hour": (0, 23), "day of month": (1, 31), "month": (1, 12), "day of week": (0, 7)}


@dataclass(frozen=True, slots=True)
class Window:
    """The values of the five fields; `either_day`: both day fields are restricted."""

    fields: tuple[frozenset[int], ...]
    either_day: bool
    time_zone: ZoneInfo

    @staticmethod
    def parse(expression: str, time_zone: str = "UTC") -> Window:
        """Parse a cron expression. Raises ConfigurationError."""
        words = expression.split()
        if len(words) != len(_RANGES):
            raise ConfigurationError(
                f"schedule {expression!r} has {len(words)} fields",
                next_step='Write five: minute hour day-of-month month day-of-week, for example "* 8-18 * * 1-5".',
            )
        try:
            zone = ZoneInfo(time_zone)
        except (ZoneInfoNotFoundError, ValueError, OSError) as error:  # OSError: a directory, such as America
            raise ConfigurationError(
                f"time zone {time_zone!r} is not known", next_step="Use an IANA name such as Europe/Berlin, or UTC."
            ) from error
        fields = tuple(
            _values(word, name, bounds, expression) for word, (name, bounds) in zip(words, _RANGES.items(), strict=True)
        )
        return Window(fields, either_day=words[2] != "*" and words[4] != "*", time_zone=zone)

    def open_at(self, now: datetime) -> bool:
        """True if the minute of `now` is in the window."""
        local = now.astimezone(self.time_zone)
        minute, hour, day, month, weekday = self.fields
        on_day = local.day in day
        # 0 and 7 are both Sunday.
        on_weekday = bool({local.isoweekday(), local.isoweekday() % 7} & weekday)
        days = (on_day or on_weekday) if self.either_day else (on_day and on_weekday)
        return local.minute in minute and local.hour in hour and local.month in month and days

    def next_change(self, now: datetime) -> datetime:
        """The next time at which it opens or closes; at most one day from now, when the caller asks again."""
        first = now.replace(second=0, microsecond=0)
        was = self.open_at(now)
        minutes = (first + timedelta(minutes=ahead) for ahead in range(1, _LOOK_AHEAD))
        return next((minute for minute in minutes if self.open_at(minute) != was), now + timedelta(days=1))


def _values(word: str, name: str, bounds: tuple[int, int], expression: str) -> frozenset[int]:
    found: set[int] = set()
    for part in word.split(","):
        span, _, step = part.partition("/")
        first, _, last = span.partition("-")
        try:
            low = bounds[0] if span == "*" else int(first)
            high = bounds[1] if span == "*" or (step and not last) else int(last or first)
            every = int(step or 1)
        except ValueError:
            low, high, every = 1, 0, 1
        if not (bounds[0] <= low <= high <= bounds[1] and every > 0):
            raise ConfigurationError(
                f"schedule {expression!r}: {part!r} is no {name}",
                next_step=f"Use numbers from {bounds[0]} to {bounds[1]}, ranges (8-18), lists (1,3) or steps (*/15).",
            )
        found.update(range(low, high + 1, every))
    return frozenset(found)
