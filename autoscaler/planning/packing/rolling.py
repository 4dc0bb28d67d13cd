"""Most nodes of a large packing, by prices: a window moves over the bundles, so that each costs the same however many.

Prices say what each bundle is worth. Of the bundles in the window those leave it that fill a node which is worth nearly
what it costs; the others wait for the bundles that come next. What is left at the end fills no such node.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

from autoscaler.planning.packing.fillings import Fillings
from autoscaler.planning.packing.knapsack import Knapsacks
from autoscaler.planning.packing.problem import Column, State

# Bundles that come into the window together, and how many it may hold before dearer nodes are taken; how many at last.
_TOGETHER: Final = 300
_MOST: Final = 300
_MOST_AT_LAST: Final = 80
# What a node may cost, as a part of what is on it is worth.
_DEAREST: Final = (1.004, 1.008, 1.015)
_DEARER: Final = (1.03, 1.06, 1.1, 1.2)
_SEEDS: Final = 32


def rolling(
    fillings: Fillings[State], knapsacks: Knapsacks, prices: Any, bundles: Sequence[int]
) -> tuple[list[Column], Counter[int]]:
    """Nodes for most of these bundles (items, each as often as it has bundles), and the bundles that are left.

    `prices` is a vector over all items.
    """
    # Imported late: loading numpy costs as much as a small plan.
    import numpy

    left: Any = numpy.zeros(len(prices))
    chosen: list[Column] = []
    for first in range(0, len(bundles), _TOGETHER):
        numpy.add.at(left, numpy.array(bundles[first : first + _TOGETHER]), 1.0)
        most = _MOST if first + _TOGETHER < len(bundles) else _MOST_AT_LAST
        for dearest in (*_DEAREST, *_DEARER):
            if dearest in _DEARER and left.sum() <= most:
                break
            while found := _best(fillings, knapsacks, prices * dearest, left):
                chosen += found
    return chosen, Counter({int(item): int(left[item]) for item in left.nonzero()[0]})


def _best(fillings: Fillings[State], knapsacks: Knapsacks, prices: Any, left: Any) -> list[Column]:
    """Nodes that are worth what they cost, those first that are worth most for it; their bundles are not left."""
    proposed = [
        (-worth / knapsack.usd_per_hour, knapsack.kind, pattern)
        for knapsack in knapsacks.worthwhile(prices, left)
        for worth, pattern in knapsack.proposals(prices, left, seeds=_SEEDS)
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
    return chosen
