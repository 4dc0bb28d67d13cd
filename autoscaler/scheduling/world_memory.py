"""What Worlds of one cluster keep from one to the next."""

from __future__ import annotations

from dataclasses import dataclass, field

from autoscaler.dra.inventory.devices import SliceMemory
from autoscaler.dra.inventory.kept_use import UseMemory
from autoscaler.scheduling.node_state import StateMemory


@dataclass(frozen=True, slots=True)
class WorldMemory:
    """The slices, nodes and devices in use of the snapshot before. It belongs to one series of plans, made in turn."""

    slices: SliceMemory = field(default_factory=SliceMemory)
    states: StateMemory = field(default_factory=StateMemory)
    use: UseMemory = field(default_factory=UseMemory)
