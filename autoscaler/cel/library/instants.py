"""Durations and timestamps: as text, the calendar, accessors (Go's time package; cel-go v0.26.0
common/types/{duration,timestamp}.go).

Nanoseconds are exact throughout. Fixed zones and IANA names are supported; nothing here depends on the current time.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from autoscaler.cel.common.numerals import shortest_fixed
from autoscaler.cel.common.values import INT_MAX, Duration, Failure, Timestamp, Value

SECOND: Final = 10**9
_UNITS: Final = {
    "ns": 1, "us": 10**3, "µs": 10**3, "μs": 10**3, "ms": 10**6, "s": SECOND, "m": 60 * SECOND, "h": 3600 * SECOND,
}  # fmt: skip
_TERM: Final = re.compile(r"([0-9]*)(?:(\.)([0-9]*))?([^0-9.]+)", re.ASCII)
_RFC3339: Final = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)T(\d{1,2}):(\d\d):(\d\d)(?:[.,](\d+))?(?:(Z)|([+-])(\d\d):(\d\d))", re.ASCII
)
EARLIEST: Final = -62135596800
LATEST: Final = 253402300799
_EPOCH_DAY: Final = date(1970, 1, 1).toordinal()


def parse_duration(text: str) -> Duration | None:
    """time.ParseDuration; None if it fails."""
    sign, rest = (-1, text[1:]) if text[:1] == "-" else (1, text.removeprefix("+"))
    if rest == "0":
        return Duration(0)
    if not rest:
        return None
    total, at = 0, 0
    while at < len(rest):
        found = _TERM.match(rest, at)
        if found is None or not (found[1] or found[3]) or found[4] not in _UNITS or len(found[1]) > 19:
            return None
        unit = _UNITS[found[4]]
        total += int(found[1] or "0") * unit + _fraction(found[3] or "", unit)
        if total > 2**63:
            return None
        at = found.end()
    total *= sign
    return Duration(total) if -(2**63) <= total <= INT_MAX else None


def _fraction(digits: str, unit: int) -> int:
    """The fraction in nanoseconds. Go computes it in floating point and drops digits that overflow."""
    kept = digits
    while kept and int(kept) > INT_MAX:
        kept = kept[:-1]
    return int(float(int(kept)) * (float(unit) / 10.0 ** len(kept))) if kept else 0


def duration_text(value: Duration) -> str:
    """string(duration): seconds."""
    whole, rest = divmod(abs(value.nanoseconds), SECOND)
    seconds = float(whole) + float(rest) / 1e9
    return shortest_fixed(-seconds if value.nanoseconds < 0 else seconds) + "s"


def parse_timestamp(text: str) -> Timestamp | None:
    """time.Parse(time.RFC3339, text) within the years 1 to 9999; None if it fails."""
    found = _RFC3339.fullmatch(text)
    if found is None:
        return None
    year, month, day, hour, minute, second = (int(found[index]) for index in range(1, 7))
    if hour > 23 or minute > 59 or second > 59:
        return None
    offset = 0
    if found[8] is None:
        hours, minutes = int(found[10]), int(found[11])
        if hours > 24 or minutes > 60:
            return None
        offset = (hours * 3600 + minutes * 60) * (-1 if found[9] == "-" else 1)
    try:
        days = date(year, month, day).toordinal() - _EPOCH_DAY
    except ValueError:
        return None
    seconds = days * 86400 + hour * 3600 + minute * 60 + second - offset
    nanoseconds = int((found[7] or "")[:9].ljust(9, "0"))
    return Timestamp(seconds * SECOND + nanoseconds, offset) if EARLIEST <= seconds <= LATEST else None


def timestamp_text(value: Timestamp) -> str:
    """string(timestamp): RFC 3339 with the original offset and no trailing zeros."""
    seconds, nanoseconds = divmod(value.nanoseconds, SECOND)
    year, month, day, hour, minute, second = _civil(seconds + value.offset)
    fraction = f".{nanoseconds:09d}".rstrip("0") if nanoseconds else ""
    zone = "Z"
    if value.offset:
        minutes = abs(value.offset) // 60
        zone = f"{'-' if value.offset < 0 else '+'}{minutes // 60:02d}:{minutes % 60:02d}"
    return f"{year:04d}-{month:02d}-{day:02d}T{hour:02d}:{minute:02d}:{second:02d}{fraction}{zone}"


def _civil(seconds: int) -> tuple[int, int, int, int, int, int]:
    days, rest = divmod(seconds, 86400)
    cycles, days = divmod(days + 719468, 146097)
    of_era = (days - days // 1460 + days // 36524 - days // 146096) // 365
    of_year = days - (365 * of_era + of_era // 4 - of_era // 100)
    shifted = (5 * of_year + 2) // 153
    month = shifted + 3 if shifted < 10 else shifted - 9
    year = of_era + cycles * 400 + (month <= 2)
    return year, month, of_year - (153 * shifted + 2) // 5 + 1, rest // 3600, rest // 60 % 60, rest % 60


def calendar(value: Timestamp, zone: str) -> dict[str, int] | None:
    """The results of the accessors in `zone` ("" is UTC), None for a zone that does not exist."""
    offset = _offset(value, zone)
    if offset is None:
        return None
    seconds = value.nanoseconds // SECOND + offset
    year, month, day, hour, minute, second = _civil(seconds)
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    before = (0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334)[month - 1] + (leap and month > 2)
    return {
        "getFullYear": year,
        "getMonth": month - 1,
        "getDate": day,
        "getDayOfMonth": day - 1,
        "getDayOfWeek": (seconds // 86400 + 4) % 7,
        "getDayOfYear": before + day - 1,
        "getHours": hour,
        "getMinutes": minute,
        "getSeconds": second,
        "getMilliseconds": value.nanoseconds % SECOND // 10**6,
    }


_HOURS_MINUTES: Final = re.compile(r"([+-]?)([0-9]{1,9}):([+-]?[0-9]{1,9})", re.ASCII)


def _offset(value: Timestamp, zone: str) -> int | None:
    """Seconds east of UTC."""
    if zone in ("", "UTC", "Local"):
        return 0
    if ":" in zone:
        found = _HOURS_MINUTES.fullmatch(zone)
        if found is None:
            return None
        minutes = -int(found[3]) if found[1] == "-" else int(found[3])
        return (int(found[1] + found[2]) * 60 + minutes) * 60
    try:
        named = ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return None
    # Python's calendar ends where CEL's does, so the instant is kept a day away from the edges.
    seconds = min(max(value.nanoseconds // SECOND, EARLIEST + 86400), LATEST - 86400)
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)
    shift = moment.astimezone(named).utcoffset()
    return None if shift is None else int(shift.total_seconds())


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
