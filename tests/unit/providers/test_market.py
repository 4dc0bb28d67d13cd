"""The price of an offer per machine and hour is what offers are compared by."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal

from providers.market import CapacityMarket, CapacityOffer

START = datetime(2027, 1, 4, 11, 30, tzinfo=UTC)


def test_the_fee_is_spread_over_machines_and_hours() -> None:
    offer = CapacityOffer("cb-1", "p5.48xlarge", "us-east-1a", 4, START, START + timedelta(hours=48), Decimal("7680"))
    assert offer.hours == 48
    assert offer.price_per_instance_hour == 40


def test_the_market_is_optional() -> None:
    assert not isinstance(object(), CapacityMarket)
