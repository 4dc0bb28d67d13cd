"""Caches which bundles fit together on one node.

Bundles are placed on a node in the order of the items, which is the scheduler's order. So there is one answer per shape
and multiset of bundles: it fits or it does not. Answers are cached for one packing problem.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Final, Generic

from autoscaler.planning.packing.objective import Score, on_rank
from autoscaler.planning.packing.problem import (
    Column,
    Counts,
    Kind,
    Oracle,
    Pattern,
    Problem,
    State,
    by_price,
    with_one,
)
from autoscaler.planning.packing.room import Bits, Room, lowest
from instance_catalog.dataclass import dataclass

# After this number of items in a row without room, all items that are too large are skipped at once.
_MOST_MISSES: Final = 8


class OutOfStepsError(Exception):
    """The search needs more steps than the budget allows. Never leaves the optimizer."""


@dataclass(slots=True)
class _Kin:
    """Shapes that take every item of a kin for which they have room, and shapes that take none of its items."""

    takes: Bits = 0
    useless: Bits = 0


@dataclass(slots=True)
class _Useful:
    """Cached answers about an item alone: its kin, the shapes with room, and the shapes that are not useful for it."""

    kin: _Kin
    roomy: Bits
    useless: Bits = 0


class Fillings(Generic[State]):
    """States of partly filled nodes by shape and pattern; `puts` counts the oracle's answers about nodes that are not
    empty.

    Answers about empty nodes are not counted: every shape is asked anyway, to explain pods that fit nowhere.
    """

    def __init__(self, problem: Problem, oracle: Oracle[State]) -> None:
        self.puts = 0
        self._problem = problem
        self._zero = problem.zero
        self._oracle = oracle
        self._states: dict[tuple[int, Pattern], State | None] = {}
        self._useful: dict[int, _Useful] = {}
        self._order = by_price(problem)
        self._kin: dict[Hashable, _Kin] = {}
        self._by_room: dict[Bits, Sequence[int]] = {}
        self._rooms: dict[int, Mapping[Hashable, int]] = {}

    def state(self, shape: int, pattern: Pattern) -> State | None:
        """A node of the shape with these bundles; None if they do not fit."""
        key = (shape, pattern)
        if key not in self._states:
            self._states[key] = self._fill(shape, pattern)
        return self._states[key]

    def _fill(self, shape: int, pattern: Pattern) -> State | None:
        if not pattern:
            return self._oracle.empty(shape)
        before = self.state(shape, pattern[:-1])
        if before is None:
            return None
        self.puts += len(pattern) > 1
        return self._oracle.put(before, pattern[-1])

    def larger(self, shape: int, pattern: Pattern, item: int) -> Pattern | None:
        """The pattern with one more bundle of the item; None if that does not fit on a node of the shape."""
        before = self.state(shape, pattern)
        if before is None or not self._oracle.has_room(before, item):
            return None
        found = with_one(pattern, item)
        return None if self.state(shape, found) is None else found

    def useful(self, item: int, enough: Callable[[Kind], bool] = lambda _: False) -> Iterator[int]:
        """The kinds, by price, that take the item alone and are worth trying for it.

        Stops before it asks the oracle about a kind for which `enough` is true, because it is then true for all later
        kinds.
        """
        known, kinds = self._known(item), self._problem.kinds
        for index in self._with_room(known):
            kind = kinds[index]
            if (known.useless | known.kin.useless) >> kind.shape & 1:
                continue
            if enough(kind):
                return
            if item not in kind.refuses and self._takes(kind.shape, item, known):
                yield index

    def _with_room(self, known: _Useful) -> Sequence[int]:
        """The kinds, by price, that have room for the item and may be useful."""
        bits = known.roomy & ~(known.useless | known.kin.useless)
        if bits not in self._by_room:
            self._by_room[bits] = [index for index in self._order if bits >> self._problem.kinds[index].shape & 1]
        return self._by_room[bits]

    def _known(self, item: int) -> _Useful:
        if item not in self._useful:
            kin = self._kin.setdefault(self._oracle.kin(item), _Kin())
            self._useful[item] = _Useful(kin, self._oracle.roomy(item))
        return self._useful[item]

    def _takes(self, shape: int, item: int, known: _Useful) -> bool:
        """True if the shape takes the item alone and is worth trying for it."""
        if known.kin.takes >> shape & 1:
            return True
        takes = self._oracle.worth_trying(shape, item) and self._oracle.fits(shape, item)
        if takes:
            known.kin.takes |= 1 << shape
        elif self._oracle.refuses_kin(shape, item):
            known.kin.useless |= 1 << shape
        else:
            known.useless |= 1 << shape
        return takes

    def refuses(self, shape: int, item: int) -> bool:
        """True if no node of the shape is known to take the item or others of its kin, whatever is on it."""
        return bool(self._known(item).kin.useless >> shape & 1)

    def column(self, kind: int, pattern: Pattern) -> Column | None:
        """A node of the kind with these bundles; None if they do not fit or the kind refuses one of them."""
        bought = self._problem.kinds[kind]
        if bought.refuses and not bought.refuses.isdisjoint(pattern):
            return None
        state = self.state(bought.shape, pattern)
        return None if state is None else Column(kind, pattern, self._score(kind, bought, pattern, state))

    def sizes(self, item: int) -> Mapping[Hashable, int] | None:
        """The least room that a bundle of the item needs on a node, by dimension; None if not known."""
        return self._oracle.sizes(item)

    def room(self, shape: int) -> Mapping[Hashable, int]:
        """The most that bundles on a node of the shape can need together, in each dimension that has a bound."""
        return self._oracle.room(shape)

    def _score(self, index: int, kind: Kind, pattern: Pattern, state: State) -> Score:
        return Score(
            left_out=self._zero.left_out,
            preference=self._oracle.preference(state),
            capacity=on_rank(self._problem.pods_on(pattern), rank=kind.rank, zero=self._zero),
            usd_per_hour=kind.usd_per_hour,
            disruption=sum(kind.risk[item] for item in pattern) if kind.risk else 0,
            nodes=kind.nodes,
            fragmentation=self._oracle.free(state),
            weight=-kind.weight,
            order=index,
        )

    def patterns(self, shape: int, demand: Counts, *, puts: int) -> Iterator[Pattern]:
        """Every multiset within the demand that fits on a node of the shape. Raises OutOfStepsError after `puts`
        puts."""
        return self._extended((), 0, shape, demand, puts=puts)

    def _extended(self, pattern: Pattern, first: int, shape: int, demand: Counts, *, puts: int) -> Iterator[Pattern]:
        """The same, of those that add items from `first` on to a pattern."""
        for item in range(first, len(demand)):
            if pattern.count(item) >= demand[item]:
                continue
            if self.puts > puts:
                raise OutOfStepsError
            larger = (*pattern, item)
            if self.state(shape, larger) is not None:
                yield larger
                yield from self._extended(larger, item, shape, demand, puts=puts)

    def filled(self, shape: int, residual: Sequence[int], items: Bits) -> Iterator[Pattern]:
        """Fill a node with as many bundles of the first item as fit, then with later items; yields every step."""
        pattern: Pattern = ()
        state, misses = self.state(shape, pattern), 0
        while items:
            item = lowest(items)
            items ^= 1 << item
            before, misses = len(pattern), misses + 1
            for _ in range(residual[item]):
                if state is None or not self._oracle.has_room(state, item):
                    break
                larger = with_one(pattern, item)
                after = self.state(shape, larger)
                if after is None:
                    break
                pattern, state = larger, after
                yield pattern
            if len(pattern) > before:
                misses = 0
            if not pattern or state is None or (not misses and self._oracle.full(state)):
                return
            if misses == _MOST_MISSES:
                items &= self._smaller(shape, pattern)

    def _smaller(self, shape: int, pattern: Pattern) -> Bits:
        """The items that may have room beside the pattern, by their sizes."""
        left = dict(self._room_of(shape))
        for item in pattern:
            for dimension, size in self._sizes[item].items():
                if dimension in left:
                    left[dimension] -= size
        return self._needs.of({dimension: -amount for dimension, amount in left.items()})

    def _room_of(self, shape: int) -> Mapping[Hashable, int]:
        _ = self._needs  # rooms have the dimensions of all requested sizes
        if shape not in self._rooms:
            self._rooms[shape] = self._oracle.room(shape)
        return self._rooms[shape]

    @cached_property
    def _sizes(self) -> Sequence[Mapping[Hashable, int]]:
        """By item; empty if not known."""
        return [self._oracle.sizes(item) or {} for item in range(len(self._problem.items))]

    @cached_property
    def _needs(self) -> Room[Hashable]:
        """By item, the negative sizes, so that larger items leave less."""
        return Room({n: {d: -size for d, size in sizes.items()} for n, sizes in enumerate(self._sizes)})
