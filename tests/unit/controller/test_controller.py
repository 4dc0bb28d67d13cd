"""The controller keeps ticking through what will pass, ends when told to, and ends on what must not occur."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest
from structlog.testing import capture_logs

from autoscaler.clock import EPOCH, VirtualClock
from autoscaler.cluster.api import ApiError, ForbiddenError, UnavailableError
from autoscaler.cluster.lease import LeadershipLostError
from autoscaler.cluster.resources import PODS
from autoscaler.controller.controller import Controller, Wakeup
from autoscaler.controller.observers import TickObservers
from autoscaler.controller.periodic_tasks import PeriodicTasks, Task
from autoscaler.errors import ConfigurationError, InternalError
from autoscaler.execution.executor import Trouble
from autoscaler.loop.loop import Tick
from autoscaler.model.capacity import Mode
from autoscaler.model.plan import Plan
from autoscaler.model.snapshot import Snapshot
from autoscaler.serve.health import Heartbeat
from autoscaler.serve.recorder import Recorder
from autoscaler.serve.site import LatestTick
from autoscaler.settings.settings import BatchSettings, LoopSettings, Settings
from instance_catalog.dataclass import replace
from providers.errors import AmbiguousError, ProviderError
from tests.desk import POOL, planned
from tests.fakes.clocks import Jumping

AT_ONCE = Settings(loop=LoopSettings(resync=timedelta(0)), batch=BatchSettings(idle=timedelta(0)))
QUIET = Tick(EPOCH, Snapshot(), Plan(), (), None)


@dataclass
class Script:
    """A loop that has the outcomes it is given, one a tick, and stops the controller after the last."""

    outcomes: list[Tick | Exception]
    stop: Callable[[], None] = lambda: None
    wakeup: Wakeup = field(default_factory=Wakeup)
    ticks: int = 0
    followed: int = 0
    rehearsed: int = 0
    unseen: list[ApiError] = field(default_factory=list)

    def follow(self) -> None:
        self.followed += 1
        if self.unseen:
            raise self.unseen.pop()

    def warm_up(self) -> None:
        self.rehearsed += 1

    def tick(self) -> Tick:
        outcome = self.outcomes[self.ticks]
        self.ticks += 1
        # Something has always changed meanwhile, so nothing here waits.
        self.wakeup.set()
        if self.ticks == len(self.outcomes):
            self.stop()
        if isinstance(outcome, Exception):
            raise outcome
        return outcome


@dataclass
class Stand:
    """A controller and those it tells."""

    script: Script
    clock: VirtualClock = field(default_factory=VirtualClock)
    settings: Settings = AT_ONCE
    leads: Callable[[], bool] = lambda: True
    perform: Callable[[Task], None] = lambda duty: None

    def __post_init__(self) -> None:
        self.heartbeat = Heartbeat(self.clock)
        self.recorder = Recorder(self.clock, version="1")
        self.latest = LatestTick()
        self.controller = Controller(
            self.script,
            self.script.wakeup,
            self.clock,
            self.settings,
            observers=TickObservers(self.heartbeat, self.recorder, self.latest, timedelta(minutes=5)),
            tasks=PeriodicTasks(self.script.wakeup.set),
            leads=self.leads,
            perform=self.perform,
        )
        self.script.stop = self.controller.stop

    def ticks(self, outcome: str = "ok") -> float | None:
        return self.recorder.registry.get_sample_value("foreslice_reconciles_total", {"outcome": outcome})


def run(*outcomes: Tick | Exception) -> int:
    """How many ticks there were."""
    stand = Stand(Script(list(outcomes)))
    stand.controller.run()
    return stand.script.ticks


@pytest.fixture
def log() -> Iterator[list[Any]]:
    with capture_logs() as lines:
        yield lines


def test_it_ticks_until_it_is_stopped() -> None:
    assert run(QUIET) == 1
    assert run(QUIET, QUIET, QUIET) == 3


def test_what_the_first_plan_needs_is_worked_out_once_the_cluster_was_read() -> None:
    script = Script([UnavailableError("no answer"), QUIET, QUIET])
    Stand(script).controller.run()
    assert (script.ticks, script.rehearsed) == (3, 1)


def test_a_controller_that_was_stopped_before_does_nothing() -> None:
    stand = Stand(Script([QUIET]))
    stand.controller.stop()
    stand.controller.run()
    assert stand.script.ticks == 0


@pytest.mark.parametrize(
    "error",
    [UnavailableError("no answer"), ForbiddenError("no right"), ConfigurationError("no CRD"), AmbiguousError("lost")],
    ids=lambda error: type(error).__name__,
)
def test_what_may_pass_is_told_and_tried_again(
    error: ApiError | ConfigurationError | ProviderError, log: list[Any]
) -> None:
    stand = Stand(Script([error, error, QUIET]))
    stand.controller.run()
    assert (stand.ticks("failed"), stand.ticks("ok")) == (2, 1)
    told = {"event": "reconcile_failed", "log_level": "warning", "error": str(error), "kind": type(error).__name__}
    assert log == [told, told]


def test_what_nobody_foresaw_is_logged_with_its_traceback_and_the_next_round_is_tried(log: list[Any]) -> None:
    stand = Stand(Script([IsADirectoryError("a bug"), QUIET]))
    stand.controller.run()
    assert (stand.ticks("failed"), stand.ticks("ok")) == (1, 1)
    (told,) = log
    assert (told["event"], told["log_level"], told["kind"]) == ("reconcile_failed", "error", "IsADirectoryError")
    assert isinstance(told["exc_info"], IsADirectoryError)


def test_what_must_not_occur_ends_the_process() -> None:
    with pytest.raises(InternalError):
        run(InternalError("broken"), QUIET)


def test_troubles_are_logged_with_the_object(log: list[Any]) -> None:
    trouble = Trouble("LaunchBatch", "gpu-1", AmbiguousError("no answer"))
    run(Tick(EPOCH, Snapshot(), Plan(), (trouble,), None))
    assert log == [
        {
            "event": "action_failed",
            "log_level": "warning",
            "kind": "LaunchBatch",
            "name": "gpu-1",
            "reason": trouble.reason,
            "error": trouble.text,
        }
    ]


OBSERVING = replace(POOL, mode=Mode.OBSERVE)


def test_what_stays_as_it_was_is_logged_once(log: list[Any]) -> None:
    proposed = Tick(EPOCH, Snapshot(pools=(OBSERVING,)), Plan(launches=(planned("n1", pods=("default/a",)),)), (), None)
    run(proposed, proposed, QUIET, proposed)
    told = {
        "event": "would_launch",
        "log_level": "info",
        "pool": "gpu",
        "offering": "p5.48xlarge in us-east-1a (on-demand)",
        "usd_per_hour": "55.04",
        "pods": ("default/a",),
    }
    assert log == [told, told]


def test_it_looks_again_when_something_falls_due() -> None:
    script = Script([Tick(EPOCH, Snapshot(), Plan(), (), EPOCH), QUIET])
    silent = Settings(loop=LoopSettings(resync=timedelta(hours=1)))
    stand = Stand(script, VirtualClock(EPOCH), silent)
    script.wakeup = Wakeup()  # what rings is not what the controller hears
    stand.controller.run()
    assert script.ticks == 2


def test_a_bell_rings_once() -> None:
    wakeup = Wakeup()
    assert not wakeup.wait(0)
    wakeup.set()
    wakeup.set()
    assert wakeup.wait(0)
    assert not wakeup.wait(0)


def test_the_page_shows_the_last_round() -> None:
    stand = Stand(Script([QUIET]))
    assert stand.latest.get() is None
    assert not stand.heartbeat.is_ready
    stand.controller.run()
    assert stand.latest.get() is not None
    assert stand.latest.get().snapshot is QUIET.snapshot
    assert stand.heartbeat.is_ready


class Seat:
    """Whether this replica leads, answer by answer; the last one stops the controller."""

    def __init__(self, *answers: bool) -> None:
        self.answers = list(answers)
        self.stop: Callable[[], None] = lambda: None
        self.wake: Callable[[], None] = lambda: None

    def __call__(self) -> bool:
        self.wake()  # nothing here waits
        answer = self.answers.pop(0)
        if not self.answers:
            self.stop()
        return answer


def test_who_does_not_lead_is_ready_and_does_not_tick() -> None:
    seat = Seat(False, False, False)
    stand = Stand(Script([]), leads=seat)
    seat.stop, seat.wake = stand.controller.stop, stand.script.wakeup.set
    stand.controller.run()
    assert (stand.script.ticks, stand.script.followed, stand.script.rehearsed) == (0, 1, 1)
    assert stand.heartbeat.is_ready
    assert stand.heartbeat.problem == ""


def test_who_cannot_follow_tries_again_and_is_elected_all_the_same(log: list[Any]) -> None:
    seat = Seat(False, False, True, True, True)
    script = Script([QUIET, QUIET], unseen=[UnavailableError("no answer")])
    stand = Stand(script, leads=seat)
    seat.wake = script.wakeup.set
    stand.controller.run()
    assert (script.followed, script.ticks) == (1, 2)
    assert [line["event"] for line in log] == ["cluster_not_followed"]
    assert stand.ticks("failed") == 0


def test_who_is_elected_ticks() -> None:
    seat = Seat(False, True, True, True)
    stand = Stand(Script([QUIET, QUIET]), leads=seat)
    seat.wake = stand.script.wakeup.set
    stand.controller.run()
    assert stand.script.ticks == 2


def test_who_has_led_and_does_not_any_more_ends() -> None:
    seat = Seat(True, False, False)
    stand = Stand(Script([QUIET, QUIET, QUIET]), leads=seat)
    with pytest.raises(LeadershipLostError, match="could not renew its Lease"):
        stand.controller.run()
    assert stand.script.ticks == 1


def test_what_a_fence_refuses_ends_the_process_too() -> None:
    with pytest.raises(LeadershipLostError):
        run(LeadershipLostError("create launchbatches was not sent"), QUIET)


def test_a_duty_is_done_before_the_next_tick() -> None:
    done: list[tuple[Task, int]] = []
    script = Script([QUIET, QUIET])
    stand = Stand(script, perform=lambda duty: done.append((duty, script.ticks)))
    stand.controller.mark_due(Task.CATALOG)
    stand.controller.mark_due(Task.CATALOG)
    stand.controller.run()
    assert done == [(Task.CATALOG, 0)]
    assert script.ticks == 2


@pytest.mark.parametrize(
    ("wake_at", "rings"),
    [
        pytest.param(None, False, id="nothing falls due"),
        pytest.param(EPOCH + timedelta(seconds=1), False, id="not yet"),
        pytest.param(EPOCH, True, id="the wall clock was set beyond it"),
    ],
)
def test_the_block_clock_rings_only_when_the_moment_has_passed(wake_at: Any, rings: bool) -> None:
    stand = Stand(Script([Tick(EPOCH, Snapshot(), Plan(), (), wake_at)]))
    stand.controller.run()
    stand.script.wakeup.wait(0)
    stand.controller.mark_due(Task.BLOCK_CLOCK)
    assert stand.script.wakeup.wait(0) is rings


def test_a_round_whose_requests_time_out_one_after_another_is_not_stuck() -> None:
    stand = Stand(Script([]))
    observers = TickObservers(stand.heartbeat, stand.recorder, stand.latest, timedelta(minutes=5))
    with observers.tick():
        for _ in range(10):
            with suppress(UnavailableError), observers.request("list", PODS):
                stand.clock.advance(timedelta(seconds=131))  # as long as one may last (client/transport.py)
                assert stand.heartbeat.problem == ""
                raise UnavailableError("no answer")
        stand.clock.advance(timedelta(seconds=301))
        assert stand.heartbeat.problem == "a reconcile: overdue for 1 s"


@pytest.mark.parametrize("jump", [timedelta(hours=3), timedelta(hours=-3)], ids=["forward", "back"])
def test_a_wall_clock_that_is_set_neither_ends_nor_delays_anything(jump: timedelta) -> None:
    clock = Jumping(VirtualClock())
    recorder, heartbeat = Recorder(clock, version="1"), Heartbeat(clock)
    wakeup = Wakeup()
    controller = Controller(
        Script([]),
        wakeup,
        clock,
        AT_ONCE,
        observers=TickObservers(heartbeat, recorder, LatestTick(), timedelta(minutes=5)),
        tasks=PeriodicTasks(wakeup.set),
    )
    heartbeat.expect(within=60, doing="resting")
    clock.jump(jump)
    assert heartbeat.problem == ""
    controller.mark_due(Task.RESYNC)
    assert wakeup.wait(0)
    clock.advance(timedelta(seconds=61))
    assert heartbeat.problem == "resting: overdue for 1 s"
