"""The output of offers of capacity blocks: a table with the price of an accelerator's hour, and a picture of the
days."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, Final

from instance_catalog.types.instance_type import InstanceType
from providers.market import CapacityOffer

COLUMNS: Final = ("offer", "zone", "starts", "ends", "hours", "count", "price", "machine/h", "accelerator/h")
_DAYS: Final = 56  # offers start at most eight weeks ahead
_STARTS, _RUNS, _NOTHING = "█", "▒", "·"


def rows(offers: Iterable[CapacityOffer], types: Mapping[str, InstanceType]) -> list[tuple[str, ...]]:
    return [
        (
            offer.id,
            offer.zone,
            _moment(offer.starts_at),
            _moment(offer.ends_at),
            f"{offer.hours:.0f}",
            f"{offer.count}" + (f" × {offer.ultraserver}" if offer.ultraserver else ""),
            _money(offer.price, offer.currency),
            _money(offer.price_per_instance_hour, offer.currency),
            _money(_per_accelerator(offer, types), offer.currency),
        )
        for offer in offers
    ]


def entries(offers: Iterable[CapacityOffer], types: Mapping[str, InstanceType]) -> list[dict[str, Any]]:
    """The same for programs."""
    return [
        {
            "id": offer.id,
            "instanceType": offer.instance_type,
            "ultraserver": offer.ultraserver or None,
            "zone": offer.zone,
            "count": offer.count,
            "startsAt": offer.starts_at.isoformat(),
            "endsAt": offer.ends_at.isoformat(),
            "price": str(offer.price),
            "currency": offer.currency,
            "pricePerMachineHour": _exact(offer.price_per_instance_hour),
            "pricePerAcceleratorHour": _exact(_per_accelerator(offer, types)),
            "segments": [
                {
                    "instanceType": part.instance_type,
                    "zone": part.zone,
                    "count": part.count,
                    "startsAt": part.starts_at.isoformat(),
                    "endsAt": part.ends_at.isoformat(),
                }
                for part in offer.segments
            ],
        }
        for offer in offers
    ]


def picture(offers: Sequence[CapacityOffer]) -> Iterator[str]:
    """A line for each zone with a character for each day: the starts of offers, and the days on which one would run."""
    if not offers:
        return
    first = min(offer.starts_at for offer in offers).date()
    last = max(offer.ends_at for offer in offers).date()
    days = [first + timedelta(days=number) for number in range(min((last - first).days + 1, _DAYS))]
    zones = sorted({offer.zone for offer in offers})
    width = max(map(len, zones))
    yield f"{' ' * width}  {first:%d %b} … {days[-1]:%d %b}   {_STARTS} an offer starts   {_RUNS} an offer runs"
    for zone in zones:
        of_zone = [offer for offer in offers if offer.zone == zone]
        marks = "".join(
            _STARTS
            if any(offer.starts_at.date() == day for offer in of_zone)
            else _RUNS
            if any(offer.starts_at.date() < day <= offer.ends_at.date() for offer in of_zone)
            else _NOTHING
            for day in days
        )
        yield f"{zone.ljust(width)}  {marks}"


def _per_accelerator(offer: CapacityOffer, types: Mapping[str, InstanceType]) -> Decimal | None:
    """The price of an accelerator's hour. None for a type that the catalog does not have, and for racks of unknown
    size."""
    hours = Decimal(0)
    for part in offer.parts():
        known = types.get(part.instance_type)
        if known is None or not known.device_count:
            return None
        hours += part.count * part.hours * known.device_count
    return offer.price / hours if hours else None


def _moment(at: datetime) -> str:
    return at.strftime("%a %d %b %Y %H:%MZ")


def _money(amount: Decimal | None, currency: str) -> str:
    if amount is None:
        return "?"
    sign = "$" if currency == "USD" else f"{currency} "
    return f"{sign}{amount:,.2f}"


def _exact(amount: Decimal | None) -> str | None:
    return None if amount is None else f"{amount:.4f}"
