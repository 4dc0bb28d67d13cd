"""What was spent today and launched lately: what the spending guards must know over a restart."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal

from instance_catalog.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Spending:
    """The account at `since`: `usd` spent on that day (UTC) up to then, and `usd_per_hour` from then on.

    `recent_launches` counts nodes launched, less those that the allowed rate has let go by `since`. `binding` names the
    guards that kept something from being launched.
    """

    since: datetime
    usd: Decimal = Decimal(0)
    usd_per_hour: Decimal = Decimal(0)
    recent_launches: Decimal = Decimal(0)
    binding: tuple[str, ...] = ()
    binding_since: datetime | None = None  # since when some guard binds, or none does
    resource_version: str = ""
