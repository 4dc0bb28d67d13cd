"""Reserved capacity: on-demand reservations (open, targeted, interruptible, future-dated) and Capacity Blocks.

An extension moves the end of a reservation, so answers are kept for a few seconds only. EC2's count of available
machines lags minutes behind launches, so launches are subtracted here until EC2's own count has decreased. Sources: EC2
API reference (CapacityReservation states), Capacity Blocks user guide (when machines are taken back), EKS user guide
(managed node groups with Capacity Blocks).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from enum import Enum
from typing import Any, Final

from instance_catalog.dataclass import dataclass
from instance_catalog.frozen_map import EMPTY, FrozenMap
from instance_catalog.types.instance_type import CapacityType
from providers.aws.describe import tags_of
from providers.aws.errors import translated
from providers.aws.session import Aws
from providers.bookings import Bookings
from providers.contract import Clock, LaunchForm, Reservation, ReservationState
from providers.ttl_cache import TtlCache

# Several parts of one reconcile read the same answer; between reconciles it is read again.
_LIFETIME: Final = timedelta(seconds=5)
# Before a reservation begins EC2 counts no instances; how many it will have is in this tag.
_COMING: Final = "aws:ec2capacityreservation:incrementalRequestedQuantity"


class Kind(Enum):
    """The kind of a reservation, as far as its end depends on it."""

    ON_DEMAND = "on-demand"  # machines stay at its end and cost the on-demand price
    BLOCK = "block"
    ULTRASERVER = "ultraserver"


# How long before the end machines are taken back, by the kind of the reservation and who started them. A managed node
# group scales itself down 40 minutes before the end of a block; EC2 takes the machines of an UltraServer back earlier
# than that.
RECLAIM_LEADS: Final[Mapping[tuple[Kind, LaunchForm], timedelta]] = {
    (Kind.BLOCK, LaunchForm.DIRECT): timedelta(minutes=30),
    (Kind.BLOCK, LaunchForm.GROUP): timedelta(minutes=30),
    (Kind.BLOCK, LaunchForm.MANAGED_GROUP): timedelta(minutes=40),
    (Kind.ULTRASERVER, LaunchForm.DIRECT): timedelta(minutes=60),
    (Kind.ULTRASERVER, LaunchForm.GROUP): timedelta(minutes=60),
    (Kind.ULTRASERVER, LaunchForm.MANAGED_GROUP): timedelta(minutes=60),
}
STATES: Final[Mapping[str, ReservationState]] = {
    "payment-pending": ReservationState.PENDING,
    "assessing": ReservationState.PENDING,
    "delayed": ReservationState.PENDING,
    "pending": ReservationState.PENDING,
    "scheduled": ReservationState.SCHEDULED,
    "active": ReservationState.ACTIVE,
    "unavailable": ReservationState.ENDED,
    "payment-failed": ReservationState.ENDED,
    "failed": ReservationState.ENDED,
    "cancelled": ReservationState.ENDED,
    "cancelling": ReservationState.ENDED,
    "unsupported": ReservationState.ENDED,
    "expired": ReservationState.ENDED,
}
_NOTES: Final[Mapping[str, str]] = {
    "payment-pending": "not paid yet; AWS releases it if that lasts 12 hours",
    "payment-failed": "the payment failed; the capacity was released",
    "assessing": "AWS has not decided yet whether it can deliver it",
    "delayed": "AWS delivers it later than asked for",
    "unsupported": "AWS cannot deliver it",
    "failed": "AWS could not create it",
    "cancelled": "it was cancelled",
    "cancelling": "it is being cancelled",
    "unavailable": "its hardware is not available; open a case with AWS Support",
}


@dataclass(frozen=True, slots=True)
class _Seen:
    """All reservations, and the ids of those that need the interruptible market."""

    reservations: tuple[Reservation, ...]
    interruptible: frozenset[str]


class Reservations:
    """The reservations of an account. `window` is how long EC2's counts may lag."""

    def __init__(self, aws: Aws, clock: Clock, *, window: timedelta, form: LaunchForm = LaunchForm.DIRECT) -> None:
        self._aws = aws
        self._clock = clock
        self._form = form
        self._seen: TtlCache[_Seen] = TtlCache(clock, _LIFETIME)
        self._kinds: dict[str, Kind] = {}  # by block id; what a block is never changes
        self._bookings = Bookings(clock, window)

    def all(self) -> tuple[Reservation, ...]:
        """All reservations, by id, with the capacity that is left after this process's launches."""
        return tuple(self._bookings.less(found) for found in self._seen.get("", self._read).reservations)

    def market(self, reservation: str) -> str | None:
        """The market type that EC2 requires for machines in it, "" for none; None if EC2 does not list it."""
        seen = self._seen.get("", self._read)
        known = next((found for found in seen.reservations if found.id == reservation), None)
        if known is None:
            return None
        if known.capacity_type == CapacityType.CAPACITY_BLOCK:
            return "capacity-block"
        return "interruptible-capacity-reservation" if reservation in seen.interruptible else ""

    def reclaim_at(self, reservation: str) -> datetime | None:
        """The time when its machines are taken back; None if they stay, or if the reservation is not known."""
        if not reservation:
            return None
        known = self._seen.get("", self._read).reservations
        return next((found.reclaim_at for found in known if found.id == reservation), None)

    def launched(self, reservation: str, ids: Iterable[str]) -> None:
        """Count machines that were just started. A repeated answer counts each machine once."""
        seen = self._seen.last("")
        known = next((found for found in seen.reservations if found.id == reservation), None) if seen else None
        self._bookings.launched(reservation, ids, known)

    def exhausted(self, reservation: str) -> None:
        """EC2 has just refused a launch: none is left."""
        self._bookings.exhausted(reservation)

    def _read(self) -> _Seen:
        with translated("DescribeCapacityReservations"):
            pages = list(self._aws.ec2.get_paginator("describe_capacity_reservations").paginate())
        raw = [found for page in pages for found in page["CapacityReservations"]]
        self._learn_kinds({found["CapacityBlockId"] for found in raw if found.get("CapacityBlockId")})
        # Of a block that is over EC2 forgets its state some time, and to name it then is an error.
        running = {found.get("CapacityBlockId", "") for found in raw if found.get("State") == "active"}
        impaired = self._impaired({block for block in running if self._kinds.get(block) is Kind.ULTRASERVER})
        reservations = self.readable(raw, impaired)
        return _Seen(
            tuple(sorted(reservations, key=lambda found: found.id)),
            frozenset(found.get("CapacityReservationId", "") for found in raw if found.get("Interruptible")),
        )

    def _learn_kinds(self, blocks: set[str]) -> None:
        """Records which blocks are UltraServers. EC2 is asked until it has described each block.

        All blocks are read without a filter, because an id that EC2 does not show is an error: a block that another
        account shares, which is no UltraServer, or one that was bought just now.
        """
        if blocks <= self._kinds.keys():
            return
        with translated("DescribeCapacityBlocks"):
            pages = list(self._aws.ec2.get_paginator("describe_capacity_blocks").paginate())
        for page in pages:
            for block in page["CapacityBlocks"]:
                kind = Kind.ULTRASERVER if block.get("UltraserverType") else Kind.BLOCK
                self._kinds[block["CapacityBlockId"]] = kind

    def _impaired(self, blocks: set[str]) -> dict[str, str]:
        """The impaired interconnects of UltraServer blocks, by id. AWS evicts nothing for them, so a person decides."""
        if not blocks:
            return {}
        with translated("DescribeCapacityBlockStatus"):
            pages = list(
                self._aws.ec2.get_paginator("describe_capacity_block_status").paginate(CapacityBlockIds=sorted(blocks))
            )
        return {
            status["CapacityBlockId"]: (
                f"its interconnect is impaired, {status.get('TotalUnavailableCapacity', 0)} of "
                f"{status.get('TotalCapacity', 0)} machines unavailable: end all its machines and open a support case"
            )
            for page in pages
            for status in page["CapacityBlockStatuses"]
            if status.get("InterconnectStatus") == "impaired"
        }

    def readable(self, raw: Iterable[Mapping[str, Any]], impaired: Mapping[str, str]) -> list[Reservation]:
        """The reservations that can be read. One that lacks a required field, perhaps of another owner, hides no
        other."""
        read = []
        for found in raw:
            with suppress(KeyError, TypeError, ValueError):
                read.append(self.reservation(found, impaired))
        return read

    def reservation(self, found: Mapping[str, Any], impaired: Mapping[str, str] = EMPTY) -> Reservation:
        """One reservation as EC2 describes it. `impaired`: the defects of blocks, by id."""
        state = STATES.get(found.get("State", ""), ReservationState.PENDING)
        tags = tags_of(found)
        block = found.get("ReservationType") == "capacity-block"
        note = impaired.get(found.get("CapacityBlockId", ""), "") or _NOTES.get(found.get("State", ""), "")
        launchable = state is ReservationState.ACTIVE and found.get("LaunchStatus") != "unlaunchable"
        if state is ReservationState.ACTIVE and not launchable:
            note = note or "EC2 says it cannot be launched into now"
        return Reservation(
            id=found["CapacityReservationId"],
            capacity_type=CapacityType.CAPACITY_BLOCK if block else CapacityType.RESERVED,
            instance_type=found["InstanceType"],
            zone=found["AvailabilityZone"],
            state=state,
            count=max(found.get("TotalInstanceCount", 0), _number(tags.get(_COMING, ""))),
            available=found.get("AvailableInstanceCount", 0) if launchable else 0,
            starts_at=found.get("StartDate") or found["CreateDate"],
            ends_at=found.get("EndDate"),
            reclaim_at=self._reclaim_at(found, block=block),
            tags=FrozenMap(tags),
            form=self._form,
            note=note,
        )

    def _reclaim_at(self, found: Mapping[str, Any], *, block: bool) -> datetime | None:
        ends_at: datetime | None = found.get("EndDate")
        if not block or ends_at is None:
            return None
        return ends_at - RECLAIM_LEADS[self._kinds.get(found.get("CapacityBlockId", ""), Kind.BLOCK), self._form]


def _number(text: str) -> int:
    """The number in a tag, which any user of the account may set; 0 if it is none."""
    return int(text) if text.isascii() and text.isdigit() else 0
