"""Defines which of two plans is better, as one comparable value.

The planner, the optimizer, its fall-backs and the brute-force tests compare plans only with this class. A score is a
sum over the decisions of a plan (a node bought, a bundle left out), and the order is lexicographic. So adding the same
decision to two plans never changes their order, and the optimizer may keep only the best way to cover each part of the
demand. This module does not know nodes and pods.
"""

from __future__ import annotations

from decimal import Decimal

from instance_catalog.dataclass import dataclass


@dataclass(frozen=True, slots=True, order=True)
class Score:
    """Smaller is better; earlier fields have precedence.

    `left_out`: pods left out, one number per priority, highest priority first. `preference`: sum of the chosen
    firstAvailable indexes. `capacity`: pods on each capacity type of the pool's list, the least preferred type first
    (the most preferred one costs nothing and is not listed); it counts pods and not nodes, so that one big on-demand
    node never looks better than reserved capacity. `usd_per_hour`: the price of the new nodes, prepaid ones 0.
    `disruption`: pods on capacity that may be interrupted (spot, or a block that may end before them). `fragmentation`:
    free devices of the new nodes (devices that share counters count once per counter set), minus free fixed partitions:
    free partitions are room, and a layout that leaves fewer of them has wasted it. `weight`: minus the weights of the
    nodes' pools. `order`: sum of the candidates' places in their stable order.
    """

    left_out: tuple[int, ...] = ()
    preference: int = 0
    capacity: tuple[int, ...] = ()
    usd_per_hour: Decimal = Decimal(0)
    disruption: int = 0
    nodes: int = 0
    fragmentation: int = 0
    weight: int = 0
    order: int = 0

    @staticmethod
    def zero(*, priorities: int, ranks: int) -> Score:
        """The score of buying nothing and leaving out nobody; `ranks` is the number of capacity types of the longest
        pool list."""
        return Score(left_out=(0,) * priorities, capacity=(0,) * max(0, ranks - 1))

    def __add__(self, other: Score) -> Score:
        return Score(
            _sum(self.left_out, other.left_out),
            self.preference + other.preference,
            _sum(self.capacity, other.capacity),
            self.usd_per_hour + other.usd_per_hour,
            self.disruption + other.disruption,
            self.nodes + other.nodes,
            self.fragmentation + other.fragmentation,
            self.weight + other.weight,
            self.order + other.order,
        )


def _sum(left: tuple[int, ...], right: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(a + b for a, b in zip(left, right, strict=True))


def left_out(pods: int, *, level: int, zero: Score) -> Score:
    """The score of leaving out `pods` pods of priority level `level` (0 is the highest)."""
    return Score(tuple(pods if i == level else 0 for i in range(len(zero.left_out))), capacity=zero.capacity)


def on_rank(pods: int, *, rank: int, zero: Score) -> tuple[int, ...]:
    """The `capacity` part for `pods` pods on the pool's capacity type number `rank` (0 is the most preferred)."""
    ranks = len(zero.capacity)
    if not ranks:  # most lists have one type, and this runs for every filled node
        return ()
    return tuple(pods if ranks - i == rank else 0 for i in range(ranks))
