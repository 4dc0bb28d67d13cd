"""Which nodes to buy for a demand: the optimizer, over numbers and one question.

It knows items (groups of equal bundles), kinds (something that can be bought, with its price), limits and gangs, and it
asks an `Oracle` whether one more bundle goes onto a node. It must not know pods, claims or clouds: so that it can be
compared with brute force on random cases, and the planner stays readable.

Small problems are solved exactly (exact.py). Larger ones are filled in two simple ways (greedy.py, first_fit.py) and
then improved over the generated patterns with a mixed-integer program (milp.py). Every column of a solution was filled
through the oracle, so a solution found within a step budget may be more expensive than necessary, but never wrong.
"""

from __future__ import annotations

from dataclasses import replace

from autoscaler.planning.packing.exact import assemble, solve_exactly
from autoscaler.planning.packing.fillings import Fillings, OutOfStepsError
from autoscaler.planning.packing.first_fit import solve_by_first_fit
from autoscaler.planning.packing.greedy import solve_greedily
from autoscaler.planning.packing.milp import improve
from autoscaler.planning.packing.problem import Budget, Oracle, Problem, Solution, State


def solve(problem: Problem, oracle: Oracle[State], budget: Budget) -> Solution:
    """The best set of nodes for the problem; `optimal` says whether that is proven."""
    fillings = Fillings(problem, oracle)
    hopeful = _without_hopeless(problem, fillings)
    simple = (solve_greedily(hopeful, fillings), solve_by_first_fit(hopeful, fillings))
    starts = sorted(simple, key=lambda solution: solution.score)
    try:
        found = solve_exactly(hopeful, fillings, starts[0], budget)
    except OutOfStepsError:
        found = improve(hopeful, fillings, starts, budget)
    return replace(assemble(problem, found.columns), optimal=found.optimal)


def _without_hopeless(problem: Problem, fillings: Fillings[State]) -> Problem:
    """The problem without bundles that no kind takes, and without gangs that therefore cannot be complete."""
    items = [
        replace(item, count=item.count if _placeable(problem, fillings, index) else 0)
        for index, item in enumerate(problem.items)
    ]
    for index, gang in enumerate(problem.gangs):
        members = [i for i, item in enumerate(problem.items) if item.gang == index]
        missing = sum((problem.items[i].count - items[i].count) * items[i].pods for i in members)
        for i in members if missing > gang.may_leave else ():
            items[i] = replace(items[i], count=0)
    slack = [
        sum((old.count - new.count) * new.pods for old, new in zip(problem.items, items, strict=True) if new.gang == g)
        for g in range(len(problem.gangs))
    ]
    gangs = tuple(replace(g, may_leave=max(0, g.may_leave - s)) for g, s in zip(problem.gangs, slack, strict=True))
    return replace(problem, items=tuple(items), gangs=gangs)


def _placeable(problem: Problem, fillings: Fillings[State], item: int) -> bool:
    return any(item not in kind.refuses and fillings.fits(kind.shape, item) for kind in problem.kinds)
