"""Two replicas, one Lease, virtual time: at no moment may both act."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest
from structlog.testing import capture_logs

from autoscaler.clock import VirtualClock
from autoscaler.cluster.api import NotFoundError, Object, Subresource, UnavailableError
from autoscaler.cluster.intercepted import InterceptedApi, leader_only
from autoscaler.cluster.lease import Election, LeadershipLostError, campaign
from autoscaler.cluster.resources import CAPACITY_POOLS, LEASES, Resource
from autoscaler.settings.settings import LeaseSettings
from autoscaler.simulation.api_server import ApiServer

SETTINGS = LeaseSettings()


class Flaky(ApiServer):
    """Fails as it is told: "refused" before writing, "lost" after it."""

    failing = ""

    def get(self, resource: Resource, name: str, *, namespace: str = "") -> Object:
        if self.failing:
            raise UnavailableError("no answer")
        return super().get(resource, name, namespace=namespace)

    def update(self, resource: Resource, manifest: Object, *, subresource: Subresource = "") -> Object:
        if self.failing == "refused":
            raise UnavailableError("no answer")
        answer = super().update(resource, manifest, subresource=subresource)
        if self.failing == "lost":
            raise UnavailableError("no answer")
        return answer


@pytest.fixture
def api(clock: VirtualClock) -> Flaky:
    return Flaky(clock)


def replica(name: str, api: ApiServer, clock: VirtualClock) -> Election:
    return Election(api, clock, SETTINGS, identity=name)


def lease(api: ApiServer) -> dict[str, Any]:
    spec: dict[str, Any] = api.get(LEASES, "foreslice", namespace="foreslice-system")["spec"]
    return spec


def seconds(clock: VirtualClock, count: float) -> None:
    clock.advance(timedelta(seconds=count))


def test_the_first_one_leads(api: Flaky, clock: VirtualClock) -> None:
    first, second = replica("a", api, clock), replica("b", api, clock)
    assert first.attempt()
    assert not second.attempt()
    assert second.holder == "a"
    assert lease(api) == {
        "holderIdentity": "a",
        "leaseDurationSeconds": 15,
        "acquireTime": "2026-01-01T00:00:00.000000Z",
        "renewTime": "2026-01-01T00:00:00.000000Z",
        "leaseTransitions": 0,
    }


def test_nobody_leads_before_the_first_attempt(api: Flaky, clock: VirtualClock) -> None:
    assert not replica("a", api, clock).leads()


def test_renewing_is_one_write_and_keeps_the_lease(api: Flaky, clock: VirtualClock) -> None:
    first, second = replica("a", api, clock), replica("b", api, clock)
    for _ in range(60):
        assert first.attempt()
        assert not second.attempt()
        seconds(clock, 2)
    assert api.writes == 60
    assert lease(api)["acquireTime"] == "2026-01-01T00:00:00.000000Z"
    assert lease(api)["renewTime"] == "2026-01-01T00:01:58.000000Z"


def test_a_silent_leader_stops_before_another_begins(api: Flaky, clock: VirtualClock) -> None:
    first, second = replica("a", api, clock), replica("b", api, clock)
    first.attempt()
    second.attempt()
    changes = []
    for step in range(200):
        assert not (first.leads() and second.leads())
        if step % 20 == 0:
            second.attempt()
        changes.append((first.leads(), second.leads()))
        seconds(clock, 0.1)
    assert changes.index((False, False)) == 100  # 10 s: the renew deadline
    assert changes.index((False, True)) == 160  # the first attempt after 15 s: the duration
    assert lease(api)["leaseTransitions"] == 1


def test_a_candidate_waits_from_when_it_first_saw_the_lease_not_from_the_time_inside(
    api: Flaky, clock: VirtualClock
) -> None:
    replica("a", api, clock).attempt()
    seconds(clock, 3600)  # the Lease ran out long ago, by its own times; but clocks of machines differ
    late = replica("b", api, clock)
    assert not late.attempt()
    seconds(clock, 14)
    assert not late.attempt()
    seconds(clock, 1)
    assert late.attempt()


def test_released_it_is_free_at_once(api: Flaky, clock: VirtualClock) -> None:
    first, second = replica("a", api, clock), replica("b", api, clock)
    first.attempt()
    first.release()
    assert not first.leads()
    assert second.attempt()
    assert lease(api)["leaseTransitions"] == 1


def test_only_its_holder_releases_it(api: Flaky, clock: VirtualClock) -> None:
    first, second = replica("a", api, clock), replica("b", api, clock)
    first.attempt()
    second.attempt()
    second.release()
    assert lease(api)["holderIdentity"] == "a"


@pytest.mark.parametrize("failing", ["refused", "lost"])
def test_an_outage_shorter_than_the_deadline_is_survived(api: Flaky, clock: VirtualClock, failing: str) -> None:
    first, second = replica("a", api, clock), replica("b", api, clock)
    first.attempt()
    second.attempt()
    api.failing = failing
    for _ in range(4):
        seconds(clock, 2)
        assert first.attempt()
    api.failing = ""
    seconds(clock, 1)
    assert first.attempt()
    seconds(clock, 9)
    assert first.leads()
    assert not second.attempt()


@pytest.mark.parametrize("failing", ["refused", "lost"])
def test_what_is_not_confirmed_does_not_prolong(api: Flaky, clock: VirtualClock, failing: str) -> None:
    first = replica("a", api, clock)
    first.attempt()
    api.failing = failing
    for _ in range(4):
        seconds(clock, 2)
        first.attempt()
    seconds(clock, 2)
    assert not first.leads()
    assert not first.attempt()


def test_somebody_who_takes_it_away_is_believed(api: Flaky, clock: VirtualClock) -> None:
    first = replica("a", api, clock)
    first.attempt()
    current = api.get(LEASES, "foreslice", namespace="foreslice-system")
    api.update(LEASES, {**current, "spec": {**current["spec"], "holderIdentity": "kubectl"}})
    first.attempt()  # a conflict
    seconds(clock, 2)
    assert not first.attempt()
    assert first.holder == "kubectl"


def test_a_lease_that_was_deleted_is_made_again(api: Flaky, clock: VirtualClock) -> None:
    first = replica("a", api, clock)
    first.attempt()
    api.delete(LEASES, "foreslice", namespace="foreslice-system")
    first.attempt()
    seconds(clock, 2)
    assert first.attempt()
    assert lease(api)["holderIdentity"] == "a"


def test_of_two_who_try_at_once_one_leads(clock: VirtualClock) -> None:
    class Racing(ApiServer):
        """Another replica is faster between reading and writing."""

        rival: Callable[[], object] | None = None

        def get(self, resource: Resource, name: str, *, namespace: str = "") -> Object:
            try:
                return super().get(resource, name, namespace=namespace)
            finally:
                rival, self.rival = self.rival, None
                if rival:
                    rival()

    api = Racing(clock)
    first, second = replica("a", api, clock), replica("b", api, clock)
    api.rival = second.attempt
    assert not first.attempt()
    assert second.leads()


def test_who_does_not_lead_cannot_write(api: Flaky, clock: VirtualClock) -> None:
    election = replica("a", api, clock)
    fenced = InterceptedApi(api, leader_only(election.leads))
    election.attempt()
    fenced.create(CAPACITY_POOLS, {"metadata": {"name": "gpu"}, "spec": {}})
    seconds(clock, 10)
    writes: list[Callable[[], object]] = [
        lambda: fenced.create(CAPACITY_POOLS, {"metadata": {"name": "other"}}),
        lambda: fenced.update(CAPACITY_POOLS, fenced.get(CAPACITY_POOLS, "gpu")),
        lambda: fenced.patch(CAPACITY_POOLS, "gpu", {"spec": {"weight": 1}}),
        lambda: fenced.delete(CAPACITY_POOLS, "gpu"),
        lambda: fenced.evict("work", namespace="default"),
    ]
    for write in writes:
        with pytest.raises(LeadershipLostError):
            write()
    assert fenced.list(CAPACITY_POOLS).items[0]["spec"] == {}
    assert list(fenced.watch(CAPACITY_POOLS, resource_version="0"))
    with suppress(NotFoundError):
        assert fenced.get(CAPACITY_POOLS, "other") is None


def test_a_campaign_tells_when_leading_begins_and_ends(api: Flaky, clock: VirtualClock) -> None:
    ended, seen = threading.Event(), []
    election = replica("a", api, clock)

    class Rounds(threading.Event):
        """Instead of waiting, time passes; after the third round the Lease is somebody else's."""

        rounds = 0

        def wait(self, timeout: float | None = None) -> bool:
            self.rounds += 1
            seconds(clock, timeout or 0)
            if self.rounds == 2:
                current = api.get(LEASES, "foreslice", namespace="foreslice-system")
                api.update(LEASES, {**current, "spec": {**current["spec"], "holderIdentity": "b"}})
            if self.rounds == 6:
                self.set()
            return self.is_set()

    ended = Rounds()
    campaign(election, SETTINGS, ended=ended, changed=lambda: seen.append(election.leads()))
    assert seen == [True, False]


def test_the_same_trouble_is_told_once(api: Flaky, clock: VirtualClock) -> None:
    election = replica("a", api, clock)
    api.failing = "refused"
    with capture_logs() as log:
        for _ in range(5):
            election.attempt()
        api.failing = ""
        election.attempt()
        api.failing = "refused"
        election.attempt()
    assert [line["event"] for line in log] == ["lease_attempt_failed"] * 2
