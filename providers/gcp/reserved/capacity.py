"""Reserved capacity: reservations, also shared ones, and future reservations; those in calendar mode are Capacity
Blocks.

A reservation has Google's name, below its project: `zones/ZONE/reservations/NAME`, with `projects/PROJECT/` before it
if another project shares it. A future reservation keeps its own name, `zones/ZONE/futureReservations/NAME`, before and
after Google has created the reservation that machines start in. A reservation of TPUs has chips, and is counted in the
machines that groups start in it (chips.py). Machines of calendar capacity are bound to their reservation: Google stops
them when it ends. A block or sub-block that an instance template names is capacity of its own; its name is that of its
reservation with `/reservationBlocks/BLOCK` and perhaps `/reservationSubBlocks/SUBBLOCK` after it. Sources: Compute
Engine API reference (FutureReservation.status.procurementStatus, Reservation.status, ReservationBlock,
ReservationSubBlock), docs of calendar mode.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from instance_catalog.dataclass import dataclass, replace
from instance_catalog.types.instance_type import CapacityType
from providers.bookings import Bookings
from providers.contract import Clock, Reservation, ReservationState
from providers.errors import GoneError, PermissionDeniedError
from providers.gcp.reserved.chips import Chips, in_machines, reserved_chips, together
from providers.gcp.reserved.granted import granted
from providers.gcp.reserved.parts import ENDING, Ref, of_part, read_part
from providers.gcp.session import Gcp
from providers.ttl_cache import TtlCache

# Several parts of one reconcile use the same answer; the next reconcile reads it again.
_LIFETIME: Final = timedelta(seconds=5)
_CALENDAR: Final = "CALENDAR"
# The state of a future reservation that has no reservation to launch into.
STATES: Final[Mapping[str, ReservationState]] = {
    "DRAFTING": ReservationState.PENDING,
    "PENDING_APPROVAL": ReservationState.PENDING,
    "PENDING_AMENDMENT_APPROVAL": ReservationState.SCHEDULED,
    "APPROVED": ReservationState.SCHEDULED,
    "COMMITTED": ReservationState.SCHEDULED,
    "PROCURING": ReservationState.SCHEDULED,
    "PROVISIONING": ReservationState.SCHEDULED,
    "FULFILLED": ReservationState.ENDED,
    "FAILED": ReservationState.ENDED,
    "FAILED_PARTIALLY_FULFILLED": ReservationState.ENDED,
    "DECLINED": ReservationState.ENDED,
    "CANCELLED": ReservationState.ENDED,
}
# In these states its reservation exists until it ends.
_DELIVERED: Final = frozenset({"FULFILLED", "FAILED_PARTIALLY_FULFILLED"})
_NOTES: Final[Mapping[str, str]] = {
    "DRAFTING": "it is a draft: submit it, or Google reserves nothing",
    "PENDING_APPROVAL": "Google has not approved it yet",
    "PENDING_AMENDMENT_APPROVAL": "Google has not approved its change yet",
    "PROVISIONING": "Google is making its machines available; that may take until a day after its start",
    "FULFILLED": "its reservation no longer exists",
    "FAILED": "Google could not deliver it",
    "FAILED_PARTIALLY_FULFILLED": "Google could deliver only a part of it",
    "DECLINED": "Google declined it",
    "CANCELLED": "it was cancelled",
}


@dataclass(frozen=True, slots=True)
class _Held:
    """A reservation of machines or of TPU chips."""

    reservation: Reservation
    chips: Chips | None = None

    def of(self, types: Collection[str]) -> Reservation:
        """The reservation, counted in machines of these types."""
        return self.reservation if self.chips is None else in_machines(self.reservation, self.chips, types)


@dataclass(frozen=True, slots=True)
class _Seen:
    """All reservations by id, the id under which the machines of a reservation are counted, and Compute Engine's
    numeric ids of the reservations that exist."""

    reservations: Mapping[str, _Held]
    ids: Mapping[Ref, str]
    resources: Mapping[Ref, int]


class Reservations:
    """The reservations that a project can use. `window` is the delay of Google's counts."""

    def __init__(self, gcp: Gcp, clock: Clock, *, window: timedelta) -> None:
        self._gcp = gcp
        self._seen: TtlCache[_Seen] = TtlCache(clock, _LIFETIME)
        self._others: TtlCache[_Held] = TtlCache(clock, _LIFETIME)
        self._parts: TtlCache[Reservation | None] = TtlCache(clock, _LIFETIME)
        self._part_refs: dict[str, Ref] = {}
        self._bookings = Bookings(clock, window)
        self._gone: set[Ref] = set()
        self._denied: set[Ref] = set()
        self._ours: dict[str, bool] = {}  # by the number of a project
        self._asked: TtlCache[int] = TtlCache(clock, _LIFETIME)  # Google's id of a reference; 0: not found

    def all(self, named: Iterable[tuple[Ref, str]] = ()) -> tuple[Reservation, ...]:
        """All reservations of the project, by id, with the rest after our own launches. `named` adds reservations of
        other projects, and parts, each with a machine type that a group starts in it."""
        seen = self._read_once()
        types: dict[Ref, set[str]] = {}
        for ref, machine_type in named:
            types.setdefault(self._own(ref), set()).add(machine_type)
        started: dict[str, set[str]] = {}
        for ref, known in types.items():
            started.setdefault(seen.ids.get(ref, ""), set()).update(known)
        held = [one.of(started.get(key, set())) for key, one in seen.reservations.items()]
        found = [*map(self._bookings.less, held)]
        others = (self._named(ref, types[ref]) for ref in sorted(types) if ref.project or ref.block)
        found += [one for one in others if one is not None]
        return tuple(sorted(found, key=lambda one: one.id))

    def of(self, ref: Ref, machine_type: str = "") -> Reservation | None:
        """The reservation, future reservation or part in which machines of `ref` are counted; None if there is none.
        Chips are counted in machines of `machine_type`."""
        return self._named(self._own(ref), {machine_type} if machine_type else ())

    def _named(self, ref: Ref, types: Collection[str]) -> Reservation | None:
        if ref.block:
            part = self._parts.get(ref, lambda: self._part(ref))
            return self._bookings.less(part) if part is not None else None
        held = self._held(ref)
        return self._bookings.less(held.of(types)) if held is not None else None

    def _held(self, ref: Ref) -> _Held | None:
        if ref.project:
            return self._others.get(ref, lambda: self._shared(ref))
        seen = self._read_once()
        return seen.reservations.get(seen.ids.get(ref, ""))

    def refuses(self, ref: Ref, machine_type: str) -> str:
        """The reason why machines of a type cannot start in it, whatever is left of it; "" if they can, as far as is
        known."""
        ref = self._own(ref)
        held = self._held(ref.whole)
        if held is None or held.chips is None:
            return ""
        if ref.block:
            return f"{ref.whole.id} holds TPU chips, and parts of such reservations are not supported: name the whole"
        why = held.chips.refuses(machine_type)
        return f"nothing can start in {ref.id}: {why}" if why else ""

    def unreadable(self, ref: Ref) -> str:
        """The correction if the controller cannot read it, or the reservation that it is a part of; "" if it can."""
        denied = next((one for one in (ref, ref.whole) if one in self._denied), None)
        return _readable(denied) if denied is not None else ""

    def launched(self, reservation: str, ids: Iterable[str], machine_type: str) -> None:
        """Count machines that have just started. A machine in a part also counts in the whole reservation."""
        started = tuple(ids)
        seen = self._seen.last("")
        part = self._part_refs.get(reservation)
        if part is not None:
            self._bookings.launched(reservation, started, self._parts.last(part))
            reservation = seen.ids.get(part.whole, "") if seen else ""
        held = seen.reservations.get(reservation) if seen else None
        self._bookings.launched(reservation, started, held.of((machine_type,)) if held is not None else None)

    def exhausted(self, reservation: str) -> None:
        """Google has just refused a launch: nothing is left."""
        self._bookings.exhausted(reservation)

    def _own(self, ref: Ref) -> Ref:
        """The reservation without its project if that is the number of this project.

        As a reservation of another project it would have another id, and the end of calendar capacity would not be
        known. Compute Engine's API does not resolve project numbers. But a resource has one numeric id, whichever way
        its project is named, and no other resource has it (Reservation.id, google-cloud-compute 1.56).
        """
        if not ref.project.isdecimal():
            return ref
        own = replace(ref, project="")
        known = self._read_once().resources.get(own.whole)
        if known and ref.project not in self._ours and (found := self._asked.get(ref, lambda: self._id(ref))):
            self._ours[ref.project] = found == known
        return own if self._ours.get(ref.project) else ref

    def _id(self, ref: Ref) -> int:
        with suppress(GoneError, PermissionDeniedError):
            return int(self._get(ref).id)
        return 0

    def _get(self, ref: Ref) -> Any:
        project = {"project": ref.project} if ref.project else {}
        return self._gcp.call("reservations.get", about=ref.id, zone=ref.zone, reservation=ref.name, **project)

    def _read_once(self) -> _Seen:
        return self._seen.get("", self._read)

    def _read(self) -> _Seen:
        # In this order: a reservation that the first list calls fulfilled exists before the second list is read.
        coming = [*self._rows("futureReservations.aggregatedList", "future_reservations")]
        there = {}
        for found in self._rows("reservations.aggregatedList", "reservations"):
            with suppress(ValueError):
                there[Ref(_last(found.zone), found.name)] = found
        reservations: dict[str, _Held] = {}
        ids: dict[Ref, str] = {}
        for found in coming:
            with suppress(ValueError):  # an unreadable reservation does not hide the others
                refs = [*_refs(found, there)]
                delivered = found.status.procurement_status in _DELIVERED
                made = [self._made(ref, there) for ref in refs] if delivered else [there.get(ref) for ref in refs]
                read = _future(found, [one for one in made if one is not None])
                reservations[read.reservation.id] = read
                ids |= dict.fromkeys(refs, read.reservation.id)
        for ref, found in there.items():
            if ref not in ids:
                with suppress(ValueError):
                    reservations[ref.id] = _plain(ref, found)
                    ids[ref] = ref.id
        return _Seen(reservations, ids, {ref: found.id for ref, found in there.items()})

    def _made(self, ref: Ref, there: Mapping[Ref, Any]) -> Any | None:
        """The reservation that Google has created for a future one. A list may be old, so a missing one is read once
        by name."""
        if ref in there:
            self._gone.discard(ref)
            return there[ref]
        if ref not in self._gone:
            with suppress(GoneError):
                return self._get(ref)
            self._gone.add(ref)
        return None

    def _shared(self, ref: Ref) -> _Held:
        """A reservation that another project shares. If it cannot be read, its note says so."""
        self._denied.discard(ref)
        try:
            return _plain(ref, self._get(ref))
        except GoneError:
            return _Held(_unread(ref, ReservationState.ENDED, f"project {ref.project} has no such reservation"))
        except PermissionDeniedError:
            self._denied.add(ref)
            return _Held(_unread(ref, ReservationState.PENDING, f"it cannot be read: {_readable(ref)}"))

    def _part(self, ref: Ref) -> Reservation | None:
        """A block or sub-block of a reservation; None if there is none."""
        self._part_refs[ref.id] = ref
        self._denied.discard(ref)
        whole = self.of(ref.whole)
        if whole is None or whole.state is not ReservationState.ACTIVE:  # it has the reason, and no parts yet
            return replace(whole, id=ref.id, count=0, available=0) if whole is not None else None
        try:
            found = read_part(self._gcp, ref)
        except GoneError:
            return None
        except PermissionDeniedError:
            self._denied.add(ref)
            note = f"it cannot be read: {_readable(ref)}"
            return replace(whole, id=ref.id, state=ReservationState.PENDING, count=0, available=0, note=note)
        return of_part(ref, whole, found)

    def _rows(self, method: str, kind: str) -> Iterator[Any]:
        for page in self._gcp.pages(method):
            for scoped in page.items.values():
                yield from getattr(scoped, kind)


