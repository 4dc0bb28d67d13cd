"""What the planner may do and how hard it may think. Every setting has a unit, a default and the reason for it.

It must not know where settings come from: settings.py reads files and flags and makes a Policy.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal

from autoscaler.planning.packing.problem import Budget


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

    alternates: int = 4
    """Further offerings listed per planned node for the launcher to fall back to. More would rarely be reached."""

    considered: int = 300
    """Offerings listed per demand. Covers the shipped catalog's types; each costs a line in the JSON."""

    shown_fits: int = 8
    """Offerings that fit per demand looked for just to be shown beside the choice. A screen has a few lines."""

    near_misses: int = 5
    """Nearest failed conditions listed per pod that is left out. People read the first few."""
