"""Improves a packing over generated patterns with a mixed-integer program (HiGHS), one objective after the other.

For demands that are too large for the exact search. The program chooses how often each pattern is bought. Every pattern
was filled through the oracle, so every answer is possible. The floating-point objective only proposes: the result is
scored exactly and used only if it is better. Over all useful patterns the answer is the optimum. If there are too many,
it is the best over the patterns that filling nodes finds. HiGHS is imported here, when needed, because that takes as
long as a small plan. Limits of nodes and of steps instead of time limits give the same answer on every machine.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any

from autoscaler.planning.packing.exact import assemble, every_column, keep
from autoscaler.planning.packing.fillings import Fillings, OutOfStepsError
from autoscaler.planning.packing.greedy import fills
from autoscaler.planning.packing.objective import Score
from autoscaler.planning.packing.problem import Budget, Column, Counts, Pattern, Problem, Solution, State, decimals
from instance_catalog.dataclass import dataclass

_NODES = 2000
# Steps of HiGHS for all objectives of a plan, each about a millisecond: hundreds of gangs make one node take thousands.
# The plans of a cluster take a dozen.
_STEPS = 2000
# The decimals of prices that count, as many as in the catalog; fewer for prices with more digits than this together.
# HiGHS does not tell smaller differences from rounding errors, and refuses numbers of more than 15 digits.
_DECIMALS = 6
_DIGITS = 10
# Far less than the smallest difference between two plans: all numbers are whole, prices in units of their last decimal.
_TOLERANCE = 1e-3


def improve(problem: Problem, fillings: Fillings[State], starts: Sequence[Solution], budget: Budget) -> Solution:
    """The best of `starts` (best first) and of the combinations of patterns; proven if these are all patterns."""
    start = starts[0]
    try:
        columns = every_column(problem, fillings, start, budget=budget, limits=range(len(problem.limits)))
        complete = len(columns) <= budget.columns
    except OutOfStepsError:
        complete = False
    if not complete:
        columns = _generate(problem, fillings, starts, budget)
    chosen = _Program(problem, columns).solve(start)
    if chosen is None:
        return start
    found = assemble(problem, chosen)
    better = found if found.score < start.score else start
    return better.proven() if complete else better


def _generate(problem: Problem, fillings: Fillings[State], starts: Sequence[Solution], budget: Budget) -> list[Column]:
    """The patterns of simulated filling, and those of `starts`."""
    limits = range(len(problem.limits))
    best: dict[Pattern, list[Column]] = {}
    for column in (column for start in starts for column in start.columns):
        keep(best.setdefault(column.pattern, []), column, problem, limits)
    for kind, pattern in fills(problem, fillings, puts=fillings.puts + budget.puts):
        found = fillings.column(kind, pattern)
        if found is not None:
            keep(best.setdefault(pattern, []), found, problem, limits)
    columns = sorted(
        (c for group in best.values() for c in group), key=lambda c: (c.score, tuple(-item for item in c.pattern))
    )
    return columns[: budget.columns]


@dataclass(frozen=True, slots=True)
class _Goal:
    """One level of the objective: the part of each variable, and the value of a known answer."""

    weights: Mapping[int, float]
    known: float


class _Steps:
    """Counts steps of HiGHS, and ends it after the last. It is no part of the program, which HiGHS would keep."""

    def __init__(self) -> None:
        self._left = _STEPS

    def count(self, event: Any) -> None:
        """HiGHS asks at each step if it is to end."""
        self._left -= 1
        if self._left < 0:
            event.interrupt()


class _Program:
    """Variables: how often each column is bought, how many bundles of each item are left, which gangs stay out."""

    def __init__(self, problem: Problem, columns: Sequence[Column]) -> None:
        # Imported late: loading HiGHS takes as long as a small plan.
        import highspy

        self._problem = problem
        self._columns = columns
        self._highs: Any = highspy.Highs()  # type: ignore[no-untyped-call]  # highspy ships without annotations here
        self._highs.silent()
        self._highs.setOptionValue("threads", 1)
        self._highs.setOptionValue("mip_max_nodes", _NODES)
        self._highs.setOptionValue("mip_rel_gap", 0.0)
        self._highs.setOptionValue("mip_abs_gap", 0.0)
        self._optimal = highspy.HighsModelStatus.kOptimal
        self._sum = self._highs.qsum
        self._highs.cbMipInterrupt.subscribe(_Steps().count)
        demand = problem.demand
        self._takes = [Counter(column.pattern) for column in columns]
        self._bought = self._integers(
            [min(demand[item] // count for item, count in takes.items()) for takes in self._takes]
        )
        self._left = self._integers(demand)
        self._add_demand()
        self._add_limits()
        self._add_gangs()

    def _integers(self, most: Sequence[int]) -> list[Any]:
        """A variable for each bound, all in one call: HiGHS needs longer for single calls than to solve the program."""
        found = self._highs.addIntegrals(len(most), lb=0, ub=list(most), out_array=False) if most else {}
        return [found[number] for number in range(len(most))]

    def _add_demand(self) -> None:
        terms: list[list[Any]] = [[left * 1] for left in self._left]
        for bought, takes in zip(self._bought, self._takes, strict=True):
            for item, count in takes.items():
                terms[item].append(bought * count)
        for item, count in enumerate(self._problem.demand):
            self._highs.addConstr(self._sum(terms[item]) == count)

    def _add_limits(self) -> None:
        for index, limit in enumerate(self._problem.limits):
            uses = [float(self._problem.kinds[c.kind].uses[index]) for c in self._columns]
            terms = [x * use for x, use in zip(self._bought, uses, strict=True) if use]
            if terms:
                self._highs.addConstr(self._sum(terms) <= float(limit))

    def _add_gangs(self) -> None:
        for index, gang in enumerate(self._problem.gangs):
            members = [i for i, item in enumerate(self._problem.items) if item.gang == index]
            pods = sum(self._problem.items[i].pods * self._problem.items[i].count for i in members)
            left = self._sum([self._left[i] * self._problem.items[i].pods for i in members])
            out = self._highs.addBinary()
            self._highs.addConstr(left - out * (pods - gang.may_leave) <= gang.may_leave)
            self._highs.addConstr(left - out * pods >= 0)

    def solve(self, start: Solution) -> list[Column] | None:
        """The columns to buy; None if HiGHS finds nothing within its limits."""
        variables, values = [*self._bought, *self._left], list[float]()
        for goal in self._goals(start):
            expression = self._sum([variables[number] * weight for number, weight in goal.weights.items()])
            value = sum(weight * values[number] for number, weight in goal.weights.items()) if values else goal.known
            # If a known answer has 0 of a goal, no answer has less. There is a goal for each priority.
            if value > _TOLERANCE or min(goal.weights.values()) < 0:
                self._highs.minimize(expression)
                if self._highs.getModelStatus() != self._optimal:
                    return None
                value = float(self._highs.getInfo().objective_function_value)
                values = list(self._highs.getSolution().col_value)
            self._highs.addConstr(expression <= value + _TOLERANCE)
        times = [round(self._highs.val(x)) for x in self._bought]
        chosen = [column for column, n in zip(self._columns, times, strict=True) for _ in range(n)]
        return chosen if self._possible(chosen) else None

    def _goals(self, start: Solution) -> list[_Goal]:
        """The levels in which columns differ at all, most important first."""
        levels: list[dict[int, float]] = [{} for _ in start.score.left_out]
        for number, item in enumerate(self._problem.items, start=len(self._columns)):
            levels[item.level][number] = float(item.pods)
        goals = [_Goal(level, pods) for level, pods in zip(levels, start.score.left_out, strict=True)]
        unit = _unit([kind.usd_per_hour for kind in self._problem.kinds])
        parts: list[Callable[[Score], float]] = [lambda s: float(s.preference)]
        parts += [lambda s, i=i: float(s.capacity[i]) for i in range(len(start.score.capacity))]  # type: ignore[misc]  # i is bound
        parts += [
            lambda s: float(round(s.usd_per_hour * unit)),
            lambda s: float(s.disruption),
            lambda s: float(s.nodes),
            lambda s: float(s.fragmentation),
            lambda s: float(s.weight),
            lambda s: float(s.order),
        ]
        for part in parts:
            weights = {number: weight for number, c in enumerate(self._columns) if (weight := part(c.score))}
            goals.append(_Goal(weights, part(start.score)))
        return [goal for goal in goals if goal.weights]

    def _possible(self, chosen: Sequence[Column]) -> bool:
        """True if the rounded answer respects demand, limits and gangs exactly."""
        solution = assemble(self._problem, chosen)
        used = [
            sum((self._problem.kinds[c.kind].uses[i] for c in chosen), Decimal(0))
            for i in range(len(self._problem.limits))
        ]
        return (
            min(solution.left, default=0) >= 0
            and self._problem.allows(used)
            and gangs_hold(self._problem, solution.left)
        )


def _unit(prices: Sequence[Decimal]) -> Decimal:
    """How many of the last decimal that counts are a dollar."""
    whole = 1 + max((price.adjusted() for price in prices), default=0)
    return Decimal(10) ** min(_DECIMALS, decimals(prices), _DIGITS - whole)


def gangs_hold(problem: Problem, left: Counts) -> bool:
    """True if every gang is completely out or lacks no more pods than it may."""
    for index, gang in enumerate(problem.gangs):
        members = [i for i, item in enumerate(problem.items) if item.gang == index]
        missing = sum(problem.items[i].pods * left[i] for i in members)
        everything = sum(problem.items[i].pods * problem.items[i].count for i in members)
        if gang.may_leave < missing < everything:
            return False
    return True
