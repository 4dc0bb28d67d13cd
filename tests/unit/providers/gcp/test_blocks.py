"""Blocks and sub-blocks of reservations: capacity of their own, their health, and machines that start in just them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from instance_catalog.types.instance_type import CapacityType
from providers.contract import OfferingKey, ReservationState
from providers.errors import NotInGroupsError, ReservationExhaustedError
from tests.fakes.gce.holdings import Block, SubBlock
from tests.fakes.gce.state import PROMPT, SLUGGISH, Behaviour
from tests.gcp import A3, ZONE, Rig, read, request

DAY = timedelta(days=1)
HALF = "/reservationBlocks/b1"
RACK = f"{HALF}/reservationSubBlocks/s1"


def held(
    part: str,
    *sub_blocks: SubBlock,
    starts_in: timedelta = timedelta(0),
    behaviour: Behaviour = PROMPT,
    **more: Any,
) -> tuple[Rig, OfferingKey]:
    """A reservation of ten hosts in two blocks, and a group that names `part` of it. `sub_blocks` are those of b1."""
    rig = Rig(behaviour)
    first = sub_blocks or (SubBlock("s1", 3), SubBlock("s2", 3))
    blocks = (Block("b1", first), Block("b2", (SubBlock("s1", 4),)))
    offering = rig.hold(count=10, starts_in=starts_in, lasts=DAY, part=part, blocks=blocks, **more)
    return rig, offering


@pytest.mark.parametrize(("part", "hosts"), [(HALF, 6), (RACK, 3)])
def test_a_part_is_capacity_of_its_own_and_ends_with_the_whole(part: str, hosts: int) -> None:
    rig, offering = held(part)
    found = read(rig, offering)
    assert offering.reservation == f"zones/{ZONE}/reservations/block-res{part}"
    assert (found.offering, found.count, found.available) == (offering, hosts, hosts)
    assert (found.state, found.ends_at, found.reclaim_at) == (
        ReservationState.ACTIVE,
        rig.holding.ends,
        rig.holding.ends,
    )
    assert {one.reservation for one in (status.offering for status in rig.provider.offerings())} == {
        "",
        offering.reservation,
    }
    whole = next(one for one in rig.provider.reservations() if one.id != offering.reservation)
    assert (whole.count, whole.available) == (10, 10)


@pytest.mark.slow
def test_machines_start_in_the_part_count_there_and_know_it() -> None:
    rig, offering = held(RACK)
    assert len(rig.provider.launch(request("a", "b", offerings=(offering,))).instances) == 2
    rig.settle()
    assert read(rig, offering).available == 1
    assert {one.offering for one in rig.provider.describe({}).instances} == {offering}
    assert {one.reservation for one in rig.fake.project.machines.values()} == {f"block-res{RACK}"}
    answer = rig.provider.launch(request("c", "d", batch="b2", offerings=(offering,), minimum=2))
    assert answer.instances == ()
    assert isinstance(answer.failures[0].error, ReservationExhaustedError)


def test_what_was_launched_is_gone_from_the_part_and_from_the_whole_at_once() -> None:
    rig, offering = held(RACK, behaviour=SLUGGISH)
    before = {one.id: one.available for one in rig.provider.reservations()}
    rig.provider.launch(request("a", "b", offerings=(offering,)))
    after = {one.id: one.available for one in rig.provider.reservations()}
    assert {key: before[key] - after[key] for key in before} == dict.fromkeys(before, 2)
    assert len(before) == 2


def test_the_whole_reservation_is_not_the_part() -> None:
    rig, offering = held(RACK)
    whole = OfferingKey(A3.instance_type, ZONE, CapacityType.CAPACITY_BLOCK, f"zones/{ZONE}/futureReservations/block")
    (failure,) = rig.provider.launch(request(offerings=(whole,))).failures
    assert isinstance(failure.error, NotInGroupsError)
    assert rig.fake.calls["createInstances"] == 0
    assert read(rig, offering).available == 3


def test_a_part_has_no_more_than_is_left_of_the_whole() -> None:
    rig, offering = held(HALF, taken=8)
    assert (read(rig, offering).count, read(rig, offering).available) == (6, 2)


@pytest.mark.parametrize(
    ("part", "sub_block", "available", "note"),
    [
        (RACK, SubBlock("s1", 3, degraded=1), 2, "1 of 3 hosts of sub-block s1 are degraded"),
        (RACK, SubBlock("s1", 3, broken=True), 3, "the NVLink domain of sub-block s1 is degraded"),
        (HALF, SubBlock("s1", 3, degraded=1), 3, "1 of 1 sub-blocks of block b1 are degraded"),
        (RACK, SubBlock("s1", 3, status="CREATING"), 0, "the status of s1 is CREATING"),
        (RACK, SubBlock("s1", 3), 3, ""),
    ],
)
def test_what_is_impaired_is_named(part: str, sub_block: SubBlock, available: int, note: str) -> None:
    rig, offering = held(part, sub_block)
    found = read(rig, offering)
    assert found.available == available
    assert found.note.startswith(note)
    assert bool(found.note) == bool(note)


def test_no_machine_is_asked_for_on_a_degraded_host() -> None:
    """Which of those in use are degraded Google does not say, so none that could be is counted as free."""
    rig, offering = held(RACK, SubBlock("s1", 3, degraded=1))
    rig.provider.launch(request("a", "b", offerings=(offering,)))
    rig.settle()
    assert read(rig, offering).available == 0


def test_a_part_of_what_google_has_not_delivered_is_not_offered_yet() -> None:
    """The group names a block before there is one: its reservation does not exist."""
    rig, offering = held(RACK, starts_in=DAY)
    (part,) = (one for one in rig.provider.reservations() if one.id == offering.reservation)
    assert (part.state, part.count, part.available) == (ReservationState.SCHEDULED, 0, 0)
    assert rig.fake.calls["reservationSubBlocks.get"] == 0
    assert rig.provider.launch(request(offerings=(offering,))).instances == ()
    assert rig.fake.calls["createInstances"] == 0
    rig.advance(DAY)
    rig.restart()
    assert len(rig.provider.launch(request(offerings=(offering,))).instances) == 1


@pytest.mark.parametrize("part", ["/reservationBlocks/none", f"{HALF}/reservationSubBlocks/none"])
def test_a_part_that_does_not_exist_is_named(part: str) -> None:
    rig, _ = held(part)
    (wrong,) = (
        fault for status in rig.provider.template_statuses() for fault in status.faults if "none" in fault.message
    )
    assert f"reservations/block-res{part} does not exist" in wrong.message


@pytest.mark.parametrize(("part", "method"), [(HALF, "reservationBlocks.get"), (RACK, "reservationSubBlocks.get")])
def test_a_role_of_an_older_release_is_named_and_hides_no_machine(part: str, method: str) -> None:
    rig, offering = held(part)
    rig.provider.launch(request(offerings=(offering,)))
    rig.settle()
    rig.fake.denied.add(method)
    found = read(rig, offering)
    assert (found.state, found.available) == (ReservationState.PENDING, 0)
    step = "update the controller's role from deploy/gcp/controller-role.yaml"
    assert step in found.note
    (fault,) = (fault for status in rig.provider.template_statuses() for fault in status.faults)
    assert (fault.kind, fault.next_step) == ("Permission", step)
    rig.fake.denied.clear()
    rig.restart()
    assert [fault for status in rig.provider.template_statuses() for fault in status.faults] == []
    rig.fake.denied.add(method)
    rig.restart()
    assert [one.offering for one in rig.provider.describe({}).instances] == [offering]


def test_a_part_of_a_reservation_of_another_project() -> None:
    rig, offering = held(RACK, future="", owner="owner")
    rig.fake.owners.add("owner")
    assert offering.reservation == f"projects/owner/zones/{ZONE}/reservations/block-res{RACK}"
    assert read(rig, offering).available == 3
    assert len(rig.provider.launch(request(offerings=(offering,))).instances) == 1
