"""The sources of facts. A module of its own, so that every kind of fact can have one."""

from __future__ import annotations

from instance_catalog.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Provenance:
    """The source of a group of facts. `date` is ISO text, as exact as the source ("2026-08-03", "2026").

    A `guess` is used like any other value, shown as a guess, and overridden by what nodes publish.
    """

    source: str
    date: str = ""
    guess: bool = False
