"""Prices: on-demand from the price list, spot from the history, zero for prepaid capacity; a file overrides them.

No source is right for every account: only its owner knows discounts and savings plans. The overrides come from a YAML
file that names instance types or families. Prices are USD per machine and hour.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import timedelta
from decimal import Decimal, InvalidOperation
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final

import yaml

from instance_catalog.dataclass import dataclass
from instance_catalog.spelling import did_you_mean
from instance_catalog.types.catalog import Catalog
from instance_catalog.types.instance_type import ANY_ZONE, CapacityType, partition_of
from providers.aws.errors import translated
from providers.aws.session import Aws
from providers.contract import Clock, OfferingKey, OfferingStatus
from providers.errors import TemplateError
from providers.ttl_cache import TtlCache

_LIST_LIFETIME: Final = timedelta(hours=12)
_SPOT_LIFETIME: Final = timedelta(minutes=10)
# The price list is read type by type. More than this in one call would make the loop wait for seconds.
_AT_ONCE: Final = 8
_REQUIRED: Final = frozenset({"instanceType", "capacityType"})
_AMOUNTS: Final = ("usdPerHour", "factor")
_KEYS: Final = _REQUIRED | set(_AMOUNTS)


@dataclass(frozen=True, slots=True)
class Override:
    """The price of a type (with "*" of a family, such as p5.*) of a capacity type: USD, or a share of the list
    price."""

    instance_type: str
    capacity_type: CapacityType
    usd_per_hour: Decimal | None = None
    factor: Decimal | None = None

    def applied(self, price: Decimal | None) -> Decimal | None:
        if self.usd_per_hour is not None:
            return self.usd_per_hour
        return price * self.factor if price is not None and self.factor is not None else price


def load_overrides(path: Path) -> tuple[Override, ...]:
    """The overrides of a file:

        prices:
          - {instanceType: p5.48xlarge, capacityType: on-demand, usdPerHour: "38.50"}
          - {instanceType: "g6.*", capacityType: on-demand, factor: "0.72"}

    Raises TemplateError that names the entry and what to write.
    """
    try:
        entries = yaml.safe_load(path.read_text(encoding="utf-8"))["prices"]
        return tuple(_override(index, entry) for index, entry in enumerate(entries))
    except (OSError, yaml.YAMLError, KeyError, TypeError) as error:
        step = 'write a list `prices` of {instanceType, capacityType, usdPerHour: "…" or factor: "…"}'
        raise TemplateError(f"{path}: price overrides cannot be read: {error}", next_step=step) from error


def _override(index: int, entry: Mapping[str, Any]) -> Override:
    if not isinstance(entry, Mapping):
        raise TypeError(f"prices[{index}] is not an object")
    for key in sorted(_REQUIRED - entry.keys()):
        raise TemplateError(f"prices[{index}] lacks {key}", next_step=f"add {key}")
    for key in sorted(map(str, entry.keys() - _KEYS)):
        step = did_you_mean(key, _KEYS, f"take it away; there are {', '.join(sorted(_KEYS))}")
        raise TemplateError(f"prices[{index}].{key} is not known", next_step=step)
    amounts = [key for key in _AMOUNTS if key in entry]
    step = "give a capacity type and exactly one of usdPerHour and factor, as decimal text"
    if len(amounts) != 1:
        raise TemplateError(f"prices[{index}] has {len(amounts)} amounts", next_step=step)
    try:
        amount = Decimal(str(entry[amounts[0]]))
        capacity_type = CapacityType(entry["capacityType"])
    except (ValueError, InvalidOperation) as error:
        raise TemplateError(f"prices[{index}]: {error}", next_step=step) from error
    if not amount.is_finite() or amount < 0:
        raise TemplateError(f"prices[{index}]: {amount} is not an amount", next_step="give an amount of zero or more")
    if amounts == ["factor"]:
        return Override(entry["instanceType"], capacity_type, factor=amount)
    return Override(entry["instanceType"], capacity_type, usd_per_hour=amount)


def list_price(aws: Aws, instance_type: str) -> Decimal | None:
    """The on-demand price in the region of `aws`; None if the price list there does not have the type. Raises
    ProviderErrors.

    The commercial price list refuses credentials of China, GovCloud and other partitions, so it is not called there.
    """
    if partition_of(aws.region):
        return None
    terms = {
        "instanceType": instance_type,
        "regionCode": aws.region,
        "operatingSystem": "Linux",
        "tenancy": "Shared",
        "preInstalledSw": "NA",
        "capacitystatus": "Used",
    }
    filters = [{"Type": "TERM_MATCH", "Field": field, "Value": value} for field, value in terms.items()]
    with translated(f"GetProducts {instance_type}"):
        pages = list(aws.pricing.get_paginator("get_products").paginate(ServiceCode="AmazonEC2", Filters=filters))
    found = [price for page in pages for text in page["PriceList"] for price in _hourly(json.loads(text))]
    return min(found, default=None)


def in_dollars(region: str) -> bool:
    """True if EC2's prices there are US dollars: China's are yuan, those of the European Sovereign Cloud euros."""
    return partition_of(region) not in ("cn-", "eusc-")


class Prices:
    """Prices of a region for the catalog's types."""

    def __init__(self, aws: Aws, clock: Clock, catalog: Catalog, overrides: tuple[Override, ...] = ()) -> None:
        self._aws = aws
        self._clock = clock
        self._catalog = catalog
        self._overrides = overrides
        self._list: TtlCache[Decimal | None] = TtlCache(clock, _LIST_LIFETIME)
        self._spot: TtlCache[tuple[OfferingStatus, ...]] = TtlCache(clock, _SPOT_LIFETIME)

    def on_demand(self, instance_type: str) -> Decimal | None:
        """The list price in this region; None if the list does not have the type."""
        listed = self._list.get(instance_type, lambda: list_price(self._aws, instance_type))
        return self._overridden(instance_type, CapacityType.ON_DEMAND, listed)

    def listed(self, instance_types: Iterable[str]) -> Iterator[OfferingStatus]:
        """The on-demand prices that are known so far, in any zone; each call reads a few more."""
        left = _AT_ONCE
        for name in instance_types:
            if left and not self._list.fresh(name):
                left -= 1
                self.on_demand(name)
            price = self._overridden(name, CapacityType.ON_DEMAND, self._list.last(name))
            if price is not None:
                offering = OfferingKey(name, ANY_ZONE, CapacityType.ON_DEMAND)
                yield OfferingStatus(offering, price, region=self._aws.region)

    def spot(self) -> tuple[OfferingStatus, ...]:
        """The newest spot price of every type of the catalog in every zone where it is sold."""
        return self._spot.get("", lambda: tuple(self._read_spot()))

    def _read_spot(self) -> Iterator[OfferingStatus]:
        if not in_dollars(self._aws.region):
            return
        types = sorted(
            t.machine_type
            for t in self._catalog.types.values()
            if t.cloud == "aws" and CapacityType.SPOT in t.capacity_types
        )
        newest: dict[tuple[str, str], Any] = {}
        with translated("DescribeSpotPriceHistory"):
            pages = list(
                self._aws.ec2.get_paginator("describe_spot_price_history").paginate(
                    InstanceTypes=types, ProductDescriptions=["Linux/UNIX"], StartTime=self._clock.now()
                )
            )
        for page in pages:
            for entry in page["SpotPriceHistory"]:
                key = (entry["InstanceType"], entry["AvailabilityZone"])
                if key not in newest or entry["Timestamp"] > newest[key]["Timestamp"]:
                    newest[key] = entry
        for (instance_type, zone), entry in sorted(newest.items()):
            offering = OfferingKey(instance_type, zone, CapacityType.SPOT)
            price = self._overridden(instance_type, CapacityType.SPOT, Decimal(entry["SpotPrice"]))
            yield OfferingStatus(offering, price)

    def _overridden(self, instance_type: str, capacity_type: CapacityType, price: Decimal | None) -> Decimal | None:
        """The last override that matches wins, so that exceptions follow rules in the file."""
        for override in reversed(self._overrides):
            if override.capacity_type == capacity_type and fnmatchcase(instance_type, override.instance_type):
                return override.applied(price)
        return price


def _hourly(product: Mapping[str, Any]) -> Iterator[Decimal]:
    for term in product.get("terms", {}).get("OnDemand", {}).values():
        for dimension in term["priceDimensions"].values():
            amount = Decimal(dimension["pricePerUnit"].get("USD", "0"))
            if dimension.get("unit") == "Hrs" and amount > 0:
                yield amount
