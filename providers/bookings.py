"""The free capacity of reservations while a cloud has not counted recent launches yet."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta

from instance_catalog.dataclass import dataclass, replace
from providers.contract import Clock, Reservation


@dataclass(slots=True)
class _Booking:
    """At most `left` are available until `until` (monotonic seconds): the cloud does not count the launch yet."""

    left: int
    until: float


class Bookings:
    """Launches that are subtracted from a cloud's counts for as long as those may lag: `window`."""

    def __init__(self, clock: Clock, window: timedelta) -> None:
        self._clock = clock
        self._window = window.total_seconds()
        self._bookings: dict[str, _Booking] = {}
        self._counted: dict[str, set[str]] = {}

    def less(self, found: Reservation) -> Reservation:
        """The reservation, less the launches that are not counted yet."""
        booking = self._bookings.get(found.id)
        if booking is None:
            return found
        if found.available <= booking.left or self._clock.monotonic() >= booking.until:
            del self._bookings[found.id]  # the cloud has caught up
            return found
        return replace(found, available=booking.left)

    def launched(self, reservation: str, ids: Iterable[str], known: Reservation | None) -> None:
        """Count machines that were just started. A repeated answer counts each machine once. `known` is the reservation
        as it was read last: nothing is read here, since what fails after a launch must not look like one that failed.
        """
        counted = self._counted.setdefault(reservation, set())
        fresh = set(ids) - counted
        counted |= fresh
        if known is not None and fresh:
            self._book(reservation, max(self.less(known).available - len(fresh), 0))

    def exhausted(self, reservation: str) -> None:
        """The cloud has just refused a launch: none is left."""
        self._book(reservation, 0)

    def _book(self, reservation: str, left: int) -> None:
        self._bookings[reservation] = _Booking(left, self._clock.monotonic() + self._window)
