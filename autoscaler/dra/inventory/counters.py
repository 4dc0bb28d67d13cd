"""Shared counters: the amount of each counter set that the devices of a partitionable pool may still draw.

Amounts are integers in nano units, the finest that a quantity can hold, so sums are exact and cheap.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import TypeAlias

from instance_catalog.dataclass import dataclass, field
from instance_catalog.kubernetes.quantity import Quantity
from instance_catalog.kubernetes.resource_slice import CounterConsumption, CounterSet

Counter: TypeAlias = tuple[str, str]  # counter set, counter
Draw: TypeAlias = tuple[Counter, int]  # the amount that a device takes of one counter, nano units

_NANO = 9
_MAX_SCALE = 40


def nano(quantity: Quantity) -> int:
    """The value in billionths, exact: no quantity is finer. Exponents end at 10^40."""
    amount: int = quantity.digits * 10 ** (min(quantity.scale, _MAX_SCALE) + _NANO)
    return amount


@lru_cache(maxsize=16384)
def draws_of(consumes: tuple[CounterConsumption, ...]) -> tuple[Draw, ...]:
    """All that a device consumes, one entry per counter mentioned. Nodes of one type have the same hundreds of them."""
    return tuple(
        ((entry.counter_set, name), nano(value)) for entry in consumes for name, value in entry.counters.items()
    )


def declared(sets: Iterable[CounterSet]) -> dict[Counter, int]:
    """The total of each counter of a pool. A duplicate set name raises ValueError."""
    amounts: dict[Counter, int] = {}
    seen: set[str] = set()
    for counter_set in sets:
        if counter_set.name in seen:
            raise ValueError(f"duplicate counter set name {counter_set.name}")
        seen.add(counter_set.name)
        for name, value in counter_set.counters.items():
            amounts[counter_set.name, name] = nano(value)
    return amounts


@dataclass(slots=True)
class CounterTable:
    """The counters behind one table key during one search; `consumed` is the search's own consumption.

    A counter that existing allocations drove below zero blocks every device of the pool that consumes any counter,
    because upstream compares all counters of all sets (checkAvailableCounters, v0.36).
    """

    available: Mapping[Counter, int]
    consumed: dict[Counter, int] = field(default_factory=dict)
    overdrawn: tuple[Counter, ...] = ()

    @staticmethod
    def of(total: Mapping[Counter, int], used: Iterable[tuple[Draw, ...]]) -> CounterTable:
        """The table of a pool that declares `total` and whose allocated devices draw `used`."""
        available = dict(total)
        for draws in used:
            for counter, amount in draws:
                if counter in available:
                    available[counter] -= amount
        overdrawn = tuple(counter for counter, amount in available.items() if amount < 0)
        return CounterTable(available, overdrawn=overdrawn)

    def take(self, draws: tuple[Draw, ...]) -> bool:
        """Draw, if everything then still holds; otherwise change nothing and return False.

        Counters that `draws` does not touch hold already, unless they were overdrawn from the start.
        """
        consumed, available = self.consumed, self.available
        for counter, amount in draws:
            consumed[counter] = consumed.get(counter, 0) + amount
        for counter, _ in draws:
            if counter in available and available[counter] < consumed[counter]:
                self.give_back(draws)
                return False
        for counter in self.overdrawn:
            if available[counter] < consumed.get(counter, 0):
                self.give_back(draws)
                return False
        return True

    def give_back(self, draws: tuple[Draw, ...]) -> None:
        """Undo `take`."""
        for counter, amount in draws:
            self.consumed[counter] -= amount
