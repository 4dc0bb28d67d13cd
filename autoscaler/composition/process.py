"""The controller as a process: its threads, started in order and stopped in reverse.

Threads: the controller's own (the caller of `Process.run`), the election, the timetable, one for each HTTP address, one
for each watch, one for the interruptions of a cloud, one for Events, one for exemplars. Only the first one decides and
acts; the others wake it or read what it publishes, and exemplars are no capacity.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Final

import structlog

from autoscaler.cluster.lease import Election, campaign
from autoscaler.cluster.publishing.event_writer import EventWriter
from autoscaler.composition.external_grpc import ExternalGrpc
from autoscaler.controller.controller import Controller, Wakeup
from autoscaler.controller.interruption_watch import InterruptionWatch
from autoscaler.controller.periodic_tasks import Task, Timetable, periods_of
from autoscaler.serve.health import Heartbeat
from autoscaler.serve.listener import Listener
from autoscaler.serve.tracing import Tracing
from autoscaler.settings.settings import LeaseSettings, Settings
from instance_catalog.dataclass import dataclass
from providers.contract import Clock

_LOG: Final = structlog.get_logger("foreslice")


@dataclass(frozen=True, slots=True)
class Process:
    """The controller with its HTTP servers, its timetable and its election. `run` returns after `stop`."""

    controller: Controller
    settings: Settings
    clock: Clock
    listeners: tuple[Listener, ...]
    election: Election
    wakeup: Wakeup
    heartbeat: Heartbeat
    tracing: Tracing
    events: EventWriter
    interruptions: InterruptionWatch | None = None
    external_grpc: ExternalGrpc | None = None

    def stop(self) -> None:
        """End after the reconcile in progress. Any signal handler may call it."""
        self.heartbeat.unready()
        self.controller.stop()

    def run(self) -> None:
        """Until stopped. Gives the Lease up at the end, so that another replica need not wait. LeadershipLostError."""
        with ExitStack() as stack:
            stack.callback(self.tracing.close)
            for listener in self.listeners:
                listener.start()
                _LOG.info("listening", serves=listener.serves, address=listener.address)
                stack.callback(listener.stop)
            periods = periods_of(self.settings)
            for task in periods.keys() & {Task.SYNC, Task.PRICES}:
                self.controller.mark_due(task)  # the other tasks first run after their period
            timetable = Timetable(periods, self.controller.mark_due, self.clock)
            timetable.start()
            stack.callback(timetable.stop)
            self.heartbeat.depend_on("timetable", timetable.is_alive)
            if self.interruptions is not None:
                self.interruptions.start()
                stack.callback(self.interruptions.stop)
            if self.settings.lease.elect:
                candidacy = _candidacy(self.election, self.settings.lease, self.wakeup)
                self.heartbeat.depend_on("election", stack.enter_context(candidacy).is_alive)
            if self.external_grpc is not None:
                stack.callback(self.external_grpc.stop)  # it begins with the first reconcile of the leader
            self.events.start()
            stack.callback(self.events.stop)  # before the Lease is given up
            self.controller.run()
        _LOG.info("ended")


@contextmanager
def _candidacy(election: Election, settings: LeaseSettings, wakeup: Wakeup) -> Iterator[threading.Thread]:
    """The thread that acquires and renews the Lease: a long reconcile must not keep it from being renewed."""
    ended = threading.Event()
    thread = threading.Thread(
        target=campaign,
        args=(election, settings),
        kwargs={"ended": ended, "changed": wakeup.set},
        name="election",
        daemon=True,
    )
    thread.start()
    try:
        yield thread
    finally:
        ended.set()
        thread.join(timeout=settings.renew_deadline.total_seconds())
        election.release()
