"""The price of an offer per machine and hour is what offers are compared by."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from providers.market import CapacityMarket, CapacityOffer, CapacitySegment

START = datetime(2027, 1, 4, 11, 30, tzinfo=UTC)


def test_the_fee_is_spread_over_machines_and_hours() -> None:
    offer = CapacityOffer("cb-1", "p5.48xlarge", "us-east-1a", 4, START, START + timedelta(hours=48), Decimal("7680"))
    assert offer.hours == 48
    assert offer.price_per_instance_hour == 40


@pytest.mark.parametrize(
    ("segments", "ultraserver", "expected"),
    [
        pytest.param([(2, 0, 24), (6, 24, 48)], "", 40, id="two sizes"),
        pytest.param([(4, 0, 24), (4, 72, 96)], "", 40, id="a gap in between"),
        pytest.param([(18, 0, 24)], "u-p6e-gb200x72", Decimal(7680) / (18 * 24), id="a rack"),
        pytest.param([], "u-p6e-gb200x72", None, id="a rack of unknown size"),
    ],
)
def test_what_an_offer_consists_of_counts(
    segments: list[tuple[int, int, int]], ultraserver: str, expected: Decimal | None
) -> None:
    parts = tuple(
        CapacitySegment(
            "p5.48xlarge", "us-east-1a", count, START + timedelta(hours=start), START + timedelta(hours=end)
        )
        for count, start, end in segments
    )
    end = START + timedelta(hours=96)
    offer = CapacityOffer(
        "cb-1", "", "us-east-1a", 1, START, end, Decimal("7680"), ultraserver=ultraserver, segments=parts
    )
    assert offer.price_per_instance_hour == expected


def test_the_market_is_optional() -> None:
    assert not isinstance(object(), CapacityMarket)
