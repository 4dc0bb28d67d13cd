"""Sizes and costs in a static estimate: pairs (least, most) of uint64 that saturate instead of overflowing.

Sizes of the parts of a device: the limits of resource.k8s.io/v1 that k8s.io/dynamic-resource-allocation v0.36.3
declares in cel/compile.go.
"""

from __future__ import annotations

import math
from typing import Final, TypeAlias

Interval: TypeAlias = tuple[int, int]

SATURATED: Final = 2**64 - 1
UNKNOWN: Final[Interval] = (0, SATURATED)


def fixed(value: int) -> Interval:
    return value, value


def plus(*parts: Interval) -> Interval:
    low = high = 0
    for part in parts:
        low += part[0]
        high += part[1]
    return min(low, SATURATED), min(high, SATURATED)


def times(left: Interval, right: Interval) -> Interval:
    """The product, bound by bound."""
    return min(left[0] * right[0], SATURATED), min(left[1] * right[1], SATURATED)


def union(left: Interval, right: Interval) -> Interval:
    """The least interval that contains both."""
    return min(left[0], right[0]), max(left[1], right[1])


def scaled(interval: Interval, factor: float) -> Interval:
    """`interval` times a factor, rounded up."""
    return _scaled(interval[0], factor), _scaled(interval[1], factor)


def _scaled(value: int, factor: float) -> int:
    number = float(value)
    if number > 0 and factor > 0 and number > 2.0**64 / factor:
        return SATURATED
    product = math.ceil(number * factor)
    return SATURATED if product >= 2**64 else product


# Field names from the variable `device` on; "@keys", "@values" and "@items" are the parts of maps and lists.
Path: TypeAlias = tuple[str, ...]

_MAP_ENTRIES: Final = 32


def device_size(path: Path) -> Interval | None:
    """The size of the device's part at `path`: 63 for a driver or domain, 32 for an identifier, 64 for a value."""
    match path:
        case ("device",):
            return 0, 0
        case ("device", "driver"):
            return 0, 63
        case ("device", "allowMultipleAllocations"):
            return 0, 1
        case ("device", "attributes" | "capacity"):
            return 0, _MAP_ENTRIES
        case ("device", "attributes" | "capacity", "@keys"):
            return 0, 63
        case ("device", "attributes" | "capacity", "@values" | "@items"):
            return 0, _MAP_ENTRIES
        case ("device", "attributes" | "capacity", "@values" | "@items", "@keys"):
            return 0, 32
        case ("device", "attributes", "@values" | "@items", _):
            return 0, 64
        case ("device", "capacity", "@values" | "@items", "@values" | "@items"):
            return 0, 0
    return None
