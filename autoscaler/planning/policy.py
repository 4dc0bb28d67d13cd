"""What the planner may do and how hard it may think. Every setting has a unit, a default and the reason for it.

It must not know where settings come from: settings.py reads files and flags and makes a Policy.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from decimal import Decimal

from autoscaler.planning.packing.problem import Budget


@dataclass(frozen=True, slots=True)
class WorkLimits:
    """How much work a round may spend on selectors and searches, in units of CEL's cost: some five million a second."""

    per_round: int = 10_000_000
    """For looking at nodes and for usual selectors, in equal shares for namespaces and for the kinds of pods in each.
    Thousands of different pods that fit nowhere then delay others by about two seconds."""

    selectors_per_round: int = 3_000_000
    """For expensive selectors and searches, in equal shares for namespaces. Kubernetes lets a selector cost a million
    for each device; with this, 20 such pods delay others by less than a second."""

    per_pod: int = 1_500_000
    """For one pod and its equals: half of selectorsPerRound, so that one of them cannot take all there is."""

    hints_per_round: int = 1_000_000
    """For telling which type would fit if a pool admitted it. No decision depends on it."""

    def times(self, factor: int) -> WorkLimits:
        """All bounds, so many times as high."""
        return WorkLimits(**{bound.name: getattr(self, bound.name) * factor for bound in fields(self)})


@dataclass(frozen=True, slots=True)
class Policy:
    """Settings of plan_for."""

    max_usd_per_hour: Decimal | None = None
    """$/h of all nodes of ours, existing and new. None: only the pools' own limits count."""

    max_usd_per_day: Decimal | None = None
    """$ of all nodes of ours on one day (UTC): nothing is launched that would exceed it by midnight. None: no bound."""

    max_launches_per_hour: int | None = None
    """Nodes launched per hour, with a burst of as many. None: no bound. A bound stops whatever launches in circles."""

    buy_unpriced: bool = False
    """Whether types without a price may be bought, counted as 0 $/h. False: an unknown price is an unknown risk."""

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

    near_misses: int = 5
    """Nearest failed conditions listed per pod that is left out. People read the first few."""
