"""A problem with its place: what a person needs to find it, understand it, and get on."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from autoscaler.kube.problem import Severity

_BREAKS: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


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
        # A name may have line breaks, which would begin a line of their own in somebody's log.
        named = _BREAKS.sub(lambda found: repr(found[0])[1:-1], self.object)
        text = ": ".join(part for part in (place, named, self.field, self.message) if part)
        return "\n  ".join((text, *self.next_step.splitlines()))
