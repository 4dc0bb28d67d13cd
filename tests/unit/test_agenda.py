"""What comes round is marked and rung for, and nothing else happens."""

from __future__ import annotations

import threading
from dataclasses import replace
from datetime import timedelta

import pytest

from autoscaler.agenda import Agenda, Duty, Timetable, periods_of
from autoscaler.clock import SystemClock, VirtualClock
from autoscaler.settings import DEFAULTS, ClusterSettings, SyncSettings
from tests.fakes.clocks import Jumping


def test_a_duty_is_taken_once() -> None:
    rings: list[None] = []
    agenda = Agenda(lambda: rings.append(None))
    assert agenda.take() == frozenset()
    agenda.mark(Duty.CATALOG)
    agenda.mark(Duty.CATALOG)
    agenda.mark(Duty.RESYNC)
    assert len(rings) == 3
    assert agenda.take() == {Duty.CATALOG, Duty.RESYNC}
    assert agenda.take() == frozenset()


def test_every_duty_has_its_period_from_the_settings() -> None:
    busy = replace(DEFAULTS, cluster=ClusterSettings(providers=("kwok", "aws"), catalog=("/catalog",)))
    busy = replace(busy, sync=SyncSettings(gcp=("mine",), directory="/synced"))
    assert periods_of(busy) == {
        Duty.RESYNC: DEFAULTS.loop.resync,
        Duty.CATALOG: DEFAULTS.periods.catalog,
        Duty.SYNC: timedelta(hours=24),
        Duty.PRICES: DEFAULTS.periods.prices,
        Duty.BLOCK_CLOCK: DEFAULTS.periods.block_clock,
    }


def test_what_cannot_have_changed_is_not_read_again() -> None:
    assert set(periods_of(DEFAULTS)) == {Duty.RESYNC, Duty.BLOCK_CLOCK}


def test_each_duty_is_marked_when_its_period_is_over() -> None:
    clock, marked = VirtualClock(), list[Duty]()
    periods = {Duty.CATALOG: timedelta(minutes=5), Duty.RESYNC: timedelta(minutes=2)}
    timetable = Timetable(periods, marked.append, clock)
    rests = []
    for _ in range(6):
        rests.append(timetable.step())
        clock.advance(timedelta(minutes=1))
    assert marked == [Duty.RESYNC, Duty.RESYNC, Duty.CATALOG]
    assert rests == [120, 60, 120, 60, 60, 60]


def test_a_duty_whose_period_passed_often_is_marked_once() -> None:
    clock, marked = VirtualClock(), list[Duty]()
    timetable = Timetable({Duty.RESYNC: timedelta(minutes=1)}, marked.append, clock)
    clock.advance(timedelta(hours=3))
    assert timetable.step() == 60
    assert marked == [Duty.RESYNC]


@pytest.mark.parametrize("hours", [-3, 3])
def test_a_clock_that_is_set_neither_delays_nor_hastens(hours: int) -> None:
    clock, marked = Jumping(VirtualClock()), list[Duty]()
    timetable = Timetable({Duty.RESYNC: timedelta(minutes=1)}, marked.append, clock)
    timetable.step()
    clock.jump(timedelta(hours=hours))
    assert (timetable.step(), marked) == (60, [])
    clock.advance(timedelta(minutes=1))
    assert (timetable.step(), marked) == (60, [Duty.RESYNC])


def test_without_duties_there_is_nothing_to_do() -> None:
    assert Timetable({}, lambda _: None, VirtualClock()).step() > 0


def test_the_timetable_really_rings() -> None:
    rung = threading.Event()
    agenda = Agenda(rung.set)
    timetable = Timetable({Duty.RESYNC: timedelta(milliseconds=1)}, agenda.mark, SystemClock())
    assert not timetable.is_alive()
    timetable.start()
    assert timetable.is_alive()
    assert rung.wait(timeout=30)
    timetable.stop()
    assert not timetable.is_alive()
    assert Duty.RESYNC in agenda.take()
