"""Proposes nodes: the bundles with the highest total value on one node, by sizes and rooms alone.

A heuristic for many small knapsacks at once, in vectors. A node starts with each of the most valuable bundles in turn
and is filled with the bundles of the highest value for the part of the remaining room that they need. Sizes are whole
numbers below 2**53, which floats store exactly. Sums go by dimension and not through a linear algebra library, whose
last digit depends on the processor.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from typing import Any, Final

from autoscaler.planning.packing.problem import Pattern, Problem
from autoscaler.planning.packing.relaxation import Relaxation
from instance_catalog.dataclass import dataclass

_WORTHLESS: Final = 1e-9
_WORTH: Final = 1 + 1e-6
# A dimension without a limit.
_ENDLESS: Final = float(2**53)


@dataclass(frozen=True, slots=True, eq=False)
class Knapsack:
    """A kind with the items that it takes, ascending: `places` says where an item is among them, -1 that it is not.

    `sizes` has a row for each dimension, `room` a number.
    """

    kind: int
    usd_per_hour: float
    items: Any
    places: Any
    sizes: Any
    room: Any

    def proposals(self, wanted: Any, prices: Any, left: Any, *, seeds: int) -> list[tuple[float, Pattern]]:
        """Nodes whose bundles are worth more than the node costs, best first. `wanted`: the items to use, ascending;
        `prices` and `left` (the remaining number) are by item."""
        import numpy

        places = self.places[wanted]
        places = places[places >= 0]
        if not len(places):
            return []
        items, sizes = self.items[places], self.sizes[:, places]
        prices, left = prices[items], left[items]
        parts = numpy.maximum((sizes / numpy.maximum(self.room, 1.0)[:, None]).max(axis=0), _WORTHLESS)
        by_part, by_price = numpy.argsort(-prices / parts, kind="stable"), numpy.argsort(-prices, kind="stable")
        first = numpy.unique(numpy.concatenate([by_part[: seeds // 2], by_price[: seeds // 2]]))
        taken = _filled(sizes, self.room, prices, left, first)
        worth = (taken * prices).sum(axis=1)
        found: set[tuple[float, Pattern]] = set()
        for row in numpy.nonzero(worth > self.usd_per_hour * _WORTH)[0]:
            found.add((float(worth[row]), _pattern(items, taken[row])))
        return sorted(found, key=lambda entry: (-entry[0], entry[1]))


class Knapsacks:
    """A knapsack for each kind that costs something."""

    def __init__(self, problem: Problem, relaxation: Relaxation) -> None:
        # Imported late: loading numpy takes as long as a small plan.
        import numpy

        self._numpy = numpy
        self._all: list[Knapsack] = []
        groups = relaxation.groups
        dimensions = list(dict.fromkeys(d for group in groups for d in group.sizes))
        every = numpy.zeros((len(dimensions), len(problem.items)))
        alike: dict[frozenset[int], list[int]] = {}
        for group in groups:
            every[:, group.items] = numpy.array([[float(group.sizes.get(d, 0))] for d in dimensions])
            alike.setdefault(group.kinds, []).extend(group.items)
        rates = []
        for kind in relaxation.kinds:
            price, rooms = problem.kinds[kind].usd_per_hour, relaxation.rooms[problem.kinds[kind].shape]
            if not price:
                continue
            taken = [item for kinds, same in alike.items() if kind in kinds for item in same]
            items, places = numpy.array(sorted(taken), numpy.int64), numpy.full(len(problem.items), -1)
            places[items] = numpy.arange(len(items))
            sizes = every[:, items]
            room = numpy.array([float(rooms.get(d, _ENDLESS)) for d in dimensions])
            self._all.append(Knapsack(kind, float(price), items, places, sizes, room))
            rate = numpy.zeros((len(dimensions), len(problem.items)))
            rate[:, items] = numpy.maximum(room, 1.0)[:, None] / numpy.maximum(sizes, _WORTHLESS)
            rates.append(rate)
        self._rates: Any = numpy.array(rates)  # by kind, dimension and item: how often it fits, or 0
        self._costs: Any = numpy.array([knapsack.usd_per_hour for knapsack in self._all])

    def proposals(
        self, prices: Any, left: Any, *, seeds: int, among: Container[int] | None = None
    ) -> Iterator[tuple[Knapsack, Sequence[tuple[float, Pattern]]]]:
        """Nodes of each kind (`among` these) that may be worth their price: at most the value of the kind's room in any
        one dimension."""
        wanted = self._numpy.nonzero((prices > _WORTHLESS) & (left > 0))[0]
        if not (len(wanted) and self._all):
            return
        tried = self._numpy.array(
            [place for place, one in enumerate(self._all) if among is None or one.kind in among], self._numpy.int64
        )
        rates = self._rates[tried[:, None, None], self._numpy.arange(self._rates.shape[1])[:, None], wanted]
        worth = (rates * prices[wanted]).max(axis=2).min(axis=1)
        for place in tried[worth > self._costs[tried] * _WORTH]:
            yield self._all[place], self._all[place].proposals(wanted, prices, left, seeds=seeds)


def _filled(sizes: Any, room: Any, prices: Any, left: Any, first: Any) -> Any:
    """The number of bundles of each item on the nodes that start with `first`, filled in two ways.

    The part of the remaining room that a bundle needs is that of its scarcest dimension on the first half of the nodes,
    and the sum of all dimensions on the second half.
    """
    import numpy

    begun, dimensions = numpy.concatenate([first, first]), range(len(room))
    nodes = numpy.arange(len(begun))
    rooms = room[:, None] - sizes[:, begun]
    taken = numpy.zeros((len(begun), len(prices)))
    taken[nodes, begun] = 1
    while True:
        fits = taken[nodes] < left
        for d in dimensions:
            fits &= sizes[d] <= rooms[d, nodes, None]
        more = fits.any(axis=1)
        if not more.any():
            return taken
        nodes, fits = nodes[more], fits[more]
        scarcest = int(numpy.searchsorted(nodes, len(first)))
        part = numpy.zeros(fits.shape)
        for d in dimensions:
            of_room = sizes[d] / numpy.maximum(rooms[d, nodes], _WORTHLESS)[:, None]
            numpy.maximum(part[:scarcest], of_room[:scarcest], out=part[:scarcest])
            part[scarcest:] += of_room[scarcest:]
        best = numpy.where(fits, prices / numpy.maximum(part, _WORTHLESS), -1.0).argmax(axis=1)
        rooms[:, nodes] -= sizes[:, best]
        taken[nodes, best] += 1


def _pattern(items: Any, taken: Any) -> Pattern:
    found: list[int] = []
    for place in taken.nonzero()[0]:
        found += [int(items[place])] * int(taken[place])
    return tuple(sorted(found))
