"""Capacity reservations and Capacity Blocks: their states follow from the clock, as do the machines they take back."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

# How long before a block's end EC2 begins to terminate its instances, and when it says so.
RECLAIM_INSTANCES: Final = timedelta(minutes=30)
RECLAIM_ULTRASERVERS: Final = timedelta(minutes=60)
WARNING_BEFORE_RECLAIM: Final = timedelta(minutes=10)
# An unpaid block, or extension, is given up after this.
PAYMENT_WITHIN: Final = timedelta(hours=12)


@dataclass
class Extension:
    """A purchased extension. `paid_at` None: not yet; it moves the end only once it is paid."""

    offering: str
    bought_at: datetime
    starts_at: datetime
    ends_at: datetime
    fee: str
    paid_at: datetime | None = None
    failed: bool = False

    def status(self, now: datetime) -> str:
        """payment-pending, payment-failed or payment-succeeded."""
        if self.paid_at is not None and self.paid_at <= min(now, self.deadline):
            return "payment-succeeded"
        return "payment-failed" if self.failed or now >= self.deadline else "payment-pending"

    @property
    def deadline(self) -> datetime:
        """Until when it must be paid: 12 hours, or 35 minutes before the end it moves."""
        return min(self.bought_at + PAYMENT_WITHIN, self.starts_at - timedelta(minutes=35))


@dataclass
class Holding:
    """A capacity reservation. `block` is the Capacity Block's id, "" for on-demand capacity reservations.

    `paid_at` None on a block: nobody has paid. `taken` is what somebody else uses. `override` is a state set by hand,
    such as unavailable, assessing or delayed, which no clock can bring about. `ends_at` None: until it is cancelled.
    `shared`: another account's, of which EC2 describes the reservation and not the block.
    """

    id: str
    instance_type: str
    zone: str
    count: int
    created_at: datetime
    starts_at: datetime
    ends_at: datetime | None = None
    block: str = ""
    match: str = "targeted"
    ultraserver: str = ""
    interruptible: bool = False
    platform: str = "Linux/UNIX"
    paid_at: datetime | None = None
    payment_fails: bool = False
    cancelled_at: datetime | None = None
    override: str = ""
    taken: int = 0
    impaired: bool = False
    shared: bool = False
    tags: dict[str, str] = field(default_factory=dict)
    extensions: list[Extension] = field(default_factory=list)
    warned_for: datetime | None = None  # the end that the expiration warning was sent for
    delivered: bool = False

    def end(self, now: datetime) -> datetime | None:
        """Its end as it stands: extensions count once they are paid."""
        paid = [e.ends_at for e in self.extensions if e.status(now) == "payment-succeeded"]
        return max(paid, default=self.ends_at)

    def reclaim_at(self, now: datetime) -> datetime | None:
        """When EC2 begins to take machines back; None where they stay as on-demand instances."""
        end = self.end(now)
        if not self.block or end is None:
            return None
        return end - (RECLAIM_ULTRASERVERS if self.ultraserver else RECLAIM_INSTANCES)

    def state(self, now: datetime) -> str:
        """The state at `now`, as DescribeCapacityReservations spells it."""
        if self.cancelled_at is not None and now >= self.cancelled_at:
            return "cancelled"
        if self.override:
            return self.override
        if self.block and (self.paid_at is None or now < self.paid_at):
            late = now >= self.created_at + PAYMENT_WITHIN
            return "payment-failed" if self.payment_fails or late else "payment-pending"
        end = self.end(now)
        if end is not None and now >= end:
            return "expired"
        return "active" if now >= self.starts_at else "scheduled"

    def open_for_launches(self, now: datetime) -> bool:
        """Whether a machine may be started in it: active, and not about to be taken back."""
        reclaim = self.reclaim_at(now)
        return self.state(now) == "active" and (reclaim is None or now < reclaim)
