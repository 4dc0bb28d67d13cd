"""A running watch: a thread reads the API server's events, and the loop takes them when a reconcile begins.

Connections that end, break or become silent are resumed from the last version that was received. Everything else ends
the stream and is reported by the next `take`, after which its consumer lists and begins another one: a version that
expired (410), a resource that is not served or may not be watched, and answers of no API server. In both cases the wait
grows with each failure. `take` reports every end of a thread.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, cast

import structlog

from autoscaler.cluster.api import ApiError, MalformedAnswerError, UnavailableError, WatchEvent
from autoscaler.cluster.client.answers import decoded, error_of, part, words_of
from autoscaler.cluster.client.transport import JITTER, LONGEST_WAIT, Transport, backoff_seconds
from autoscaler.report.printable import one_line
from providers.contract import Clock

_LOG: Final = structlog.get_logger("foreslice.watch")
# The API server ends a watch after this time; client-go asks for 5 to 10 minutes.
_SECONDS: Final = 300
# A watch without an event has a bookmark every minute (apiserver storage/cacher, defaultBookmarkFrequency) and up to a
# quarter more; a connection that brings nothing for longer is taken for dead.
SILENCE: Final = 90.0
# At least this long between two connections, even if each is ended at once.
_PAUSE: Final = 0.1
# A connection that held for so long had nothing to do with the failures before.
_STEADY: Final = 10.0
# Between two lists, which cost more than a connection (client-go's reflector: 30 s).
_LONGEST_RELIST_WAIT: Final = 30.0


class Stream:
    """The changes of the objects under `path` after `version`. `ring` is called on each arrival.

    `beats`: the objects are rewritten regularly without a change; that does not ring. `failures` are those of the
    previous stream, in a row.
    """

    def __init__(
        self,
        transport: Transport,
        path: str,
        version: str,
        *,
        clock: Clock,
        ring: Callable[[], None],
        beats: bool = False,
        failures: int = 0,
        draw: Callable[[], float] = JITTER,
    ) -> None:
        self.delivered = version
        """The version of the last event that was taken: where the consumer stands."""
        self.over = False
        """True once `take` has returned the reason why the stream ended. To continue, begin another one."""
        self.failures = failures
        """The number of failures in a row, on which the next wait depends."""
        self._transport = transport
        self._path = path
        self._received = version
        self._clock = clock
        self._ring = ring
        self._draw = draw
        self._events: deque[WatchEvent] = deque()
        self._failure: ApiError | None = None
        self._closed = False
        self._last: dict[str, bytes] | None = {} if beats else None  # digest of each object, by uid
        self._arrived = threading.Condition()
        self._thread = threading.Thread(target=self._read, name=f"watch {path}", daemon=True)
        try:
            self._thread.start()
        except RuntimeError as error:  # the system has no thread left
            raise UnavailableError(f"no thread for the watch of {path}: {error}") from error

    def take(self, seconds: float) -> Iterator[WatchEvent]:
        """The events that have arrived, and those that arrive within `seconds`. After the last one it raises the error
        that ended the stream."""
        until = self._clock.monotonic() + seconds
        while True:
            event = self._next(until)
            if event is None:
                return
            self.delivered = event.resource_version
            yield event

    def close(self) -> None:
        """Stop reading; what arrives later is dropped."""
        with self._arrived:
            self._closed = True
            self._arrived.notify_all()

    def _next(self, until: float) -> WatchEvent | None:
        with self._arrived:
            while not self._events and self._failure is None:
                if not self._thread.is_alive():
                    self._failure = MalformedAnswerError(f"the thread that watches {self._path} has ended")
                    break
                left = until - self._clock.monotonic()
                if left <= 0:
                    return None
                self._arrived.wait(left)
            if self._events:
                return self._events.popleft()
            assert self._failure is not None
            self.over = True
            raise self._failure

    def _read(self) -> None:
        """The thread. It continues after an error, or reports what ended it."""
        while not self._closed:
            before, began = self._received, self._clock.monotonic()
            try:
                self._connect()
            except MalformedAnswerError as error:
                self._end(error, began)
            except UnavailableError as error:
                self._count(began, progress=self._received != before)
                self._log_failure(error)
                self._wait(LONGEST_WAIT)
            except ApiError as error:
                self._end(error, began)
            except Exception as error:  # noqa: BLE001  # a thread that dies of it would freeze its informer
                text = f"the watch of {self._path} failed ({type(error).__name__}: {words_of(error)})"
                self._end(MalformedAnswerError(text), began)
            else:
                if self._received == before and self._clock.monotonic() - began < _STEADY:
                    # Ended at once, with nothing in it.
                    self.failures += 1
                    self._wait(LONGEST_WAIT)
                else:
                    self.failures = 0
                    self._clock.wait(_PAUSE)

    def _connect(self) -> None:
        query = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": self._received,
            "timeoutSeconds": str(_SECONDS),
        }
        heard = self._clock.monotonic()
        with self._transport.lines(self._path, query=query, silence=SILENCE) as lines:
            for line in lines:
                if self._closed:
                    return
                if line.strip():
                    self._receive(decoded(line, f"watch {self._path}", seen="a line"))
                    heard = self._clock.monotonic()
                elif self._clock.monotonic() - heard > SILENCE:
                    # Something in between keeps the connection open.
                    raise UnavailableError(f"the watch of {self._path} brought nothing for {SILENCE:.0f} s")

    def _receive(self, raw: dict[str, Any]) -> None:
        request = f"watch {self._path}"
        kind = part(raw, "type", str, request, seen="a line")
        found: dict[str, Any] = part(raw, "object", dict, request, seen="a line")
        if kind == "ERROR":
            raise error_of(_code(found), json.dumps(found).encode(), request)
        version = _version(found, kind, request)
        with self._arrived:
            self._events.append(WatchEvent(cast(Any, kind), version, found))
            self._received = version
            self._arrived.notify_all()
        if kind != "BOOKMARK" and self._is_news(kind, found):
            self._ring()

    def _is_news(self, kind: str, found: dict[str, Any]) -> bool:
        if self._last is None:
            return True
        uid = found["metadata"].get("uid", "")
        before, now = self._last.pop(uid, None), without_heartbeat(found)
        if kind != "DELETED":
            self._last[uid] = now
        return kind == "DELETED" or before != now

    def _end(self, error: ApiError, began: float) -> None:
        """Records the error that ended the stream, after a wait that grows each time: a list follows, which costs
        more."""
        self._count(began)
        self._log_failure(error)
        self._wait(_LONGEST_RELIST_WAIT)
        with self._arrived:
            self._failure = error
            self._closed = True
            self._arrived.notify_all()
        self._ring()

    def _count(self, began: float, *, progress: bool = False) -> None:
        held = self._clock.monotonic() - began >= _STEADY
        self.failures = 1 if held or progress else self.failures + 1

    def _wait(self, longest: float) -> None:
        self._clock.wait(backoff_seconds(self.failures, draw=self._draw, longest=longest))

    def _log_failure(self, error: ApiError) -> None:
        """More rarely, the longer the trouble lasts: after 1, 2, 4, 8 failures."""
        if self.failures & (self.failures - 1) == 0:
            _LOG.warning("watch_failed", path=self._path, error=error.message, failures=self.failures)


def _code(status: Mapping[str, Any]) -> int:
    """The code of a metav1.Status inside a watch. One that cannot be read is the server's own fault: 500."""
    code = status.get("code")
    return code if isinstance(code, int) and 400 <= code < 600 else 500


