"""Reservations and future reservations: states, ends, what is left, and which machines start in them."""

from __future__ import annotations

from datetime import timedelta

import pytest

from instance_catalog.types.instance_type import CapacityType
from providers.contract import OfferingKey, Reservation, ReservationState
from providers.errors import NotInGroupsError, ReservationExhaustedError, WaitingError
from providers.gcp.reserved.capacity import STATES
from providers.gcp.reserved.parts import Ref, ref_of
from tests.fakes.gce.holdings import Holding
from tests.fakes.gce.state import NUMBER, SLUGGISH
from tests.gcp import A3, ZONE, Rig, request

HOUR = timedelta(hours=1)
DAY = timedelta(days=1)
BLOCK = f"zones/{ZONE}/futureReservations/block"


def only(rig: Rig) -> Reservation:
    """The one reservation, read anew."""
    rig.restart()
    (found,) = rig.provider.reservations()
    return found


def test_a_block_keeps_its_name_and_its_window_from_submission_to_end() -> None:
    rig = Rig()
    rig.hold(count=2, starts_in=2 * HOUR, lasts=DAY)
    seen = [only(rig)]
    for step in (1.5 * HOUR, 0.5 * HOUR, DAY):
        rig.advance(step)
        seen.append(only(rig))
    assert [one.state.value for one in seen] == ["scheduled", "scheduled", "active", "ended"]
    assert [one.available for one in seen] == [0, 0, 2, 0]
    assert {(one.id, one.count, one.capacity_type) for one in seen} == {(BLOCK, 2, "capacity-block")}
    assert {(one.starts_at, one.ends_at, one.reclaim_at) for one in seen} == {
        (rig.holding.starts, rig.holding.ends, rig.holding.ends)
    }
    assert seen[-1].note == "its reservation no longer exists"


def test_a_block_that_is_delivered_late_says_so_and_takes_nothing() -> None:
    rig = Rig()
    offering = rig.hold(starts_in=HOUR, lasts=DAY, late=3 * HOUR, told=False)
    rig.advance(2 * HOUR)
    found = only(rig)
    assert (found.state, found.available) == (ReservationState.SCHEDULED, 0)
    assert "until a day after its start" in found.note
    assert rig.provider.launch(request(offerings=(offering,))).instances == ()
    assert rig.fake.calls["createInstances"] == 0
    rig.advance(2 * HOUR)
    rig.restart()
    assert len(rig.provider.launch(request(offerings=(offering,))).instances) == 1


def test_nothing_is_asked_for_in_a_block_that_has_not_begun_or_is_over() -> None:
    """The group would try for ever."""
    rig = Rig()
    offering = rig.hold(starts_in=HOUR, lasts=DAY)
    for at in (timedelta(0), HOUR + DAY):
        rig.advance(at)
        rig.restart()
        answer = rig.provider.launch(request(offerings=(offering,)))
        (failure,) = answer.failures
        assert isinstance(failure.error, ReservationExhaustedError)
        assert answer.instances == ()
    assert rig.fake.calls["createInstances"] == 0


def test_a_gang_in_a_block_waits_in_one_request_without_a_duration() -> None:
    """The machines of a block run until it ends: their request says no duration, as Google asks for."""
    rig = Rig()
    offering = rig.hold(count=2, starts_in=HOUR, lasts=DAY)
    rig.queue_gangs()
    rig.advance(HOUR)
    rig.restart()
    group = rig.fake.project.groups[ZONE, rig.templates.found.groups[-1].name]
    rig.fake.project.stock[group.machine_type, group.zone, group.model] = 0
    asked = request("a", "b", minimum=2, offerings=(offering,))
    with pytest.raises(WaitingError):
        rig.provider.launch(asked)
    assert rig.fake.calls["resizeRequests.insert"] == 1
    rig.fake.project.stock.clear()
    rig.advance(timedelta(minutes=2))
    machines = rig.provider.launch(asked).instances
    assert {one.offering for one in machines} == {offering}
    assert (len(machines), rig.fake.calls["createInstances"]) == (2, 0)


