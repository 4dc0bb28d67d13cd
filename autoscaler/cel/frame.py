"""The state of one evaluation: a list of the cost so far, the device, and one slot per variable.

A list beats an object here: every step of every expression touches it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

from autoscaler.cel.values import Value

COST_LIMIT: Final = 1_000_000
COST, DEVICE = 0, 1
FIRST_SLOT: Final = 2

Frame: TypeAlias = list[Any]
Run: TypeAlias = Callable[[Frame], Value]


class CostExceededError(Exception):
    """The cost limit is reached; nothing in the expression can absorb this."""


def charge(frame: Frame, units: int) -> None:
    """Adds cost. Raises CostExceededError above the limit."""
    frame[COST] += units
    if frame[COST] > COST_LIMIT:
        raise CostExceededError
