"""Providers' current prices, as a layer of the catalog: above listings, below entries from nodes and users.

Pure. Only prices of types that a catalog has and that are sold are used; other types must come from a listing first.
"""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from typing import Any, Final

from instance_catalog.dataclass import dataclass
from instance_catalog.files.last_good import EffectiveCatalog
from instance_catalog.files.layers import Corrections, Layer, content_layer
from instance_catalog.files.merging import catalog_of
from instance_catalog.types.catalog import Catalog
from instance_catalog.types.clouds import region_of
from instance_catalog.types.instance_type import ANY_ZONE, CapacityType

# Between the values of a sync (-20) and those of nodes (-10).
PRIORITY: Final = -15


@dataclass(frozen=True, slots=True)
class Quote:
    """A price in US dollars per machine and hour on `date` (ISO), in `zone`, or in every zone of `region`."""

    instance_type: str
    zone: str
    capacity_type: CapacityType
    usd_per_hour: Decimal
    region: str
    date: str


@dataclass(frozen=True, slots=True)
class Priced:
    """The effective catalog with the prices that are quoted now."""

    effective: EffectiveCatalog
    quotes: tuple[Quote, ...]
    catalog: Catalog


def priced(effective: EffectiveCatalog, quotes: tuple[Quote, ...], *, before: Priced | None = None) -> Priced:
    """The effective catalog with these quotes; `before`, if nothing has changed."""
    if before is not None and before.effective is effective and before.quotes == quotes:
        return before
    if not quotes:
        return Priced(effective, quotes, effective.catalog)
    return Priced(effective, quotes, catalog_of((*effective.layers, quoted_layer(quotes, effective.catalog))))


def quoted_layer(quotes: Iterable[Quote], catalog: Catalog) -> Layer:
    """The prices among `quotes` that are for a type of `catalog`, and for a capacity type in which it is sold."""
    types: dict[str, dict[str, Any]] = {}
    for quote in quotes:
        known = catalog.types.get(quote.instance_type)
        if known is None or quote.capacity_type not in known.capacity_types:
            continue
        entry = types.setdefault(known.name, {"name": known.name, "prices": {}, "zonePrices": {}})
        everywhere = quote.zone == ANY_ZONE
        prices = entry["prices"] if everywhere else entry["zonePrices"].setdefault(quote.zone, {})
        prices[quote.capacity_type.value] = {
            "usdPerHour": f"{quote.usd_per_hour:f}",
            "region": quote.region if everywhere else region_of(quote.zone),
            "date": quote.date,
        }
    content = {"priority": PRIORITY, "reason": "quoted by the provider", "types": list(types.values())}
    return content_layer(Corrections("prices of providers", 1, content))
