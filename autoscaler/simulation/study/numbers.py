"""Parses numbers and times of traces and scenarios: finite, not negative, or an error with the reason."""

from __future__ import annotations

import math
import re
from datetime import timedelta
from typing import Final

from autoscaler.kube.custom.schema import duration, moment

MOST_PODS: Final = 1_000_000
"""Pods of a workload: more than any trace has, and as many as fit into memory."""
# Longer than any trace; beyond it lies a mistake of units.
_LONGEST = timedelta(days=3650)
_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)


def amount(text: str) -> float:
    """A finite number that is not negative. Raises ValueError with the reason."""
    try:
        found = float(text)
    except ValueError:
        raise ValueError(f"{text!r} is not a number") from None
    if not math.isfinite(found):
        raise ValueError(f"{text!r} is not a finite number")
    if found < 0:
        raise ValueError(f"{text!r} is negative")
    return found


def count(text: str) -> int:
    """A whole number that is not negative. Raises ValueError with the reason."""
    found = amount(text)
    if found != int(found):
        raise ValueError(f"{text!r} is not a whole number")
    return int(found)


def span(text: str) -> timedelta:
    """Seconds as a number, or a duration such as 1h30m; whole seconds. Raises ValueError with the reason."""
    if text[-1:].isalpha() and text.lower() not in ("nan", "inf", "infinity", "-inf", "+inf"):
        return duration(text)
    seconds = amount(text)
    if seconds > _LONGEST.total_seconds():
        raise ValueError(f"{text!r} seconds are longer than ten years")
    return timedelta(seconds=round(seconds))


def instant(text: str) -> timedelta:
    """A time as the span since 1970 or since the trace's own zero: seconds, or RFC 3339. Raises ValueError."""
    if "T" in text or "t" in text:
        return timedelta(seconds=round(moment(text).timestamp()))
    if _DATE.match(text):
        raise ValueError(f"{text!r} is not RFC 3339: write a date with T and a time zone, as 2026-11-02T08:00:00Z")
    seconds = amount(text)
    if seconds > 1e11:
        raise ValueError(f"{text!r} is too large for seconds: divide milliseconds by 1000")
    return timedelta(seconds=round(seconds))
