"""Outcomes of allocations that were asked for before: a plan asks many questions more than once.

Questions are the same if they are about the same objects. Equal ones would not do: quantities compare by value, but
upstream's arithmetic depends on how they are written.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from autoscaler.dra.outcome import AllocationOutcome

_MOST: Final = 4096  # what outlives a plan with many nodes should not be its memory of it

Key: TypeAlias = tuple[Hashable, tuple[int, ...]]


@dataclass(frozen=True, slots=True, eq=False)
class AllocationCache:
    """A memo of one snapshot. Entries keep the objects they are about, so that no identity is given away again."""

    _known: dict[Key, tuple[Sequence[object], AllocationOutcome]] = field(default_factory=dict)

    def of(self, where: Hashable, asked: Sequence[object]) -> AllocationOutcome | None:
        """The outcome for exactly these objects at `where`."""
        found = self._known.get((where, tuple(map(id, asked))))
        return None if found is None else found[1]

    def remember(self, where: Hashable, asked: Sequence[object], outcome: AllocationOutcome) -> None:
        """Keep an outcome; when there are too many, all are forgotten."""
        if len(self._known) >= _MOST:
            self._known.clear()
        self._known[where, tuple(map(id, asked))] = asked, outcome
