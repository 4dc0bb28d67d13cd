"""The watch wakes the controller on an interruption; while the queue cannot be read, it polls ever more rarely."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta

import pytest

from autoscaler.composition.aws import aws_announcer
from autoscaler.controller.interruption_watch import InterruptionWatch
from autoscaler.settings.settings import AwsSettings
from instance_catalog.dataclass import replace
from instance_catalog.types.instance_type import CapacityType
from providers.abilities import Announcer
from providers.aws.interruptions import Interruptions
from providers.contract import TAG_CLUSTER
from providers.errors import AmbiguousError, ProviderError
from tests.aws import CLUSTER, P5, Rig, request
from tests.unit.providers.aws.test_interruptions import with_queue


@dataclass
class Scripted:
    """Answers as a test says: an error is raised, anything else answered."""

    answers: list[bool | ProviderError]
    asked: int = 0

    def announced(self, wait: timedelta) -> bool:
        self.asked += 1
        answer = self.answers.pop(0)
        if isinstance(answer, ProviderError):
            raise answer
        return answer


@dataclass
class Rings:
    """A wakeup."""

    heard: threading.Event = field(default_factory=threading.Event)
    count: int = 0

    def __call__(self) -> None:
        self.count += 1
        self.heard.set()


def test_an_announcement_rings_and_silence_does_not() -> None:
    rings = Rings()
    watch = InterruptionWatch(Scripted([False, True]), rings)
    assert (watch.listen(), rings.count) == (0.0, 0)
    # What was announced stays there until the tick has read it.
    assert (watch.listen() > 0, rings.count) == (True, 1)


def test_what_cannot_be_heard_is_asked_ever_more_rarely_and_ends_nothing() -> None:
    rings = Rings()
    failing: list[bool | ProviderError] = [AmbiguousError("cut") for _ in range(9)]
    watch = InterruptionWatch(Scripted([*failing, True, AmbiguousError("cut")]), rings)
    assert [watch.listen() for _ in range(9)] == [5, 10, 20, 40, 80, 160, 300, 300, 300]
    watch.listen()
    assert (watch.listen(), rings.count) == (5, 1)


def test_a_replica_that_stands_by_does_not_ask() -> None:
    announcer = Scripted([True])
    assert InterruptionWatch(announcer, Rings(), leads=lambda: False).listen() > 0
    assert announcer.asked == 0


@dataclass
class Waiting:
    """Announces once, then holds every question open until the test ends."""

    first: bool = True
    released: threading.Event = field(default_factory=threading.Event)

    def announced(self, wait: timedelta) -> bool:
        if self.first:
            self.first = False
            return True
        self.released.wait(wait.total_seconds())
        return True


def test_the_thread_rings_and_ends_when_it_is_told_to() -> None:
    rings, announcer = Rings(), Waiting()
    watch = InterruptionWatch(announcer, rings)
    watch.start()
    assert rings.heard.wait(10)
    announcer.released.set()
    watch.stop()
    assert not watch._thread.is_alive()
    assert rings.count == 1


def test_a_watch_that_never_began_can_be_stopped() -> None:
    InterruptionWatch(Scripted([]), Rings()).stop()


@pytest.mark.parametrize("listening", [pytest.param(True, id="heard first"), pytest.param(False, id="read first")])
def test_a_spot_notice_rings_and_is_left_for_the_tick_to_read(listening: bool) -> None:
    rig = Rig()
    provider, rings = with_queue(rig), Rings()
    (queue,) = rig.fake.account.notices.queues
    watch = InterruptionWatch(Interruptions(rig.aws, queue), rings)
    (machine,) = provider.launch(request("a", offerings=(replace(P5, capacity_type=CapacityType.SPOT),))).instances
    rig.settle()
    provider.describe({TAG_CLUSTER: CLUSTER})  # the notice that it runs
    rig.fake.account.interrupt(machine.id)
    looks: dict[bool, Callable[[], object]] = {
        True: watch.listen,
        False: lambda: provider.describe({TAG_CLUSTER: CLUSTER}),
    }
    looks[listening]()
    looks[not listening]()
    (seen,) = provider.describe({TAG_CLUSTER: CLUSTER}).instances
    assert seen.reclaim_at == rig.clock.now() + timedelta(minutes=2)
    assert rings.count == int(listening)


def test_there_is_an_announcer_only_with_a_queue(monkeypatch: pytest.MonkeyPatch) -> None:
    rig = Rig()
    monkeypatch.setattr("autoscaler.composition.aws.Aws", lambda *_, **__: rig.aws)
    assert aws_announcer(AwsSettings()) is None
    announcer = aws_announcer(AwsSettings(queue=rig.fake.account.notices.queue("foreslice").url))
    assert isinstance(announcer, Announcer)
    assert not announcer.announced(timedelta(seconds=1))
