"""Events: offered without a request, written beside the rounds, each once, none of them able to fail anything."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta

import pytest
from structlog.testing import capture_logs

from autoscaler.clock import EPOCH, VirtualClock
from autoscaler.cluster.api import Object, UnavailableError, list_all
from autoscaler.cluster.publishing import event_queue
from autoscaler.cluster.publishing.condition import Verdict, condition
from autoscaler.cluster.publishing.event_queue import EventQueue, Fate, cut, manifest_of
from autoscaler.cluster.publishing.event_writer import EventWriter
from autoscaler.cluster.resources import EVENTS
from autoscaler.report.events import Event, Subject
from autoscaler.simulation.api_server import ApiServer
from instance_catalog.dataclass import replace
from tests.unit.cluster.odd import FAULTS, OddApi

HOPELESS = Event(Subject("Pod", "a", "team", "u-a"), "Warning", "NotTriggerScaleUp", "no offering fits")


def about(**changed: str) -> Event:
    """The event about another object."""
    return replace(HOPELESS, about=HOPELESS.about._replace(**changed))


def api() -> ApiServer:
    return ApiServer(VirtualClock())


def told(server: ApiServer) -> list[Object]:
    return list(list_all(server, EVENTS)[0])


def test_offering_asks_nobody_and_draining_writes_each_once() -> None:
    server = api()
    queue = EventQueue(server)
    for _ in range(3):
        queue.offer(HOPELESS, EPOCH)
    assert (server.writes, len(queue)) == (0, 1)
    queue.drain()
    queue.offer(HOPELESS, EPOCH + timedelta(hours=1))
    assert (server.writes, len(queue)) == (1, 0)
    EventQueue(server).offer(HOPELESS, EPOCH)
    assert queue.fates[Fate.WRITTEN] == 1


def test_what_was_told_before_a_restart_counts_as_written() -> None:
    server = api()
    for _ in range(2):
        queue = EventQueue(server)
        queue.offer(HOPELESS, EPOCH)
        queue.drain()
        assert queue.fates[Fate.WRITTEN] == 1
    assert len(told(server)) == 1


@pytest.mark.parametrize("fault", ["403", "404", "409", "422", "webhook"])
def test_what_the_api_server_refuses_is_given_up(fault: str) -> None:
    odd = OddApi(api(), lambda verb, resource, text: "'namespace': 'ending'" in text, FAULTS[fault])
    queue = EventQueue(odd)
    for namespace in ("ending", "team"):
        queue.offer(about(namespace=namespace), EPOCH)
    queue.drain()
    queue.offer(about(namespace="ending"), EPOCH)
    assert len(queue) == 0
    assert (queue.fates[Fate.REFUSED], queue.fates[Fate.WRITTEN]) == (1, 1)


def test_refusals_in_a_namespace_are_logged_once_an_hour() -> None:
    """A quota on Events refuses as many as the tenant's pods cause."""
    queue = EventQueue(OddApi(api(), lambda verb, resource, text: True, FAULTS["403"]))
    with capture_logs() as lines:
        for seconds in (0, 5, 3_595, 3_700, -7_200):
            for number in range(3):
                moment = EPOCH + timedelta(seconds=seconds)
                queue.offer(about(name=f"p{seconds}-{number}", namespace="hostile"), moment)
                queue.offer(about(name=f"p{seconds}-{number}"), moment)
            queue.drain()
    assert queue.fates[Fate.REFUSED] == 30
    told = [(line["event"], line["namespace"]) for line in lines]
    assert told == [("event_refused", "hostile"), ("event_refused", "team")] * 3


def test_a_bug_in_writing_one_is_logged_and_the_next_is_written() -> None:
    odd = OddApi(api(), lambda verb, resource, text: "'namespace': 'ending'" in text, FAULTS["bug"])
    queue = EventQueue(odd)
    for namespace in ("ending", "team"):
        queue.offer(about(namespace=namespace), EPOCH)
    with capture_logs() as lines:
        queue.drain()
    assert [line["event"] for line in lines] == ["unexpected_error"]
    assert len(told(odd.inner)) == 1


