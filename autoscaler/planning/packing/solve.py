"""The optimizer: chooses the nodes to buy for a demand, over numbers and one oracle.

It knows items (groups of equal bundles), kinds (offerings with their prices), limits and gangs, and asks an `Oracle`
whether one more bundle fits on a node. It does not know pods, claims or clouds, so that it can be compared with brute
force on random cases, and the planner stays readable.

Small problems are solved exactly (exact.py). Larger ones are filled by two simple algorithms (greedy.py, first_fit.py)
and then improved over the generated patterns with a mixed-integer program (milp.py). If they still cost more than a
lower bound (bound.py), they are improved over patterns that dual prices propose (refine.py). Every column of a solution
was filled through the oracle. So a solution within a step budget may be more expensive than necessary, but never wrong.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from decimal import Decimal
from typing import Final, Generic

from autoscaler.planning.packing.bound import lower_bound
from autoscaler.planning.packing.exact import assemble, solve_exactly
from autoscaler.planning.packing.fillings import Fillings, OutOfStepsError
from autoscaler.planning.packing.first_fit import solve_by_first_fit
from autoscaler.planning.packing.greedy import solve_greedily
from autoscaler.planning.packing.milp import improve
from autoscaler.planning.packing.problem import Budget, Column, Kind, Oracle, Problem, Solution, State
from autoscaler.planning.packing.refine import refine
from autoscaler.planning.packing.relaxation import Relaxation
from autoscaler.planning.packing.room import Bits
from instance_catalog.dataclass import dataclass, field, replace

# With more items, prices (refine.py) find better nodes than filling, in far less time.
_MANY: Final = 400


def solve(problem: Problem, oracle: Oracle[State], budget: Budget) -> Solution:
    """The best set of nodes for the problem; `optimal` is true if that is proven."""
    hopeful = _without_hopeless(problem, oracle)
    wanted = _wanted(hopeful)
    hopeful = _narrowed(hopeful, wanted)
    narrowed = oracle if len(wanted) == len(problem.items) else _Narrowed(oracle, wanted)
    fillings = Fillings(hopeful, narrowed)
    found = solve_by_first_fit(hopeful, fillings)
    if budget.any_cost and not any(found.score.left_out):
        return assemble(problem, [_widened(column, wanted) for column in found.columns])
    if len(hopeful.items) <= _MANY or not _only_costs(hopeful, fillings, found):
        found = _searched(hopeful, fillings, found, budget)
    found, at_least = _bounded(hopeful, fillings, narrowed, found, budget)
    columns = [_widened(column, wanted) for column in found.columns]
    return replace(assemble(problem, columns), optimal=found.optimal, at_least=at_least)


def _widened(column: Column, wanted: Sequence[int]) -> Column:
    """The column with the items of the whole problem."""
    return replace(column, pattern=tuple(wanted[item] for item in column.pattern))


def _only_costs(problem: Problem, fillings: Fillings[State], found: Solution) -> bool:
    """True if nothing but the cost can be improved: all bundles have a place, on the capacity types that they prefer
    most."""
    if any(found.score.left_out) or found.score.preference:
        return False
    ranks: dict[int, int] = {}  # by item, the rank of the first kind that takes it
    for column in found.columns:
        for item in column.pattern:
            if item not in ranks:
                ranks[item] = problem.kinds[next(fillings.useful(item))].rank
            if problem.kinds[column.kind].rank > ranks[item]:
                return False
    return True


def _searched(problem: Problem, fillings: Fillings[State], by_first_fit: Solution, budget: Budget) -> Solution:
    """The exact answer, or the best over the patterns that filling finds."""
    starts = sorted((solve_greedily(problem, fillings), by_first_fit), key=lambda solution: solution.score)
    try:
        return solve_exactly(problem, fillings, starts[0], budget)
    except OutOfStepsError:
        return improve(problem, fillings, starts, budget)


def _bounded(
    problem: Problem, fillings: Fillings[State], oracle: Oracle[State], found: Solution, budget: Budget
) -> tuple[Solution, Decimal | None]:
    """The solution with its lower bound, improved if it is far from it."""
    if found.optimal or not found.score.usd_per_hour:
        return found, found.score.usd_per_hour
    relaxation = Relaxation.of(problem, oracle, found)
    bound = lower_bound(problem, relaxation, budget.bound)
    if bound is None or found.score.usd_per_hour > bound.usd_per_hour * budget.near_enough:
        found = refine(problem, fillings, relaxation, bound, start=found, budget=budget)
    return found, bound.usd_per_hour if bound else None


def _without_hopeless(problem: Problem, oracle: Oracle[State]) -> Problem:
    """The problem without bundles that no kind takes, and without gangs that therefore cannot be complete."""
    placeable = _placeable(problem, oracle)
    items = [item if index in placeable else replace(item, count=0) for index, item in enumerate(problem.items)]
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


def _placeable(problem: Problem, oracle: Oracle[State]) -> frozenset[int]:
    """The items that some kind takes.

    Each kind is checked for all items that have no place yet before the next kind: items that are easy to place are
    found before work is spent on items that fit nowhere.
    """
    groups: dict[tuple[Hashable, Bits], list[int]] = {}  # by kin and the shapes with room
    for index, item in enumerate(problem.items):
        if item.count:
            groups.setdefault((oracle.kin(index), oracle.roomy(index)), []).append(index)
    search = _Placeable(oracle)
    for kind in problem.kinds:
        for key, items in list(groups.items()):
            if key[1] >> kind.shape & 1:
                left = search.without_placeable(kind, key[0], items)
                if left:
                    groups[key] = left
                else:
                    del groups[key]
    return frozenset(search.found)


@dataclass(slots=True)
class _Placeable(Generic[State]):
    """The items with a place (`found`). By kin, the shapes that take all items for which they have room, and those
    that take none."""

    oracle: Oracle[State]
    found: set[int] = field(default_factory=set)
    takes: set[tuple[Hashable, int]] = field(default_factory=set)
    useless: set[tuple[Hashable, int]] = field(default_factory=set)
    asked: set[tuple[int, int]] = field(default_factory=set)

    def without_placeable(self, kind: Kind, kin: Hashable, items: list[int]) -> list[int]:
        """The items of the kin that still need a place after those that the kind takes; the shape has room for all."""
        key, left = (kin, kind.shape), list[int]()
        for place, item in enumerate(items):
            if key in self.useless:
                return left + items[place:]
            if item in kind.refuses or (item, kind.shape) in self.asked:
                left.append(item)
                continue
            self.asked.add((item, kind.shape))
            if key in self.takes or self.oracle.fits(kind.shape, item):
                self.takes.add(key)
                self.found.add(item)
                continue
            if self.oracle.refuses_kin(kind.shape, item):
                self.useless.add(key)
            if not self.oracle.given_up(item):
                left.append(item)
        return left


def _wanted(problem: Problem) -> tuple[int, ...]:
    """The items that still have bundles, and one item of the lowest priority, which sets the length of scores."""
    lowest = max(range(len(problem.items)), key=lambda i: problem.items[i].level, default=None)
    return tuple(i for i, item in enumerate(problem.items) if item.count or i == lowest)


def _narrowed(problem: Problem, wanted: Sequence[int]) -> Problem:
    """The problem of these items alone, so that thousands of items that fit nowhere cost the others nothing."""
    place = {item: index for index, item in enumerate(wanted)}
    kinds = tuple(
        replace(
            kind,
            refuses=frozenset(place[item] for item in kind.refuses if item in place),
            risk=tuple(kind.risk[item] for item in wanted) if kind.risk else (),
        )
        for kind in problem.kinds
    )
    return replace(problem, items=tuple(problem.items[item] for item in wanted), kinds=kinds)


class _Narrowed(Generic[State]):
    """An oracle that knows the wanted items by their new index."""

    def __init__(self, oracle: Oracle[State], wanted: Sequence[int]) -> None:
        self._oracle = oracle
        self._wanted = wanted
        self.empty = oracle.empty
        self.preference = oracle.preference
        self.free = oracle.free
        self.full = oracle.full
        self.room = oracle.room

    def put(self, state: State, item: int) -> State | None:
        return self._oracle.put(state, self._wanted[item])

    def fits(self, shape: int, item: int) -> bool:
        return self._oracle.fits(shape, self._wanted[item])

    def kin(self, item: int) -> Hashable:
        """Equal for items that a shape may refuse for the same reason."""
        return self._oracle.kin(self._wanted[item])

    def refuses_kin(self, shape: int, item: int) -> bool:
        return self._oracle.refuses_kin(shape, self._wanted[item])

    def given_up(self, item: int) -> bool:
        """True if no place is known for the item, and none will be found."""
        return self._oracle.given_up(self._wanted[item])

    def worth_trying(self, shape: int, item: int) -> bool:
        return self._oracle.worth_trying(shape, self._wanted[item])

    def has_room(self, state: State, item: int) -> bool:
        """False only if no order of these bundles and one more of the item fits."""
        return self._oracle.has_room(state, self._wanted[item])

    def sizes(self, item: int) -> Mapping[Hashable, int] | None:
        return self._oracle.sizes(self._wanted[item])

    def roomy(self, item: int) -> Bits:
        return self._oracle.roomy(self._wanted[item])

    def may_take(self, item: int, among: Bits) -> Bits:
        return self._oracle.may_take(self._wanted[item], among)
