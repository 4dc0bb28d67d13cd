"""The spending guards over all pools: what they withhold, and that they say so."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

import pytest

from autoscaler.model.reason import Code
from autoscaler.model.snapshot import Snapshot
from autoscaler.model.spending import Spending
from autoscaler.planning.policy import Policy
from autoscaler.planning.supply.limits import binding_guards
from tests.builders import NOW, gpus, pairs, plan, snapshot, types

# s1 costs 1 $/h; NOW is eight in the morning, so sixteen hours are left.
POOR = Policy(max_usd_per_day=Decimal(32))


def asking(count: int, account: Spending | None = None) -> Snapshot:
    return snapshot(*pairs(count, gpus(1, product="Small S1")), spending=account)


@pytest.mark.parametrize(
    ("account", "bought"),
    [
        pytest.param(None, 2, id="nothing-spent"),
        pytest.param(Spending(NOW, usd=Decimal(16)), 1, id="half-of-it-spent"),
        pytest.param(Spending(NOW, usd=Decimal(33)), 0, id="all-of-it-spent"),
        pytest.param(Spending(NOW - timedelta(hours=9), usd=Decimal(99)), 2, id="that-was-yesterday"),
    ],
)
def test_what_would_exceed_the_days_money_by_midnight_is_withheld(account: Spending | None, bought: int) -> None:
    result = plan(asking(2, account), policy=POOR)
    assert types(result) == ["s1"] * bought
    assert binding_guards(result) == (() if bought == 2 else ("maxUsdPerDay",))


def test_the_rate_of_launches_is_bounded() -> None:
    policy = Policy(max_launches_per_hour=3)
    used = Spending(NOW - timedelta(minutes=20), recent_launches=Decimal(3))
    result = plan(asking(5, used), policy=policy)
    assert types(result) == ["s4"]
    assert binding_guards(result) == ("maxLaunchesPerHour",)
    (left,) = result.left_out
    reason = next(r for r in left.reasons if r.code is Code.SPENDING_GUARD)
    assert dict(reason.detail) == {"guard": "maxLaunchesPerHour", "limit": "3"}
