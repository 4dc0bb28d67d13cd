"""The packing problem and its solution as values. solve.py describes how it is solved."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Hashable, Iterable, Mapping, Sequence
from decimal import Decimal
from functools import cached_property
from typing import Protocol, TypeAlias, TypeVar

from autoscaler.planning.packing.objective import Score
from autoscaler.planning.packing.room import Bits
from instance_catalog.dataclass import dataclass, replace

State = TypeVar("State")
Counts: TypeAlias = tuple[int, ...]  # how many bundles of each item
Pattern: TypeAlias = tuple[int, ...]  # the items on one node, ascending, one entry per bundle


class Oracle(Protocol[State]):
    """Decides which bundles a node can take. A state is one node with the bundles on it."""

    def empty(self, shape: int) -> State:
        """A new node of the shape."""

    def put(self, state: State, item: int) -> State | None:
        """The node with one more bundle of the item, or None if it does not fit."""

    def fits(self, shape: int, item: int) -> bool:
        """True if an empty node of the shape takes one bundle of the item: the answer of `put`, with less work."""

    def preference(self, state: State) -> int:
        """Sum of the firstAvailable indexes chosen on the node."""

    def free(self, state: State) -> int:
        """Free devices of the node; below zero if free devices are better than none."""

    def worth_trying(self, shape: int, item: int) -> bool:
        """True if a node of the shape is worth trying for the item. A hint like `full`."""

    def full(self, state: State) -> bool:
        """True if more bundles are not worth trying. A hint for greedy filling; the exact search does not use it."""

    def has_room(self, state: State, item: int) -> bool:
        """False only if no order of these bundles and one more of the item fits. Quick enough to check many nodes."""

    def kin(self, item: int) -> Hashable:
        """Equal for items of which a shape takes all that it has room for (`roomy`) as soon as it takes one."""

    def refuses_kin(self, shape: int, item: int) -> bool:
        """True if the shape is known to take no item of this kin, after it refused the item."""

    def given_up(self, item: int) -> bool:
        """True if no empty node is known to take the item, and every further answer is None."""

    def sizes(self, item: int) -> Mapping[Hashable, int] | None:
        """The least room that a bundle of the item needs on a node, by dimension; None if not known."""

    def room(self, shape: int) -> Mapping[Hashable, int]:
        """The most that bundles on a node of the shape can need together, in each dimension that has a bound."""

    def roomy(self, item: int) -> Bits:
        """Shapes with room for the item; empty nodes of other shapes never take it."""

    def may_take(self, item: int, among: Bits) -> Bits:
        """Those of the shapes whose empty nodes may take the item; empty nodes of the others never take it."""


@dataclass(frozen=True, slots=True)
class Item:
    """`count` equal bundles of `pods` pods each. `level` is their priority, 0 the highest. `gang` is the index of
    their gang."""

    count: int
    pods: int = 1
    level: int = 0
    gang: int | None = None


@dataclass(frozen=True, slots=True)
class GangRule:
    """All or nothing: either every item of the gang is left out, or at most `may_leave` pods of it."""

    may_leave: int = 0


@dataclass(frozen=True, slots=True)
class Kind:
    """An offering of a pool. Kinds of one `shape` take the same bundles.

    `rank` is the capacity type's position in the pool's list. `uses` is the part of each limit of the problem that one
    node uses. `refuses` are items that must not be placed there although they fit. `risk` is the number of pods of one
    bundle of each item that may be interrupted there; () means none. A slice of several hosts is one kind, which counts
    as `nodes` nodes.
    """

    shape: int
    usd_per_hour: Decimal
    rank: int = 0
    weight: int = 0
    uses: tuple[Decimal, ...] = ()
    refuses: frozenset[int] = frozenset()
    risk: tuple[int, ...] = ()
    nodes: int = 1


@dataclass(frozen=True)
class Problem:
    """Items in the scheduler's order; kinds in a stable order; `limits`: the most that may be used of each. `ranks`:
    the fewest ranks in a score, so that scores of problems with other kinds compare."""

    items: tuple[Item, ...]
    kinds: tuple[Kind, ...]
    limits: tuple[Decimal, ...] = ()
    gangs: tuple[GangRule, ...] = ()
    ranks: int = 0

    @cached_property
    def zero(self) -> Score:
        """The score of a solution that buys nothing and leaves out nobody."""
        return Score.zero(
            priorities=1 + max((item.level for item in self.items), default=-1),
            ranks=max([self.ranks, *(1 + kind.rank for kind in self.kinds)]),
        )

    @cached_property
    def demand(self) -> Counts:
        """The number of bundles of each item that need a place."""
        return tuple(item.count for item in self.items)

    @cached_property
    def reachable(self) -> tuple[int, ...]:
        """The limits that a plan could reach if every bundle were on a node of its own."""
        bundles = sum(self.demand)
        return tuple(
            i
            for i, limit in enumerate(self.limits)
            if bundles * max((kind.uses[i] for kind in self.kinds), default=Decimal(0)) > limit
        )

    def pods(self, counts: Counts) -> int:
        """The number of pods of these bundles."""
        items = self.items
        return sum(items[index].pods * count for index, count in enumerate(counts) if count)

    def pods_on(self, pattern: Pattern) -> int:
        """The number of pods on a node with these bundles."""
        return len(pattern) if self._single else sum(self.items[item].pods for item in pattern)

    @cached_property
    def _single(self) -> bool:
        """True if every bundle is one pod."""
        return all(item.pods == 1 for item in self.items)

    def allows(self, used: Sequence[Decimal]) -> bool:
        """True if this much of every limit may be used."""
        return all(amount <= limit for amount, limit in zip(used, self.limits, strict=True))


@dataclass(frozen=True, slots=True)
class Column:
    """One node of a kind with these bundles on it, placed in the order of the items."""

    kind: int
    pattern: Pattern
    score: Score

    def counts(self, items: int) -> Counts:
        """The number of bundles of each item, for `items` items."""
        found = [0] * items
        for item in self.pattern:
            found[item] += 1
        return tuple(found)


@dataclass(frozen=True, slots=True)
class Solution:
    """Nodes to buy and the number of bundles of each item that are left out. `optimal`: proven to be the best.

    `at_least`: no solution with the same capacity types and choices as preferred places the same bundles for less, in
    dollars per hour; None if not computed.
    """

    columns: tuple[Column, ...]
    left: Counts
    score: Score
    optimal: bool = False
    at_least: Decimal | None = None

    def proven(self) -> Solution:
        """The same solution, marked as the best."""
        return replace(self, optimal=True)


@dataclass(frozen=True, slots=True)
class Budget:
    """Limits of work. `demands`: the most sub-demands for which the exact search is tried. `puts`: oracle calls
    about nodes that are not empty, to find patterns. `states`: steps of the exact search (sub-demands times
    patterns). `columns`: patterns of one mixed-integer program. `bound`: entries of the linear program for the lower
    bound, some tenths of a second; with 0 only proven plans have a bound. `near_enough`: a solution that costs at most
    so many times its lower bound is not improved further. `neighbourhoods`: the most groups of nodes that are packed
    again. `any_cost`: the first solution that leaves nobody out is enough, for those who do not read its cost."""

    demands: int = 2000
    puts: int = 2000
    states: int = 60_000
    columns: int = 4000
    bound: int = 400_000
    near_enough: Decimal = Decimal("1.001")
    neighbourhoods: int = 48
    any_cost: bool = False


def by_price(problem: Problem) -> list[int]:
    """The kinds, preferred capacity types first, then by price."""
    return sorted(range(len(problem.kinds)), key=lambda i: (problem.kinds[i].rank, problem.kinds[i].usd_per_hour, i))


def decimals(prices: Iterable[Decimal]) -> int:
    """The digits behind the point of the price that has most of them."""
    exponents = (price.normalize().as_tuple().exponent for price in prices)
    return max([0, *(-exponent for exponent in exponents if isinstance(exponent, int))])


def with_one(pattern: Pattern, item: int) -> Pattern:
    """The same node with one more bundle of the item."""
    place = bisect_right(pattern, item)
    return (*pattern[:place], item, *pattern[place:])


def subtract(left: Counts, right: Counts) -> Counts:
    return tuple(a - b for a, b in zip(left, right, strict=True))


def within(small: Counts, large: Counts) -> bool:
    """True if `small` has at most as many of every item as `large`."""
    return all(a <= b for a, b in zip(small, large, strict=True))


def total(scores: Iterable[Score], zero: Score) -> Score:
    """The sum of the scores; `zero` has the right number of levels."""
    result = zero
    for score in scores:
        result += score
    return result