def test_machines_of_a_block_know_it_and_its_end_and_are_stopped_by_google() -> None:
    rig = Rig()
    offering = rig.hold(starts_in=timedelta(0), lasts=DAY)
    rig.provider.launch(request(offerings=(offering,)))
    rig.settle()
    (machine,) = rig.provider.describe({}).instances
    assert (machine.offering, machine.reclaim_at) == (offering, rig.holding.ends)
    rig.advance(DAY)
    rig.settle()
    rig.restart()
    (stopped,) = rig.provider.describe({}).instances
    assert (stopped.state.value, stopped.reclaim_at) == ("stopped", rig.holding.ends)


@pytest.mark.parametrize("status", ["", "PENDING_AMENDMENT_APPROVAL"])
def test_what_is_asked_for_does_not_count_before_google_has_approved_it(status: str) -> None:
    """Google stops the machines at the end that it has granted."""
    rig = Rig()
    rig.hold(count=2, starts_in=HOUR, lasts=DAY, override=status)
    granted = rig.holding.ends
    assert granted is not None
    rig.holding.asked = (granted + DAY, 4)
    found = only(rig)
    assert (found.count, found.ends_at, found.reclaim_at) == (2, granted, granted)
    rig.holding.ends, rig.holding.count, rig.holding.asked = granted + DAY, 4, None
    found = only(rig)
    assert (found.count, found.ends_at, found.reclaim_at) == (4, granted + DAY, granted + DAY)


def test_a_block_that_is_named_by_the_number_of_this_project_is_the_same_block() -> None:
    """Its machines have an end, as those of a block that is named without a project."""
    rig = Rig()
    offering = rig.hold(starts_in=timedelta(0), lasts=DAY)
    group = rig.fake.project.groups[ZONE, rig.templates.found.groups[-1].name]
    group.reservation = f"projects/{NUMBER}/reservations/block-res"
    rig.restart()
    assert len(rig.provider.launch(request(offerings=(offering,))).instances) == 1
    rig.settle()
    (machine,) = rig.provider.describe({}).instances
    assert (machine.offering, machine.reclaim_at) == (offering, rig.holding.ends)
    assert only(rig).id == BLOCK


def test_a_reservation_of_another_project_by_its_number_is_not_one_of_the_same_name() -> None:
    rig = Rig()
    rig.fake.owners.add("777")
    offering = rig.hold(starts_in=timedelta(0), lasts=DAY, future="", owner="777")
    now = rig.clock.now()
    rig.fake.project.holdings.append(Holding("block-res", ZONE, A3.instance_type, 5, now, now))
    rig.restart()
    found = {one.id: one.count for one in rig.provider.reservations()}
    assert found == {f"projects/777/zones/{ZONE}/reservations/block-res": 1, f"zones/{ZONE}/reservations/block-res": 5}
    assert len(rig.provider.launch(request(offerings=(offering,))).instances) == 1
    before = rig.fake.calls["reservations.get"]
    rig.provider.describe({})
    assert rig.fake.calls["reservations.get"] - before <= 1  # whose a number is, is asked once


def test_whose_a_number_is_that_nobody_may_read_is_asked_once_a_reconcile() -> None:
    rig = Rig()
    rig.hold(starts_in=timedelta(0), lasts=DAY, future="", owner="777")
    now = rig.clock.now()
    rig.fake.project.holdings.append(Holding("block-res", ZONE, A3.instance_type, 5, now, now))
    rig.restart()
    before = rig.fake.calls["reservations.get"]
    for _ in range(3):
        rig.provider.reservations()
    assert rig.fake.calls["reservations.get"] - before == 2  # and what is left of it


@pytest.mark.parametrize("status", sorted(STATES))
def test_every_procurement_status_is_something(status: str) -> None:
    rig = Rig()
    rig.hold(starts_in=HOUR, lasts=DAY, override=status)
    found = only(rig)
    assert found.state is STATES[status]
    assert found.available == 0


