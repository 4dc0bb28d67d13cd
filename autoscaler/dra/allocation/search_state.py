"""What pruning may look at: the state of a search that decides what can still be found."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from autoscaler.dra.allocation.constraints import State
from autoscaler.dra.allocation.context import AllocationContext
from autoscaler.dra.allocation.requests import ClaimPlan
from autoscaler.dra.inventory.allocated import Consumed
from autoscaler.dra.inventory.counters import CounterTable
from autoscaler.dra.inventory.pools import NodePool, PooledDevice


class SearchState(Protocol):
    """The part of a search's state that decides what can still be found."""

    scene: AllocationContext
    plans: list[ClaimPlan]
    lenient: bool
    busy: list[bool]
    taken: list[int]
    consumed: dict[int, Consumed]
    states: list[list[State]]
    tables: dict[object, CounterTable]

    def held(self) -> Sequence[Sequence[PooledDevice]]:
        """The devices given away so far, per claim."""

    def table(self, pool: NodePool) -> CounterTable:
        """The counters of a pool."""
