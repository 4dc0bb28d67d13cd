"""The packing problem and its answer as values. See solve.py for how it is solved."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property
from typing import Protocol, TypeAlias, TypeVar

from autoscaler.planning.packing.objective import Score
from autoscaler.planning.packing.room import Bits

State = TypeVar("State")
Counts: TypeAlias = tuple[int, ...]  # how many bundles of each item
Pattern: TypeAlias = tuple[int, ...]  # the items on one node, ascending, each as often as it has bundles there


class Oracle(Protocol[State]):
    """What a node can take. A state is one node with what was put on it so far."""

    def empty(self, shape: int) -> State:
        """A fresh node of the shape."""

    def put(self, state: State, item: int) -> State | None:
        """The node with one more bundle of the item, or None if it does not fit."""

    def fits(self, shape: int, item: int) -> bool:
        """Whether an empty node of the shape takes one bundle of the item: as `put` says, at a lower price."""

    def preference(self, state: State) -> int:
        """Sum of the firstAvailable indexes chosen on the node."""

    def free(self, state: State) -> int:
        """Devices of the node that nobody uses; below zero where these are better than none."""

    def worth_trying(self, shape: int, item: int) -> bool:
        """Whether a node of the shape is worth trying for the item. A hint as `full` is."""

    def full(self, state: State) -> bool:
        """Whether more bundles are not worth trying. A hint for greedy filling; the exact search does not ask."""

    def has_room(self, state: State, item: int) -> bool:
        """False only if no order of these bundles and one more of the item fits: cheap, for asking about many nodes."""

    def kin(self, item: int) -> Hashable:
        """Equal for items of which a shape takes all that it has room for (`roomy`) as soon as it takes one."""

    def refuses_kin(self, shape: int, item: int) -> bool:
        """Whether it is known that the shape takes no item of this kin, after it refused the item."""

    def given_up(self, item: int) -> bool:
        """Whether no empty node is known to take the item, and every further question has the answer None."""

    def sizes(self, item: int) -> Mapping[Hashable, int] | None:
        """What a bundle of the item takes of a node at least, by dimension; None if that is not known."""

    def room(self, shape: int) -> Mapping[Hashable, int]:
        """How much the bundles on a node of the shape take together at most, in each dimension that has a bound."""

    def roomy(self, item: int) -> Bits:
        """Shapes that have room for the item; empty nodes of the others certainly do not take it."""

    def may_take(self, item: int, among: Bits) -> Bits:
        """Of these shapes those whose empty nodes may take the item; the others certainly do not."""


@dataclass(frozen=True, slots=True)
class Item:
    """`count` equal bundles of `pods` pods each. `level` is their priority, 0 the highest. `gang` indexes the gangs."""

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
    """Something that can be bought: an offering of a pool. Kinds of one `shape` take the same bundles.

    `rank` is the capacity type's place in the pool's list. `uses` says how much one node takes of each limit of the
    problem. `refuses` are items that may not be placed there although they fit. `risk` is how many pods of one bundle
    of each item may be interrupted there; () means none. What is bought as a whole (a slice of several hosts) is one
    kind, which counts as so many `nodes`.
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
    """Items in the order in which the scheduler takes them; kinds in a stable order; `limits`: how much may be used."""

    items: tuple[Item, ...]
    kinds: tuple[Kind, ...]
    limits: tuple[Decimal, ...] = ()
    gangs: tuple[GangRule, ...] = ()

    @cached_property
    def zero(self) -> Score:
        """The score of doing nothing for nobody."""
        return Score.zero(
            priorities=1 + max((item.level for item in self.items), default=-1),
            ranks=1 + max((kind.rank for kind in self.kinds), default=-1),
        )

    @cached_property
    def demand(self) -> Counts:
        """How many bundles of each item want a place."""
        return tuple(item.count for item in self.items)

    def pods(self, counts: Counts) -> int:
        """How many pods these bundles are."""
        items = self.items
        return sum(items[index].pods * count for index, count in enumerate(counts) if count)

    def pods_on(self, pattern: Pattern) -> int:
        """How many pods are on a node with these bundles."""
        return len(pattern) if self._single else sum(self.items[item].pods for item in pattern)

    @cached_property
    def _single(self) -> bool:
        """Whether every bundle is one pod."""
        return all(item.pods == 1 for item in self.items)

    def allows(self, used: Sequence[Decimal]) -> bool:
        """Whether that much of every limit may be used."""
        return all(amount <= limit for amount, limit in zip(used, self.limits, strict=True))


@dataclass(frozen=True, slots=True)
class Column:
    """One node of a kind with these bundles on it, put there in the order of the items."""

    kind: int
    pattern: Pattern
    score: Score

    def counts(self, items: int) -> Counts:
        """The bundles of each of so many items."""
        found = [0] * items
        for item in self.pattern:
            found[item] += 1
        return tuple(found)


@dataclass(frozen=True, slots=True)
class Solution:
    """Nodes to buy and how many bundles of each item are left out. `optimal`: proven to be the best.

    `at_least`: dollars an hour below which nobody can place the same bundles; None if that was not worked out.
    """

    columns: tuple[Column, ...]
    left: Counts
    score: Score
    optimal: bool = False
    at_least: Decimal | None = None

    def proven(self) -> Solution:
        """The same, known to be the best."""
        return replace(self, optimal=True)


@dataclass(frozen=True, slots=True)
class Budget:
    """How much work may be done. `demands`: sub-demands up to which the exact search is tried. `puts`: questions to the
    oracle about nodes that hold something, for finding patterns. `states`: steps of the exact search (sub-demands times
    patterns). `columns`: patterns of one mixed-integer program. `bound`: entries of the linear program for the lower
    bound: some tenths of a second; with 0, only proven plans have one."""

    demands: int = 2000
    puts: int = 2000
    states: int = 60_000
    columns: int = 4000
    bound: int = 400_000


def by_price(problem: Problem) -> list[int]:
    """The kinds, more wanted capacity types first, then cheaper ones."""
    return sorted(range(len(problem.kinds)), key=lambda i: (problem.kinds[i].rank, problem.kinds[i].usd_per_hour, i))


def with_one(pattern: Pattern, item: int) -> Pattern:
    """The same node with one more bundle of the item."""
    place = bisect_right(pattern, item)
    return (*pattern[:place], item, *pattern[place:])


def subtract(left: Counts, right: Counts) -> Counts:
    return tuple(a - b for a, b in zip(left, right, strict=True))


def within(small: Counts, large: Counts) -> bool:
    """Whether `small` has at most as many of every item as `large`."""
    return all(a <= b for a, b in zip(small, large, strict=True))


def total(scores: Iterable[Score], zero: Score) -> Score:
    """The sum of the scores; `zero` has the right number of levels."""
    result = zero
    for score in scores:
        result += score
    return result
