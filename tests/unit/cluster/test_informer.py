"""A mirror follows its resource, also while the cluster does not serve it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from random import Random
from typing import Any

import pytest

from autoscaler.clock import VirtualClock
from autoscaler.cluster.api import (
    NO_FIELDS,
    NO_LABELS,
    ApiError,
    ForbiddenError,
    GoneError,
    InvalidError,
    MalformedAnswerError,
    NotFoundError,
    Object,
    Page,
    UnavailableError,
    WatchEvent,
)
from autoscaler.cluster.informer import Informer
from autoscaler.cluster.parsed import Parsed
from autoscaler.cluster.resources import DEVICE_CLASSES, NODES, Resource
from autoscaler.kube.node import parse_node
from autoscaler.kube.problem import Problems
from autoscaler.simulation.api_server import ApiServer


@dataclass
class Partial(ApiServer):
    """A cluster that serves the resource only for a while."""

    served: bool = True

    def __post_init__(self) -> None:
        super().__init__(VirtualClock())

    asked: int = 0

    def list(
        self,
        resource: Resource,
        *,
        namespace: str = "",
        labels: Mapping[str, str] = NO_LABELS,
        fields: Mapping[str, str] = NO_FIELDS,
        limit: int = 500,
        page: str = "",
    ) -> Page:
        self.asked += 1
        if not self.served:
            raise NotFoundError(f"{resource} is not served")
        return super().list(resource, namespace=namespace, labels=labels, fields=fields, limit=limit, page=page)


def name_of(raw: Object, problems: Problems) -> str:
    return str(raw["metadata"]["name"])


def test_an_api_that_comes_later_is_found() -> None:
    api = Partial(served=False)
    mirror = Informer(api, DEVICE_CLASSES, name_of)
    api.create(DEVICE_CLASSES, {"metadata": {"name": "gpu"}})
    assert not mirror.refresh()
    assert (mirror.values, mirror.version) == ((), 0)
    api.served = True
    assert mirror.refresh()
    assert mirror.values == ("gpu",)


def test_an_api_that_is_removed_has_no_objects() -> None:
    api = Partial()
    api.create(DEVICE_CLASSES, {"metadata": {"name": "gpu"}})
    mirror = Informer(api, DEVICE_CLASSES, name_of)
    mirror.refresh()
    assert mirror.values == ("gpu",)
    api.served = False
    api.compact()
    api.create(DEVICE_CLASSES, {"metadata": {"name": "other"}})
    api.compact()
    assert mirror.refresh()
    assert mirror.values == ()


def test_a_list_that_became_empty_leaves_nothing() -> None:
    api = Partial()
    api.create(DEVICE_CLASSES, {"metadata": {"name": "gpu"}})
    mirror = Informer(api, DEVICE_CLASSES, name_of)
    mirror.refresh()
    assert mirror.values == ("gpu",)
    api.delete(DEVICE_CLASSES, "gpu")
    api.compact()
    assert mirror.refresh()
    assert mirror.values == ()


def test_an_api_that_is_not_served_is_asked_for_ever_more_rarely() -> None:
    api = Partial(served=False)
    mirror = Informer(api, DEVICE_CLASSES, name_of)
    for _ in range(1 + 1 + 2 + 4 + 8 + 16 + 16):
        assert not mirror.refresh()
    assert api.asked == 7


def test_what_changes_nothing_that_is_read_is_no_change() -> None:
    api = Partial()
    api.create(NODES, node("n", "2026-01-01T00:00:00Z"))
    mirror = Informer(api, NODES, parse_node)
    assert mirror.refresh()
    (before,) = mirror.values
    api.patch(NODES, "n", {"status": node("n", "2026-01-01T00:05:00Z")["status"]}, subresource="status")
    version = mirror.version
    assert not mirror.refresh()
    assert mirror.version > version
    assert mirror.values[0] is before
    api.patch(NODES, "n", {"status": node("n", "2026-01-01T00:05:00Z", ready="False")["status"]}, subresource="status")
    assert mirror.refresh()
    assert not mirror.values[0].ready


def node(name: str, heartbeat: str, ready: str = "True") -> Object:
    """A node as its kubelet reports it."""
    ready_condition = {"type": "Ready", "status": ready, "lastHeartbeatTime": heartbeat}
    return {"metadata": {"name": name}, "status": {"allocatable": {"cpu": "4"}, "conditions": [ready_condition]}}


@pytest.mark.parametrize("seed", range(5))
def test_objects_that_come_change_and_go_stay_in_the_order_of_a_list(seed: int) -> None:
    draw, api, there = Random(seed), ApiServer(VirtualClock()), set[str]()
    mirror = Informer(api, NODES, parse_node)
    for round_ in range(40):
        for name in (f"n{draw.randrange(15)}" for _ in range(draw.randrange(4))):
            if name not in there:
                api.create(NODES, {"metadata": {"name": name}})
                there.add(name)
            elif draw.random() < 0.5:
                api.delete(NODES, name)
                there.remove(name)
            else:
                api.patch(NODES, name, {"metadata": {"labels": {"round": str(round_)}}})
        mirror.refresh()
        listed = Informer(api, NODES, parse_node)
        listed.refresh()
        assert mirror.values == listed.values
        assert [node.name for node in mirror.values] == sorted(there)
    assert there


def test_a_list_is_converted_page_by_page() -> None:
    api = Partial()
    for number in range(1200):
        api.create(DEVICE_CLASSES, {"metadata": {"name": f"c{number:04}"}})
    mirror = Informer(api, DEVICE_CLASSES, name_of)
    assert mirror.refresh()
    assert (len(mirror.values), api.asked) == (1200, 3)
    assert not mirror.refresh()


@dataclass
class Silent(Partial):
    """A cluster whose watches bring nothing, not even bookmarks, and whose lists may `fail`."""

    fail: ApiError | None = None
    silent: bool = True
    cut: ApiError | None = None

    def list(self, resource: Resource, **query: Any) -> Page:
        if self.fail is not None:
            raise self.fail
        return super().list(resource, **query)

    def watch(self, resource: Resource, *, resource_version: str, timeout_seconds: float = 0) -> Iterator[WatchEvent]:
        if self.cut is not None:
            raise self.cut
        return iter(()) if self.silent else super().watch(resource, resource_version=resource_version)


STALE = timedelta(minutes=5)


def aging(api: Silent, clock: VirtualClock, *, optional: bool = False) -> Informer[str]:
    return Informer(api, DEVICE_CLASSES, name_of, optional=optional, clock=clock, stale=STALE)


def test_a_mirror_whose_watch_is_silent_is_listed_before_it_is_stale() -> None:
    api, clock = Silent(), VirtualClock()
    mirror = aging(api, clock)
    mirror.refresh()
    api.create(DEVICE_CLASSES, {"metadata": {"name": "gpu"}})
    clock.advance(STALE / 2 - timedelta(seconds=1))
    assert not mirror.refresh()
    assert (mirror.values, mirror.age, api.asked) == ((), 149, 1)
    clock.advance(timedelta(seconds=1))
    assert mirror.refresh()
    assert (mirror.values, mirror.age, api.asked) == (("gpu",), 0, 2)


def test_a_bookmark_keeps_a_mirror_young() -> None:
    api, clock = Silent(silent=False), VirtualClock()
    mirror = aging(api, clock)
    for _ in range(20):
        mirror.refresh()
        assert mirror.age == 0
        clock.advance(timedelta(minutes=1))
    assert api.asked == 1


def test_an_age_counts_from_the_start_where_nothing_was_ever_read() -> None:
    api, clock = Silent(fail=UnavailableError("no answer")), VirtualClock()
    mirror = aging(api, clock)
    clock.advance(STALE)
    with pytest.raises(UnavailableError):
        mirror.refresh()
    assert mirror.age == 300


def test_what_is_not_read_has_no_age() -> None:
    clock = VirtualClock()
    unserved, refused = Silent(served=False), Silent(fail=ForbiddenError("no right"))
    for api in (unserved, refused):
        mirror = aging(api, clock, optional=True)
        mirror.refresh()
        clock.advance(STALE)
        assert mirror.age is None


def test_a_list_that_breaks_off_leaves_what_was_seen_and_grows_old() -> None:
    api, clock = Silent(), VirtualClock()
    api.create(DEVICE_CLASSES, {"metadata": {"name": "gpu"}})
    mirror = aging(api, clock)
    mirror.refresh()
    api.fail = MalformedAnswerError("<html>")
    clock.advance(STALE)
    for _ in range(2):
        with pytest.raises(MalformedAnswerError):
            mirror.refresh()
        assert (mirror.values, mirror.age) == (("gpu",), 300)
    api.fail = None
    assert not mirror.refresh()
    assert (mirror.values, mirror.age) == (("gpu",), 0)


@pytest.mark.parametrize(
    "cut", [MalformedAnswerError("<html>"), InvalidError("400"), ApiError("418"), GoneError("410")], ids=str
)
def test_whatever_ends_a_watch_is_answered_with_a_list(cut: ApiError) -> None:
    api, clock = Silent(), VirtualClock()
    mirror = aging(api, clock)
    mirror.refresh()
    api.create(DEVICE_CLASSES, {"metadata": {"name": "gpu"}})
    api.cut = cut
    assert mirror.refresh()
    assert mirror.values == ("gpu",)


def test_an_object_whose_reading_fails_hides_no_other_and_stays_as_it_was() -> None:
    def broken(raw: Object, problems: Problems) -> str:
        if raw.get("broken"):
            raise RecursionError("too deep")
        return name_of(raw, problems)

    api = Partial()
    api.create(DEVICE_CLASSES, {"metadata": {"name": "a"}})
    mirror = Informer(api, DEVICE_CLASSES, broken)
    mirror.refresh()
    api.patch(DEVICE_CLASSES, "a", {"broken": True})
    api.create(DEVICE_CLASSES, {"metadata": {"name": "b"}, "broken": True})
    api.create(DEVICE_CLASSES, {"metadata": {"name": "c"}})
    for _ in range(2):
        mirror.refresh()
        assert mirror.values == ("a", "c")
        assert set(mirror.problems) == {"a", "b"}
        assert "RecursionError: too deep" in str(mirror.problems["b"][0])
        mirror.reread()


def test_no_api_server_lacks_the_core_group() -> None:
    api = Partial()
    api.create(NODES, node("n", "2026-01-01T00:00:00Z"))
    mirror = Informer(api, NODES, parse_node)
    mirror.refresh()
    api.served = False
    with pytest.raises(MalformedAnswerError, match="nodes cannot be read, which every API server has"):
        mirror.reread()
    assert [found.name for found in mirror.values] == ["n"]


def test_two_stores_convert_an_object_of_a_watch_once() -> None:
    api, parsed, read = ApiServer(VirtualClock()), Parsed(), list[str]()

    def parse(raw: Object, problems: Problems) -> str | None:
        name = str(raw["metadata"]["name"])
        read.append(name)
        if name == "bad":
            problems.error((), "wrong", "correct it")
        return None if name == "bad" else name

    one, other = (Informer(api, NODES, parse, parsed=parsed) for _ in range(2))
    for informer in (one, other):
        informer.refresh()
    for name in ("a", "bad"):
        api.create(NODES, {"metadata": {"name": name}})
    for informer in (one, other):
        informer.refresh()
        assert informer.values == ("a",)
        assert list(informer.problems) == ["bad"]
    assert read == ["a", "bad"]


def test_an_object_whose_conversion_failed_is_not_shared() -> None:
    api, parsed, broken = ApiServer(VirtualClock()), Parsed(), [True]

    def parse(raw: Object, problems: Problems) -> str:
        if broken:
            broken.pop()
            raise KeyError("a bug")
        return str(raw["metadata"]["name"])

    one, other = (Informer(api, NODES, parse, parsed=parsed) for _ in range(2))
    for informer in (one, other):
        informer.refresh()
    api.create(NODES, {"metadata": {"name": "a"}})
    for informer in (one, other):
        informer.refresh()
    assert (one.values, other.values) == ((), ("a",))


def test_of_an_object_that_changed_several_times_the_last_state_is_converted() -> None:
    api, read = ApiServer(VirtualClock()), list[str]()

    def parse(raw: Object, problems: Problems) -> str:
        read.append(raw["spec"]["providerID"])
        return read[-1]

    informer = Informer(api, NODES, parse)
    informer.refresh()
    api.create(NODES, {"metadata": {"name": "n"}, "spec": {"providerID": "first"}})
    for changed in ("second", "third"):
        api.patch(NODES, "n", {"spec": {"providerID": changed}})
    assert informer.refresh()
    assert informer.values == ("third",)
    assert read == ["third"]
    api.patch(NODES, "n", {"spec": {"providerID": "fourth"}})
    api.delete(NODES, "n")
    assert informer.refresh()
    assert (list(informer.values), read) == ([], ["third"])


def test_an_object_that_was_made_anew_has_nothing_of_the_one_before() -> None:
    api, broken = ApiServer(VirtualClock()), [False]

    def parse(raw: Object, problems: Problems) -> str:
        if broken[0]:
            raise ZeroDivisionError
        return str(raw["metadata"]["uid"])

    informer = Informer(api, NODES, parse)
    api.create(NODES, {"metadata": {"name": "n"}})
    informer.refresh()
    api.delete(NODES, "n")
    api.create(NODES, {"metadata": {"name": "n"}})
    broken[0] = True
    assert informer.refresh()
    assert informer.values == ()


class Cut(Partial):
    """A cluster whose watches break off after what they bring."""

    cut = False

    def watch(self, resource: Resource, *, resource_version: str, timeout_seconds: float = 0) -> Iterator[WatchEvent]:
        yield from super().watch(resource, resource_version=resource_version)
        if self.cut:
            raise UnavailableError("connection reset")


def test_what_came_before_a_watch_broke_off_is_seen() -> None:
    api = Cut()
    informer = Informer(api, DEVICE_CLASSES, name_of)
    informer.refresh()
    api.create(DEVICE_CLASSES, {"metadata": {"name": "gpu"}})
    api.cut = True
    with pytest.raises(UnavailableError):
        informer.refresh()
    assert informer.values == ("gpu",)
    api.cut = False
    assert not informer.refresh()
