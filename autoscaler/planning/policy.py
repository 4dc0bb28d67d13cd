"""The settings of the planner: what it may buy, and how much work it may do. Each has a unit, a default and a reason.

This module does not know where settings come from: autoscaler/settings creates a Policy from the operator's limits and
guards, and documents them.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Final

from autoscaler.planning.packing.problem import Budget
from instance_catalog.dataclass import dataclass, field, fields, replace
from instance_catalog.types.instance_type import CapacityType

# A move saves at least 15 % of what its nodes cost, by default, so a plan this close to its lower bound shows enough. A
# longer search finds little more, and takes most of the time of tries.
_NEAR_ENOUGH_FOR_MOVES: Final = Decimal("1.02")
_NEIGHBOURHOODS_FOR_MOVES: Final = 12


@dataclass(frozen=True, slots=True)
class WorkLimits:
    """The limits of work for selectors and searches in a plan, in units of CEL's cost (about five million per
    second)."""

    per_round: int = 10_000_000  # for checks of nodes and ordinary selectors
    selectors_per_round: int = 3_000_000  # for expensive selectors and searches
    per_pod: int = 1_500_000  # for one pod and equal pods
    hints_per_round: int = 1_000_000  # to find a type outside the pools that would fit

    def times(self, factor: int) -> WorkLimits:
        """All limits, multiplied by the factor."""
        return WorkLimits(**{bound.name: getattr(self, bound.name) * factor for bound in fields(self)})


@dataclass(frozen=True, slots=True)
class Where:
    """Restrictions of where and how a plan may buy, in addition to those of pools. Empty: only those of pools.

    `capacity_types`, in order of preference, replace those of the pools.
    """

    clouds: tuple[str, ...] = ()
    regions: tuple[str, ...] = ()
    capacity_types: tuple[CapacityType, ...] = ()


@dataclass(frozen=True, slots=True)
class Policy:
    """Settings of plan_for."""

    max_usd_per_hour: Decimal | None = None  # of all nodes, existing and new
    max_usd_per_day: Decimal | None = None  # of all nodes on one day (UTC)
    max_launches_per_hour: int | None = None  # with a burst of the same number
    buy_unpriced: bool = False  # counted as 0 $/h
    where: Where = Where()  # from the command line; the controller has no such restriction

    budget: Budget = field(default_factory=Budget)
    """Steps of the optimizer. The defaults plan 200 pods over the whole catalog in about a second."""

    work: WorkLimits = field(default_factory=WorkLimits)
    """Bounds for expressions and searches. What exceeds them is unknown for the pod that asks, and for no other."""

    alternates: int = 4
    """Further offerings listed per planned node for the launcher to fall back to. More would rarely be reached."""

    considered: int = 300
    """Offerings listed per demand. Covers the shipped catalog's types; each costs a line in the JSON."""

    shown_fits: int = 8
    """Offerings that fit per demand looked for just to be shown beside the choice. A screen has a few lines."""

    explains: bool = True
    """Whether to find out why pods are left out. Plans that only try a change need the answer, not the reasons."""

    near_misses: int = 5
    """Nearest failed conditions listed per pod that is left out. People read the first few."""

    def for_moves(self) -> Policy:
        """The same for plans that show whether a move of running pods saves enough, with a shorter search."""
        budget = replace(self.budget, near_enough=_NEAR_ENOUGH_FOR_MOVES, neighbourhoods=_NEIGHBOURHOODS_FOR_MOVES)
        return replace(self.only_answers(), budget=budget)

    def only_answers(self) -> Policy:
        """The same for plans that only try something: nobody reads their explanations, or launches an alternative."""
        return replace(self, alternates=0, considered=0, shown_fits=0, explains=False)
