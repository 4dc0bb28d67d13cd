"""The guarantees of providers with capacity blocks: part of the checks of conformance.py."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Final

from providers.conformance_harness import (
    BrokenGuaranteeError,
    Harness,
    expect,
    launched,
    live,
    only_failure,
    request_of,
)
from providers.contract import ReservationState
from providers.errors import ReservationExhaustedError


def block_before_its_start(harness: Harness) -> None:
    """A block that has not begun is SCHEDULED, has nothing available, and a launch into it is refused as exhausted."""
    offering = harness.reserve(count=2, starts_in=timedelta(hours=1), lasts=timedelta(days=1))
    (reservation,) = harness.provider.reservations()
    expect(reservation.offering == offering, f"the block asks for {reservation.offering}")
    expect(reservation.state is ReservationState.SCHEDULED, f"expected SCHEDULED, found {reservation.state}")
    expect(reservation.available == 0, f"{reservation.available} machines available before the start")
    error = only_failure(launched(harness, request_of(harness, offerings=(offering,))), offering)
    expect(isinstance(error, ReservationExhaustedError), f"expected ReservationExhausted, found {error.kind}")


def block_while_it_lasts(harness: Harness) -> None:
    """An active block starts its machines and no more, counts them, and each has the time when it is taken back."""
    offering = harness.reserve(count=2, starts_in=timedelta(hours=1), lasts=timedelta(days=1))
    harness.advance(timedelta(hours=1))
    answer = launched(harness, request_of(harness, nodes=3, offerings=(offering,)))
    expect(len(answer.instances) == 2 and len(answer.missing) == 1, "a block of two gave another number")
    harness.settle()
    (reservation,) = harness.provider.reservations()
    expect(reservation.state is ReservationState.ACTIVE, f"expected ACTIVE, found {reservation.state}")
    expect(reservation.available == 0, f"{reservation.available} machines available in a full block")
    expect(reservation.reclaim_at is not None and reservation.ends_at is not None, "a block must say when it ends")
    for instance in live(harness, "b1").values():
        expect(instance.reclaim_at == reservation.reclaim_at, f"{instance.id} does not know its end")


def block_exhausted_by_somebody_else(harness: Harness) -> None:
    """Machines of a block that another user took are not available, and the error names the reservation's scope."""
    offering = harness.reserve(count=1, starts_in=timedelta(0), lasts=timedelta(days=1))
    harness.take(offering.reservation, 1)
    error = only_failure(launched(harness, request_of(harness, offerings=(offering,))), offering)
    expect(isinstance(error, ReservationExhaustedError), f"expected ReservationExhausted, found {error.kind}")
    expect(harness.provider.reservations()[0].available == 0, "a taken machine counts as available")


def block_is_taken_back(harness: Harness) -> None:
    """From `reclaim_at` on the provider ends the block's machines and starts none; after the end it is ENDED."""
    offering = harness.reserve(count=1, starts_in=timedelta(0), lasts=timedelta(days=1))
    launched(harness, request_of(harness, offerings=(offering,)))
    (reservation,) = harness.provider.reservations()
    if reservation.reclaim_at is None or reservation.ends_at is None:
        raise BrokenGuaranteeError("a block must say when it ends")
    expect(reservation.reclaim_at <= reservation.ends_at, "machines are taken back after the end")
    harness.advance(reservation.reclaim_at - reservation.starts_at)
    expect(live(harness, "b1") == {}, "machines live on after they were taken back")
    late = launched(harness, request_of(harness, batch="b2", offerings=(offering,)))
    expect(late.instances == (), "a machine started after the block was taken back")
    harness.advance(reservation.ends_at - reservation.reclaim_at)
    ended = [found.state for found in harness.provider.reservations()]
    expect(ended in ([], [ReservationState.ENDED]), f"expected the block to have ended, found {ended}")


def extension_moves_the_end(harness: Harness) -> None:
    """An extended block ends later and takes its machines back later, also those that run already."""
    offering = harness.reserve(count=1, starts_in=timedelta(0), lasts=timedelta(days=1))
    launched(harness, request_of(harness, offerings=(offering,)))
    harness.settle()
    (before,) = harness.provider.reservations()
    harness.extend(offering.reservation, timedelta(days=1))
    harness.settle()
    (after,) = harness.provider.reservations()
    if before.reclaim_at is None or after.reclaim_at is None:
        raise BrokenGuaranteeError("a block must say when it ends")
    expect(after.reclaim_at - before.reclaim_at == timedelta(days=1), "the end did not move by the extension")
    moments = {instance.reclaim_at for instance in live(harness, "b1").values()}
    expect(moments == {after.reclaim_at}, "a running machine does not know its new end")


CHECKED: Final[tuple[Callable[[Harness], None], ...]] = (
    block_before_its_start,
    block_while_it_lasts,
    block_exhausted_by_somebody_else,
    block_is_taken_back,
    extension_moves_the_end,
)
