"""What providers quote: over listings, below people, and only for what the catalog sells."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

import pytest

from instance_catalog.dataclass import replace
from instance_catalog.files.last_good import EffectiveCatalog, effective_catalog
from instance_catalog.files.layers import Layer, text_layer
from instance_catalog.files.loader import shipped_layers
from instance_catalog.files.quotes import Priced, Quote, priced
from instance_catalog.types.instance_type import ANY_ZONE, CapacityType

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
LIST = Quote("p5.48xlarge", ANY_ZONE, CapacityType.ON_DEMAND, Decimal("38.5"), region="us-east-1", date="2026-11-21")
SPOT = Quote("p5.48xlarge", "us-east-1a", CapacityType.SPOT, Decimal("20.25"), region="aws", date="2026-11-21")
SYNCED = """
priority: -20
types:
  - name: p5.48xlarge
    zonePrices:
      us-east-1: {on-demand: {usdPerHour: 55, region: us-east-1, date: 2026-11-20}}
      eu-north-1: {on-demand: {usdPerHour: 60, region: eu-north-1, date: 2026-11-20}}
"""
CONTRACT = """
types:
  - {name: p5.48xlarge, prices: {on-demand: {usdPerHour: 31, region: us-east-1, date: 2026-11-01}}}
"""


@pytest.fixture(scope="module")
def shipped() -> tuple[Layer, ...]:
    return shipped_layers()


def standing_with(shipped: tuple[Layer, ...], *texts: str) -> EffectiveCatalog:
    layers = [text_layer(f"file {index}", f"directory {index}", text) for index, text in enumerate(texts)]
    return effective_catalog((*shipped, *layers), now=NOW)


def dollars(found: Priced, zone: str, capacity_type: CapacityType = CapacityType.ON_DEMAND) -> str | None:
    price = found.catalog.get("p5.48xlarge").price_in(zone, capacity_type)
    return None if price is None else str(price.usd_per_hour)


@pytest.mark.parametrize(
    ("texts", "quotes", "zone", "expected"),
    [
        pytest.param([], (), ANY_ZONE, "55.04", id="nothing is quoted"),
        pytest.param([], (LIST,), ANY_ZONE, "38.5", id="over what is shipped"),
        pytest.param([SYNCED], (LIST,), "us-east-1a", "38.5", id="over a listing of its region"),
        pytest.param([SYNCED], (LIST,), "eu-north-1a", "60", id="not over a listing of another region"),
        pytest.param([CONTRACT], (LIST,), "us-east-1a", "31", id="below what people say"),
        pytest.param([SYNCED, CONTRACT], (), "us-east-1a", "31", id="and what people say is over a listing"),
        pytest.param([SYNCED, CONTRACT], (), "eu-north-1a", "60", id="but for the region they speak of"),
    ],
)
def test_the_price_that_counts(
    shipped: tuple[Layer, ...], texts: list[str], quotes: tuple[Quote, ...], zone: str, expected: str
) -> None:
    assert dollars(priced(standing_with(shipped, *texts), quotes), zone) == expected


def test_a_spot_price_is_that_of_its_zone(shipped: tuple[Layer, ...]) -> None:
    found = priced(standing_with(shipped), (SPOT,))
    assert dollars(found, "us-east-1a", CapacityType.SPOT) == "20.25"
    assert dollars(found, "us-east-1b", CapacityType.SPOT) is None
    (price,) = found.catalog.get("p5.48xlarge").zone_prices["us-east-1a"].values()
    assert (price.region, price.date) == ("us-east-1", "2026-11-21")


@pytest.mark.parametrize(
    "quote",
    [
        pytest.param(replace(LIST, instance_type="p99.large"), id="a type that the catalog does not have"),
        pytest.param(replace(SPOT, instance_type="dl1.24xlarge"), id="a capacity type in which it is not sold"),
    ],
)
def test_nothing_is_learned_of_what_is_not_sold(shipped: tuple[Layer, ...], quote: Quote) -> None:
    stands = standing_with(shipped)
    assert CapacityType.SPOT not in stands.catalog.get("dl1.24xlarge").capacity_types
    assert priced(stands, (quote,)).catalog.digest == stands.catalog.digest


def test_nothing_is_merged_again_when_nothing_changed(shipped: tuple[Layer, ...]) -> None:
    stands = standing_with(shipped)
    before = priced(stands, (LIST,))
    assert priced(stands, (LIST,), before=before) is before
    assert priced(stands, (), before=before).catalog is stands.catalog
    tiny = replace(LIST, usd_per_hour=Decimal("1E-7"))
    assert dollars(priced(stands, (tiny,), before=before), ANY_ZONE) == "1E-7"
