"""Packs problems of any size: fills the node that is best per pod, again and again.

Together with first_fit.py it gives the first bound of the exact search and, for large demands, the patterns of the
mixed-integer program.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import TypeAlias

from autoscaler.planning.packing.exact import assemble
from autoscaler.planning.packing.fillings import Fillings
from autoscaler.planning.packing.objective import Score, on_rank
from autoscaler.planning.packing.problem import Column, Kind, Pattern, Problem, Solution, State
from autoscaler.planning.packing.room import Bits, bits_of

Rate: TypeAlias = tuple[int | Fraction, ...]


def solve_greedily(problem: Problem, fillings: Fillings[State]) -> Solution:
    """A solution that respects limits and gangs; bundles are served in the scheduler's order."""
    filler = _Filler(problem, fillings)
    for unit in units_of(problem):
        filler.serve(unit)
    return assemble(problem, filler.columns)


def units_of(problem: Problem) -> Iterator[tuple[int, ...]]:
    """Items that are served together: each gang, and every other item alone; in the order of the first item."""
    seen: set[int] = set()
    for index, item in enumerate(problem.items):
        if item.gang is None:
            yield (index,)
        elif item.gang not in seen:
            seen.add(item.gang)
            yield tuple(i for i, other in enumerate(problem.items) if other.gang == item.gang)


class _Filler:
    """The columns bought so far and the remaining demand."""

    def __init__(self, problem: Problem, fillings: Fillings[State]) -> None:
        self._problem = problem
        self._fillings = fillings
        self._residual = list(problem.demand)
        self._wanted = bits_of(i for i, count in enumerate(problem.demand) if count)
        self._pods = problem.pods(problem.demand)
        self._used = (Decimal(0),) * len(problem.limits)
        self._lone = bits_of(i for i, item in enumerate(problem.items) if item.gang is None)
        ranks = {kind.rank for kind in problem.kinds}
        self._ranks = {rank: on_rank(1, rank=rank, zero=problem.zero) for rank in ranks}
        self.columns: list[Column] = []

    def serve(self, unit: tuple[int, ...]) -> None:
        """Buy nodes for these items; nothing for a gang that stays incomplete."""
        before = (list(self._residual), self._wanted, self._pods, self._used)
        bought, allowed = len(self.columns), self._lone | bits_of(unit)
        for item in unit:
            while self._residual[item]:
                column = self._best(item, allowed)
                if column is None:
                    break
                self._buy(column)
        gang = self._problem.items[unit[0]].gang
        if gang is None:
            return
        left = sum(self._residual[i] * self._problem.items[i].pods for i in unit)
        if left > self._problem.gangs[gang].may_leave:
            self._residual, self._wanted, self._pods, self._used = before
            del self.columns[bought:]

    def _best(self, item: int, allowed: Bits) -> Column | None:
        best: tuple[Rate, Column] | None = None
        later = self._wanted & allowed & -(1 << item)

        # Cheap kinds are first, so that expensive ones often need no filling at all.
        def enough(kind: Kind) -> bool:
            return best is not None and self._least(kind, self._pods) > best[0]

        for index in self._fillings.useful(item, enough):
            kind = self._problem.kinds[index]
            if not self._affordable(index):
                continue
            for column in self._steps(index, kind, later & ~bits_of(kind.refuses)):
                rate = _rate(column.score, self._problem.pods_on(column.pattern))
                if best is None or rate < best[0]:
                    best = (rate, column)
        return best[1] if best else None

    def _steps(self, index: int, kind: Kind, welcome: Bits) -> Iterator[Column]:
        """The steps of filling a node that may be the best per pod: the last one, unless it chooses less preferred
        devices."""
        patterns = list(self._fillings.filled(kind.shape, self._residual, welcome))
        last = self._fillings.column(index, patterns.pop()) if patterns else None
        if last is None:
            return
        if last.score.preference or not kind.usd_per_hour:
            yield from (column for pattern in patterns if (column := self._fillings.column(index, pattern)))
        yield last

    def _least(self, kind: Kind, pods: int) -> Rate:
        """A lower bound: no node of the kind is better per pod than one that takes all of these."""
        return (0, *self._ranks[kind.rank], _per_pod(kind.usd_per_hour, pods))

    def _affordable(self, kind: int) -> bool:
        uses = self._problem.kinds[kind].uses
        return self._problem.allows([u + n for u, n in zip(self._used, uses, strict=True)])

    def _buy(self, column: Column) -> None:
        """Buy the column as often as the demand and the limits allow."""
        takes = Counter(column.pattern)
        while all(self._residual[i] >= n for i, n in takes.items()) and self._affordable(column.kind):
            uses = self._problem.kinds[column.kind].uses
            self.columns.append(column)
            for item in column.pattern:
                self._residual[item] -= 1
                if not self._residual[item]:
                    self._wanted ^= 1 << item
            self._pods -= self._problem.pods_on(column.pattern)
            self._used = tuple(u + n for u, n in zip(self._used, uses, strict=True))


def _rate(score: Score, pods: int) -> Rate:
    """The score per pod, as exact fractions."""
    parts: tuple[int | Decimal, ...] = (
        score.preference,
        *score.capacity,
        score.usd_per_hour,
        score.disruption,
        score.nodes,
        score.fragmentation,
        score.weight,
    )
    return (*(_per_pod(part, pods) if part else 0 for part in parts), score.order)


@lru_cache(maxsize=65_536)
def _per_pod(part: int | Decimal, pods: int) -> Fraction:
    """Cached, because there are few different prices and counts."""
    return Fraction(part) / pods


def fills(problem: Problem, fillings: Fillings[State], *, puts: int) -> Iterator[tuple[int, Pattern]]:
    """Patterns by simulated filling: for every kind and first item, every step of filling a node with it and then
    with all later items. Stops after `puts` puts."""
    for first in range(len(problem.items)):
        later = (1 << len(problem.items)) - (1 << first)
        for index in sorted(fillings.useful(first)):
            kind = problem.kinds[index]
            for items in (1 << first, later & ~bits_of(kind.refuses)):
                if fillings.puts > puts:
                    return
                for pattern in fillings.filled(kind.shape, problem.demand, items):
                    yield index, pattern
