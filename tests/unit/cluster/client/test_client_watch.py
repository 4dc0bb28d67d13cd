"""A watch goes on over broken connections from the last version it received, and says what ended it for good."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import cast

import pytest

from autoscaler.clock import SystemClock
from autoscaler.cluster.api import ForbiddenError, GoneError, UnavailableError
from autoscaler.cluster.client.client import KubernetesClient
from autoscaler.cluster.client.transport import Transport
from autoscaler.cluster.client.watch import Stream
from autoscaler.cluster.resources import PODS

PATIENCE = 20.0


def event(kind: str, version: int) -> bytes:
    metadata = {"name": "x", "resourceVersion": str(version)}
    return json.dumps({"type": kind, "object": {"metadata": metadata}}).encode()


EXPIRED = json.dumps({"type": "ERROR", "object": {"code": 410, "message": "too old resource version"}}).encode()
BROKEN = UnavailableError("connection lost")


class Connections:
    """A transport with one script for each connection: lines, or what it fails with. After the last, it hangs."""

    def __init__(self, *scripts: list[bytes | Exception]) -> None:
        self._scripts = iter(scripts)
        self.since: list[str] = []
        self.exhausted = threading.Event()

    @contextmanager
    def lines(self, path: str, *, query: Mapping[str, str], silence: float) -> Iterator[Iterator[bytes]]:
        self.since.append(query["resourceVersion"])
        script = next(self._scripts, None)
        if script is None:
            self.exhausted.wait()
        yield self._play(script or [])

    def _play(self, script: list[bytes | Exception]) -> Iterator[bytes]:
        for line in script:
            if isinstance(line, Exception):
                raise line
            yield line


class Impatient(SystemClock):
    """Real time, in which no back-off takes any."""

    def wait(self, seconds: float) -> None:
        """Over at once."""


def stream_of(connections: Connections, rings: threading.Semaphore, *, beats: bool = False) -> Stream:
    transport = cast(Transport, connections)
    return Stream(transport, "/api/v1/pods", "1", clock=Impatient(), ring=rings.release, beats=beats)


def taken(stream: Stream, count: int) -> list[tuple[str, str]]:
    found = []
    for seen in stream.take(PATIENCE):
        found.append((seen.type, seen.resource_version))
        if len(found) == count:
            break
    return found


@pytest.mark.parametrize("ending", [[], [BROKEN]], ids=["ended by the server", "broken off"])
def test_a_connection_that_ends_is_resumed(ending: list[bytes | Exception]) -> None:
    rings = threading.Semaphore(0)
    connections = Connections([event("ADDED", 5), event("BOOKMARK", 8), *ending], [event("MODIFIED", 9)])
    stream = stream_of(connections, rings)
    assert taken(stream, 3) == [("ADDED", "5"), ("BOOKMARK", "8"), ("MODIFIED", "9")]
    assert connections.since[:2] == ["1", "8"]
    assert stream.delivered == "9"
    stream.close()
    connections.exhausted.set()


@pytest.mark.parametrize(
    ("script", "error"),
    [
        pytest.param([event("ADDED", 5), EXPIRED], GoneError, id="expired inside the stream"),
        pytest.param([event("ADDED", 5), ForbiddenError("no right")], ForbiddenError, id="refused"),
    ],
)
def test_what_ends_a_watch_is_told_after_what_was_received(
    script: list[bytes | Exception], error: type[Exception]
) -> None:
    rings = threading.Semaphore(0)
    stream = stream_of(Connections(script), rings)
    assert taken(stream, 1) == [("ADDED", "5")]
    for _ in range(2):
        with pytest.raises(error):
            taken(stream, 1)
    # One for the change and one for the end.
    assert all(rings.acquire(timeout=PATIENCE) for _ in range(2))


def test_a_client_begins_anew_after_a_refusal() -> None:
    connections = Connections([ForbiddenError("the roles are not loaded yet")], [event("ADDED", 5)])
    client = KubernetesClient(cast(Transport, connections), Impatient())
    with pytest.raises(ForbiddenError):
        next(client.watch(PODS, resource_version="1", timeout_seconds=PATIENCE))
    assert next(client.watch(PODS, resource_version="1", timeout_seconds=PATIENCE)).resource_version == "5"
    assert connections.since[:2] == ["1", "1"]
    connections.exhausted.set()


def test_bookmarks_wake_nobody() -> None:
    rings = threading.Semaphore(0)
    connections = Connections([event("BOOKMARK", 5), event("DELETED", 6)])
    stream = stream_of(connections, rings)
    assert taken(stream, 2) == [("BOOKMARK", "5"), ("DELETED", "6")]
    stream.close()
    connections.exhausted.set()
    assert rings.acquire(timeout=PATIENCE)
    assert not rings.acquire(blocking=False)


def report(version: int, heartbeat: str, ready: str) -> bytes:
    """What a kubelet says of its node every few minutes."""
    condition = {"type": "Ready", "status": ready, "lastHeartbeatTime": heartbeat}
    metadata = {"name": "n", "uid": "u", "resourceVersion": str(version), "managedFields": [{"time": heartbeat}]}
    return json.dumps(
        {"type": "MODIFIED", "object": {"metadata": metadata, "status": {"conditions": [condition]}}}
    ).encode()


def test_heartbeats_wake_nobody_and_are_delivered() -> None:
    rings = threading.Semaphore(0)
    reports = [report(5, "08:00", "True"), report(6, "08:05", "True"), report(7, "08:10", "False")]
    connections = Connections(reports)
    stream = stream_of(connections, rings, beats=True)
    assert [version for _, version in taken(stream, 3)] == ["5", "6", "7"]
    stream.close()
    connections.exhausted.set()
    # The first report, which may be news, and the one that says something else.
    assert all(rings.acquire(timeout=PATIENCE) for _ in range(2))
    assert not rings.acquire(blocking=False)
