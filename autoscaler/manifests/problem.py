"""A problem with its place: what a person needs to find it, understand it, and get on."""

from __future__ import annotations

from dataclasses import dataclass

from autoscaler.kube.problem import Severity


@dataclass(frozen=True, slots=True)
class LocatedProblem:
    """`file` as the user gave it ("-" is standard input), `line` 1-based; `object` as "Pod default/main"."""

    file: str
    line: int
    message: str
    object: str = ""
    field: str = ""
    next_step: str = ""
    severity: Severity = Severity.ERROR

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.line else self.file
        text = ": ".join(part for part in (place, self.object, self.field, self.message) if part)
        return "\n  ".join((text, *self.next_step.splitlines()))
