"""What is wrong with catalog files, all of it at once, each with its place and the way out."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class CatalogProblem:
    """One defect. `entry` is "instance type p5.48xlarge", `field` a path such as "accelerator.count".

    `sources` are all files that have a part in the entry: any of them may be the one that is wrong.
    """

    file: str
    line: int
    entry: str
    field: str
    found: str
    allowed: str
    hint: str = ""
    sources: tuple[str, ...] = dataclasses.field(default=(), compare=False, repr=False)

    def __str__(self) -> str:
        place = ": ".join(part for part in (f"{self.file}:{self.line}", self.entry, self.field) if part)
        return "; ".join(filter(None, (f"{place}: found {self.found}", f"allowed: {self.allowed}", self.hint)))


class CatalogError(ValueError):
    """Catalog files that cannot be used. Nothing of them takes effect; `problems` has every defect."""

    def __init__(self, problems: Sequence[CatalogProblem]) -> None:
        self.problems = tuple(sorted(problems))
        count = "1 problem" if len(self.problems) == 1 else f"{len(self.problems)} problems"
        lines = [f"{count} in the instance catalog; nothing was loaded", *map(str, self.problems)]
        super().__init__("\n  ".join(lines))
