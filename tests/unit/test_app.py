"""The controller keeps ticking through what will pass, ends when told to, and ends on what must not occur."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta

import pytest

from autoscaler.app import Bell, Controller
from autoscaler.clock import EPOCH, VirtualClock
from autoscaler.cluster.api import ApiError, ForbiddenError, UnavailableError
from autoscaler.errors import ConfigurationError, InternalError
from autoscaler.execution.executor import Trouble
from autoscaler.loop import Tick
from autoscaler.model.plan import Plan
from autoscaler.model.snapshot import Snapshot
from autoscaler.settings import BatchSettings, LoopSettings, Settings
from providers.errors import AmbiguousError, ProviderError
from tests.desk import POOL, planned

AT_ONCE = Settings(loop=LoopSettings(resync=timedelta(0)), batch=BatchSettings(idle=timedelta(0)))
QUIET = Tick(EPOCH, Snapshot(), Plan(), (), None)


@dataclass
class Script:
    """A loop that has the outcomes it is given, one a tick, and stops the controller after the last."""

    outcomes: list[Tick | Exception]
    stop: Callable[[], None] = lambda: None
    bell: Bell = field(default_factory=Bell)
    ticks: int = 0

    def tick(self) -> Tick:
        outcome = self.outcomes[self.ticks]
        self.ticks += 1
        # Something has always changed meanwhile, so nothing here waits.
        self.bell.ring()
        if self.ticks == len(self.outcomes):
            self.stop()
        if isinstance(outcome, Exception):
            raise outcome
        return outcome


def run(*outcomes: Tick | Exception) -> int:
    """How many ticks there were."""
    script = Script(list(outcomes))
    controller = Controller(script, script.bell, VirtualClock(), AT_ONCE)
    script.stop = controller.stop
    controller.run()
    return script.ticks


def test_it_ticks_until_it_is_stopped() -> None:
    assert run(QUIET) == 1
    assert run(QUIET, QUIET, QUIET) == 3


def test_a_controller_that_was_stopped_before_does_nothing() -> None:
    script = Script([QUIET])
    controller = Controller(script, script.bell, VirtualClock(), AT_ONCE)
    controller.stop()
    controller.run()
    assert script.ticks == 0


@pytest.mark.parametrize(
    "error",
    [UnavailableError("no answer"), ForbiddenError("no right"), ConfigurationError("no CRD"), AmbiguousError("lost")],
    ids=lambda error: type(error).__name__,
)
def test_what_may_pass_is_told_and_tried_again(
    error: ApiError | ConfigurationError | ProviderError, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        assert run(error, error, QUIET) == 3
    assert caplog.text.count("this round was cut short and is repeated") == 2
    assert str(error) in caplog.text


def test_what_must_not_occur_ends_the_process() -> None:
    with pytest.raises(InternalError):
        run(InternalError("broken"), QUIET)


def test_troubles_are_logged_with_the_object(caplog: pytest.LogCaptureFixture) -> None:
    trouble = Trouble("LaunchBatch", "gpu-1", AmbiguousError("no answer"))
    with caplog.at_level(logging.WARNING):
        run(Tick(EPOCH, Snapshot(), Plan(), (trouble,), None))
    assert "LaunchBatch gpu-1: no answer" in caplog.text


def test_what_stays_as_it_was_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    proposed = Tick(EPOCH, Snapshot(pools=(POOL,)), Plan(launches=(planned("n1", pods=("default/a",)),)), (), None)
    with caplog.at_level(logging.INFO):
        run(proposed, proposed, QUIET, proposed)
    assert caplog.messages == ["launch p5.48xlarge in us-east-1a (on-demand) for pool gpu: default/a"] * 2


def test_it_looks_again_when_something_falls_due() -> None:
    script = Script([Tick(EPOCH, Snapshot(), Plan(), (), EPOCH), QUIET], bell=Bell())
    silent = Settings(loop=LoopSettings(resync=timedelta(hours=1)))
    controller = Controller(script, Bell(), VirtualClock(EPOCH), silent)
    script.stop = controller.stop
    controller.run()
    assert script.ticks == 2


def test_a_bell_rings_once() -> None:
    bell = Bell()
    assert not bell.wait(0)
    bell.ring()
    bell.ring()
    assert bell.wait(0)
    assert not bell.wait(0)