def test_the_table_of_states_has_every_status_of_the_api() -> None:
    from google.cloud import compute_v1

    known = compute_v1.FutureReservationStatus.ProcurementStatus.__members__.keys()
    assert known - STATES.keys() == {"PROCUREMENT_STATUS_UNSPECIFIED", "UNDEFINED_PROCUREMENT_STATUS"}


def test_what_is_delivered_in_part_counts_as_it_is() -> None:
    rig = Rig()
    rig.hold(count=3, starts_in=timedelta(0), lasts=DAY, override="FAILED_PARTIALLY_FULFILLED")
    found = only(rig)
    assert (found.state, found.available) == (ReservationState.ACTIVE, 3)
    assert "only a part" in found.note


def test_a_reservation_that_a_list_lacks_is_asked_for_before_it_is_gone() -> None:
    """A block whose reservation the list has not caught up with is not lost."""
    rig = Rig()
    rig.hold(starts_in=timedelta(0), lasts=DAY)
    rig.fake.hidden.add("block-res")
    assert only(rig).state is ReservationState.ACTIVE


def test_a_future_reservation_of_default_mode_lets_machines_stay() -> None:
    rig = Rig()
    offering = rig.hold(starts_in=timedelta(0), lasts=DAY, mode="DEFAULT")
    found = only(rig)
    assert (found.capacity_type, found.reclaim_at) == ("reserved", None)
    rig.provider.launch(request(offerings=(offering,)))
    rig.advance(2 * DAY)
    (machine,) = rig.provider.describe({}).instances
    assert (machine.state.value, machine.reclaim_at) == ("running", None)


def test_a_reservation_counts_and_a_capacity_block_may_hold_it() -> None:
    rig = Rig()
    reserved = rig.hold(count=2, starts_in=timedelta(0), lasts=DAY, future="")
    assert (only(rig).offering, only(rig).available) == (reserved, 2)
    held = OfferingKey(A3.instance_type, ZONE, CapacityType.CAPACITY_BLOCK, reserved.reservation)
    assert len(rig.provider.launch(request(offerings=(held,))).instances) == 1
    rig.settle()
    assert only(rig).available == 1


@pytest.mark.parametrize("after", [False, True], ids=["at a moment", "after a while"])
def test_a_reservation_may_end_by_itself(after: bool) -> None:
    rig = Rig()
    end = rig.clock.now() + DAY
    rig.hold(count=2, starts_in=timedelta(0), lasts=DAY, future="", deleted_after=DAY if after else None)
    assert only(rig).ends_at == end


def test_what_was_launched_is_not_available_while_google_counts_it_not_yet() -> None:
    rig = Rig(SLUGGISH)
    offering = rig.hold(count=3, starts_in=timedelta(0), lasts=DAY)
    assert rig.provider.reservations()[0].available == 3
    rig.provider.launch(request("a", "b", offerings=(offering,)))
    assert rig.fake.project.used(rig.holding, counted=True) == 0
    assert rig.provider.reservations()[0].available == 1


def test_a_reservation_of_another_project() -> None:
    rig = Rig()
    rig.fake.owners.add("owner")
    offering = rig.hold(starts_in=timedelta(0), lasts=DAY, future="", owner="owner")
    found = only(rig)
    assert found.id == f"projects/owner/zones/{ZONE}/reservations/block-res"
    assert len(rig.provider.launch(request(offerings=(offering,))).instances) == 1
    rig.fake.unreadable.add("owner")
    found = only(rig)
    assert (found.state, found.available) == (ReservationState.PENDING, 0)
    assert "roles/compute.viewer in project owner" in found.note


