"""Where facts come from. On its own, so that every kind of fact can carry it."""

from __future__ import annotations

from instance_catalog.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Provenance:
    """Where a group of facts comes from. `date` is ISO text as coarse as the source gives it ("2026-08-03", "2026").

    A `guess` is used like any other value, shown as such, and gives way to what nodes really publish.
    """

    source: str
    date: str = ""
    guess: bool = False
