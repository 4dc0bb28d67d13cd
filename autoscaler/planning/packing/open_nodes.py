"""The open nodes of a first fit, with a quick search for those that may have room for one more bundle.

Amounts and numbers of devices are compared for all nodes at once, as whole numbers. Values that are too large for a
vector are cut, which never hides a node with room. With few items nothing is compared, because loading numpy takes
longer.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import Any, Final, Generic

from autoscaler.planning.packing.fillings import Fillings
from autoscaler.planning.packing.problem import Column, Problem, State

# With at least this number of items, vectors are faster.
_MANY: Final = 64
# The largest amount in a vector. Both sides of a comparison are cut to it.
_MOST: Final = 2**62


class OpenNodes(Generic[State]):
    """Nodes by their position, in the order in which they were opened."""

    def __init__(self, problem: Problem, fillings: Fillings[State]) -> None:
        self.columns: list[Column] = []
        self._before: list[tuple[int, Column | None]] = []
        self._room = _Room(problem, fillings) if len(problem.items) >= _MANY else None

    def open(self, column: Column) -> None:
        """Add one node."""
        self._before.append((len(self.columns), None))
        self.columns.append(column)
        self._changed(len(self.columns) - 1)

    def replace(self, place: int, column: Column) -> None:
        """Replace the node at this position after a change of its bundles."""
        self._before.append((place, self.columns[place]))
        self.columns[place] = column
        self._changed(place)

    def begin(self) -> None:
        """Start recording changes, so that they can be undone."""
        self._before.clear()

    def take_back(self) -> None:
        """Undo the changes since `begin`."""
        for place, column in reversed(self._before):
            if column is None:
                del self.columns[place]
            else:
                self.columns[place] = column
                self._changed(place)

    def _changed(self, place: int) -> None:
        if self._room is not None:
            self._room.set(place, self.columns[place])

    def places(self, item: int) -> Sequence[int]:
        """The nodes that may take one more bundle of the item."""
        return range(len(self.columns)) if self._room is None else self._room.places(item, len(self.columns))


class _Room(Generic[State]):
    """The maximum of free room on each node, a row for each dimension; unknown sizes count as 0."""

    def __init__(self, problem: Problem, fillings: Fillings[State]) -> None:
        # Imported late: loading numpy takes as long as a small plan.
        import numpy

        self._numpy, self._kinds, self._fillings = numpy, problem.kinds, fillings
        sizes = [fillings.sizes(item) or {} for item in range(len(problem.items))]
        self._dimensions = tuple(dict.fromkeys(dimension for size in sizes for dimension in size))
        self._sizes = [[size.get(dimension, 0) for dimension in self._dimensions] for size in sizes]
        self._whole: dict[int, list[float]] = {}  # by shape: the room of an empty node
        self._left: Any = numpy.zeros((len(self._dimensions), _MANY), numpy.int64)

    def set(self, place: int, column: Column) -> None:
        if place == self._left.shape[1]:
            self._left = self._numpy.concatenate([self._left, self._numpy.zeros_like(self._left)], axis=1)
        rest: Sequence[float] = self._empty(self._kinds[column.kind].shape)
        for item in column.pattern:
            rest = [left - size for left, size in zip(rest, self._sizes[item], strict=True)]
        self._left[:, place] = [max(min(left, _MOST), -1) for left in rest]

    def _empty(self, shape: int) -> list[float]:
        if shape not in self._whole:
            room = self._fillings.room(shape)
            self._whole[shape] = [room.get(dimension, inf) for dimension in self._dimensions]
        return self._whole[shape]

    def places(self, item: int, nodes: int) -> Sequence[int]:
        """The nodes with enough room, of the first `nodes` nodes."""
        fits = self._numpy.ones(nodes, bool)
        for left, size in zip(self._left[:, :nodes], self._sizes[item], strict=True):
            if size:
                fits &= left >= min(size, _MOST)
        found: list[int] = fits.nonzero()[0].tolist()
        return found
