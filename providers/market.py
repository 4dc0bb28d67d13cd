"""The market for capacity that is bought ahead for a period: offers, and purchases by a person.

A provider may be a CapacityMarket as well. Nothing automatic may use it: purchases cannot be undone, and on some clouds
(AWS PurchaseCapacityBlock) they have no idempotency token. Therefore every purchase carries a `mark`, a tag on its
result, and a caller that repeats one calls `bought` first.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import Decimal
from typing import Protocol, runtime_checkable

from instance_catalog.dataclass import dataclass
from instance_catalog.kubernetes.labels import PURCHASE_TAG as PURCHASE_TAG  # the tag whose value is a purchase's mark
from providers.contract import Reservation


@dataclass(frozen=True, slots=True)
class CapacityQuery:
    """`count` machines (or, with `ultraserver`, whole racks of them) for `lasts`, begun from `earliest` to `latest`.

    `workload` is the purpose of TPUs: BATCH, SERVING, or "" for any.
    """

    instance_type: str
    count: int
    lasts: timedelta
    earliest: datetime | None = None
    latest: datetime | None = None
    ultraserver: str = ""
    every_zone: bool = False  # also zones that the account has not opted into
    workload: str = ""


@dataclass(frozen=True, slots=True)
class CapacityOffer:
    """Capacity that can be bought now. `price` is for everything, paid in advance, in `currency`.

    Each of its `segments` yields a reservation with its own zone and times; its own zone is the first one's, its times
    are the first start and the last end. `count` is machines, or with `ultraserver` racks. Some have no segments.
    """

    id: str
    instance_type: str
    zone: str
    count: int
    starts_at: datetime
    ends_at: datetime
    price: Decimal
    currency: str = "USD"
    ultraserver: str = ""
    segments: tuple[CapacitySegment, ...] = ()

    @property
    def hours(self) -> Decimal:
        return _hours(self.starts_at, self.ends_at)

    def parts(self) -> tuple[CapacitySegment, ...]:
        """The machines and their times; () for racks of unknown size."""
        if self.segments or self.ultraserver:
            return self.segments
        return (CapacitySegment(self.instance_type, self.zone, self.count, self.starts_at, self.ends_at),)

    @property
    def price_per_instance_hour(self) -> Decimal | None:
        """The upfront fee spread over all machines and hours; None for racks of unknown size."""
        hours = sum((part.count * part.hours for part in self.parts()), Decimal(0))
        return self.price / hours if hours else None


@dataclass(frozen=True, slots=True)
class CapacitySegment:
    """One part of an offer: so many machines, here, for this time."""

    instance_type: str
    zone: str
    count: int
    starts_at: datetime
    ends_at: datetime

    @property
    def hours(self) -> Decimal:
        return _hours(self.starts_at, self.ends_at)


def _hours(start: datetime, end: datetime) -> Decimal:
    return Decimal((end - start) / timedelta(seconds=1)) / 3600


class PriceCeilingError(ValueError):
    """The offer costs more than the buyer allowed; nothing was bought."""


@runtime_checkable
class CapacityMarket(Protocol):
    """Optional: a provider that sells capacity for a time. Methods raise ProviderErrors as Provider's do."""

    def validate(self, query: CapacityQuery, now: datetime) -> CapacityQuery:
        """The query within what the provider sells. Raises RefusedError for what it never sells."""

    def find(self, query: CapacityQuery) -> tuple[CapacityOffer, ...]:
        """The offers, by start and price; () if there are none."""

    def bought(self, mark: str) -> tuple[Reservation, ...]:
        """The reservations of purchases with this mark so far, ordered by id."""

    def buy(self, offer: CapacityOffer, *, mark: str, ceiling: Decimal) -> tuple[Reservation, ...]:
        """Buy an offer as it was found. Raises PriceCeilingError, before any call, when it costs more than `ceiling`.

        AmbiguousError: it may have been bought. Ask `bought(mark)` until the provider's consistency window has passed
        before buying again.
        """
