"""Capacity Blocks on offer, and purchases of them. Not for the controller, whose policy does not allow them.

PurchaseCapacityBlock cannot be cancelled and takes no token, so each purchase carries a mark, and a repetition looks
for the mark first. The callers are commands, so next steps address a user at a terminal.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, Final

from instance_catalog.dataclass import dataclass, replace
from providers.aws.capacity import Reservations
from providers.aws.errors import translated
from providers.aws.node_template.launch_template import tag_list
from providers.aws.session import Aws
from providers.contract import Reservation
from providers.errors import (
    GoneError,
    NotOfferedError,
    PermissionDeniedError,
    ProviderError,
    RefusedError,
    TemplateError,
)
from providers.market import PURCHASE_TAG, CapacityOffer, CapacityQuery, CapacitySegment, PriceCeilingError

# The platform of blocks on offer; a block's machines run only images of this platform.
_PLATFORM: Final = "Linux/UNIX"
# Capacity Blocks user guide: 1 to 14 days, then multiples of 7 days up to 182; sold up to eight weeks ahead.
_DAYS_IN_ONE: Final = 14
_WEEK: Final = 7
_AHEAD: Final = timedelta(weeks=8)
_ANOTHER: Final = "it was sold, or its time has passed: `foreslice blocks find` lists what is on offer now"
_SOLD: Final = "ask for a type that AWS sells in Capacity Blocks in this region, and for a time it may begin at"
_ADVICE: Final[Mapping[type[ProviderError], str]] = {
    TemplateError: _SOLD,
    NotOfferedError: _SOLD,
    GoneError: _ANOTHER,
    PermissionDeniedError: "have deploy/aws/buyer-policy.json attached to your user or role",
}


@dataclass(frozen=True, slots=True)
class BlockMarket:
    aws: Aws
    reservations: Reservations

    def validate(self, query: CapacityQuery, now: datetime) -> CapacityQuery:
        """The query, bounded to eight weeks ahead. Raises RefusedError."""
        hours, days = int(query.lasts / timedelta(hours=1)), query.lasts.days
        if hours % 24:
            step = f"give --hours {days * 24 or 24} or {(days + 1) * 24}"
            raise RefusedError(f"blocks last whole days, not {hours} hours", next_step=step)
        if days > _DAYS_IN_ONE and days % _WEEK:
            weeks = days // _WEEK
            step = f"give --hours {weeks * _WEEK * 24} or {(weeks + 1) * _WEEK * 24}"
            raise RefusedError(f"blocks of more than 14 days last whole weeks, not {days} days", next_step=step)
        earliest, last = query.earliest or now, now + _AHEAD
        if earliest > last:
            step = f"give a --start before {last:%Y-%m-%d}"
            raise RefusedError(f"AWS sells blocks eight weeks ahead, and {earliest:%Y-%m-%d} is later", next_step=step)
        return replace(query, earliest=earliest, latest=min(query.latest or last, last))

    def find(self, query: CapacityQuery) -> tuple[CapacityOffer, ...]:
        """Offerings of this account and region, by start and price."""
        what: dict[str, Any] = (
            {"UltraserverType": query.ultraserver, "UltraserverCount": query.count}
            if query.ultraserver
            else {"InstanceType": query.instance_type, "InstanceCount": query.count}
        )
        window = {"StartDateRange": query.earliest, "EndDateRange": query.latest and query.latest + query.lasts}
        with _advised(), translated("DescribeCapacityBlockOfferings"):
            pages = list(
                self.aws.ec2.get_paginator("describe_capacity_block_offerings").paginate(
                    **what,
                    **{key: moment for key, moment in window.items() if moment},
                    CapacityDurationHours=int(query.lasts / timedelta(hours=1)),
                    **({"AllAvailabilityZones": True} if query.every_zone else {}),
                )
            )
        offers = [_offer(found) for page in pages for found in page["CapacityBlockOfferings"]]
        return tuple(sorted(offers, key=lambda offer: (offer.starts_at, offer.price, offer.id)))

    def bought(self, mark: str) -> tuple[Reservation, ...]:
        with _advised():
            return tuple(found for found in self.reservations.all() if found.tags.get(PURCHASE_TAG) == mark)

    def buy(self, offer: CapacityOffer, *, mark: str, ceiling: Decimal) -> tuple[Reservation, ...]:
        if offer.price > ceiling:
            raise PriceCeilingError(
                f"{offer.id} costs {offer.price} {offer.currency}, more than the limit of {ceiling}"
            )
        tags = [{"ResourceType": "capacity-reservation", "Tags": tag_list({PURCHASE_TAG: mark})}]
        with _advised(), translated(f"PurchaseCapacityBlock {offer.id}"):
            answer = self.aws.ec2.purchase_capacity_block(
                CapacityBlockOfferingId=offer.id, InstancePlatform=_PLATFORM, TagSpecifications=tags
            )
        found = answer.get("CapacityReservations") or [answer["CapacityReservation"]]
        return tuple(sorted(map(self.reservations.reservation, found), key=lambda one: one.id))


@contextmanager
def _advised() -> Iterator[None]:
    """Gives errors without a next step of their own one for a buyer, not for the controller's operator."""
    try:
        yield
    except ProviderError as error:
        if error.next_step == error.advice:
            error.next_step = _ADVICE.get(type(error), error.advice)
        raise


def _offer(found: Mapping[str, Any]) -> CapacityOffer:
    segments = tuple(
        CapacitySegment(
            segment["InstanceType"],
            segment["AvailabilityZone"],
            segment["InstanceCount"],
            segment["StartDate"],
            segment["EndDate"],
        )
        for segment in found.get("CapacityBlockOfferingSegments", ())
    )
    starts_at: datetime = found["StartDate"]
    minutes = found.get("CapacityBlockDurationMinutes") or found["CapacityBlockDurationHours"] * 60
    return CapacityOffer(
        id=found["CapacityBlockOfferingId"],
        instance_type=found.get("InstanceType", "") or (segments[0].instance_type if segments else ""),
        zone=found["AvailabilityZone"],
        count=found.get("InstanceCount") or found.get("UltraserverCount", 1),
        starts_at=starts_at,
        ends_at=found.get("EndDate") or starts_at + timedelta(minutes=minutes),
        price=Decimal(found["UpfrontFee"]),
        currency=found.get("CurrencyCode", "USD"),
        ultraserver=found.get("UltraserverType", ""),
        segments=segments,
    )
