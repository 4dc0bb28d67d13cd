"""What plans of one cluster keep from one to the next: few objects change between two reconciles.

Nothing in it decides anything: the plan is the same without it, unless the work budget ends it, which reaches further
when less has to be asked. A restart loses it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from autoscaler.planning.placement.kept_verdicts import KeptVerdicts
from autoscaler.scheduling.world import WorldMemory


@dataclass(frozen=True, slots=True)
class PlanMemory:
    """It belongs to one series of plans, made one after the other by one thread."""

    world: WorldMemory = field(default_factory=WorldMemory)
    verdicts: KeptVerdicts = field(default_factory=KeptVerdicts)
