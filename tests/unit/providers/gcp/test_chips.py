"""Reservations of TPUs: chips of a family, counted in the machines that groups start in them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from google.cloud import compute_v1

from instance_catalog.dataclass import replace
from instance_catalog.files.loader import load_catalog
from instance_catalog.types.instance_type import CapacityType
from providers.contract import OfferingKey, ReservationState
from providers.errors import NotInGroupsError, ReservationExhaustedError
from providers.gcp.node_template.template import GroupRef
from providers.gcp.node_template.tpu import chips_of
from providers.gcp.reserved.chips import SOLD, family_of
from tests.fakes.gce.holdings import Holding
from tests.fakes.gce.state import PROMPT, SLUGGISH, Behaviour, Group
from tests.gcp import ZONE, Rig, read, request, whole

DAY = timedelta(days=1)
V6E_8 = "ct6e-standard-8t"


def held(
    *, chips: int = 32, starts_in: timedelta = timedelta(0), behaviour: Behaviour = PROMPT, **more: Any
) -> tuple[Rig, OfferingKey]:
    """TPU capacity in calendar mode, and a group that starts machines of eight chips in it."""
    rig = Rig(behaviour)
    return rig, rig.hold(starts_in=starts_in, lasts=DAY, of=V6E_8, chips=chips, **more)


def another_group(rig: Rig, machine_type: str) -> None:
    """One more group that starts machines in the same reservation."""
    base = "gke-c1-other-0a1b2c3d"
    rig.fake.project.add(
        Group(f"{base}-grp", ZONE, base, machine_type, "RESERVATION_BOUND", reservation=rig.holding.name)
    )
    found = rig.templates.found
    rig.templates.found = replace(found, groups=(*found.groups, GroupRef(ZONE, f"{base}-grp")))


def test_calendar_capacity_of_tpus_is_a_block_of_the_machines_that_start_in_it() -> None:
    rig, offering = held()
    found = read(rig, offering)
    assert (found.offering, found.count, found.available) == (offering, 4, 4)
    assert (found.capacity_type, found.state) == (CapacityType.CAPACITY_BLOCK, ReservationState.ACTIVE)
    assert (found.ends_at, found.reclaim_at, found.note) == (rig.holding.ends, rig.holding.ends, "")


def test_it_is_known_before_it_begins() -> None:
    rig, offering = held(starts_in=DAY)
    found = read(rig, offering)
    assert (found.instance_type, found.count, found.available) == (V6E_8, 4, 0)
    assert found.state is ReservationState.SCHEDULED
    assert rig.provider.launch(request(offerings=(offering,))).instances == ()
    assert rig.fake.calls["createInstances"] == 0


def test_a_reservation_that_somebody_made_and_one_of_another_project_are_read_as_well() -> None:
    rig, offering = held(future="")
    found = read(rig, offering)
    assert (found.capacity_type, found.count, found.reclaim_at) == (CapacityType.RESERVED, 4, None)
    rig, offering = held(future="", owner="lender")
    rig.fake.owners.add("lender")
    assert (read(rig, offering).instance_type, read(rig, offering).available) == (V6E_8, 4)


def test_machines_start_in_it_until_its_chips_are_used() -> None:
    rig, offering = held(chips=16, used_chips=4)
    assert (read(rig, offering).count, read(rig, offering).available) == (2, 1)
    assert len(rig.provider.launch(request("a", offerings=(offering,))).instances) == 1
    rig.settle()
    assert read(rig, offering).available == 0
    assert {one.offering for one in rig.provider.describe({}).instances} == {offering}
    answer = rig.provider.launch(request("b", batch="b2", offerings=(offering,)))
    assert [type(one.error) for one in answer.failures] == [ReservationExhaustedError]


def test_what_was_launched_is_gone_before_google_counts_it() -> None:
    rig, offering = held(behaviour=SLUGGISH)
    before = next(one for one in rig.provider.reservations() if one.id == offering.reservation).available
    rig.provider.launch(request("a", "b", offerings=(offering,)))
    after = next(one for one in rig.provider.reservations() if one.id == offering.reservation).available
    assert (before, after) == (4, 2)


def test_machines_of_another_family_are_refused_with_the_reason() -> None:
    rig, offering = held()
    another_group(rig, "ct5lp-hightpu-4t")
    (fault,) = (
        one for status in rig.provider.template_statuses() for one in status.faults if "TPU chips" in one.message
    )
    assert "it holds 32 TPU chips for ct6e machines, and not ct5lp-hightpu-4t" in fault.message
    assert "another machine type" in fault.message + fault.next_step
    wanted = OfferingKey("ct5lp-hightpu-4t", ZONE, CapacityType.CAPACITY_BLOCK, offering.reservation)
    (failure,) = rig.provider.launch(request(offerings=(wanted,))).failures
    assert isinstance(failure.error, NotInGroupsError)
    assert read(rig, offering).available == 4


def test_groups_of_two_machine_types_leave_it_uncounted_and_say_so() -> None:
    rig, offering = held()
    another_group(rig, "ct6e-standard-4t")
    found = read(rig, offering)
    assert (found.state, found.count, found.available) == (ReservationState.PENDING, 0, 0)
    assert found.note.startswith("groups start ct6e-standard-4t and ct6e-standard-8t in it")


def test_without_a_group_it_says_what_it_holds() -> None:
    rig, offering = held()
    found = rig.templates.found
    rig.templates.found = replace(found, groups=found.groups[:-1])
    assert read(rig, offering).note == "it holds 32 TPU chips, and no group starts ct6e machines in it"


def test_parts_of_it_are_refused() -> None:
    rig, _ = held(part="/reservationBlocks/b1")
    assert any(
        "parts of such reservations are not supported" in fault.message
        for status in rig.provider.template_statuses()
        for fault in status.faults
    )


def test_a_slice_of_several_hosts_starts_in_it_as_a_whole() -> None:
    rig = Rig()
    wanted = rig.slices()
    now = rig.clock.now()
    dates = {"created": now, "starts": now, "ends": now + DAY}
    rig.fake.project.holdings.append(
        Holding("block-res", ZONE, wanted.instance_type, 1, future="block", chips=32, **dates)
    )
    group = rig.group(wanted)
    group.model, group.reservation = "RESERVATION_BOUND", "block-res"
    offering = replace(
        wanted,
        capacity_type=CapacityType.CAPACITY_BLOCK,
        reservation=f"zones/{ZONE}/futureReservations/block",
    )
    assert (read(rig, offering).count, read(rig, offering).available) == (8, 8)
    answer = rig.provider.launch(replace(whole(), offerings=(offering,)))
    assert ([str(one.error) for one in answer.failures], len(answer.instances)) == ([], 4)
    rig.settle()
    assert read(rig, offering).available == 4


def test_families_are_those_of_google_and_of_the_catalog() -> None:
    """The last word of a VmFamily is what names of its machine types begin with."""
    known = {family_of(name) for name in load_catalog().types if chips_of(name)}
    named = {
        one.name.rpartition("_")[2].lower(): one.name
        for one in compute_v1.AllocationAggregateReservation.VmFamily
        if one.name.startswith("VM_FAMILY")
    }
    assert known == set(named)
    assert {family: of for family, (_, of) in SOLD.items()}.items() <= named.items()
