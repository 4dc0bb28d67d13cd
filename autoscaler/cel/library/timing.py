"""Accessors of timestamps and durations (cel-go v0.26.0 common/types/{timestamp,duration}.go)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from autoscaler.cel.common.values import Duration, Failure, Timestamp, Value
from autoscaler.cel.library.instants import SECOND, calendar

_ACCESSORS: Final = {
    "year": "getFullYear",
    "month": "getMonth",
    "day_of_year": "getDayOfYear",
    "day_of_month": "getDayOfMonth",
    "day_of_month_1_based": "getDate",
    "day_of_week": "getDayOfWeek",
    "hours": "getHours",
    "minutes": "getMinutes",
    "seconds": "getSeconds",
    "milliseconds": "getMilliseconds",
}
_TOTALS: Final = {"hours": 3600 * SECOND, "minutes": 60 * SECOND, "seconds": SECOND, "milliseconds": 10**6}


def _accessor(name: str) -> Callable[..., Value]:
    def access(value: Timestamp, zone: str = "UTC") -> Value:
        answers = calendar(value, zone)
        return Failure(f"unknown time zone {zone}") if answers is None else answers[name]

    return access


def _total(unit: int) -> Callable[[Duration], int]:
    def total(value: Duration) -> int:
        whole = abs(value.nanoseconds) // unit
        return -whole if value.nanoseconds < 0 else whole

    return total


IMPLEMENTATIONS: Final[Mapping[str, Callable[..., Any]]] = {
    **{f"timestamp_to_{part}": _accessor(name) for part, name in _ACCESSORS.items()},
    **{f"timestamp_to_{part}_with_tz": _accessor(name) for part, name in _ACCESSORS.items()},
    **{f"duration_to_{part}": _total(unit) for part, unit in _TOTALS.items()},
}
