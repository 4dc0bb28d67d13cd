"""The account of the spending guards follows from the time until something changes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from autoscaler.kube.custom.spending import parse_spending, write_spending
from autoscaler.lifecycle.spending import hours_left_today, moved_on, price_of, recent_launches, spent_today
from autoscaler.model.provisioned_node import OfferingRef, Phase
from autoscaler.model.spending import Spending
from instance_catalog.dataclass import replace
from instance_catalog.types.instance_type import CapacityType
from tests.builders import ours

MORNING = datetime(2026, 11, 21, 8, 0, tzinfo=UTC)
ACCOUNT = Spending(MORNING, usd=Decimal(100), usd_per_hour=Decimal(12), recent_launches=Decimal(6))


@pytest.mark.parametrize(
    ("later", "spent"),
    [
        pytest.param(timedelta(0), 100, id="at-once"),
        pytest.param(timedelta(minutes=30), 106, id="half-an-hour"),
        pytest.param(timedelta(hours=16), 0, id="midnight-begins-a-new-day"),
        pytest.param(timedelta(hours=20), 48, id="the-next-day"),
        pytest.param(timedelta(minutes=-5), 100, id="the-clock-went-back"),
    ],
)
def test_what_was_spent_today(later: timedelta, spent: int) -> None:
    assert spent_today(ACCOUNT, MORNING + later) == spent


def test_nothing_was_spent_before_the_first_launch() -> None:
    assert (spent_today(None, MORNING), recent_launches(None, 5, MORNING)) == (0, 0)


def test_the_last_hour_of_a_day_counts_as_a_whole_one() -> None:
    assert hours_left_today(MORNING) == 16
    assert hours_left_today(MORNING.replace(hour=23, minute=50)) == 1


def test_launches_are_let_go_at_the_allowed_rate() -> None:
    assert recent_launches(ACCOUNT, 4, MORNING + timedelta(hours=1)) == 2
    assert recent_launches(ACCOUNT, 4, MORNING + timedelta(hours=5)) == 0


def test_nothing_is_written_while_nothing_happens() -> None:
    assert moved_on(ACCOUNT, MORNING + timedelta(hours=3), usd_per_hour=Decimal(12)) is ACCOUNT


def test_another_price_closes_the_account_so_far() -> None:
    later = MORNING + timedelta(hours=2)
    after = moved_on(ACCOUNT, later, usd_per_hour=Decimal(0))
    assert (after.since, after.usd, after.usd_per_hour) == (later, 124, 0)
    assert spent_today(after, later + timedelta(hours=5)) == 124


def test_launches_are_counted_over_changes_of_the_price() -> None:
    later = MORNING + timedelta(hours=1)
    after = moved_on(ACCOUNT, later, usd_per_hour=Decimal(12), launched=3, launches_per_hour=4)
    assert after.recent_launches == 5


def test_since_when_a_guard_binds() -> None:
    bound = moved_on(ACCOUNT, MORNING, usd_per_hour=Decimal(12), binding=("maxUsdPerDay",))
    later = moved_on(bound, MORNING + timedelta(hours=1), usd_per_hour=Decimal(13), binding=("maxUsdPerDay",))
    assert (bound.binding_since, later.binding_since) == (MORNING, MORNING)
    free = moved_on(later, MORNING + timedelta(hours=2), usd_per_hour=Decimal(13))
    assert free.binding_since == MORNING + timedelta(hours=2)


@pytest.mark.parametrize(
    ("phase", "provider_id", "paid"),
    [
        pytest.param(Phase.LAUNCHED, "i-1", True, id="boots"),
        pytest.param(Phase.READY, "i-1", True, id="ready"),
        pytest.param(Phase.DRAINING, "i-1", True, id="drains"),
        pytest.param(Phase.FAILED, "i-1", True, id="failed, and its machine is there"),
        pytest.param(Phase.LAUNCHING, "", False, id="no machine yet"),
        pytest.param(Phase.GONE, "i-1", False, id="gone"),
    ],
)
def test_every_machine_is_paid_for_as_long_as_it_may_be_there(phase: Phase, provider_id: str, paid: bool) -> None:
    offering = OfferingRef("p5.48xlarge", "us-east-1a", CapacityType.ON_DEMAND, Decimal("55.04"))
    node = ours("n", offering=offering, phase=phase, provider_id=provider_id)
    prepaid = replace(node, offerings=(replace(offering, usd_per_hour=Decimal(0)),))
    assert price_of((node, prepaid)) == (Decimal("55.04") if paid else 0)


def test_the_account_survives_as_an_object() -> None:
    account = replace(ACCOUNT, binding=("maxUsdPerDay",), binding_since=MORNING, resource_version="7")
    assert parse_spending(write_spending(account)) == account
    assert parse_spending({"metadata": {"name": "cluster"}}) is None
