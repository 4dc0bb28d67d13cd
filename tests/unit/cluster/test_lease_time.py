"""The arithmetic of the Lease on slow API servers and under clocks that jump: never may two act, or nobody ever."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import timedelta

import pytest

from autoscaler.clock import VirtualClock
from autoscaler.cluster.api import Object, Subresource, UnavailableError
from autoscaler.cluster.lease import Election
from autoscaler.cluster.resources import LEASES, Resource
from autoscaler.settings.settings import LeaseSettings
from autoscaler.simulation.api_server import ApiServer
from tests.fakes.clocks import Jumping

SETTINGS = LeaseSettings()
HOURS = timedelta(hours=3)


class Slow(ApiServer):
    """Answers late: `before` seconds pass until a request is carried out, `after` until its answer arrives.

    `fails` says whether that answer is lost. `meanwhile` is called at each moment in between.
    """

    def __init__(self, clock: VirtualClock) -> None:
        super().__init__(clock)
        self._time = clock
        self.before = 0.0
        self.after = 0.0
        self.fails: Callable[[], bool] = lambda: False
        self.meanwhile: Callable[[], None] = lambda: None
        self._busy = False

    def get(self, resource: Resource, name: str, *, namespace: str = "") -> Object:
        return self._late(lambda: super(Slow, self).get(resource, name, namespace=namespace))

    def create(self, resource: Resource, manifest: Object) -> Object:
        return self._late(lambda: super(Slow, self).create(resource, manifest))

    def update(self, resource: Resource, manifest: Object, *, subresource: Subresource = "") -> Object:
        return self._late(lambda: super(Slow, self).update(resource, manifest, subresource=subresource))

    def _late(self, request: Callable[[], Object]) -> Object:
        if self._busy:  # somebody else's, in the middle of the one that is slow
            return request()
        self._busy = True
        try:
            self._pass(self.before)
            answer = request()
            self._pass(self.after)
        finally:
            self._busy = False
        if self.fails():
            raise UnavailableError("the answer was lost")
        return answer

    def _pass(self, seconds: float) -> None:
        for _ in range(round(seconds * 10)):
            self._time.advance(timedelta(milliseconds=100))
            self.meanwhile()


@pytest.fixture
def api(clock: VirtualClock) -> Slow:
    return Slow(clock)


def replica(name: str, api: ApiServer, clock: VirtualClock | Jumping) -> Election:
    return Election(api, clock, SETTINGS, identity=name)


def seconds(clock: VirtualClock | Jumping, count: float) -> None:
    clock.advance(timedelta(seconds=count))


@pytest.mark.parametrize("part", ["before", "after"])
def test_a_renewal_counts_from_its_beginning(api: Slow, clock: VirtualClock, part: str) -> None:
    leader = replica("a", api, clock)
    assert leader.attempt()
    seconds(clock, 2)
    setattr(api, part, 7.0)
    assert leader.attempt()  # begun at 2 s, answered at 9 s
    seconds(clock, 2.9)
    assert leader.leads()
    seconds(clock, 0.1)  # 12 s: the deadline after its beginning
    assert not leader.leads()


def test_with_a_slow_api_server_nobody_acts_beside_the_leader(api: Slow, clock: VirtualClock) -> None:
    """The renewal is written at once and answered after 9 s; 10 s after that another replica would act already."""
    leader, other = replica("a", api, clock), replica("b", api, clock)
    leader.attempt()
    other.attempt()
    api.after, api.meanwhile = 9.0, lambda: (other.attempt(), None)[1]
    assert leader.attempt()
    api.after, api.meanwhile = 0.0, lambda: None
    acting = []
    for _ in range(120):
        other.attempt()
        assert not (leader.leads() and other.leads())
        acting.append("a" if leader.leads() else "b" if other.leads() else "")
        seconds(clock, 0.1)
    assert list(dict.fromkeys(acting)) == ["a", "", "b"]


def test_an_answer_after_the_deadline_is_no_renewal(api: Slow, clock: VirtualClock) -> None:
    leader = replica("a", api, clock)
    leader.attempt()
    api.before = 11.0
    assert not leader.attempt()
    assert not leader.leads()


def test_a_takeover_waits_for_the_whole_duration_of_what_it_saw(api: Slow, clock: VirtualClock) -> None:
    leader, other = replica("a", api, clock), replica("b", api, clock)
    leader.attempt()
    seconds(clock, 5)
    other.attempt()  # sees it first, and cannot know for how long it has been like that
    seconds(clock, 14.9)
    assert not other.attempt()
    seconds(clock, 0.1)
    assert other.attempt()


def test_a_candidate_counts_from_when_it_has_the_answer(api: Slow, clock: VirtualClock) -> None:
    leader, other = replica("a", api, clock), replica("b", api, clock)
    leader.attempt()
    api.after = 4.0
    other.attempt()  # what it saw at 4 s may be of the last moment
    api.after = 0.0
    seconds(clock, 14.9)
    assert not other.attempt()
    seconds(clock, 0.1)
    assert other.attempt()


def test_what_the_lease_says_of_its_length_counts(api: Slow, clock: VirtualClock) -> None:
    leader, other = replica("a", api, clock), replica("b", api, clock)
    leader.attempt()
    current = api.get(LEASES, SETTINGS.name, namespace=SETTINGS.namespace)
    api.update(LEASES, {**current, "spec": {**current["spec"], "leaseDurationSeconds": 60}})
    other.attempt()
    seconds(clock, 59.9)
    assert not other.attempt()
    seconds(clock, 0.1)
    assert other.attempt()


@pytest.mark.parametrize("jump", [HOURS, -HOURS], ids=["forward", "back"])
@pytest.mark.parametrize("whose", ["leader", "candidate", "both"])
def test_a_wall_clock_that_is_set_changes_nothing(clock: VirtualClock, jump: timedelta, whose: str) -> None:
    api = Slow(clock)
    hers, his = Jumping(clock), Jumping(clock)
    leader, other = replica("a", api, hers), replica("b", api, his)
    leader.attempt()
    other.attempt()
    for moved in {"leader": (hers,), "candidate": (his,), "both": (hers, his)}[whose]:
        moved.jump(jump)
    for _ in range(30):
        assert leader.attempt()
        assert not other.attempt()
        seconds(clock, 2)
    # The leader falls silent: the other takes its place as if nobody had touched a clock.
    taken_after = 0
    while not other.attempt():
        seconds(clock, 1)
        taken_after += 1
    assert taken_after == 15 - 2
    assert not leader.leads()


class Trial:
    """Two replicas whose clocks jump, on an API server that is slow and loses answers, step by step as drawn."""

    def __init__(self, seed: int) -> None:
        self._draw = random.Random(seed)
        self.clock = VirtualClock()
        self.api = Slow(self.clock)
        self.api.meanwhile = self._look
        self._clocks = [Jumping(self.clock) for _ in range(2)]
        self.replicas = [replica(name, self.api, own) for name, own in zip("ab", self._clocks, strict=True)]
        self.led: set[str] = set()

    def step(self) -> None:
        """One of them attempts, after some time, and a clock may be set."""
        draw = self._draw
        if draw.random() < 0.1:
            draw.choice(self._clocks).jump(timedelta(seconds=draw.uniform(-4 * 3600, 4 * 3600)))
        self.api.before = draw.choice((0.0, 0.0, 0.3, 5.0, 12.0))
        self.api.after = draw.choice((0.0, 0.0, 0.3, 5.0, 12.0))
        lost = draw.random() < 0.2
        self.api.fails = lambda: lost
        for _ in range(draw.randrange(40)):
            self.clock.advance(timedelta(milliseconds=100))
            self._look()
        draw.choice(self.replicas).attempt()
        self._look()

    def calm(self) -> None:
        """The API server answers at once again, and both attempt as often as they should."""
        self.api.before = self.api.after = 0.0
        self.api.fails = lambda: False
        for _ in range(20):
            for candidate in self.replicas:
                candidate.attempt()
                self._look()
            seconds(self.clock, 2)

    def _look(self) -> None:
        leading = [candidate.identity for candidate in self.replicas if candidate.leads()]
        assert len(leading) < 2
        self.led.update(leading)


@pytest.mark.parametrize("seed", range(40))
def test_never_two_and_always_one_again(seed: int) -> None:
    trial = Trial(seed)
    for _ in range(60):
        trial.step()
    trial.calm()
    assert sum(candidate.leads() for candidate in trial.replicas) == 1


def test_the_trials_see_both_lead() -> None:
    led: set[str] = set()
    for seed in range(5):
        trial = Trial(seed)
        for _ in range(60):
            trial.step()
        led |= trial.led
    assert led == {"a", "b"}


def test_a_candidate_that_meets_what_it_does_not_expect_tries_again(api: Slow, clock: VirtualClock) -> None:
    candidate = replica("a", api, clock)
    spec = {"holderIdentity": "", "leaseTransitions": "many"}
    metadata = {"name": SETTINGS.name, "namespace": SETTINGS.namespace}
    api.create(LEASES, {"metadata": metadata, "spec": spec})
    assert not candidate.attempt()
    api.delete(LEASES, SETTINGS.name, namespace=SETTINGS.namespace)
    assert candidate.attempt()
