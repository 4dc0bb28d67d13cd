"""First-fit decreasing: places the most expensive bundles first, each on the first open node that takes it.

greedy.py searches the best node per pod and may leave room unused. This algorithm uses up the room and may open many
small nodes. Neither is better on all demands: the better result starts the search, and both supply patterns.
"""

from __future__ import annotations

from decimal import Decimal

from autoscaler.planning.packing.exact import assemble
from autoscaler.planning.packing.fillings import Fillings
from autoscaler.planning.packing.greedy import units_of
from autoscaler.planning.packing.open_nodes import OpenNodes
from autoscaler.planning.packing.problem import Column, Problem, Solution, State


def solve_by_first_fit(problem: Problem, fillings: Fillings[State]) -> Solution:
    """A solution that respects limits and gangs; bundles with a higher priority are served first."""
    packer = _Packer(problem, fillings)
    for unit in sorted(units_of(problem), key=packer.urgency):
        packer.serve(unit)
    return assemble(problem, packer.open.columns)


class _Packer:
    """`_prices`: the price of the cheapest node for one bundle of each item."""

    def __init__(self, problem: Problem, fillings: Fillings[State]) -> None:
        self._problem = problem
        self._fillings = fillings
        self._used = (Decimal(0),) * len(problem.limits)
        self._prices = [self._price(item) for item in range(len(problem.items))]
        self.open = OpenNodes(problem, fillings)

    def _price(self, item: int) -> Decimal:
        wanted = self._fillings.useful(item) if self._problem.items[item].count else ()
        return next((self._problem.kinds[kind].usd_per_hour for kind in wanted), Decimal(0))

    def urgency(self, unit: tuple[int, ...]) -> tuple[int, Decimal]:
        """The sort key of units: higher priority first, then higher price."""
        return min(self._problem.items[item].level for item in unit), -max(self._prices[item] for item in unit)

    def serve(self, unit: tuple[int, ...]) -> None:
        """Place these items; nothing of a gang that stays incomplete."""
        self.open.begin()
        used = self._used
        dearest_first = sorted(unit, key=lambda item: -self._prices[item])
        left = sum(self._pack(item) * self._problem.items[item].pods for item in dearest_first)
        gang = self._problem.items[unit[0]].gang
        if gang is not None and left > self._problem.gangs[gang].may_leave:
            self.open.take_back()
            self._used = used

    def _pack(self, item: int) -> int:
        """Place the bundles of an item, on open nodes and then on new ones; return the number without a place."""
        left = self._problem.items[item].count
        if not left:
            return 0
        for place in self.open.places(item):
            column = self.open.columns[place]
            left, larger = self._filled(column, item, left)
            if larger is not column:
                self.open.replace(place, larger)
            if not left:
                return 0
        for kind in self._fillings.useful(item):
            while left and self._problem.allows(used := self._after(kind)):
                fresh = self._fillings.column(kind, (item,))
                if fresh is None:
                    break
                left, column = self._filled(fresh, item, left - 1)
                self.open.open(column)
                self._used = used
            if not left:  # the next kind is not checked
                break
        return left

    def _filled(self, column: Column, item: int, left: int) -> tuple[int, Column]:
        """The node with as many of `left` bundles as it takes, and the number that is left."""
        kind, pattern = self._problem.kinds[column.kind], column.pattern
        if item in kind.refuses or self._fillings.refuses(kind.shape, item):
            return left, column
        while left and (larger := self._fillings.larger(kind.shape, pattern, item)) is not None:
            left, pattern = left - 1, larger
        found = column if pattern is column.pattern else self._fillings.column(column.kind, pattern)
        return left, found or column

    def _after(self, kind: int) -> tuple[Decimal, ...]:
        """The used part of every limit with one more node of the kind."""
        return tuple(u + n for u, n in zip(self._used, self._problem.kinds[kind].uses, strict=True))
