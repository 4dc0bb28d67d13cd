"""The spending of today and the recent launches: the state of the spending guards that must survive a restart."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal

from instance_catalog.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Spending:
    """The account at `since`: `usd` spent on that day (UTC) up to then, and `usd_per_hour` from then on.

    `recent_launches` counts nodes launched, less those that the allowed rate has balanced by `since`. `binding` names
    the guards that blocked a launch.
    """

    since: datetime
    usd: Decimal = Decimal(0)
    usd_per_hour: Decimal = Decimal(0)
    recent_launches: Decimal = Decimal(0)
    binding: tuple[str, ...] = ()
    binding_since: datetime | None = None  # since when a guard blocks launches, or none does
    resource_version: str = ""
