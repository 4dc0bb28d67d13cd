"""autoscaler/clock.py: virtual time advances only when a test advances it."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta

import pytest

from autoscaler.clock import EPOCH, ClockJumps, SystemClock, VirtualClock
from tests.fakes.clocks import Jumping

SECOND = timedelta(seconds=1)


def test_waiting_advances_the_clock() -> None:
    clock = VirtualClock()
    clock.wait(90)
    assert clock.now() == EPOCH + timedelta(seconds=90)
    assert clock.monotonic() == 90.0


def test_a_wait_that_is_not_positive_returns_at_once() -> None:
    clock = VirtualClock()
    clock.wait(0)
    clock.wait(-5)
    assert clock.now() == EPOCH


def test_advance_to_a_past_moment_does_nothing() -> None:
    clock = VirtualClock()
    clock.advance_to(EPOCH + SECOND)
    clock.advance_to(EPOCH)
    assert clock.now() == EPOCH + SECOND


def test_time_cannot_go_back() -> None:
    with pytest.raises(ValueError, match="cannot go back"):
        VirtualClock().advance(-SECOND)


def test_a_clock_needs_an_aware_start() -> None:
    with pytest.raises(ValueError, match="aware start time"):
        VirtualClock(EPOCH.replace(tzinfo=None))


def test_the_system_clock_is_aware_and_monotonic() -> None:
    clock = SystemClock()
    before = clock.monotonic()
    clock.wait(0)
    assert clock.now().tzinfo is UTC
    assert clock.now() > datetime(2026, 1, 1, tzinfo=UTC)
    assert clock.monotonic() >= before


def test_the_time_of_a_suspended_machine_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "clock_gettime", {time.CLOCK_BOOTTIME: 7200.0}.__getitem__)
    assert SystemClock().monotonic() == 7200.0


def test_a_jump_is_measured_once_and_known_for_a_while() -> None:
    inner = VirtualClock()
    clock = Jumping(inner)
    jumps = ClockJumps(clock)
    inner.advance(timedelta(hours=1))
    clock.jump(SECOND)
    assert jumps.measure() == timedelta(0)
    assert not jumps.within(timedelta(days=1))
    for jump in (timedelta(hours=-3), timedelta(minutes=2)):
        clock.jump(jump)
        assert abs(jumps.measure() - jump) < SECOND / 1000
        assert jumps.measure() == timedelta(0)
        inner.advance(timedelta(minutes=5))
        assert jumps.within(timedelta(minutes=6))
        assert not jumps.within(timedelta(minutes=5))


def test_what_is_inherited_counts_as_a_jump() -> None:
    inner = VirtualClock()
    jumps = ClockJumps(inner, inherits=True)
    inner.advance(timedelta(minutes=5))
    assert jumps.within(timedelta(minutes=6))
    assert not jumps.within(timedelta(minutes=5))
    assert jumps.measure() == timedelta(0)


def test_a_clock_that_drifts_does_not_jump() -> None:
    inner = VirtualClock()
    clock = Jumping(inner)
    jumps = ClockJumps(clock)
    for _ in range(100):
        inner.advance(timedelta(seconds=30))
        clock.jump(SECOND / 2)
        assert jumps.measure() == timedelta(0)
