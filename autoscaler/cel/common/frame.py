"""The state of one evaluation: a list of the cost so far, the device, and one slot per variable.

A list beats an object here: every step of every expression touches it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

from autoscaler.cel.common.values import Value

COST_LIMIT: Final = 1_000_000
COST, DEVICE = 0, 1
FIRST_SLOT: Final = 2

Frame: TypeAlias = list[Any]
Run: TypeAlias = Callable[[Frame], Value]


class CostExceededError(Exception):
    """The cost limit is reached; nothing in the expression can absorb this."""


def charge(frame: Frame, units: int) -> None:
    """Adds cost. Raises CostExceededError above the limit, also where upstream's unsigned sum wraps below zero."""
    cost = frame[COST] = frame[COST] + units
    if not 0 <= cost <= COST_LIMIT:
        frame[COST] = cost % 2**64
        raise CostExceededError
