"""Proposed nodes: what is worth most together on one node, by sizes and rooms alone.

A heuristic for many small knapsacks at once, in vectors: a node begins with each of the most valuable bundles in turn
and is filled with what is worth most for the part of the remaining room that it takes. Sizes are whole numbers below
2**53, which floats hold exactly.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from autoscaler.planning.packing.problem import Pattern, Problem
from autoscaler.planning.packing.relaxation import Relaxation

_WORTHLESS: Final = 1e-9
_WORTH: Final = 1 + 1e-6
# A dimension without a bound.
_ENDLESS: Final = float(2**53)


@dataclass(frozen=True, slots=True, eq=False)
class Knapsack:
    """A kind with the items that it takes: `sizes` has a row for each of them, `room` a number for each dimension."""

    kind: int
    usd_per_hour: float
    items: Any
    sizes: Any
    room: Any

    @staticmethod
    def of(problem: Problem, relaxation: Relaxation) -> list[Knapsack]:
        """One for each kind that costs something."""
        # Imported late: loading numpy costs as much as a small plan.
        import numpy

        dimensions = list(dict.fromkeys(d for group in relaxation.groups for d in group.sizes))
        found: list[Knapsack] = []
        for kind in relaxation.kinds:
            price, rooms = problem.kinds[kind].usd_per_hour, relaxation.rooms[problem.kinds[kind].shape]
            taken = [(item, group.sizes) for group in relaxation.groups if kind in group.kinds for item in group.items]
            if not price:
                continue
            sizes = numpy.array([[float(size.get(d, 0)) for d in dimensions] for _, size in taken])
            room = numpy.array([float(rooms.get(d, _ENDLESS)) for d in dimensions])
            found.append(Knapsack(kind, float(price), numpy.array([item for item, _ in taken]), sizes, room))
        return found

    def proposals(self, prices: Any, left: Any, *, seeds: int) -> list[tuple[float, Pattern]]:
        """What is worth more than the node costs, best first; `prices` and `left` (how many there are) are by item."""
        import numpy

        wanted = numpy.nonzero((prices[self.items] > _WORTHLESS) & (left[self.items] > 0))[0]
        if not len(wanted):
            return []
        items, sizes = self.items[wanted], self.sizes[wanted]
        prices, left = prices[items], left[items]
        shares = sizes / numpy.maximum(self.room, 1.0)
        with numpy.errstate(divide="ignore"):
            rates = prices[:, None] / shares
        # A full node is worth at most what its room is worth in any one dimension.
        if rates.max(axis=0).min() <= self.usd_per_hour * _WORTH:
            return []
        parts = numpy.maximum(shares.max(axis=1), _WORTHLESS)
        by_part, by_price = numpy.argsort(-prices / parts, kind="stable"), numpy.argsort(-prices, kind="stable")
        first = numpy.unique(numpy.concatenate([by_part[: seeds // 2], by_price[: seeds // 2]]))
        found: set[tuple[float, Pattern]] = set()
        for largest in (True, False):
            taken = _filled(sizes, self.room, prices, left, first, largest=largest)
            worth = taken @ prices
            for row in numpy.nonzero(worth > self.usd_per_hour * _WORTH)[0]:
                found.add((float(worth[row]), _pattern(items, taken[row])))
        return sorted(found, key=lambda entry: (-entry[0], entry[1]))


def _filled(sizes: Any, room: Any, prices: Any, left: Any, first: Any, *, largest: bool) -> Any:
    """How many bundles of each item are on the nodes that begin with `first`.

    The part of the remaining room that a bundle takes is that of its scarcest dimension, or the sum of all.
    """
    import numpy

    nodes = numpy.arange(len(first))
    rooms = room[None, :] - sizes[first]
    taken = numpy.zeros((len(first), len(prices)))
    taken[nodes, first] = 1
    while True:
        fits = (sizes[None, :, :] <= rooms[:, None, :]).all(axis=2) & (taken < left[None, :])
        open_nodes = fits.any(axis=1)
        if not open_nodes.any():
            return taken
        parts = sizes[None, :, :] / numpy.maximum(rooms, _WORTHLESS)[:, None, :]
        part = parts.max(axis=2) if largest else parts.sum(axis=2)
        rate = numpy.where(fits, prices[None, :] / numpy.maximum(part, _WORTHLESS), -1.0)
        best, rows = rate.argmax(axis=1)[open_nodes], nodes[open_nodes]
        rooms[rows] -= sizes[best]
        taken[rows, best] += 1


def _pattern(items: Any, taken: Any) -> Pattern:
    found: list[int] = []
    for place in taken.nonzero()[0]:
        found += [int(items[place])] * int(taken[place])
    return tuple(sorted(found))
