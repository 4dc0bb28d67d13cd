"""Durations in settings, as Kubernetes' own components take them (Go's time.ParseDuration), and days besides.

Custom resources take whole seconds only (autoscaler/kube/custom/schema.py): there a duration is part of an API.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import timedelta
from decimal import Decimal
from typing import Final

from autoscaler.kube.pod_delay import DURATION_UNITS

_HOW: Final = "write it like 500ms, 30s, 1m30s, 1.5h or 2d"
_UNITS: Final[Mapping[str, Decimal]] = {**DURATION_UNITS, "d": Decimal(86400)}
PART: Final = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h|d)")
_LONGEST_TEXT: Final = 64
_LONGEST: Final = timedelta(days=3660)
_WRITTEN: Final = (("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1))


def span(value: object) -> timedelta:
    """Parses a duration of a file, a variable or a flag. The ValueError names the allowed form."""
    if isinstance(value, timedelta):
        return value
    if not isinstance(value, str):
        raise ValueError(f"{value!r} is not a duration: {_HOW}")
    if value == "0":
        return timedelta(0)
    parts = PART.findall(value) if len(value) <= _LONGEST_TEXT else []
    if not parts or "".join(number + unit for number, unit in parts) != value:
        raise ValueError(f"{value[:_LONGEST_TEXT]!r} is not a duration: {_HOW}")
    seconds = sum((Decimal(number) * _UNITS[unit] for number, unit in parts), Decimal(0))
    if seconds > _LONGEST.total_seconds():
        raise ValueError(f"{value!r} is longer than ten years: {_HOW}")
    milliseconds = seconds * 1000
    if milliseconds != int(milliseconds):
        raise ValueError(f"{value!r} is not a whole number of milliseconds: {_HOW}")
    return timedelta(milliseconds=int(milliseconds))


def span_text(value: timedelta) -> str:
    """The shortest form that `span` reads back, to the millisecond."""
    left, text = value // timedelta(milliseconds=1), ""
    for unit, milliseconds in _WRITTEN:
        count, left = divmod(left, milliseconds)
        text += f"{count}{unit}" if count else ""
    return text or "0s"
