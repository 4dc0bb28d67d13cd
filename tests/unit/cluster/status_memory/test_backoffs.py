"""How widely a back-off reaches and how long it lasts: what a failure says about what else may be asked for."""

from __future__ import annotations

from datetime import timedelta

import pytest

from autoscaler.model.provisioned_node import OfferingRef
from instance_catalog.dataclass import replace
from instance_catalog.types.instance_type import CapacityType
from providers.errors import (
    AcceleratorQuotaError,
    NotInGroupsError,
    NotOfferedError,
    ProviderError,
    QuotaError,
    ReservationExhaustedError,
    ShortageError,
    ThrottledError,
)
from tests.desk import A, B, Desk

MINUTE = timedelta(minutes=1)
SPOT = replace(A, capacity_type=CapacityType.SPOT)
OTHER_TYPE = replace(A, instance_type="p4d.24xlarge")


@pytest.mark.parametrize("again", [MINUTE * 0, MINUTE], ids=["at once", "a minute after it was over"])
def test_a_failure_that_follows_another_lasts_twice_as_long(desk: Desk, again: timedelta) -> None:
    spans = []
    for _ in range(4):
        desk.backoffs.failed("gpu", A, ShortageError("none left"), desk.now)
        until = desk.now
        while desk.backoffs.forbid("gpu", A, until):
            until += MINUTE
        spans.append((until - desk.now) // MINUTE)
        desk.clock.advance(until - desk.now + again)
    assert spans == [3, 6, 12, 24]


def test_after_a_success_a_failure_is_the_first_one(desk: Desk) -> None:
    for _ in range(2):
        desk.backoffs.failed("gpu", A, ShortageError("none left"), desk.now)
        desk.clock.advance(MINUTE * 10)
        desk.backoffs.succeeded("gpu", A, desk.now)
    desk.backoffs.failed("gpu", A, ShortageError("none left"), desk.now)
    assert not desk.backoffs.forbid("gpu", A, desk.now + MINUTE * 3)


@pytest.mark.parametrize(
    ("error", "forbidden", "allowed"),
    [
        pytest.param(QuotaError("full"), (A, B, OTHER_TYPE), (SPOT,), id="a quota is that of a capacity type"),
        pytest.param(ShortageError("none left"), (A,), (B, SPOT, OTHER_TYPE), id="a shortage is that of an offering"),
        pytest.param(ThrottledError("slow down"), (A, B, SPOT, OTHER_TYPE), (), id="throttling is of everything"),
    ],
)
def test_a_back_off_reaches_as_far_as_its_error(
    desk: Desk, error: ProviderError, forbidden: tuple[OfferingRef, ...], allowed: tuple[OfferingRef, ...]
) -> None:
    desk.backoffs.failed("gpu", A, error, desk.now)
    assert all(desk.backoffs.forbid("gpu", offering, desk.now) for offering in forbidden)
    assert not any(desk.backoffs.forbid("gpu", offering, desk.now) for offering in allowed)
    assert not desk.backoffs.forbid("other", A, desk.now)


def test_what_would_have_failed_alike_rests_as_long(desk: Desk) -> None:
    error = AcceleratorQuotaError("Quota 'NVIDIA_L4_GPUS' exceeded.")
    desk.backoffs.failed("gpu", A, error, desk.now, also=(B, OTHER_TYPE))
    for seen in (desk, desk.restarted()):
        assert all(seen.backoffs.forbid("gpu", one, desk.now + MINUTE * 14) for one in (A, B, OTHER_TYPE))
        assert not seen.backoffs.forbid("gpu", SPOT, desk.now)
    desk.clock.advance(MINUTE * 15)
    desk.backoffs.failed("gpu", B, error, desk.now, also=(A,))
    assert desk.backoffs.forbid("gpu", A, desk.now + MINUTE * 29)


@pytest.mark.parametrize(
    "error",
    [NotInGroupsError("no group"), NotOfferedError("never"), ReservationExhaustedError("full"), ShortageError("none")],
)
def test_what_fails_for_a_reservation_delays_only_that_one(desk: Desk, error: ProviderError) -> None:
    held = replace(A, capacity_type=CapacityType.CAPACITY_BLOCK, reservation="cr-1")
    others = (replace(held, reservation="cr-2"), A, SPOT, B)
    desk.backoffs.failed("gpu", held, error, desk.now)
    for seen in (desk, desk.restarted()):
        assert seen.backoffs.forbid("gpu", held, desk.now)
        assert not any(seen.backoffs.forbid("gpu", offering, desk.now) for offering in others)
        assert not seen.backoffs.paused("gpu", desk.now)