def _future(found: Any, made: list[Any]) -> _Held:
    """A future reservation, with the reservations that Google has created for it. Raises ValueError."""
    zone, approved = _last(found.zone), granted(found)
    status, window = found.status.procurement_status, approved.time_window
    ready = [one for one in made if one.status == "READY"]
    calendar = found.reservation_mode == _CALENDAR
    starts_at, ends_at = _moment(window.start_time), _end(window)
    state = ReservationState.ACTIVE if ready else STATES.get(status, ReservationState.PENDING)
    note = _NOTES.get(status, "")
    if made and not ready and state is ReservationState.ENDED:
        state, note = ReservationState.SCHEDULED, f"its reservation is {made[0].status or 'not ready'}"
    if ready:
        note = note if status == "FAILED_PARTIALLY_FULFILLED" else _health(ready)
    chips = reserved_chips(found)
    if chips is not None and ready:
        chips = together([part for one in ready if (part := reserved_chips(one)) is not None], chips)
    counts = [one.specific_reservation for one in ready]
    kind = CapacityType.CAPACITY_BLOCK if calendar else CapacityType.RESERVED
    reservation = Reservation(
        id=f"zones/{zone}/futureReservations/{found.name}",
        capacity_type=kind,
        instance_type="" if chips is not None else _type(found.specific_sku_properties.instance_properties),
        zone=zone,
        state=state,
        count=sum(one.count for one in counts) if ready else approved.specific_sku_properties.total_count,
        available=sum(map(_left, counts)),
        starts_at=starts_at,
        ends_at=ends_at,
        reclaim_at=ends_at if calendar else None,
        note=note,
    )
    return _Held(reservation, chips)


