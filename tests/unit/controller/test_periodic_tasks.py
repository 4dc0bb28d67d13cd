"""What comes round is marked and rung for, and nothing else happens."""

from __future__ import annotations

import threading
from datetime import timedelta

import pytest

from autoscaler.clock import SystemClock, VirtualClock
from autoscaler.controller.periodic_tasks import PeriodicTasks, Task, Timetable, periods_of
from autoscaler.settings.settings import DEFAULTS, ClusterSettings, SyncSettings
from instance_catalog.dataclass import replace
from tests.fakes.clocks import Jumping


def test_a_duty_is_taken_once() -> None:
    rings: list[None] = []
    agenda = PeriodicTasks(lambda: rings.append(None))
    assert agenda.take_due() == frozenset()
    agenda.mark_due(Task.CATALOG)
    agenda.mark_due(Task.CATALOG)
    agenda.mark_due(Task.RESYNC)
    assert len(rings) == 3
    assert agenda.take_due() == {Task.CATALOG, Task.RESYNC}
    assert agenda.take_due() == frozenset()


def test_every_duty_has_its_period_from_the_settings() -> None:
    busy = replace(DEFAULTS, cluster=ClusterSettings(providers=("kwok", "aws"), catalog=("/catalog",)))
    busy = replace(busy, sync=SyncSettings(gcp=("mine",), directory="/synced"))
    assert periods_of(busy) == {
        Task.RESYNC: DEFAULTS.loop.resync,
        Task.CATALOG: DEFAULTS.periods.catalog,
        Task.SYNC: timedelta(hours=24),
        Task.PRICES: DEFAULTS.periods.prices,
        Task.BLOCK_CLOCK: DEFAULTS.periods.block_clock,
    }


def test_what_cannot_have_changed_is_not_read_again() -> None:
    assert set(periods_of(DEFAULTS)) == {Task.RESYNC, Task.BLOCK_CLOCK}


def test_each_job_marks_its_own_duty() -> None:
    marked: list[Task] = []
    periods = {Task.CATALOG: timedelta(minutes=5), Task.RESYNC: timedelta(hours=1)}
    scheduler = Timetable(periods, marked.append, SystemClock()).scheduler
    scheduler.start(paused=True)
    jobs = {job.id: job for job in scheduler.get_jobs()}
    assert {name: job.trigger.interval for name, job in jobs.items()} == {
        "catalog": timedelta(minutes=5),
        "resync": timedelta(hours=1),
    }
    for job in jobs.values():
        job.func(*job.args)
    assert set(marked) == {Task.CATALOG, Task.RESYNC}
    scheduler.shutdown()


@pytest.mark.parametrize("hours", [-3, 3])
def test_a_clock_that_is_set_neither_delays_nor_hastens(hours: int) -> None:
    clock = Jumping(VirtualClock())
    scheduler = Timetable({Task.RESYNC: timedelta(minutes=1)}, lambda _: None, clock).scheduler
    scheduler.start(paused=True)
    (job,) = scheduler.get_jobs()
    before = job.next_run_time
    clock.advance(timedelta(seconds=20))
    scheduler.follow()
    assert job.next_run_time == before
    clock.jump(timedelta(hours=hours))
    scheduler.follow()
    scheduler.follow()
    (job,) = scheduler.get_jobs()
    assert job.next_run_time == before + timedelta(hours=hours)
    scheduler.shutdown()


def test_the_clock_is_looked_at_also_while_nothing_is_due() -> None:
    scheduler = Timetable({Task.RESYNC: timedelta(hours=9)}, lambda _: None, SystemClock()).scheduler
    scheduler.start(paused=True)
    scheduler.resume()
    assert scheduler._process_jobs() == 30
    scheduler.shutdown()


def test_the_timetable_really_rings() -> None:
    rung = threading.Event()
    agenda = PeriodicTasks(rung.set)
    timetable = Timetable({Task.RESYNC: timedelta(milliseconds=1)}, agenda.mark_due, SystemClock())
    assert not timetable.is_alive()
    timetable.start()
    assert timetable.is_alive()
    assert rung.wait(timeout=30)
    timetable.stop()
    assert not timetable.is_alive()
    assert Task.RESYNC in agenda.take_due()
