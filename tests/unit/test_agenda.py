"""What comes round is marked and rung for, and nothing else happens."""

from __future__ import annotations

import threading
from dataclasses import replace
from datetime import timedelta

from autoscaler.agenda import Agenda, Duty, periods_of, schedule
from autoscaler.settings import DEFAULTS, ClusterSettings, SyncSettings


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


def test_each_job_marks_its_own_duty() -> None:
    marked: list[Duty] = []
    scheduler = schedule({Duty.CATALOG: timedelta(minutes=5), Duty.RESYNC: timedelta(hours=1)}, marked.append)
    scheduler.start(paused=True)
    jobs = {job.id: job for job in scheduler.get_jobs()}
    assert {name: job.trigger.interval for name, job in jobs.items()} == {
        "catalog": timedelta(minutes=5),
        "resync": timedelta(hours=1),
    }
    for job in jobs.values():
        job.func(*job.args)
    assert set(marked) == {Duty.CATALOG, Duty.RESYNC}
    scheduler.shutdown()


def test_the_scheduler_really_rings() -> None:
    rung = threading.Event()
    agenda = Agenda(rung.set)
    scheduler = schedule({Duty.RESYNC: timedelta(milliseconds=1)}, agenda.mark)
    scheduler.start()
    assert rung.wait(timeout=30)
    scheduler.shutdown()
    assert Duty.RESYNC in agenda.take()
