"""Caches that plans of one cluster share from one reconcile to the next, because few objects change in between.

A plan is the same without them, unless the work budget ends it: with cached answers the budget lasts longer. A restart
empties them.
"""

from __future__ import annotations

from autoscaler.planning.packing.kept_solutions import KeptSolutions
from autoscaler.planning.placement.kept_verdicts import KeptVerdicts
from autoscaler.scheduling.world import WorldMemory
from instance_catalog.dataclass import dataclass, field


@dataclass(frozen=True, slots=True)
class PlanMemory:
    """The caches of one series of plans, which one thread makes one after the other."""

    world: WorldMemory = field(default_factory=WorldMemory)
    verdicts: KeptVerdicts = field(default_factory=KeptVerdicts)
    solutions: KeptSolutions = field(default_factory=KeptSolutions)  # of plans that explain nothing