@pytest.mark.parametrize(
    ("named", "model", "why"),
    [
        ("gone", "STANDARD", "reservations/gone does not exist"),
        ("block-res/reservationBlocks/b1", "RESERVATION_BOUND", "reservationBlocks/b1 does not exist"),
        ("", "RESERVATION_BOUND", "it names none"),
        ("block-res", "SPOT", "Spot machines of a reservation do not exist"),
    ],
)
def test_groups_that_start_nothing_say_why(named: str, model: str, why: str) -> None:
    rig = Rig()
    rig.hold(starts_in=timedelta(0), lasts=DAY)
    group = rig.group(A3)
    group.reservation, group.model = named, model
    rig.restart()
    (failure,) = rig.provider.launch(request()).failures
    assert isinstance(failure.error, NotInGroupsError)
    assert why in failure.error.message


@pytest.mark.parametrize("affinity", ["SPECIFIC_THEN_ANY_RESERVATION", "SPECIFIC_THEN_NO_RESERVATION"])
def test_a_group_whose_machines_may_come_from_elsewhere_is_not_on_demand(affinity: str) -> None:
    rig = Rig()
    rig.hold(starts_in=timedelta(0), lasts=DAY)
    group = rig.group(A3)
    group.reservation, group.affinity = "block-res", affinity
    rig.restart()
    (failure,) = rig.provider.launch(request()).failures
    assert isinstance(failure.error, NotInGroupsError)
    assert f"the reservation affinity {affinity} is not supported yet" in failure.error.message
    assert rig.fake.calls["createInstances"] == 0


@pytest.mark.parametrize("affinity", ["UNSPECIFIED", "ANY_RESERVATION", "NO_RESERVATION"])
def test_a_group_that_names_no_reservation_is_on_demand(affinity: str) -> None:
    rig = Rig()
    rig.group(A3).affinity = affinity
    assert len(rig.provider.launch(request()).instances) == 1


def test_a_degraded_block_is_named() -> None:
    rig = Rig()
    rig.hold(starts_in=timedelta(0), lasts=DAY, degraded=2)
    assert "2 of 3 blocks of block-res are degraded" in only(rig).note


def test_a_reservation_that_cannot_be_read_hides_no_other() -> None:
    rig = Rig()
    rig.hold(starts_in=timedelta(0), lasts=DAY)
    now = rig.clock.now()
    rig.fake.project.holdings.append(Holding("odd", ZONE, "", 1, now, now))
    assert only(rig).id == BLOCK


def test_a_plain_reservation_with_the_name_of_a_coming_one_is_not_the_coming_one() -> None:
    rig = Rig()
    rig.hold(starts_in=DAY, lasts=DAY)
    now = rig.clock.now()
    rig.fake.project.holdings.append(Holding("block-res", ZONE, A3.instance_type, 1, now, now))
    rig.restart()
    found = {one.id: one.state.value for one in rig.provider.reservations()}
    assert found == {BLOCK: "scheduled", f"zones/{ZONE}/reservations/block-res": "active"}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("r", Ref(ZONE, "r")),
        ("projects/own/reservations/r", Ref(ZONE, "r")),
        ("projects/p/reservations/r", Ref(ZONE, "r", "p")),
        ("r/reservationBlocks/b", Ref(ZONE, "r", "", "b")),
        ("projects/p/reservations/r/reservationBlocks/b", Ref(ZONE, "r", "p", "b")),
        ("projects/own/reservations/r/reservationBlocks/b/reservationSubBlocks/s", Ref(ZONE, "r", "", "b", "s")),
    ],
)
def test_how_templates_name_reservations(value: str, expected: Ref) -> None:
    assert ref_of(ZONE, value, "own") == expected


@pytest.mark.parametrize("future", ["block", ""])
def test_of_a_reservation_only_what_can_be_used_is_available(future: str) -> None:
    rig = Rig()
    offering = rig.hold(count=4, usable=3, taken=1, starts_in=timedelta(0), lasts=DAY, future=future)
    found = next(one for one in rig.provider.reservations() if one.id == offering.reservation)
    assert (found.count, found.available) == (4, 2)
