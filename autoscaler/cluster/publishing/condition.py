"""Conditions of objects, as metav1.Condition."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final, NamedTuple

from autoscaler.report.printable import printable

TIME: Final = "%Y-%m-%dT%H:%M:%SZ"
_LONGEST: Final = 32768  # of a message: metav1.Condition, validation


class Verdict(NamedTuple):
    """A condition of an object's status, without its times."""

    status: str  # True, False or Unknown
    reason: str
    message: str = ""

    @property
    def holds(self) -> bool:
        """True if the condition is True."""
        return self.status == "True"


def shown(message: str) -> str:
    """A message for a condition: without control characters, and cut to the API server's limit."""
    return printable(message)[:_LONGEST]


def condition(
    kind: str, verdict: Verdict, *, before: Mapping[str, Any], generation: int, now: datetime
) -> dict[str, Any]:
    """The entry for type `kind`. `before` is the entry that it replaces: its time stays while the status does."""
    same = before.get("status") == verdict.status and "lastTransitionTime" in before
    return {
        "type": kind,
        "status": verdict.status,
        "reason": verdict.reason,
        "message": shown(verdict.message),
        "observedGeneration": generation,
        "lastTransitionTime": before["lastTransitionTime"] if same else now.strftime(TIME),
    }
