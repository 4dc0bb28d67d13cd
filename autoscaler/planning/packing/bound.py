"""Computes a lower bound for the price of the placed bundles, whatever nodes are bought, from a linear program.

Only rules that hold for every order of bundles are kept: sizes must not exceed the room, in every dimension and in
whole numbers. Nodes and bundles may be split. HiGHS proposes dual prices in floating point. The bound is then computed
from them in integer arithmetic, so rounding can lower it and never raise it. As every cost is a sum of prices, it is
rounded up to the last digit that a price has.

The rows of a kind are its dimensions and, for each of them, Chvátal-Gomory cuts: of bundles that are larger than one
(m+1)-th of the room, at most m fit.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from math import ceil
from typing import Any, Final

from autoscaler.planning.packing.coarse import coarse
from autoscaler.planning.packing.problem import Kind, Problem, decimals
from autoscaler.planning.packing.relaxation import Group, Relaxation, Sizes
from instance_catalog.dataclass import dataclass, replace

# Cuts of each dimension: whole devices need more cuts than amounts, of which a bundle usually needs a small part.
_CUTS: Final = (1, 2, 3, 4, 5, 7)
# Dual prices are multiples of this fraction of a dollar.
_SCALE: Final = 2**50
_ITERATIONS: Final = 50_000


@dataclass(frozen=True, slots=True)
class _Row:
    """At most `room` of these sizes, by group, fit on one node. A cut has `size` for each `part` of the dimension."""

    sizes: Mapping[int, int]
    room: int
    dimension: Hashable
    size: int = 1
    part: int = 1


@dataclass(frozen=True, slots=True)
class _Bought:
    """A kind in the program: its groups and rows."""

    kind: Kind
    index: int
    groups: tuple[int, ...]
    rows: tuple[_Row, ...]


@dataclass(frozen=True, slots=True)
class Bound:
    """No placement of the bundles costs less, in dollars per hour. `prices`: the approximate cost of one more of
    each item."""

    usd_per_hour: Decimal
    prices: Mapping[int, float]


def lower_bound(problem: Problem, relaxation: Relaxation, entries: int) -> Bound | None:
    """The bound for the bundles of the relaxation, with the same capacity types.

    A program with more than `entries` entries is made coarser. None if it stays twice as large, or is not solved.
    """
    groups, size = relaxation.groups, _entries(problem, relaxation)
    if size > entries:
        groups = coarse(groups, _mean_room(relaxation), len(groups) * entries // size)
        if _entries(problem, replace(relaxation, groups=groups)) > 2 * entries:
            return None
    bought = _all_bought(problem, relaxation, groups)
    prices = _Program(problem, groups, bought).prices()
    if prices is None:
        return None
    least = _exact(problem, groups, bought, prices)
    worth = _worth(relaxation.groups, bought, prices) if size > entries else [price / _SCALE for price in prices.groups]
    by_item = {item: price for group, price in zip(relaxation.groups, worth, strict=True) for item in group.items}
    return Bound(least, by_item)


def _worth(groups: Sequence[Group], bought: Sequence[_Bought], prices: _Prices) -> list[float]:
    """The value of a bundle of each group by the prices of rows: the value of its part of the cheapest kind's room."""
    import numpy

    least = numpy.full(len(groups), numpy.inf)
    sizes: dict[Hashable, Any] = {}
    for one, own in zip(bought, prices.rows, strict=True):
        worth = numpy.zeros(len(groups))
        for row, price in zip(one.rows, own, strict=True):
            if row.dimension not in sizes:
                sizes[row.dimension] = numpy.array([float(group.sizes.get(row.dimension, 0)) for group in groups])
            if price:
                worth += price / _SCALE / row.room * (sizes[row.dimension] * row.size // row.part)
        taken = numpy.array([one.index in group.kinds for group in groups])
        least = numpy.where(taken, numpy.minimum(least, worth), least)
    return [float(value) for value in numpy.where(numpy.isfinite(least), least, 0.0)]


def _entries(problem: Problem, relaxation: Relaxation) -> int:
    """The number of entries of the program for these groups: counted, because making it takes far longer."""
    # Imported late: loading numpy costs as much as a small plan.
    import numpy

    groups, found = relaxation.groups, 0
    dimensions = dict.fromkeys(d for group in groups for d in group.sizes)
    sizes = {d: numpy.array([float(group.sizes.get(d, 0)) for group in groups]) for d in dimensions}
    alike: dict[frozenset[int], list[int]] = {}
    for number, group in enumerate(groups):
        alike.setdefault(group.kinds, []).append(number)
    for index in relaxation.kinds:
        taken = numpy.array([number for kinds, same in alike.items() if index in kinds for number in same])
        found += len(taken)
        for dimension, size in sizes.items():
            room = relaxation.rooms[problem.kinds[index].shape].get(dimension)
            if room is not None and len(taken):
                least = [1.0, *((room + 1) / (most + 1) for most in _CUTS if most < room)]
                found += sum(int((size[taken] >= one).sum()) for one in least)
    return found


def _mean_room(relaxation: Relaxation) -> dict[Hashable, float]:
    """The average room of a machine in each dimension."""
    rooms = list(relaxation.rooms.values())
    dimensions = dict.fromkeys(d for room in rooms for d in room)
    return {d: sum(room.get(d, 0) for room in rooms) / len(rooms) for d in dimensions}


def _all_bought(problem: Problem, relaxation: Relaxation, groups: Sequence[Group]) -> list[_Bought]:
    dimensions = dict.fromkeys(d for group in groups for d in group.sizes)
    sizes = {d: [group.sizes.get(d, 0) for group in groups] for d in dimensions}
    return [_bought(problem.kinds[i], i, groups, relaxation.rooms, sizes) for i in relaxation.kinds]


def _bought(
    kind: Kind,
    index: int,
    groups: Sequence[Group],
    rooms: Mapping[int, Sizes],
    sizes: Mapping[Hashable, Sequence[int]],
) -> _Bought:
    """`sizes` are those of the groups, by dimension."""
    taken = tuple(number for number, group in enumerate(groups) if index in group.kinds)
    rows: list[_Row] = []
    for dimension in dict.fromkeys(d for number in taken for d in groups[number].sizes):
        room = rooms[kind.shape].get(dimension)
        if room is None:
            continue
        own = {number: size for number in taken if (size := sizes[dimension][number])}
        if own:
            rows.append(_Row(own, room, dimension))
        largest = max(own.values(), default=0)
        for most in _CUTS:
            if most < room < largest * (most + 1):
                cut = {n: part for n, size in own.items() if (part := size * (most + 1) // (room + 1))}
                rows.append(_Row(cut, most, dimension, most + 1, room + 1))
    return _Bought(kind, index, taken, tuple(rows))


@dataclass(frozen=True, slots=True)
class _Prices:
    """Proposed by the program, not negative: of a bundle of each group, of each kind's rows, and of the limits."""

    groups: list[int]
    rows: list[list[int]]
    limits: list[int]


class _Program:
    """Buys fractions of nodes for fractions of bundles; variables are the nodes of each kind, then the bundles on
    each."""

    def __init__(self, problem: Problem, groups: Sequence[Group], bought: Sequence[_Bought]) -> None:
        # Imported late: loading HiGHS takes as long as a small plan.
        import highspy
        import numpy

        self._problem, self._groups, self._bought = problem, groups, bought
        self._highs: Any = highspy.Highs()  # type: ignore[no-untyped-call]  # highspy ships without annotations here
        self._highs.silent()
        self._highs.setOptionValue("threads", 1)
        self._highs.setOptionValue("simplex_iteration_limit", _ITERATIONS)
        self._optimal = highspy.HighsModelStatus.kOptimal
        rows, lower, upper = self._rows(highspy.kHighsInf)
        lp: Any = highspy.HighsLp()
        columns = len(bought) + sum(len(one.groups) for one in bought)
        lp.num_col_, lp.num_row_ = columns, len(rows)
        free = columns - len(bought)
        lp.col_cost_ = numpy.array([float(one.kind.usd_per_hour) for one in bought] + [0.0] * free)
        lp.col_lower_, lp.col_upper_ = numpy.zeros(columns), numpy.full(columns, highspy.kHighsInf)
        lp.row_lower_, lp.row_upper_ = numpy.array(lower), numpy.array(upper)
        lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        lp.a_matrix_.start_ = numpy.cumsum([0, *(len(row) for row in rows)])
        lp.a_matrix_.index_ = numpy.array([column for row in rows for column, _ in row])
        lp.a_matrix_.value_ = numpy.array([value for row in rows for _, value in row])
        self._highs.passModel(lp)

    def _rows(self, infinity: float) -> tuple[list[list[tuple[int, float]]], list[float], list[float]]:
        place, number = {}, len(self._bought)
        for k, one in enumerate(self._bought):
            for group in one.groups:
                place[k, group] = number
                number += 1
        rows: list[list[tuple[int, float]]] = [[] for _ in self._groups]
        for (_, group), column in place.items():
            rows[group].append((column, 1.0))
        lower, upper = [float(group.count) for group in self._groups], [infinity] * len(self._groups)
        for k, one in enumerate(self._bought):
            for row in one.rows:
                rows.append([(k, -1.0), *((place[k, g], size / row.room) for g, size in row.sizes.items())])
        for index in range(len(self._problem.limits)):
            rows.append([(k, float(use)) for k, one in enumerate(self._bought) if (use := one.kind.uses[index])])
        upper += [0.0] * (len(rows) - len(upper) - len(self._problem.limits))
        upper += [float(limit) for limit in self._problem.limits]
        return rows, lower + [-infinity] * (len(rows) - len(lower)), upper

    def prices(self) -> _Prices | None:
        """The dual prices; None if HiGHS finds no optimum within its limits."""
        self._highs.run()
        if self._highs.getModelStatus() != self._optimal:
            return None
        duals = [int(abs(value) * _SCALE) for value in self._highs.getSolution().row_dual]
        first, rows = len(self._groups), []
        for one in self._bought:
            rows.append(duals[first : first + len(one.rows)])
            first += len(one.rows)
        limits = [
            price if limit.is_finite() else 0 for price, limit in zip(duals[first:], self._problem.limits, strict=True)
        ]
        return _Prices(duals[: len(self._groups)], rows, limits)


def _exact(problem: Problem, groups: Sequence[Group], bought: Sequence[_Bought], prices: _Prices) -> Decimal:
    """The bound that the prices prove.

    On a node of a kind, the prices of its bundles sum up to at most the value of its room. If that exceeds the price of
    the node with its part of the limits, all prices of bundles are lowered until it does not.
    """
    worths = [_worths(one, own) for one, own in zip(bought, prices.rows, strict=True)]
    worthless = {group for worth in worths for group, value in worth.items() if not value}
    of_group = [0 if number in worthless else price for number, price in enumerate(prices.groups)]
    share = Fraction(1)
    for one, own, worth in zip(bought, prices.rows, worths, strict=True):
        room = sum(own) * _SCALE
        dearest = max((Fraction(of_group[group], worth[group]) for group in one.groups if of_group[group]), default=0)
        cost = Fraction(one.kind.usd_per_hour) * _SCALE
        cost += sum(Fraction(use) * price for use, price in zip(one.kind.uses, prices.limits, strict=True))
        if dearest * room > cost:
            share = min(share, cost / (dearest * room))
    value = share * sum(price * group.count for price, group in zip(of_group, groups, strict=True))
    value -= sum(Fraction(limit) * price for limit, price in zip(problem.limits, prices.limits, strict=True) if price)
    digits = decimals(one.kind.usd_per_hour for one in bought)
    return Decimal(max(0, ceil(value / _SCALE * 10**digits))).scaleb(-digits)


def _worths(bought: _Bought, prices: Sequence[int]) -> dict[int, int]:
    """The value of the room that each group's bundle needs, rounded down."""
    worth = dict.fromkeys(bought.groups, 0)
    for price, row in zip(prices, bought.rows, strict=True):
        for group, size in row.sizes.items() if price else ():
            worth[group] += price * size * _SCALE // row.room
    return worth
