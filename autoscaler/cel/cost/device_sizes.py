"""How large the parts of a device can be, for static cost estimates.

The limits are those of resource.k8s.io/v1 that k8s.io/dynamic-resource-allocation v0.36.3 declares in cel/compile.go.
"""

from __future__ import annotations

from typing import Final, TypeAlias

from autoscaler.cel.cost.intervals import Interval

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