def test_what_is_not_answered_is_tried_again_and_in_the_end_offered_anew() -> None:
    odd = OddApi(api(), lambda verb, resource, text: True, lambda: UnavailableError("no answer"))
    queue = EventQueue(odd)
    queue.offer(HOPELESS, EPOCH)
    for _ in range(5):
        assert len(queue) == 1
        queue.drain()
    assert (len(queue), queue.fates[Fate.DROPPED]) == (0, 1)
    odd.fails = lambda verb, resource, text: False
    queue.offer(HOPELESS, EPOCH)
    queue.drain()
    assert len(told(odd.inner)) == 1


def test_the_queue_is_bounded_and_what_found_no_place_is_offered_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_queue, "_MOST_WAITING", 2)
    server = api()
    queue = EventQueue(server)
    events = [about(name=name) for name in "abc"]
    for event in events:
        queue.offer(event, EPOCH)
    assert (len(queue), queue.fates[Fate.DROPPED]) == (2, 1)
    queue.drain()
    for event in events:
        queue.offer(event, EPOCH)
    queue.drain()
    assert {event["involvedObject"]["name"] for event in told(server)} == {"a", "b", "c"}


def test_a_full_queue_has_places_for_every_namespace(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tenant whose pods come and go offers more than is written, always, and is asked first."""
    monkeypatch.setattr(event_queue, "_MOST_WAITING", 12)
    server = api()
    queue = EventQueue(server)
    for number in range(30):
        queue.offer(about(name=f"p{number}", namespace="hostile"), EPOCH)
    for number in range(9):
        queue.offer(about(name=f"a{number}"), EPOCH)
    queue.offer(about(name="the-only-one", namespace="third"), EPOCH)
    assert len(queue) == 12
    queue.drain()
    found = Counter(event["metadata"]["namespace"] for event in told(server))
    assert found == {"hostile": 5, "team": 6, "third": 1}
    queue.offer(about(name="p5", namespace="hostile"), EPOCH)
    assert len(queue) == 1, "what gave way is not taken for told"
    queue.drain()
    assert not queue._of_namespace


def test_reasons_take_turns() -> None:
    server = api()
    queue = EventQueue(server)
    for number in range(1000):
        queue.offer(about(name=f"p{number}"), EPOCH)
    queue.offer(replace(HOPELESS, reason="TriggeredScaleUp"), EPOCH)
    queue.write_next()
    queue.write_next()
    assert {event["reason"] for event in told(server)} == {"NotTriggerScaleUp", "TriggeredScaleUp"}


def test_one_object_may_have_so_many_events_and_one_more_every_five_minutes() -> None:
    queue = EventQueue(api())
    many = [replace(HOPELESS, reason=f"R{number}") for number in range(30)]
    for event in many:
        queue.offer(event, EPOCH)
    queue.offer(about(name="other"), EPOCH)
    assert (len(queue), queue.fates[Fate.DROPPED]) == (26, 5)
    for event in many:
        queue.offer(event, EPOCH + timedelta(minutes=5))
    assert len(queue) == 27
    for event in many:  # a clock that was set back
        queue.offer(event, EPOCH - timedelta(hours=5))
    assert len(queue) == 27
    for event in many:
        queue.offer(event, EPOCH - timedelta(hours=4))
    assert len(queue) == 31  # all of them, and the other's


def test_objects_that_are_gone_are_forgotten() -> None:
    """Ten pods a minute for a day, each told of twice: what is remembered is about the last hours."""
    queue = EventQueue(api())
    most = 0
    for number in range(10 * 60 * 24):
        pod = about(name=f"a-{number}", uid=f"u-{number}")
        moment = EPOCH + timedelta(seconds=6 * number)
        for reason in ("TriggeredScaleUp", "Scheduled"):
            queue.offer(replace(pod, reason=reason), moment)
            with queue._lock:
                queue._take()
        most = max(most, queue.remembered)
    assert 0 < queue.remembered <= most < 4000


def test_what_still_decides_is_not_forgotten_among_many() -> None:
    queue = EventQueue(api())
    alike = [replace(HOPELESS, message=f"text {number}") for number in range(40)]
    many = [replace(about(name="many"), reason=f"R{number}") for number in range(40)]
    for event in (*alike, *many):
        queue.offer(event, EPOCH)
    known = len(queue)
    for number in range(2000):
        queue.offer(about(uid=f"u-{number}"), EPOCH + timedelta(seconds=290))
    for event in (*alike, *many):
        queue.offer(event, EPOCH + timedelta(seconds=291))
    assert known == 11 + 25  # ten and that there are more, and as many as one object may have at once
    assert len(queue) == known + 2000


def test_similar_events_are_combined() -> None:
    server = api()
    queue = EventQueue(server)
    for number in range(20):
        queue.offer(replace(HOPELESS, message=f"text {number}"), EPOCH + timedelta(seconds=number))
    queue.drain()
    messages = sorted(event["message"] for event in told(server))
    assert len(messages) == 11
    assert messages[0] == "(combined from similar events): text 10"
    queue.offer(replace(HOPELESS, message="much later"), EPOCH + timedelta(minutes=11))
    queue.drain()
    assert len(told(server)) == 12


@pytest.mark.parametrize(
    ("text", "longest", "kept"), [("abc", 3, "abc"), ("abcd", 3, "abc"), ("aéé", 4, "aé"), ("\udcff", 9, "?")]
)
def test_texts_are_cut_by_bytes(text: str, longest: int, kept: str) -> None:
    assert cut(text, longest) == kept


def test_the_name_of_an_event_fits_whatever_it_is_about() -> None:
    name = manifest_of(about(name="a" * 235 + "." + "b" * 17), EPOCH)["metadata"]["name"]
    assert len(name) <= 253
    assert name.startswith("a" * 235 + ".")
    assert ".." not in name


def test_the_writer_keeps_to_a_pace_and_empties_the_queue_in_the_end() -> None:
    clock, server = VirtualClock(), api()
    queue = EventQueue(server)
    for number in range(300):
        queue.offer(about(name=f"p{number}"), EPOCH)
    writer = EventWriter(queue, clock)
    rests = [writer.step() for _ in range(201)]
    assert (rests[:200], server.writes) == ([0.0] * 200, 200)
    assert rests[200] == pytest.approx(0.02)
    clock.advance(timedelta(seconds=1))
    rests = [writer.step() for _ in range(51)]
    assert (rests.count(0.0), server.writes) == (50, 250)
    writer._ended.set()
    writer._until = clock.monotonic() + 1
    writer._run()
    assert (server.writes, len(queue)) == (300, 0)


def test_the_writer_rests_while_nobody_answers() -> None:
    odd = OddApi(api(), lambda verb, resource, text: True, FAULTS["time-out"])
    queue = EventQueue(odd)
    writer = EventWriter(queue, VirtualClock())
    assert writer.step() == 0.25
    queue.offer(HOPELESS, EPOCH)
    assert writer.step() == 5.0


def test_the_writer_can_be_started_and_stopped() -> None:
    server = api()
    queue = EventQueue(server)
    writer = EventWriter(queue, VirtualClock())
    queue.offer(HOPELESS, EPOCH)
    writer.start()
    writer.stop()
    assert (len(queue), server.writes) == (0, 1)


def test_what_steers_a_terminal_is_written_out_in_events_and_conditions() -> None:
    """People read both with kubectl, and the texts quote selectors and names of other tenants."""
    steering, shown = "x\x1b[2J\u202ey", "x\\x1b[2J\\u202ey"
    assert manifest_of(replace(HOPELESS, message=steering), EPOCH)["message"] == shown
    verdict = Verdict("False", "Invalid", steering)
    assert condition("Ready", verdict, before={}, generation=1, now=EPOCH)["message"] == shown
