"""Packs most nodes of a large problem by prices: a window moves over the bundles, so the work per bundle is constant.

Each bundle has a price. Bundles that fill a node which is worth nearly its price leave the window with this node; the
others stay for the next bundles. The bundles left at the end fill no such node.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Sequence
from typing import Any, Final

from autoscaler.planning.packing.fillings import Fillings
from autoscaler.planning.packing.knapsack import Knapsacks
from autoscaler.planning.packing.problem import Column, State

# The bundles added to the window at a time; its size above which more expensive nodes are used; its size at the end.
_TOGETHER: Final = 300
_MOST: Final = 300
_MOST_AT_LAST: Final = 80
# The price of a node, as a fraction of the value of its bundles.
_DEAREST: Final = (1.004, 1.008, 1.015)
_DEARER: Final = (1.03, 1.06, 1.1, 1.2)
_SEEDS: Final = 32


def rolling(
    fillings: Fillings[State], knapsacks: Knapsacks, prices: Any, bundles: Sequence[int]
) -> tuple[list[Column], Counter[int]]:
    """Nodes for most of these bundles (items, one entry per bundle), and the bundles that are left.

    `prices` is a vector over all items.
    """
    # Imported late: loading numpy takes as long as a small plan.
    import numpy

    left: Any = numpy.zeros(len(prices))
    chosen: list[Column] = []
    for first in range(0, len(bundles), _TOGETHER):
        numpy.add.at(left, numpy.array(bundles[first : first + _TOGETHER]), 1.0)
        most = _MOST if first + _TOGETHER < len(bundles) else _MOST_AT_LAST
        for dearest in (*_DEAREST, *_DEARER):
            if dearest in _DEARER and left.sum() <= most:
                break
            among: Container[int] | None = None
            while True:
                found, among = _best(fillings, knapsacks, prices * dearest, left, among)
                if not found:
                    break
                chosen += found
    return chosen, Counter({int(item): int(left[item]) for item in left.nonzero()[0]})


def _best(
    fillings: Fillings[State], knapsacks: Knapsacks, prices: Any, left: Any, among: Container[int] | None
) -> tuple[list[Column], Container[int]]:
    """Nodes that are worth their price, in order of value per price; their bundles leave `left`.

    `among` are the kinds to try. A kind that has no such node has none with fewer bundles either: the second value is
    the kinds that have such nodes now.
    """
    proposed = [
        (-worth / knapsack.usd_per_hour, knapsack.kind, pattern)
        for knapsack, found in knapsacks.proposals(prices, left, seeds=_SEEDS, among=among)
        for worth, pattern in found
    ]
    chosen: list[Column] = []
    for _, kind, pattern in sorted(proposed):
        if any(left[item] < count for item, count in Counter(pattern).items()):
            continue
        column = fillings.column(kind, pattern)
        if column is not None:
            chosen.append(column)
            for item in pattern:
                left[item] -= 1
    return chosen, {kind for _, kind, _ in proposed}
