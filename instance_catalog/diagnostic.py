"""What is wrong with a file that a person wrote: where, what, and what to do next."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class Diagnostic:
    """One defect. `subject` is "instance type p5.48xlarge", `field` a path such as "accelerator.count".

    `sources` are all files that contribute to the subject: any of them may be the one that is wrong.
    """

    file: str
    line: int
    subject: str
    field: str
    message: str
    next_step: str = ""
    sources: tuple[str, ...] = dataclasses.field(default=(), compare=False, repr=False)

    def __str__(self) -> str:
        """p5.yaml:3: instance type p5.48xlarge: vcpu: found 'many'; allowed: a whole number."""
        place = ": ".join(part for part in (f"{self.file}:{self.line}", self.subject, self.field) if part)
        return f"{place}: {self.message}; {self.next_step}".removesuffix("; ")