def _plain(ref: Ref, found: Any) -> _Held:
    """A reservation that a user created. Machines stay when it ends, at the on-demand price. Raises ValueError."""
    specific, ready = found.specific_reservation, found.status == "READY"
    gone = found.status in ENDING
    note = _health([found]) if ready else f"its status is {found.status or 'not known'}"
    chips = reserved_chips(found)
    reservation = Reservation(
        id=ref.id,
        capacity_type=CapacityType.RESERVED,
        instance_type="" if chips is not None else _type(specific.instance_properties),
        zone=ref.zone,
        state=ReservationState.ACTIVE if ready else ReservationState.ENDED if gone else ReservationState.PENDING,
        count=specific.count,
        available=_left(specific) if ready else 0,
        starts_at=_moment(found.creation_timestamp),
        ends_at=_deleted(found),
        note=note,
    )
    return _Held(reservation, chips)


def _deleted(found: Any) -> datetime | None:
    """The time at which Google deletes a reservation: a fixed time, or a duration after its creation."""
    if found.delete_at_time:
        return _moment(found.delete_at_time)
    lasts = found.delete_after_duration.seconds
    return _moment(found.creation_timestamp) + timedelta(seconds=lasts) if lasts else None


def _left(specific: Any) -> int:
    """The number of machines that can start in it. Fewer machines may be usable than it was created for.

    Source: AllocationSpecificSKUReservation.assuredCount of Compute Engine's API.
    """
    usable = min(specific.count, specific.assured_count) if "assured_count" in specific else specific.count
    left: int = usable - specific.in_use_count
    return max(left, 0)


