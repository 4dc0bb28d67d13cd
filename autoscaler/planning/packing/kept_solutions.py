"""Remembers solutions from one plan to the next: trials of moves solve the same problem again and again.

A solution follows from the numbers of the problem and from the answers of the oracle. The caller says what decides
these answers. A restart empties the memory.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from decimal import Decimal
from typing import Final, TypeAlias

from autoscaler.planning.packing.problem import Problem, Solution
from instance_catalog.dataclass import dataclass, field, replace

# The most items, kinds and bought nodes of all remembered problems together, some hundred bytes each.
_MOST: Final = 20_000
# The most sets of shapes. Each has some hundred kilobytes, and with a back-off or a block every plan has new ones.
_SHAPES: Final = 8
_UNLIMITED: Final = Decimal("Infinity")
_Key: TypeAlias = tuple[Hashable, Hashable, Problem]


@dataclass(slots=True)
class KeptSolutions:
    """The least recently used ones are dropped first. Only one thread may use it at a time."""

    _known: OrderedDict[_Key, Solution] = field(default_factory=OrderedDict)
    _shapes: OrderedDict[Hashable, None] = field(default_factory=OrderedDict)
    _size: int = 0

    def of(
        self,
        shapes: Hashable,
        asked: Hashable,
        problem: Problem,
        solve: Callable[[Problem], Solution],
        final: Callable[[], bool],
    ) -> Solution:
        """The solution of the problem on these shapes. `asked`: all else that decides it. It is remembered if `final()`
        is true afterwards: the work done for it was enough."""
        problem = without_slack_limits(problem)
        key = (shapes, asked, problem)
        found = self._known.get(key)
        if found is not None:
            self._known.move_to_end(key)
            self._shapes.move_to_end(shapes)
            return found
        found = solve(problem)
        if final():
            self._known[key] = found
            self._size += _size(problem, found)
            self._shapes[shapes] = None
            self._shapes.move_to_end(shapes)
            self._shrink()
        return found

    def _shrink(self) -> None:
        while len(self._shapes) > _SHAPES:
            oldest, _ = self._shapes.popitem(last=False)
            for key in [key for key in self._known if key[0] == oldest]:
                self._drop(key)
        while self._size > _MOST:
            self._drop(next(iter(self._known)))

    def _drop(self, key: _Key) -> None:
        self._size -= _size(key[2], self._known.pop(key))

    def __len__(self) -> int:
        return len(self._known)


def _size(problem: Problem, found: Solution) -> int:
    return len(problem.items) + len(problem.kinds) + len(found.columns)


def without_slack_limits(problem: Problem) -> Problem:
    """The same problem, without limits that no solution reaches: what is left of these changes with every node of the
    cluster."""
    limits = tuple(limit if i in problem.reachable else _UNLIMITED for i, limit in enumerate(problem.limits))
    return problem if limits == problem.limits else replace(problem, limits=limits)
