"""A running watch: a thread reads what the API server sends, the loop takes it when a tick begins.

Connections that end or break are resumed from the last version that was received. A version that expired (410), a
resource that is not served or may not be watched is told by the next `take`; then the stream is over.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, Final

from autoscaler.cluster.api import ApiError, UnavailableError, WatchEvent
from autoscaler.cluster.client_transport import Transport, backoff_seconds, error_of
from providers.contract import Clock

# The API server ends a watch after this time; client-go asks for 5 to 10 minutes.
_SECONDS: Final = 300
# At least this long between two connections, even if each is ended at once.
_PAUSE: Final = 0.1


class Stream:
    """The changes of the objects under `path` after `version`. `ring` is called when something has arrived.

    `beats`: the objects are written all the time only to say that nothing has happened; that does not ring.
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
    ) -> None:
        self.delivered = version
        """The version of the last event that was taken: where the consumer stands."""
        self.over = False
        """Whether `take` has said what ended the stream. Whoever wants to go on begins another one."""
        self._transport = transport
        self._path = path
        self._received = version
        self._clock = clock
        self._ring = ring
        self._events: deque[WatchEvent] = deque()
        self._failure: ApiError | None = None
        self._closed = False
        self._last: dict[str, bytes] | None = {} if beats else None  # digest of each object, by uid
        self._arrived = threading.Condition()
        self._thread = threading.Thread(target=self._read, name=f"watch {path}", daemon=True)
        self._thread.start()

    def take(self, seconds: float) -> Iterator[WatchEvent]:
        """What has arrived, and what arrives within `seconds`. Raises what ended the stream once all was taken."""
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
        failures = 0
        while not self._closed:
            before = self._received
            try:
                self._connect()
            except UnavailableError:
                failures = 1 if self._received != before else failures + 1
                self._clock.wait(backoff_seconds(failures))
            except ApiError as error:
                self._fail(error)
                return
            else:
                failures = 0
                self._clock.wait(_PAUSE)

    def _connect(self) -> None:
        query = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": self._received,
            "timeoutSeconds": str(_SECONDS),
        }
        with self._transport.lines(self._path, query=query, seconds=_SECONDS) as lines:
            for line in lines:
                if self._closed:
                    return
                self._receive(json.loads(line))

    def _receive(self, raw: dict[str, Any]) -> None:
        kind, found = raw["type"], raw["object"]
        if kind == "ERROR":
            raise error_of(int(found.get("code", 500)), json.dumps(found).encode(), f"watch {self._path}")
        version = str(found["metadata"]["resourceVersion"])
        with self._arrived:
            self._events.append(WatchEvent(kind, version, found))
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

    def _fail(self, error: ApiError) -> None:
        with self._arrived:
            self._failure = error
            self._arrived.notify_all()
        self._ring()


def without_heartbeat(found: dict[str, Any]) -> bytes:
    """A digest of everything in an object but when, and by whom, it was last said."""
    metadata = {k: v for k, v in found["metadata"].items() if k not in ("managedFields", "resourceVersion")}
    status = dict(found.get("status") or {})
    conditions = status.get("conditions") or ()
    status["conditions"] = [{k: v for k, v in entry.items() if k != "lastHeartbeatTime"} for entry in conditions]
    said = json.dumps({**found, "metadata": metadata, "status": status}, sort_keys=True)
    return hashlib.blake2b(said.encode(), digest_size=16).digest()
