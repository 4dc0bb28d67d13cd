"""A bound on work that Kubernetes' cost does not see.

Upstream relies on a deadline for what costs nothing there: comparing nested lists that share their parts, joining
lists, loops whose predicate is constant. Here such work is counted instead, so that the answer does not depend on the
machine; an evaluation that spends its allowance ends as unknown. Only programs with comprehensions can spend much.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import Final

STEPS: Final = 500_000
MAX_DEPTH: Final = 250


class WorkExceededError(Exception):
    """The allowance is spent."""


class Allowance:
    """What one evaluation may still do."""

    __slots__ = ("depth", "steps")

    def __init__(self) -> None:
        self.steps = STEPS
        self.depth = 0


ALLOWANCE: Final[ContextVar[Allowance | None]] = ContextVar("ALLOWANCE", default=None)


def spend(steps: int) -> None:
    """Counts steps. Raises WorkExceededError when the allowance is spent."""
    allowance = ALLOWANCE.get()
    if allowance is not None:
        allowance.steps -= steps
        if allowance.steps < 0:
            raise WorkExceededError


def enter(steps: int) -> None:
    """Counts steps one level deeper into a nested value; `leave` ends the level. Raises WorkExceededError."""
    allowance = ALLOWANCE.get()
    if allowance is not None:
        allowance.steps -= steps
        allowance.depth += 1
        if allowance.steps < 0 or allowance.depth > MAX_DEPTH:
            raise WorkExceededError


def leave() -> None:
    """One level up again."""
    allowance = ALLOWANCE.get()
    if allowance is not None:
        allowance.depth -= 1
