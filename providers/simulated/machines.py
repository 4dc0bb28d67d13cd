"""The state of the simulated cloud: machines and reservations, computed from the time alone.

Nothing here changes by itself: a machine's state at a time is computed from the times of requests, so the cloud needs
no timers and runs on any clock.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from instance_catalog.dataclass import dataclass, field
from instance_catalog.frozen_map import EMPTY, FrozenMap
from instance_catalog.types.instance_type import CapacityType
from providers.contract import Instance, InstanceState, OfferingKey, Reservation, ReservationState


@dataclass(frozen=True, slots=True)
class Behaviour:
    """The delays of the cloud.

    `latency` passes in every call. `boot` and `shutdown` are how long machines are PENDING and TERMINATING; TERMINATED
    ones are listed for `remembers`. New machines are invisible for `visibility`.
    """

    latency: timedelta = timedelta(0)
    boot: timedelta = timedelta(seconds=40)
    shutdown: timedelta = timedelta(seconds=20)
    visibility: timedelta = timedelta(0)
    remembers: timedelta = timedelta(minutes=30)
    page_size: int = 100


PROMPT: Final = Behaviour()


@dataclass(slots=True)
class Machine:
    """A machine and the requests about it. `ended_at` is when its end began, by the customer or by the cloud."""

    id: str
    node: str
    offering: OfferingKey
    launched_at: datetime
    tags: FrozenMap[str, str]
    reclaim_at: datetime | None = None  # a notice about this one machine
    ended_at: datetime | None = None
    stopped: bool = False
    message: str = ""

    @property
    def provider_id(self) -> str:
        return f"simulated:///{self.offering.zone}/{self.id}"

    def end(self, at: datetime, message: str) -> None:
        """Begin its end, unless that has begun already."""
        if self.ended_at is None or at < self.ended_at:
            self.ended_at, self.message = at, message

    def state(self, now: datetime, behaviour: Behaviour) -> InstanceState:
        if self.ended_at is not None and self.ended_at <= now:
            done = now >= self.ended_at + behaviour.shutdown
            return InstanceState.TERMINATED if done else InstanceState.TERMINATING
        if self.stopped:
            return InstanceState.STOPPED
        booting = now < self.launched_at + behaviour.boot
        return InstanceState.PENDING if booting else InstanceState.RUNNING

    def visible(self, now: datetime, behaviour: Behaviour) -> bool:
        """True if `describe` shows it."""
        if now < self.launched_at + behaviour.visibility:
            return False
        return self.ended_at is None or now < self.ended_at + behaviour.shutdown + behaviour.remembers

    def occupies(self, now: datetime, behaviour: Behaviour) -> bool:
        """True if it uses capacity; its place is free again once it is TERMINATED."""
        return self.state(now, behaviour) is not InstanceState.TERMINATED

    def seen(self, now: datetime, behaviour: Behaviour, *, reclaim_at: datetime | None) -> Instance:
        moments = [moment for moment in (self.reclaim_at, reclaim_at) if moment is not None]
        return Instance(
            id=self.id,
            provider_id=self.provider_id,
            offering=self.offering,
            state=self.state(now, behaviour),
            launched_at=self.launched_at,
            tags=self.tags,
            node=self.node,
            reclaim_at=min(moments, default=None),
            message=self.message,
        )


@dataclass(slots=True)
class Holding:
    """A reservation. `taken` machines of it run for another user; `reclaim` before its end machines are taken back."""

    id: str
    capacity_type: CapacityType
    instance_type: str
    zone: str
    count: int
    starts_at: datetime
    ends_at: datetime | None = None
    reclaim: timedelta = timedelta(minutes=30)
    tags: FrozenMap[str, str] = field(default_factory=lambda: EMPTY)
    taken: int = 0

    @property
    def offering(self) -> OfferingKey:
        """The offering of a launch into it."""
        return OfferingKey(self.instance_type, self.zone, self.capacity_type, self.id)

    @property
    def reclaim_at(self) -> datetime | None:
        """The time when machines are taken back: blocks only; machines of other reservations stay."""
        if self.ends_at is None or self.capacity_type is not CapacityType.CAPACITY_BLOCK:
            return None
        return self.ends_at - self.reclaim

    def state(self, now: datetime) -> ReservationState:
        if now < self.starts_at:
            return ReservationState.SCHEDULED
        if self.ends_at is not None and now >= self.ends_at:
            return ReservationState.ENDED
        return ReservationState.ACTIVE

    def free(self, now: datetime, used: int) -> int:
        """The number of machines that can start now, if `used` run for the customer."""
        reclaiming = self.reclaim_at is not None and now >= self.reclaim_at
        if reclaiming or self.state(now) is not ReservationState.ACTIVE:
            return 0
        return max(self.count - self.taken - used, 0)

    def seen(self, now: datetime, used: int) -> Reservation:
        return Reservation(
            id=self.id,
            capacity_type=self.capacity_type,
            instance_type=self.instance_type,
            zone=self.zone,
            state=self.state(now),
            count=self.count,
            available=self.free(now, used),
            starts_at=self.starts_at,
            ends_at=self.ends_at,
            reclaim_at=self.reclaim_at,
            tags=self.tags,
        )
