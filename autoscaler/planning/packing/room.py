"""Finds nodes with room for amounts, as bit sets: numbers that `&` combines, of any size and without rounding."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import Generic, TypeAlias, TypeVar

Dimension = TypeVar("Dimension", bound=Hashable)

# A set of shapes: bit n represents shape n.
Bits: TypeAlias = int


class Room(Generic[Dimension]):
    """The amounts of nodes, by number of the node and by dimension; `missing` for dimensions that are not mentioned."""

    def __init__(self, nodes: Mapping[int, Mapping[Dimension, int]], *, missing: float = 0) -> None:
        self._nodes = nodes
        self._missing = missing
        self._every = bits_of(nodes)
        self._levels: dict[Dimension, tuple[list[float], list[Bits]]] = {}

    def of(self, sizes: Mapping[Dimension, int]) -> Bits:
        """The nodes that have at least these amounts of everything."""
        found = self._every
        for dimension, size in sizes.items():
            levels, nodes = self._levels_of(dimension)
            place = bisect_left(levels, size)
            found &= nodes[place] if place < len(levels) else 0
        return found

    def _levels_of(self, dimension: Dimension) -> tuple[list[float], list[Bits]]:
        """The amounts of nodes in the dimension, ascending, each with the nodes that have at least this much."""
        if dimension not in self._levels:
            by_amount: dict[float, Bits] = {}
            for node, amounts in self._nodes.items():
                amount = amounts.get(dimension, self._missing)
                by_amount[amount] = by_amount.get(amount, 0) | 1 << node
            levels, nodes, above = sorted(by_amount), list[Bits](), 0
            for level in reversed(levels):
                above |= by_amount[level]
                nodes.append(above)
            self._levels[dimension] = levels, nodes[::-1]
        return self._levels[dimension]


def bits_of(numbers: Iterable[int]) -> Bits:
    """The set of these numbers."""
    found = 0
    for number in numbers:
        found |= 1 << number
    return found


def lowest(bits: Bits) -> int:
    """The smallest number of a set that is not empty."""
    return (bits & -bits).bit_length() - 1


def numbers_in(bits: Bits) -> Iterator[int]:
    """The numbers of a set, ascending."""
    while bits:
        one = bits & -bits
        yield one.bit_length() - 1
        bits ^= one
