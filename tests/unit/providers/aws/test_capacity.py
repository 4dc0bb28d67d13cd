"""Reservations and Capacity Blocks: states, ends, and what is left while EC2 has not caught up."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from instance_catalog.dataclass import replace
from instance_catalog.types.instance_type import CapacityType
from providers.aws.capacity import RECLAIM_LEADS, Kind
from providers.contract import LaunchForm
from tests.aws import Rig, in_reservation, request, running


@pytest.mark.parametrize("minimum", [pytest.param(1, id="fleet"), pytest.param(2, id="gang")])
@pytest.mark.parametrize("interruptible", [pytest.param(False, id="plain"), pytest.param(True, id="interruptible")])
def test_a_reservation_is_named(minimum: int, interruptible: bool) -> None:
    rig = Rig()
    offering = in_reservation(rig, interruptible=interruptible)
    answer = rig.provider.launch(request("a", "b", offerings=(offering,), minimum=minimum))
    assert [instance.offering for instance in answer.instances] == [offering, offering]
    assert {machine.reservation for machine in running(rig)} == {offering.reservation}
    described = rig.provider.describe({"foreslice.dev/launch-batch": "b1"}).instances
    assert {instance.offering for instance in described} == {offering}


def test_a_capacity_block_may_name_an_on_demand_reservation() -> None:
    """A CapacityBlock object holds its nodes; the market is that of the reservation that it names."""
    rig = Rig()
    offering = replace(in_reservation(rig), capacity_type=CapacityType.CAPACITY_BLOCK)
    answer = rig.provider.launch(request("a", "b", offerings=(offering,)))
    assert not answer.failures
    assert {machine.reservation for machine in running(rig)} == {offering.reservation}
    assert [instance.offering for instance in answer.instances] == [offering, offering]
    described = rig.provider.describe({"foreslice.dev/launch-batch": "b1"}).instances
    assert {instance.offering for instance in described} == {offering}


def test_what_was_launched_is_not_available_while_ec2_still_counts_it() -> None:
    rig = Rig()
    offering = in_reservation(rig, count=4)
    assert rig.provider.reservations()[0].available == 4
    rig.fake.account.set_behaviour(counting=timedelta(minutes=2))
    rig.provider.launch(request("a", "b", "c", offerings=(offering,)))
    rig.provider.launch(request("a", "b", "c", offerings=(offering,)))  # repeated: counted once
    rig.clock.advance(timedelta(seconds=30))
    assert rig.fake.account.counted_in(rig.fake.account.holdings[offering.reservation]) == 4
    assert rig.provider.reservations()[0].available == 1
    rig.clock.advance(timedelta(minutes=10))
    assert rig.provider.reservations()[0].available == 1


def test_an_ultraserver_goes_an_hour_before_its_end() -> None:
    rig = Rig()
    details = {"ultraserver": "u-p6e-gb200x36"}
    block = rig.fake.account.block(
        "p6e-gb200.36xlarge", "us-east-1a", 9, starts_in=timedelta(0), lasts=timedelta(days=1), **details
    )
    (found,) = rig.provider.reservations()
    assert found.ends_at is not None
    assert (found.id, found.ends_at - (found.reclaim_at or found.ends_at)) == (block.id, timedelta(hours=1))


def ultraserver(rig: Rig, *, days: int) -> Any:
    lasts, details = timedelta(days=days), {"ultraserver": "u-p6e-gb200x36"}
    return rig.fake.account.block("p6e-gb200.36xlarge", "us-east-1a", 9, starts_in=timedelta(0), lasts=lasts, **details)


def test_a_block_that_ec2_has_forgotten_hides_no_other() -> None:
    rig = Rig()
    old, new = ultraserver(rig, days=1), ultraserver(rig, days=30)
    assert len(rig.provider.reservations()) == 2
    rig.clock.advance(timedelta(days=2))
    del rig.fake.account.holdings[old.id]
    new.impaired = True
    (found,) = rig.provider.reservations()
    assert found.id == new.id
    assert "impaired" in found.note


def test_a_block_of_another_account_hides_no_other() -> None:
    rig = Rig()
    own = ultraserver(rig, days=1)
    shared = rig.fake.account.block(
        "p5.48xlarge", "us-east-1b", 2, starts_in=timedelta(0), lasts=timedelta(days=1), shared=True
    )
    leads = {
        one.id: one.ends_at - one.reclaim_at for one in rig.provider.reservations() if one.ends_at and one.reclaim_at
    }
    assert leads == {own.id: timedelta(hours=1), shared.id: timedelta(minutes=30)}


def test_every_kind_and_form_has_its_lead() -> None:
    kinds = (Kind.BLOCK, Kind.ULTRASERVER)
    assert set(RECLAIM_LEADS) == {(kind, form) for kind in kinds for form in LaunchForm}
    assert RECLAIM_LEADS[Kind.BLOCK, LaunchForm.MANAGED_GROUP] == timedelta(minutes=40)


@pytest.mark.parametrize(
    ("state", "expected", "note"),
    [
        pytest.param("assessing", "pending", "not decided", id="assessing"),
        pytest.param("delayed", "pending", "later than asked", id="delayed"),
        pytest.param("unavailable", "ended", "AWS Support", id="unavailable"),
        pytest.param("unsupported", "ended", "cannot deliver", id="unsupported"),
    ],
)
def test_states_that_are_not_plain_carry_a_note(state: str, expected: str, note: str) -> None:
    rig = Rig()
    rig.fake.account.reserve("p5.48xlarge", "us-east-1a", 2, override=state)
    (found,) = rig.provider.reservations()
    assert (found.state.value, found.available) == (expected, 0)
    assert note in found.note