def _version(found: Mapping[str, Any], kind: str, request: str) -> str:
    """The resourceVersion of an object, after a check that the object has the fields that identify it."""
    if kind not in ("ADDED", "MODIFIED", "DELETED", "BOOKMARK"):
        raise MalformedAnswerError(f"{request}: a line is of the unknown type {one_line(kind)[:40]}")
    metadata = part(found, "metadata", dict, request, seen="an object")
    version: str = part(metadata, "resourceVersion", str, request, seen="the metadata of an object")
    if not version.isascii() or not version.isdigit():
        raise MalformedAnswerError(f"{request}: resourceVersion {one_line(version)[:40]} is not a number")
    if kind != "BOOKMARK":
        part(metadata, "name", str, request, seen="the metadata of an object")
    return version


def without_heartbeat(found: dict[str, Any]) -> bytes:
    """A digest of everything in an object except its heartbeats: their times and the fields' managers."""
    metadata = {k: v for k, v in found["metadata"].items() if k not in ("managedFields", "resourceVersion")}
    status = dict(found.get("status") or {})
    conditions = status.get("conditions") or ()
    status["conditions"] = [{k: v for k, v in entry.items() if k != "lastHeartbeatTime"} for entry in conditions]
    said = json.dumps({**found, "metadata": metadata, "status": status}, sort_keys=True)
    return hashlib.blake2b(said.encode(), digest_size=16).digest()
