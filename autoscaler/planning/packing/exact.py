"""Solves a small packing problem exactly: dynamic programming over the bundles that are still to be placed.

Why it is exact: the objective is a sum and its order is lexicographic. So of all nodes that take the same bundles (and
use no more of any limit) only the best can be part of a best plan. The best way to finish depends only on the bundles
left to place, on the used part of the limits, and on the number of gang members that may still be left out. Gangs are
decided first, each in or out, because a gang that stays out must not have any pod placed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from itertools import combinations, product
from math import prod

from autoscaler.planning.packing.fillings import Fillings, OutOfStepsError
from autoscaler.planning.packing.objective import Score, left_out, on_rank
from autoscaler.planning.packing.problem import (
    Budget,
    Column,
    Counts,
    Kind,
    Pattern,
    Problem,
    Solution,
    State,
    subtract,
    total,
    within,
)
from instance_catalog.dataclass import dataclass

# With limits or gangs each sub-demand is one level of recursion; Python allows a thousand frames.
_DEEPEST = 300
_MOST_GANGS = 6


def solve_exactly(problem: Problem, fillings: Fillings[State], start: Solution, budget: Budget) -> Solution:
    """The best solution, proven. `start` is any solution; it bounds the search. Raises OutOfStepsError."""
    limits = problem.reachable
    flat = not limits and not problem.gangs
    if len(problem.gangs) > _MOST_GANGS or (not flat and sum(problem.demand) > _DEEPEST):
        raise OutOfStepsError
    if prod(count + 1 for count in problem.demand) > budget.demands:
        raise OutOfStepsError
    columns = every_column(problem, fillings, start, budget=budget, limits=limits)
    search = _Search(problem, _by_first_item(columns, len(problem.items)), limits, _Steps(budget.states))
    best = start
    gangs = range(len(problem.gangs))
    for size in range(len(gangs) + 1):
        for out in combinations(gangs, size):
            found = search.run(frozenset(out))
            if found is not None and found.score < best.score:
                best = found
        if not any(best.score.left_out):
            break
    return best.proven()


def every_column(
    problem: Problem, fillings: Fillings[State], start: Solution, *, budget: Budget, limits: Sequence[int]
) -> list[Column]:
    """Every node worth considering: all fillings of all kinds, without those that are never better than another one.

    `start` is any solution; `limits` are those that a plan could reach. Raises OutOfStepsError.
    """
    best: dict[Pattern, list[Column]] = {}
    shapes: dict[int, list[int]] = {}
    hopeless = _hopeless(problem, start.score)
    for index, kind in enumerate(problem.kinds):
        if not hopeless(kind):
            shapes.setdefault(kind.shape, []).append(index)
    for shape, kinds in shapes.items():
        for pattern in fillings.patterns(shape, problem.demand, puts=budget.puts):
            for index in kinds:
                column = fillings.column(index, pattern)
                if column is not None:
                    keep(best.setdefault(pattern, []), column, problem, limits)
    return [column for group in best.values() for column in group]


def _hopeless(problem: Problem, bound: Score) -> Callable[[Kind], bool]:
    """True if every solution with a node of a kind is worse than a known one, whatever its later fields are.

    Such a solution has at least one pod on that node, and the others at best on the most preferred capacity type.
    """
    zero = problem.zero
    others = problem.pods(problem.demand) - 1
    best_rank = min((kind.rank for kind in problem.kinds), default=0)
    on_others = on_rank(others, rank=best_rank, zero=zero)
    known = (bound.left_out, bound.preference, bound.capacity, bound.usd_per_hour)

    def hopeless(kind: Kind) -> bool:
        capacity = tuple(a + b for a, b in zip(on_rank(1, rank=kind.rank, zero=zero), on_others, strict=True))
        return (zero.left_out, 0, capacity, kind.usd_per_hour) > known

    return hopeless


def keep(group: list[Column], column: Column, problem: Problem, limits: Sequence[int]) -> None:
    """Add a column to those with the same bundles, unless one of them is at least as good and uses no more of any
    limit."""

    def beats(a: Column, b: Column) -> bool:
        left, right = problem.kinds[a.kind].uses, problem.kinds[b.kind].uses
        return a.score <= b.score and all(left[i] <= right[i] for i in limits)

    if any(beats(other, column) for other in group):
        return
    group[:] = [other for other in group if not beats(column, other)]
    group.append(column)


def _by_first_item(columns: Iterable[Column], items: int) -> list[list[_Cover]]:
    result: list[list[_Cover]] = [[] for _ in range(items)]
    covers = [_Cover(column, column.counts(items)) for column in columns]
    for cover in sorted(covers, key=lambda c: (c.column.score, c.counts)):
        result[cover.column.pattern[0]].append(cover)
    return result


@dataclass(frozen=True, slots=True)
class _Cover:
    """A column with the number of bundles of each item on it."""

    column: Column
    counts: Counts


@dataclass(slots=True)
class _Steps:
    """The remaining steps of all searches of one problem."""

    left: int

    def take(self) -> None:
        """Use one step. Raises OutOfStepsError."""
        self.left -= 1
        if self.left < 0:
            raise OutOfStepsError


@dataclass(frozen=True, slots=True)
class _Task:
    """A sub-problem: the bundles to place, the used part of the binding limits, and how many may still be left out."""

    residual: Counts
    used: tuple[Decimal, ...]
    slack: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Best:
    """The best way to finish a task: its score, the first step (a column, or None: leave one bundle out), and the
    rest."""

    score: Score
    step: Column | None
    rest: _Task | None


class _Search:
    """The best ways to finish, by task. A bundle is on a column that starts with its item, or left out."""

    def __init__(self, problem: Problem, columns: list[list[_Cover]], limits: tuple[int, ...], steps: _Steps) -> None:
        self._problem = problem
        self._zero = problem.zero
        self._columns = columns
        self._limits = limits
        self._steps = steps
        self._memo: dict[_Task, _Best | None] = {}

    def run(self, out: frozenset[int]) -> Solution | None:
        """The best solution that leaves out exactly the gangs `out`; None if the others cannot be placed."""
        items = self._problem.items
        demand = tuple(0 if item.gang in out else item.count for item in items)
        task = _Task(
            demand,
            used=(Decimal(0),) * len(self._limits),
            slack=tuple(gang.may_leave for gang in self._problem.gangs),
        )
        if not self._limits and not self._problem.gangs:
            # Smallest sub-demands first: then no task waits for more than one other, whatever the size of the demand.
            for residual in product(*(range(count + 1) for count in demand)):
                self._best(_Task(residual, task.used, task.slack))
        best = self._best(task)
        if best is None:
            return None
        columns: list[Column] = []
        while best is not None and best.rest is not None:
            if best.step is not None:
                columns.append(best.step)
            best = self._memo[best.rest]
        return assemble(self._problem, columns)

    def _best(self, task: _Task) -> _Best | None:
        if task not in self._memo:
            self._memo[task] = self._explore(task)
        return self._memo[task]

    def _explore(self, task: _Task) -> _Best | None:
        item = next((i for i, count in enumerate(task.residual) if count), None)
        if item is None:
            return _Best(self._zero, None, None)
        best: _Best | None = None
        for score, step, rest in self._steps_from(task, item):
            self._steps.take()
            tail = self._best(rest)
            if tail is not None and (best is None or score + tail.score < best.score):
                best = _Best(score + tail.score, step, rest)
        return best

    def _steps_from(self, task: _Task, item: int) -> Iterable[tuple[Score, Column | None, _Task]]:
        for cover in self._columns[item]:
            column = cover.column
            if not within(cover.counts, task.residual):
                continue
            uses = self._problem.kinds[column.kind].uses
            used = tuple(u + uses[i] for u, i in zip(task.used, self._limits, strict=True))
            if all(u <= self._problem.limits[i] for u, i in zip(used, self._limits, strict=True)):
                yield column.score, column, _Task(subtract(task.residual, cover.counts), used, task.slack)
        left = self._problem.items[item]
        slack = task.slack
        if left.gang is not None:
            if slack[left.gang] < left.pods:
                return
            slack = tuple(s - left.pods * (g == left.gang) for g, s in enumerate(slack))
        residual = tuple(c - (i == item) for i, c in enumerate(task.residual))
        yield left_out(left.pods, level=left.level, zero=self._zero), None, _Task(residual, task.used, slack)


def assemble(problem: Problem, columns: Sequence[Column]) -> Solution:
    """The solution that buys these columns and leaves out the rest of the demand."""
    left = list(problem.demand)
    for item in (item for column in columns for item in column.pattern):
        left[item] -= 1
    zero = problem.zero
    scores = [column.score for column in columns]
    scores += [left_out(i.pods * n, level=i.level, zero=zero) for i, n in zip(problem.items, left, strict=True) if n]
    return Solution(tuple(columns), tuple(left), total(scores, zero))
