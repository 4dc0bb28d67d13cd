"""One request: how often it is repeated, how long that may take, and whose credentials it carries."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from urllib3 import HTTPResponse
from urllib3.exceptions import ProtocolError, ReadTimeoutError

from autoscaler.clock import SystemClock, VirtualClock
from autoscaler.cluster.api import MalformedAnswerError, UnavailableError
from autoscaler.cluster.client.transport import Transport, connect

CONFIG = {
    "clusters": [{"name": "c", "cluster": {"server": "http://me:secret@127.0.0.1:1/prefix"}}],
    "users": [{"name": "u", "user": {}}],
    "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
    "current-context": "x",
}


class Pool:
    """Stands for the connections: each request takes so many seconds and has the outcome it is told."""

    def __init__(self, clock: VirtualClock, seconds: float, outcome: Callable[[], HTTPResponse]) -> None:
        self._clock = clock
        self._seconds = seconds
        self._outcome = outcome
        self.sent: list[tuple[str, str]] = []

    def request(self, method: str, url: str, **_: Any) -> HTTPResponse:
        self.sent.append((method, url))
        self._clock.advance(timedelta(seconds=self._seconds))
        return self._outcome()


def lost() -> HTTPResponse:
    raise ReadTimeoutError(None, "/", "timed out")  # type: ignore[arg-type]


def answered(status: int, body: bytes = b"{}") -> Callable[[], HTTPResponse]:
    return lambda: HTTPResponse(body, status=status, headers={"Content-Type": "application/json"})


@pytest.fixture
def transport(tmp_path: Path) -> Transport:
    path = tmp_path / "kubeconfig"
    path.write_text(json.dumps(CONFIG))
    made = connect(VirtualClock(), kubeconfig=str(path))
    made._draw = lambda: 1.0
    return made


def attempts(
    transport: Transport, method: str, seconds: float, outcome: Callable[[], HTTPResponse]
) -> tuple[int, float]:
    """How often it is sent, and how long that takes."""
    clock = transport._clock
    assert isinstance(clock, VirtualClock)
    began, pool = clock.monotonic(), Pool(clock, seconds, outcome)
    transport._pool = pool
    with pytest.raises(UnavailableError):
        transport.request(method, "/x")
    return len(pool.sent), clock.monotonic() - began


@pytest.mark.parametrize("outcome", [lost, answered(503), answered(429)], ids=["lost", "503", "429"])
def test_reads_are_repeated_ever_more_slowly(transport: Transport, outcome: Callable[[], HTTPResponse]) -> None:
    assert attempts(transport, "GET", 0, outcome) == (5, 0.25 + 0.5 + 1 + 2)


def test_no_request_lasts_so_long_that_a_round_looks_stuck(transport: Transport) -> None:
    sent, seconds = attempts(transport, "GET", 59, lost)
    assert (sent, seconds) == (2, 2 * 59 + 0.25)
    assert attempts(transport, "GET", 70, lost) == (1, 70)


@pytest.mark.parametrize(
    ("outcome", "sent"),
    [(lost, 1), (answered(503), 1), (answered(200, b"<html>"), 1), (answered(429), 5)],
    ids=["lost", "503", "HTML", "429"],
)
def test_writes_are_repeated_only_where_they_were_not_taken_up(
    transport: Transport, outcome: Callable[[], HTTPResponse], sent: int
) -> None:
    assert attempts(transport, "POST", 0, outcome)[0] == sent


def test_a_page_is_not_asked_for_again(transport: Transport) -> None:
    assert attempts(transport, "GET", 0, answered(200, b"<html>"))[0] == 1


def test_the_address_is_asked_with_its_credentials_and_shown_without(transport: Transport) -> None:
    clock = transport._clock
    assert isinstance(clock, VirtualClock)
    pool = transport._pool = Pool(clock, 0, answered(200, b"<html>"))
    with pytest.raises(MalformedAnswerError) as caught:
        transport.request("GET", "/version")
    assert pool.sent == [("GET", "http://me:secret@127.0.0.1:1/prefix/version")]
    assert transport.server == "http://127.0.0.1:1"
    assert "secret" not in str(caught.value)


class Streamed(HTTPResponse):
    """An answer that arrives in pieces, or breaks off with an error."""

    def __init__(self, *pieces: bytes | Exception) -> None:
        super().__init__(status=200)
        self._pieces = iter(pieces)

    def read1(self, amt: int | None = None, decode_content: bool | None = None) -> bytes:
        piece = next(self._pieces, b"")
        if isinstance(piece, Exception):
            raise piece
        return piece


def streaming(transport: Transport, *pieces: bytes | Exception) -> Transport:
    clock = transport._clock
    assert isinstance(clock, VirtualClock)
    transport._pool = Pool(clock, 0, lambda: Streamed(*pieces))
    return transport


def test_a_stream_that_breaks_off_is_told(transport: Transport) -> None:
    broken = streaming(transport, b'{"a"', b': 1}\n{"b"', ProtocolError("connection broken"))
    with broken.lines("/x", query={}) as lines:
        assert next(lines) == b'{"a": 1}'
        with pytest.raises(UnavailableError, match="connection broken"):
            next(lines)


def test_the_rest_of_a_stream_that_ends_within_a_line_is_a_line(transport: Transport) -> None:
    with streaming(transport, b"<html>", b"\n</html>").lines("/x", query={}) as lines:
        assert list(lines) == [b"<html>", b"</html>"]


@pytest.mark.parametrize("chunked", [True, False], ids=["in chunks", "until the connection ends"])
def test_a_line_is_there_when_it_arrives(tmp_path: Path, chunked: bool) -> None:
    """A proxy that speaks HTTP/1.0 sends no chunks; its watch is none the less one."""
    taken = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1" if chunked else "HTTP/1.0"

        def do_GET(self) -> None:
            self.send_response(200)
            if chunked:
                self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            self._say(b"first\n")
            if taken.wait(10):
                self._say(b"second\n")
            if chunked:
                self.wfile.write(b"0\r\n\r\n")

        def _say(self, line: bytes) -> None:
            self.wfile.write(b"%x\r\n%s\r\n" % (len(line), line) if chunked else line)
            self.wfile.flush()

        def log_message(self, *_: object) -> None:
            """Quiet."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        config = json.loads(json.dumps(CONFIG))
        config["clusters"][0]["cluster"]["server"] = f"http://127.0.0.1:{server.server_port}"
        path = tmp_path / "kubeconfig"
        path.write_text(json.dumps(config))
        with connect(SystemClock(), kubeconfig=str(path)).lines("/x", query={}, silence=30) as lines:
            assert next(lines) == b"first"
            taken.set()
            assert list(lines) == [b"second"]
        server.shutdown()
        thread.join()
