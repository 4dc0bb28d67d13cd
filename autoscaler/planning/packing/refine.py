"""Finds a cheaper packing for the same bundles: column generation, a dive, and neighbourhoods.

For demands in which most pods differ, for which greedy filling finds too few patterns. A program over the known nodes
computes a price for each bundle (cover.py). Nodes whose bundles are worth more than they cost are proposed by sizes
alone (knapsack.py), and the oracle decides whether they are possible. Then whole nodes are fixed step by step, and the
rest gets new prices each time (a dive). Finally a few nodes of the result at a time are packed again. Only the cost is
improved; every result is scored exactly and used only if it is better. Steps are counted, and no clock is read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from math import floor
from typing import Any, Final, Generic

from autoscaler.planning.packing.bound import Bound
from autoscaler.planning.packing.cover import Cover
from autoscaler.planning.packing.exact import assemble
from autoscaler.planning.packing.fillings import Fillings
from autoscaler.planning.packing.knapsack import Knapsacks
from autoscaler.planning.packing.objective import Score
from autoscaler.planning.packing.problem import Budget, Column, Pattern, Problem, Solution, State, total
from autoscaler.planning.packing.relaxation import Relaxation
from autoscaler.planning.packing.rolling import rolling
from instance_catalog.dataclass import dataclass, field

# The most items that are improved together, and the number of passes: work grows with the square of this number.
_TOGETHER: Final = 400
_PARTS: Final = 4
_ROUNDS: Final = 60
_ROUNDS_DIVING: Final = 4
_ROUNDS_NEAR: Final = 8
_SEEDS: Final = 24
_FEWER_SEEDS: Final = 8
# The most proposals of a kind in each round.
_TRIED: Final = 6
# The fractions at which a dive buys a whole node, and the part of the others that it buys in one step.
_NEARLY: Final = 0.75
_STEP: Final = 8
# The bundles of one neighbourhood. Each _IN_A_ROW of them must save the part _SAVING of the cost together, or the
# search ends: a large plan is hardly cheaper for a few better nodes, and a neighbourhood takes as long there as in a
# small plan.
_NEAR: Final = 32
_IN_A_ROW: Final = 12
_SAVING: Final = Decimal("0.0001")
# A rolling packing of more nodes is not packed again in neighbourhoods: measured from 1,000 to 6,000 nodes, they save
# less than 0.002 % there.
_LARGE: Final = 1_000
_TINY: Final = 1e-6
# The most nodes of a rolling packing that are packed again with the remaining bundles.
_WASTED: Final = 20
# The first prices are slightly above those of the lower bound, to include nodes that are nearly worth their price.
_MORE: Final = 4
_ABOVE: Final = 1.05


def refine(
    problem: Problem,
    fillings: Fillings[State],
    relaxation: Relaxation,
    bound: Bound | None,
    *,
    start: Solution,
    budget: Budget,
) -> Solution:
    """`start` or a better solution. Nodes with bundles of unknown size stay."""
    sized = {item for group in relaxation.groups for item in group.items}
    free = [column for column in start.columns if column.score.usd_per_hour and sized.issuperset(column.pattern)]
    fixed = [column for column in start.columns if not (column.score.usd_per_hour and sized.issuperset(column.pattern))]
    guess = bound.prices if bound else {}
    enough = bound.usd_per_hour * budget.near_enough if bound else Decimal(0)
    refiner = _Refiner(problem, fillings, Knapsacks(problem, relaxation), enough, guess, dict(guess))
    rolls = bound and len({item for column in free for item in column.pattern}) > _TOGETHER
    if rolls:
        free = refiner.rolled(free, fixed)
    else:
        for part in _parts(free)[:_PARTS]:
            others = _removed([*fixed, *free], part) or []
            free = [*(_removed(free, part) or []), *refiner.better(part, others)]
    if not rolls or len(free) <= _LARGE:
        free = refiner.nearby(free, fixed, budget.neighbourhoods)
    found = assemble(problem, [*fixed, *free])
    return found if found.score < start.score else start


@dataclass(slots=True)
class _Refiner(Generic[State]):
    """`known` are the columns proposed so far, `prices` the last prices of bundles, by item."""

    problem: Problem
    fillings: Fillings[State]
    knapsacks: Knapsacks
    enough: Decimal
    guess: Mapping[int, float]
    prices: dict[int, float]
    known: list[Column] = field(default_factory=list)

    def better(self, start: Sequence[Column], fixed: Sequence[Column]) -> list[Column]:
        """Nodes for the bundles of `start`, in addition to the `fixed` nodes."""
        demand = Counter(item for column in start for item in column.pattern)
        cover = Cover(demand)
        for column in start:
            cover.add(column)
        self._begin(cover, demand)
        prices = self._price(cover, demand, rounds=_ROUNDS, seeds=_SEEDS)
        if prices is None:
            return list(start)
        self.prices |= {item: float(prices[item]) for item in demand}
        found = self._dive(cover, Counter(demand))
        self.known += cover.columns
        return found if found and self._improves(found, start, fixed) else list(start)

    def rolled(self, start: Sequence[Column], fixed: Sequence[Column]) -> list[Column]:
        """Nodes for the bundles of `start` by the prices of the lower bound."""
        bundles = sorted(item for column in start for item in column.pattern)
        found, rest = rolling(self.fillings, self.knapsacks, self._vector(self.guess), bundles)
        wasted = sorted(found, key=lambda c: (-self._waste(c), c.kind, c.pattern))[:_WASTED]
        alone = [column for item in rest.elements() if (column := self._alone(item)) is not None]
        kept = _removed(found, wasted) or []
        if len(alone) < rest.total():
            return list(start)
        found = [*kept, *self.better([*wasted, *alone], [*fixed, *kept])]
        return found if self._improves(found, start, fixed) else list(start)

    def _alone(self, item: int) -> Column | None:
        """The cheapest node with one bundle of the item and nothing else."""
        known = (self.fillings.column(kind, (item,)) for kind in self.fillings.useful(item))
        return next((column for column in known if column is not None), None)

    def _waste(self, column: Column) -> float:
        """The price of the node minus the value of its bundles."""
        return float(column.score.usd_per_hour) - sum(self.prices.get(item, 0.0) for item in column.pattern)

    def _begin(self, cover: Cover, demand: Counter[int]) -> None:
        """Add nodes that are worth more than they cost by the prices of the lower bound."""
        guess = {item: price * _ABOVE for item, price in self.guess.items()}
        self._propose(cover, self._vector(guess), self._vector(demand), _SEEDS * _MORE, tried=_TRIED * _MORE)

    def _vector(self, values: Mapping[int, float]) -> Any:
        # Imported late: loading numpy takes as long as a small plan.
        import numpy

        found = numpy.zeros(len(self.problem.items))
        found[list(values)] = list(values.values())
        return found

    def _price(self, cover: Cover, left: Counter[int], *, rounds: int, seeds: int) -> Any:
        """Add nodes that are worth more than they cost; return the prices of the items, or None if HiGHS has no
        answer."""
        wanted, prices = self._vector(left), None
        for _ in range(rounds):
            if cover.solve() is None:
                return None
            prices = cover.prices(len(self.problem.items))
            if not self._propose(cover, prices, wanted, seeds):
                break
        return prices

    def _propose(self, cover: Cover, prices: Any, wanted: Any, seeds: int, *, tried: int = _TRIED) -> int:
        added = 0
        for knapsack, found in self.knapsacks.proposals(prices, wanted, seeds=seeds):
            for _, pattern in found[:tried]:
                column = self.fillings.column(knapsack.kind, pattern)
                added += column is not None and cover.add(column)
        return added

    def _dive(self, cover: Cover, left: Counter[int]) -> list[Column]:
        """Whole nodes, fixed in steps; [] if a bundle has no place."""
        chosen: list[Column] = []
        while +left:
            if self._price(cover, +left, rounds=_ROUNDS_DIVING, seeds=_FEWER_SEEDS) is None or cover.solve() is None:
                return []
            bought = self._step(cover, left)
            if not bought:
                return []
            chosen += bought
        return chosen

    def _step(self, cover: Cover, left: Counter[int]) -> list[Column]:
        """The nodes to fix next, without surplus bundles; their bundles leave the demand."""
        values = cover.bought()
        order = sorted((place for place, value in enumerate(values) if value > _TINY), key=lambda p: (-values[p], p))
        most, chosen = max(1, len(order) // _STEP), list[Column]()
        for place in order:
            if chosen and (values[place] < _NEARLY or (len(chosen) >= most and values[place] < 1 - _TINY)):
                break
            for _ in range(max(1, floor(values[place] + _TINY))):
                column = self._trimmed(cover.columns[place], left, whole=bool(chosen))
                if column is None:
                    break
                chosen.append(column)
                left.subtract(column.pattern)
        for item in {item for column in chosen for item in column.pattern}:
            cover.want(item, left[item])
        return chosen

    def _trimmed(self, column: Column, left: Counter[int], *, whole: bool) -> Column | None:
        """The node with those of its bundles that are left; None if none are, or if some are missing and it must be
        `whole`."""
        pattern = _within(column.pattern, left)
        if pattern == column.pattern:
            return column
        return None if whole or not pattern else self.fillings.column(column.kind, pattern)

    def nearby(self, start: Sequence[Column], fixed: Sequence[Column], most: int) -> list[Column]:
        """Pack a few nodes at a time again, starting with those that cost most above the value of their bundles, at
        `most` so many times."""
        current, tried, before = list(start), 0, Decimal("Infinity")
        for stride in (1, 3, 2, 5, 7):
            order = sorted(current, key=lambda c: (-self._waste(c), c.kind, c.pattern))
            for near in _windows(order, stride):
                cost = self._cost(current, fixed)
                if tried == most or cost <= self.enough:
                    return current
                if tried % _IN_A_ROW == 0:
                    if before - cost < cost * _SAVING:
                        return current
                    before = cost
                tried += 1
                found = self._again(near)
                kept = _removed(current, near) if found else None
                if found and kept is not None and self._improves([*kept, *found], current, fixed):
                    current = [*kept, *found]
        return current

    def _again(self, nodes: Sequence[Column]) -> list[Column]:
        """Other nodes for the bundles of these; [] if none are cheaper."""
        demand = Counter(item for column in nodes for item in column.pattern)
        cover = Cover(demand)
        items = demand.keys()
        for column in (*nodes, *(column for column in self.known if items >= set(column.pattern))):
            if not Counter(column.pattern) - demand:
                cover.add(column)
        if self._price(cover, demand, rounds=_ROUNDS_NEAR, seeds=_FEWER_SEEDS) is None:
            return []
        least, cost = cover.solve(), sum(float(column.score.usd_per_hour) for column in nodes)
        if least is None or least > cost - _TINY:
            return []
        left, found = Counter(demand), list[Column]()
        for column in sorted(cover.solve_whole(), key=lambda c: (-len(c.pattern), c.kind, c.pattern)):
            trimmed = self._trimmed(column, left, whole=False)
            if trimmed is not None:
                found.append(trimmed)
                left.subtract(trimmed.pattern)
        return [] if +left else found

    def _improves(self, found: Sequence[Column], than: Sequence[Column], fixed: Sequence[Column]) -> bool:
        zero, kinds = self.problem.zero, self.problem.kinds
        if not _score(found, zero) < _score(than, zero):
            return False
        columns = [*fixed, *found]
        used = [sum((kinds[c.kind].uses[i] for c in columns), Decimal(0)) for i in range(len(self.problem.limits))]
        return self.problem.allows(used)

    def _cost(self, columns: Iterable[Column], fixed: Iterable[Column]) -> Decimal:
        return sum((c.score.usd_per_hour for c in (*columns, *fixed)), Decimal(0))


def _score(columns: Iterable[Column], zero: Score) -> Score:
    return total((column.score for column in columns), zero)


def _within(pattern: Pattern, left: Counter[int]) -> Pattern:
    """Those bundles of the pattern that are still left."""
    seen = Counter[int]()
    kept: list[int] = []
    for item in pattern:
        seen[item] += 1
        if seen[item] <= left[item]:
            kept.append(item)
    return tuple(kept)


def _parts(columns: Sequence[Column]) -> list[Sequence[Column]]:
    """The nodes in as few parts as the item limit allows, each with nodes from all over the plan."""
    items = len({item for column in columns for item in column.pattern})
    parts = max(1, -(-items // _TOGETHER))
    return [columns[first::parts] for first in range(parts)]


def _windows(order: Sequence[Column], stride: int) -> Iterator[Sequence[Column]]:
    """Runs of nodes with about _NEAR bundles, `stride` apart; each starts in the middle of the one before."""
    for first in range(stride):
        nodes, start = order[first::stride], 0
        while start < len(nodes):
            end, bundles = start, 0
            while end < len(nodes) and bundles < _NEAR:
                bundles += len(nodes[end].pattern)
                end += 1
            yield nodes[start:end]
            if end == len(nodes):
                break
            start += max(1, (end - start) // 2)


def _removed(columns: Sequence[Column], nodes: Sequence[Column]) -> list[Column] | None:
    """The columns without these nodes; None if not all of them exist any more."""
    gone, kept = Counter(id(node) for node in nodes), list[Column]()
    for column in columns:
        if gone[id(column)]:
            gone[id(column)] -= 1
        else:
            kept.append(column)
    return None if +gone else kept