def _readable(ref: Ref) -> str:
    """The correction that lets the controller read a reservation, or a part of one."""
    if ref.project:
        return f"give the controller's service account roles/compute.viewer in project {ref.project}"
    return "update the controller's role from deploy/gcp/controller-role.yaml"


def _unread(ref: Ref, state: ReservationState, note: str) -> Reservation:
    began = datetime.fromtimestamp(0, UTC)
    kind = CapacityType.RESERVED
    return Reservation(ref.id, kind, "", ref.zone, state, count=0, available=0, starts_at=began, note=note)


def _refs(found: Any, there: Mapping[Ref, Any]) -> Iterator[Ref]:
    """The reservations that Google has created for a future one, or the one that it is configured to create. If a
    reservation of that name existed before, it belongs to a user."""
    zone = _last(found.zone)
    made = [Ref(zone, _last(url)) for url in found.status.auto_created_reservations]
    named = Ref(zone, found.reservation_name)
    if not made and named.name and (found.status.procurement_status in _DELIVERED or named not in there):
        made = [named]
    yield from made


def _health(found: list[Any]) -> str:
    """The impaired part of a dense reservation. Google moves nothing for it, so a person decides."""
    for one in found:
        health = one.resource_status.health_info
        if health.degraded_block_count:
            blocks = health.degraded_block_count + health.healthy_block_count
            return (
                f"{health.degraded_block_count} of {blocks} blocks of {one.name} are degraded: report the faulty hosts"
            )
    return ""


def _end(window: Any) -> datetime:
    if window.end_time:
        return _moment(window.end_time)
    if not window.duration.seconds:
        raise ValueError("a future reservation has no end")
    return _moment(window.start_time) + timedelta(seconds=window.duration.seconds)


def _type(properties: Any) -> str:
    found = _last(properties.machine_type)
    if not found:
        raise ValueError("a reservation without a machine type")
    return found


def _last(url: str) -> str:
    return url.rpartition("/")[2]


def _moment(text: str) -> datetime:
    found = datetime.fromisoformat(text)
    if found.tzinfo is None:
        raise ValueError(f"{text!r} has no offset")
    return found.astimezone(UTC)
