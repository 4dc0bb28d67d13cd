"""What pruning may look at: the state of a search that decides what can still be found."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from autoscaler.dra.allocated import Consumed
from autoscaler.dra.constraints import State
from autoscaler.dra.counters import CounterTable
from autoscaler.dra.pools import NodePool, PooledDevice
from autoscaler.dra.requests import ClaimPlan
from autoscaler.dra.scene import Scene


class Position(Protocol):
    """The part of a search's state that decides what can still be found."""

    scene: Scene
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
