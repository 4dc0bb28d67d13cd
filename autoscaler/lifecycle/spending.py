"""The account of the spending guards: the used part of today's money and of the launch rate.

Pure. The account changes only when the price per hour changes or something is launched; in between its state follows
from the time, so nothing is written. A day is a day in UTC.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Final

from autoscaler.lifecycle.provisioned_node import has_machine
from autoscaler.model.provisioned_node import ProvisionedNode
from autoscaler.model.spending import Spending
from instance_catalog.dataclass import replace

_HOUR: Final = timedelta(hours=1)
_CENT_OF_A_CENT: Final = Decimal("0.0001")


def spent_today(account: Spending | None, now: datetime) -> Decimal:
    """Dollars since midnight UTC."""
    if account is None:
        return Decimal(0)
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    if account.since >= midnight:
        return account.usd + account.usd_per_hour * hours(now - account.since)
    return account.usd_per_hour * hours(now - midnight)


def hours_left_today(now: datetime) -> Decimal:
    """The hours until midnight UTC, at least one: a launch a minute before midnight is paid for longer than that."""
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1)
    return max(hours(midnight - now), Decimal(1))


def recent_launches(account: Spending | None, per_hour: int, now: datetime) -> Decimal:
    """Launches that still count: each hour removes `per_hour` of them."""
    if account is None:
        return Decimal(0)
    return max(account.recent_launches - per_hour * hours(now - account.since), Decimal(0))


def price_of(nodes: Iterable[ProvisionedNode]) -> Decimal:
    """Dollars per hour of the nodes that have a machine; prepaid ones cost nothing more."""
    paid = (node for node in nodes if has_machine(node))
    return sum((node.offering.usd_per_hour or Decimal(0) for node in paid), Decimal(0))


def moved_on(
    account: Spending | None,
    now: datetime,
    *,
    usd_per_hour: Decimal,
    launched: int = 0,
    launches_per_hour: int | None = None,
    binding: tuple[str, ...] = (),
) -> Spending:
    """The account at `now`; the same one if price, launches and binding guards are unchanged.

    An account of the future, after a clock was set back, begins again now: otherwise neither money nor launches would
    count until then.
    """
    before = account or Spending(now, binding_since=now)
    same = account is not None and (account.usd_per_hour, account.binding) == (usd_per_hour, binding)
    if account is not None and same and not launched and account.since <= now:
        return account
    recent = recent_launches(account, launches_per_hour, now) if launches_per_hour is not None else Decimal(0)
    return replace(
        before,
        since=now,
        usd=spent_today(account, now).quantize(_CENT_OF_A_CENT),
        usd_per_hour=usd_per_hour,
        recent_launches=(recent + launched).quantize(_CENT_OF_A_CENT),
        binding=binding,
        binding_since=before.binding_since if bool(before.binding) == bool(binding) else now,
    )


def given_back(account: Spending, launches: int) -> Spending:
    """The account without launches that it counts and that were certainly not begun."""
    return replace(account, recent_launches=max(account.recent_launches - launches, Decimal(0)))


def hours(span: timedelta) -> Decimal:
    """A time span in hours, never negative: the clock of another replica may have been ahead."""
    return max(Decimal(span // timedelta(microseconds=1)) / Decimal(_HOUR // timedelta(microseconds=1)), Decimal(0))
