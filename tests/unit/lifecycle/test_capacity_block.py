"""The life of a CapacityBlock follows from the clock and the provider, forwards and, after an extension, back."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autoscaler.lifecycle.capacity_block import BlockPhase, next_moment, phase_of
from autoscaler.model.capacity import CapacityBlock
from instance_catalog.dataclass import replace

START = datetime(2027, 1, 30, 11, 30, tzinfo=UTC)
END = START + timedelta(days=1)
RECLAIM = END - timedelta(minutes=30)
BLOCK = CapacityBlock("b", "p5.48xlarge", "us-east-1a", 4, START, END, reclaim_at=RECLAIM)
SECOND = timedelta(seconds=1)


@pytest.mark.parametrize(
    ("now", "phase"),
    [
        pytest.param(START - SECOND, BlockPhase.PENDING, id="before the start"),
        pytest.param(START, BlockPhase.ACTIVE, id="at the start"),
        pytest.param(RECLAIM - timedelta(minutes=45) - SECOND, BlockPhase.ACTIVE, id="before the notice"),
        pytest.param(RECLAIM - timedelta(minutes=45), BlockPhase.NOTICE, id="at the notice"),
        pytest.param(RECLAIM - timedelta(minutes=15) - SECOND, BlockPhase.NOTICE, id="before the drain"),
        pytest.param(RECLAIM - timedelta(minutes=15), BlockPhase.DRAINING, id="at the drain"),
        pytest.param(RECLAIM - SECOND, BlockPhase.DRAINING, id="before the machines go"),
        pytest.param(RECLAIM, BlockPhase.ENDED, id="when the machines go"),
        pytest.param(END + timedelta(days=9), BlockPhase.ENDED, id="long after"),
    ],
)
def test_the_phase_follows_from_the_clock(now: datetime, phase: BlockPhase) -> None:
    assert phase_of(BLOCK, now) is phase


def test_without_a_word_of_the_provider_the_end_counts() -> None:
    block = replace(BLOCK, reclaim_at=None)
    assert phase_of(block, END - SECOND) is BlockPhase.DRAINING
    assert phase_of(block, END) is BlockPhase.ENDED


def test_the_moments_at_which_the_phase_changes() -> None:
    moments, now = [], START - timedelta(days=1)
    while (moment := next_moment(BLOCK, now)) is not None:
        moments.append(moment)
        now = moment
    assert moments == [START, RECLAIM - timedelta(minutes=45), RECLAIM - timedelta(minutes=15), RECLAIM]


@settings(deadline=None, derandomize=True)
@given(st.integers(-(10**6), 10**6), st.integers(-(10**6), 10**6))
def test_between_two_moments_the_phase_never_changes(first: int, seconds: int) -> None:
    now = START + timedelta(seconds=first)
    later = now + timedelta(seconds=abs(seconds))
    upcoming = next_moment(BLOCK, now)
    if upcoming is None or later < upcoming:
        assert phase_of(BLOCK, later) is phase_of(BLOCK, now)
