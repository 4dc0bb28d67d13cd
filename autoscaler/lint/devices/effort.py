"""A bound on the work of trying selectors: one evaluation may take a million steps, on thousands of devices."""

from __future__ import annotations

from typing import Final

from autoscaler.cel.common.outcome import Evaluation
from autoscaler.cel.interpreter.device import DeviceView
from autoscaler.cel.program import Program

_ORDINARY: Final = 1_000  # units; realistic selectors take 4 to 70
_ALLOWED: Final = 20_000_000  # units beyond the ordinary, a few seconds


class EffortExceededError(Exception):
    """The selectors together take more work than is done for them."""


class Effort:
    """The rest of the allowed work. Ordinary evaluations are free: their number is bounded by the catalog."""

    __slots__ = ("_left",)

    def __init__(self, allowed: int = _ALLOWED) -> None:
        self._left = allowed

    def evaluate(self, program: Program, view: DeviceView) -> Evaluation:
        """The program's answer. Raises EffortExceededError when nothing is left."""
        if self._left <= 0:
            raise EffortExceededError
        found = program.evaluate(view)
        self._left -= max(found.cost - _ORDINARY, 0)
        return found
