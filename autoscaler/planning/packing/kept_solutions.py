"""Remembers solutions from one plan to the next: trials of moves solve the same problem again and again.

A solution follows from the numbers of the problem and from the answers of the oracle. The caller says what decides
these answers. A restart empties the memory.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from decimal import Decimal
from typing import Final

from autoscaler.planning.packing.problem import Problem, Solution
from instance_catalog.dataclass import dataclass, field, replace

# The most items and kinds of all remembered problems together, some hundred bytes each.
_MOST: Final = 20_000
_UNLIMITED: Final = Decimal("Infinity")


@dataclass(slots=True)
class KeptSolutions:
    """The least recently used ones are dropped first. Only one thread may use it at a time."""

    _known: OrderedDict[tuple[Hashable, Problem], Solution] = field(default_factory=OrderedDict)
    _size: int = 0

    def of(
        self, asked: Hashable, problem: Problem, solve: Callable[[Problem], Solution], final: Callable[[], bool]
    ) -> Solution:
        """The solution of the problem. `asked`: all else that decides it. It is remembered if `final()` is true
        afterwards: the work done for it was enough."""
        problem = without_slack_limits(problem)
        key = (asked, problem)
        found = self._known.get(key)
        if found is not None:
            self._known.move_to_end(key)
            return found
        found = solve(problem)
        if final():
            self._known[key] = found
            self._size += _size(problem)
            while self._size > _MOST:
                (_, oldest), _ = self._known.popitem(last=False)
                self._size -= _size(oldest)
        return found

    def __len__(self) -> int:
        return len(self._known)


def _size(problem: Problem) -> int:
    return len(problem.items) + len(problem.kinds)


def without_slack_limits(problem: Problem) -> Problem:
    """The same problem, without limits that no solution reaches: what is left of these changes with every node of the
    cluster."""
    most = sum(item.count for item in problem.items)
    limits = tuple(
        limit if most * max((kind.uses[i] for kind in problem.kinds), default=Decimal(0)) > limit else _UNLIMITED
        for i, limit in enumerate(problem.limits)
    )
    return problem if limits == problem.limits else replace(problem, limits=limits)
