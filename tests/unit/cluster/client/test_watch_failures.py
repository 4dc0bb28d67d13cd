"""Whatever a watch meets, it goes on or says that it ended; it waits longer each time, and nothing is frozen."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, ClassVar, cast

import pytest
from structlog.testing import capture_logs

from autoscaler.clock import SystemClock
from autoscaler.cluster.api import ApiError, GoneError, MalformedAnswerError, UnavailableError
from autoscaler.cluster.client.client import KubernetesClient
from autoscaler.cluster.client.transport import Transport
from autoscaler.cluster.client.watch import SILENCE, Stream
from autoscaler.cluster.resources import PODS

PATIENCE = 20.0


class Paced(SystemClock):
    """Real time in which no wait takes any; the waits are kept. `held` is added to the time at each connection."""

    def __init__(self) -> None:
        self.waits: list[float] = []
        self.held = 0.0

    def monotonic(self) -> float:
        """Real time and what was added to it."""
        return super().monotonic() + self.held

    def wait(self, seconds: float) -> None:
        """Over at once."""
        self.waits.append(seconds)


class Server:
    """Answers each connection with the next script: lines, or what to raise. After the last one it hangs.

    `then` is called before each line.
    """

    made: ClassVar[list[Server]] = []

    def __init__(self, *scripts: Sequence[bytes | BaseException], then: Callable[[], None] = lambda: None) -> None:
        self.made.append(self)
        self._scripts = iter(scripts)
        self._then = then
        self.since: list[str] = []
        self.end = threading.Event()

    @contextmanager
    def lines(self, path: str, *, query: Mapping[str, str], silence: float) -> Iterator[Iterator[bytes]]:
        assert silence == SILENCE
        self.since.append(query["resourceVersion"])
        script = next(self._scripts, None)
        if script is None:
            self.end.wait()
            raise GoneError("the test is over")
        yield self._play(script)

    def _play(self, script: Sequence[bytes | BaseException]) -> Iterator[bytes]:
        for line in script:
            self._then()
            if isinstance(line, BaseException):
                raise line
            yield line


@pytest.fixture(autouse=True)
def nobody_left() -> Iterator[None]:
    """The threads of a test end with it."""
    others = set(threading.enumerate())
    yield
    while Server.made:
        Server.made.pop().end.set()
    for thread in set(threading.enumerate()) - others:
        thread.join(PATIENCE)


def line(kind: str = "ADDED", **metadata: Any) -> bytes:
    return json.dumps({"type": kind, "object": {"metadata": {"name": "x", **metadata}}}).encode()


def good(version: int) -> bytes:
    return line(resourceVersion=str(version))


def error(**status: Any) -> bytes:
    return json.dumps({"type": "ERROR", "object": status}).encode()


STRANGE: dict[str, bytes | Exception] = {
    "HTML": b"<html><body>Sign in</body></html>",
    "half an object": b'{"type":"ADDED","object":{"metadata":{"na',
    "a list": b"[]",
    "no text": b"\xff\xfe\xff",
    "nesting": b"[" * 200_000,
    "no resourceVersion": line(),
    "an empty resourceVersion": line(resourceVersion=""),
    "a resourceVersion that is not a number": line(resourceVersion="new"),
    "no metadata": b'{"type":"ADDED","object":{"spec":{}}}',
    "metadata that is nothing": b'{"type":"ADDED","object":{"metadata":null}}',
    "no name": b'{"type":"ADDED","object":{"metadata":{"resourceVersion":"7"}}}',
    "no object": b'{"type":"ADDED"}',
    "no type": b'{"object":{"metadata":{"name":"x","resourceVersion":"7"}}}',
    "an unknown type": line("RENAMED", resourceVersion="7"),
    "an error without its status": b'{"type":"ERROR"}',
    "a credential plug-in": RuntimeError("exec: process returned 1"),
    "a key": KeyError("token"),
    "a text": UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte"),
    "TLS": ssl.SSLError("WRONG_VERSION_NUMBER"),
    "a socket": ConnectionResetError("reset by peer"),
    "memory": MemoryError(),
}


@pytest.mark.parametrize("met", STRANGE.values(), ids=STRANGE)
def test_what_no_api_server_sends_ends_the_watch_and_is_told(met: bytes | Exception) -> None:
    clock, rings = Paced(), threading.Semaphore(0)
    server = Server([good(5), met], [good(6)])
    client = KubernetesClient(cast(Transport, server), clock, ring=rings.release)
    with capture_logs() as log:
        taken = client.watch(PODS, resource_version="1", timeout_seconds=PATIENCE)
        assert next(taken).resource_version == "5"
        with pytest.raises(MalformedAnswerError):
            next(taken)
    assert [entry["event"] for entry in log] == ["watch_failed"]
    # The event, and the end: the loop lists without waiting for its next round.
    assert all(rings.acquire(timeout=PATIENCE) for _ in range(2))
    assert next(client.watch(PODS, resource_version="9", timeout_seconds=PATIENCE)).resource_version == "6"
    assert server.since[:2] == ["1", "9"]


@pytest.mark.parametrize(
    ("status", "met"),
    [
        pytest.param({"code": 410}, GoneError, id="410"),
        pytest.param({"code": 418}, ApiError, id="418"),
        pytest.param({"code": 400, "message": "invalid resource version"}, ApiError, id="400"),
    ],
)
def test_error_events_end_the_watch(status: dict[str, Any], met: type[ApiError]) -> None:
    server = Server([error(**status)])
    stream = Stream(cast(Transport, server), "/api/v1/pods", "1", clock=Paced(), ring=lambda: None)
    with pytest.raises(met):
        next(stream.take(PATIENCE))
    assert stream.over


@pytest.mark.parametrize("code", [500, 503, 429, "soon", None, True, 0])
def test_a_server_that_is_in_trouble_is_asked_again_for_the_same(code: object) -> None:
    server = Server([good(5), error(code=code)], [good(6)])
    stream = Stream(cast(Transport, server), "/api/v1/pods", "1", clock=Paced(), ring=lambda: None)
    taken = stream.take(PATIENCE)
    assert [next(taken).resource_version for _ in range(2)] == ["5", "6"]
    assert server.since[:2] == ["1", "5"]


def failing(client: KubernetesClient, times: int) -> None:
    """A consumer that lists whenever its watch has ended, and watches again."""
    for _ in range(times):
        with pytest.raises(MalformedAnswerError):
            next(client.watch(PODS, resource_version="1", timeout_seconds=PATIENCE))


def test_lists_follow_each_other_ever_more_slowly() -> None:
    clock = Paced()
    server = Server(*[[b"<html>"]] * 12)
    client = KubernetesClient(cast(Transport, server), clock, draw=lambda: 1.0)
    with capture_logs() as log:
        failing(client, 12)
    assert clock.waits == [0.25, 0.5, 1, 2, 4, 8, 16, 30, 30, 30, 30, 30]
    assert [entry["failures"] for entry in log] == [1, 2, 4, 8]


def test_waits_are_spread_between_half_and_all() -> None:
    for draw, wait in ((0.0, 0.125), (0.5, 0.1875), (1.0, 0.25)):
        clock = Paced()
        client = KubernetesClient(cast(Transport, Server([b"<html>"])), clock, draw=partial(float, draw))
        failing(client, 1)
        assert clock.waits == [wait]


def test_a_connection_that_held_is_no_failure_in_a_row() -> None:
    clock = Paced()

    def hold() -> None:
        clock.held += 5

    server = Server(*[[good(5), b"<html>"]] * 4, then=hold)
    client = KubernetesClient(cast(Transport, server), clock, draw=lambda: 1.0)
    for _ in range(4):
        taken = client.watch(PODS, resource_version="1", timeout_seconds=PATIENCE)
        next(taken)
        with pytest.raises(MalformedAnswerError):
            next(taken)
    assert clock.waits == [0.25] * 4


@pytest.mark.parametrize("script", [[], [UnavailableError("refused")], [b"", b" "]], ids=["ends", "refused", "blank"])
def test_connections_that_bring_nothing_follow_each_other_ever_more_slowly(
    script: Sequence[bytes | BaseException],
) -> None:
    clock = Paced()
    server = Server(*[script] * 8, [good(5)])
    stream = Stream(cast(Transport, server), "/p", "1", clock=clock, ring=lambda: None, draw=lambda: 1.0)
    next(stream.take(PATIENCE))
    assert clock.waits[:8] == [0.25, 0.5, 1, 2, 4, 8, 10, 10]


def test_a_connection_that_is_kept_open_with_blank_lines_is_given_up() -> None:
    clock = Paced()

    def drip() -> None:
        clock.held += 31

    server = Server([b""] * 50, [good(5)], then=drip)
    with capture_logs() as log:
        stream = Stream(cast(Transport, server), "/p", "1", clock=clock, ring=lambda: None)
        assert next(stream.take(50 * 31)).resource_version == "5"
    assert [entry["error"] for entry in log] == ["the watch of /p brought nothing for 90 s"]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_thread_that_dies_all_the_same_is_noticed() -> None:
    server, others = Server([good(5), SystemExit()], [good(6)]), set(threading.enumerate())
    client = KubernetesClient(cast(Transport, server), Paced())
    taken = client.watch(PODS, resource_version="1", timeout_seconds=PATIENCE)
    assert next(taken).resource_version == "5"
    for thread in set(threading.enumerate()) - others:
        thread.join(PATIENCE)
    with pytest.raises(MalformedAnswerError, match="has ended"):
        next(client.watch(PODS, resource_version="5"))
    assert next(client.watch(PODS, resource_version="5", timeout_seconds=PATIENCE)).resource_version == "6"


def test_a_system_without_threads_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    client = KubernetesClient(cast(Transport, Server()), Paced())
    with pytest.raises(UnavailableError, match="no thread"):
        client.watch(PODS, resource_version="1")
