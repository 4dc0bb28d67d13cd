"""Capacity Block offerings: what a test puts on sale, and what has been bought of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal


@dataclass(frozen=True, slots=True)
class Segment:
    """A part of an offering, which becomes a reservation of its own."""

    instance_type: str
    zone: str
    count: int
    starts_at: datetime
    ends_at: datetime


@dataclass(frozen=True, slots=True)
class BlockOffering:
    """A block on sale; `fee` in dollars for all of it."""

    id: str
    segments: tuple[Segment, ...]
    fee: Decimal
    ultraserver: str = ""

    @property
    def starts_at(self) -> datetime:
        return min(segment.starts_at for segment in self.segments)

    @property
    def ends_at(self) -> datetime:
        return max(segment.ends_at for segment in self.segments)

    @property
    def lasts(self) -> timedelta:
        return self.ends_at - self.starts_at


@dataclass(frozen=True, slots=True)
class ExtensionOffering:
    """An extension on sale for one reservation."""

    id: str
    reservation: str
    starts_at: datetime
    ends_at: datetime
    fee: Decimal


@dataclass
class BlockMarket:
    """The lists. `payment`: how long a purchase takes to be paid; None: it never is."""

    offerings: dict[str, BlockOffering] = field(default_factory=dict)
    extensions: dict[str, ExtensionOffering] = field(default_factory=dict)
    payment: timedelta | None = timedelta(minutes=3)
    extension_fee_per_hour: Decimal = Decimal("30")

    def sell(self, number: int, segments: Sequence[Segment], fee: str, *, ultraserver: str = "") -> BlockOffering:
        """Put a block on sale."""
        offering = BlockOffering(f"cb-{number:017x}", tuple(segments), Decimal(fee), ultraserver)
        self.offerings[offering.id] = offering
        return offering
