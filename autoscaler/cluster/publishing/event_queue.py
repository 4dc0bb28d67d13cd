"""Events that wait to be written to the API server: offered by a reconcile, written by another thread.

A reconcile only offers events, which costs no request: Events of thousands of unschedulable pods delay nothing. An
event is not repeated while it is remembered. The number of events of one object is bounded as in k8s.io/client-go
tools/record/events_cache.go (v1.36): 25 at once and one more every five minutes; and if one reason has more than ten
texts within ten minutes, the next is written as one combined event. An event for which there is no place is counted and
not remembered: as long as it is true the next reconcile offers it again.

The reasons in a namespace take turns, so that many events of one kind do not hold up the only one of another. If the
queue is full, the namespace with the most gives places to those with fewer than their share.

Objects are created and deleted for months. What is remembered about them is forgotten as soon as it decides nothing.
"""

from __future__ import annotations

import hashlib
import threading
from collections import Counter, OrderedDict, deque
from collections.abc import Callable
from datetime import datetime
from enum import Enum
from typing import Final, Generic, TypeVar

import structlog

from autoscaler.cluster.api import AlreadyExistsError, ApiError, KubernetesApi, Object, UnavailableError
from autoscaler.cluster.lease import LeadershipLostError
from autoscaler.cluster.resources import EVENTS
from autoscaler.report.events import Event
from autoscaler.report.printable import printable
from instance_catalog.dataclass import dataclass, replace

K = TypeVar("K")
V = TypeVar("V")
_LOG: Final = structlog.get_logger("foreslice.events")
_COMPONENT: Final = "foreslice"
# The namespace of events about cluster-scoped objects, as client-go's recorder has it.
_CLUSTER_EVENTS: Final = "default"
_LONGEST_NAME: Final = 253
_LONGEST_REASON: Final = 128  # bytes
_LONGEST_MESSAGE: Final = 1024  # bytes
_TIME: Final = "%Y-%m-%dT%H:%M:%SZ"
# Waiting at the same time. A reconcile that has more offers the rest again.
_MOST_WAITING: Final = 10_000
# Events remembered as written. One that was forgotten costs a call that the API server answers with AlreadyExists.
_REMEMBERED: Final = 50_000
# Nor does one that no reconcile has offered for so long; by then the API server itself has forgotten it (--event-ttl).
_REMEMBERED_SECONDS: Final = 3600.0
_OBJECTS: Final = 10_000
_BURST: Final = 25
_REFILL_SECONDS: Final = 300.0
_SIMILAR: Final = 10
_SIMILAR_SECONDS: Final = 600.0
_COMBINED: Final = "(combined from similar events): "
_ATTEMPTS: Final = 5
_FEW: Final = 256  # below this nothing is looked through


class Fate(Enum):
    """The outcome of writing an event."""

    WRITTEN = "written"
    REFUSED = "refused"  # by the API server, as in a namespace that is being deleted: not tried again
    DROPPED = "dropped"  # for want of a place, or because its object has many: offered again while it is true


@dataclass(frozen=True, slots=True)
class _Waiting:
    event: Event
    offered_at: datetime
    attempts: int = 0


@dataclass(slots=True)
class _Bucket:
    tokens: float
    at: float


@dataclass(slots=True)
class _Similar:
    began: float
    texts: tuple[int, ...] = ()  # hashes of them
    combined: bool = False


class _Recent(Generic[K, V]):
    """Remembered entries, in the order of their last use; at most `most`.

    Whenever their number has doubled, entries that are `over` are forgotten. So all entries are searched rarely, and
    there are never more than twice those worth remembering, or a few.
    """

    def __init__(self, most: int, over: Callable[[V, float], bool]) -> None:
        self._known: OrderedDict[K, V] = OrderedDict()
        self._most = most
        self._over = over
        self._full = _FEW

    def __len__(self) -> int:
        return len(self._known)

    def get(self, key: K) -> V | None:
        return self._known.get(key)

    def put(self, key: K, value: V, moment: float) -> None:
        """Remember it, and forget the oldest beyond `most`."""
        self._known[key] = value
        self._known.move_to_end(key)
        if len(self._known) > self._full:
            for past in [known for known, found in self._known.items() if self._over(found, moment)]:
                del self._known[past]
            self._full = max(_FEW, 2 * len(self._known))
        if len(self._known) > self._most:
            self._known.popitem(last=False)

    def drop(self, key: K) -> None:
        self._known.pop(key, None)


class EventQueue:
    """The events that wait, and records of those written. May be used from several threads."""

    def __init__(self, api: KubernetesApi) -> None:
        self._api = api
        self._lock = threading.Lock()
        self._lanes: OrderedDict[tuple[str, str], deque[_Waiting]] = OrderedDict()
        self._waiting = 0
        self._of_namespace: Counter[str] = Counter()  # those that wait; none has 0
        self._offered: _Recent[str, float] = _Recent(_REMEMBERED, _long_ago)  # the time of the last offer
        # By the hash of what it is about, which is a tenth of its names.
        self._buckets: _Recent[int, _Bucket] = _Recent(_OBJECTS, _is_full)
        self._similar: _Recent[int, _Similar] = _Recent(_OBJECTS, _is_over)
        self._refused: _Recent[str, float] = _Recent(_OBJECTS, _long_ago)  # by namespace, when a refusal was logged
        self._fates: Counter[Fate] = Counter()

    def __len__(self) -> int:
        return self._waiting

    @property
    def remembered(self) -> int:
        return len(self._offered) + len(self._buckets) + len(self._similar) + len(self._refused)

    @property
    def fates(self) -> dict[Fate, int]:
        with self._lock:
            return {fate: self._fates[fate] for fate in Fate}

    def offer(self, event: Event, now: datetime) -> None:
        """Queue an event, unless it was written before or the queue is full. Never fails and sends no request."""
        digest, moment = _digest(event), now.timestamp()
        with self._lock:
            if self._offered.get(digest) is not None:
                self._offered.put(digest, moment, moment)
                return
            admitted = self._admitted(event, moment) if self._has_place(event.about.namespace) else None
            if admitted is None:
                self._fates[Fate.DROPPED] += 1
                return
            self._offered.put(digest, moment, moment)
            self._append(_Waiting(admitted, now))

    def write_next(self) -> bool | None:
        """Write one of the events that wait: whether the API server answered; None if none waits."""
        with self._lock:
            waiting = self._take()
        if waiting is None:
            return None
        fate = self._write(waiting)
        with self._lock:
            if fate is not None:
                self._fates[fate] += 1
            elif waiting.attempts + 1 < _ATTEMPTS:
                self._append(replace(waiting, attempts=waiting.attempts + 1))
            else:
                self._fates[Fate.DROPPED] += 1
                self._offered.drop(_digest(waiting.event))
        return fate is not None

    def drain(self) -> None:
        """Write everything that waits, in the calling thread, until the API server does not answer."""
        while self.write_next():
            pass

    def _write(self, waiting: _Waiting) -> Fate | None:
        """None: the outcome is unknown, so it is tried again."""
        event = waiting.event
        try:
            self._api.create(EVENTS, manifest_of(event, waiting.offered_at))
        except AlreadyExistsError:
            return Fate.WRITTEN  # written before a restart
        except UnavailableError:
            return None
        except LeadershipLostError:
            return Fate.DROPPED  # the new leader writes it
        except ApiError as error:
            self._log_refusal(waiting, error)
            return Fate.REFUSED
        except Exception as error:  # noqa: BLE001  # the boundary: one event must not end the thread that writes all
            about = event.about
            _LOG.error("unexpected_error", kind="Event", name=about.name, namespace=about.namespace, exc_info=error)
            return Fate.REFUSED
        return Fate.WRITTEN

    def _log_refusal(self, waiting: _Waiting, error: ApiError) -> None:
        """Once an hour for a namespace: a quota there refuses as many as its pods cause."""
        about, moment = waiting.event.about, waiting.offered_at.timestamp()
        with self._lock:
            before = self._refused.get(about.namespace)
            if before is not None and 0 <= moment - before <= _REMEMBERED_SECONDS:
                return
            self._refused.put(about.namespace, moment, moment)
        where = about.namespace or _CLUSTER_EVENTS
        _LOG.warning(
            "event_refused", namespace=where, reason=waiting.event.reason, kind=about.kind, error=error.message
        )

    def _has_place(self, namespace: str) -> bool:
        """True if one more event of the namespace may wait. The event that it replaces is not remembered as written."""
        if self._waiting < _MOST_WAITING:
            return True
        names = len(self._of_namespace) + (namespace not in self._of_namespace)
        if (self._of_namespace[namespace] + 1) * names > _MOST_WAITING:
            return False
        ((most, _),) = self._of_namespace.most_common(1)
        longest = max((lane for lane in self._lanes if lane[0] == most), key=lambda lane: len(self._lanes[lane]))
        last = self._lanes[longest].pop()
        self._left(longest)
        self._offered.drop(_digest(last.event))
        self._fates[Fate.DROPPED] += 1
        return True

    def _append(self, waiting: _Waiting) -> None:
        event = waiting.event
        self._lanes.setdefault((event.about.namespace, event.reason), deque()).append(waiting)
        self._waiting += 1
        self._of_namespace[event.about.namespace] += 1

    def _left(self, lane: tuple[str, str]) -> None:
        """One of the lane waits no more."""
        self._waiting -= 1
        self._of_namespace[lane[0]] -= 1
        if not self._of_namespace[lane[0]]:
            del self._of_namespace[lane[0]]
        if not self._lanes[lane]:
            del self._lanes[lane]

    def _take(self) -> _Waiting | None:
        """The first of the lane whose turn it is."""
        if not self._lanes:
            return None
        lane, events = next(iter(self._lanes.items()))
        taken = events.popleft()
        self._lanes.move_to_end(lane)
        self._left(lane)
        return taken

    def _admitted(self, event: Event, moment: float) -> Event | None:
        """The event as it is written; None when its object has enough of them."""
        combined = self._combined(event, moment)
        return combined if combined is not None and self._has_token(event, moment) else None

    def _has_token(self, event: Event, moment: float) -> bool:
        key = hash(event.about)
        tokens = _tokens(self._buckets.get(key) or _Bucket(_BURST, moment), moment)
        self._buckets.put(key, _Bucket(tokens - 1 if tokens >= 1 else tokens, moment), moment)
        return tokens >= 1

    def _combined(self, event: Event, moment: float) -> Event | None:
        key = hash((event.about, event.type, event.reason))
        similar = self._similar.get(key)
        if similar is None or _is_over(similar, moment):
            similar = _Similar(moment)
        self._similar.put(key, similar, moment)
        if len(similar.texts) < _SIMILAR:
            similar.texts = tuple({*similar.texts, hash(event.message)})
            return event
        if similar.combined:
            return None
        similar.combined = True
        return replace(event, message=_COMBINED + event.message)


def manifest_of(event: Event, moment: datetime) -> Object:
    """The Event object. Its name is the hash of its content, so that the API server has it once."""
    at = moment.strftime(_TIME)
    return {
        "metadata": {"name": _name(event), "namespace": event.about.namespace or _CLUSTER_EVENTS},
        "involvedObject": {key: value for key, value in event.about._asdict().items() if value},
        "type": event.type,
        "reason": cut(event.reason, _LONGEST_REASON),
        "message": cut(printable(event.message), _LONGEST_MESSAGE),
        "source": {"component": _COMPONENT},
        "reportingComponent": _COMPONENT,
        "firstTimestamp": at,
        "lastTimestamp": at,
        "count": 1,
    }


def cut(text: str, longest: int) -> str:
    """At most so many bytes of a text in UTF-8, whole characters only."""
    encoded = text.encode(errors="replace")
    return encoded.decode() if len(encoded) <= longest else encoded[:longest].decode(errors="ignore")


def _name(event: Event) -> str:
    digest = _digest(event)
    return f"{event.about.name[: _LONGEST_NAME - len(digest) - 1].rstrip('-.')}.{digest}"


def _digest(event: Event) -> str:
    return hashlib.sha256(repr(event).encode()).hexdigest()[:16]


def _tokens(bucket: _Bucket, moment: float) -> float:
    """The current number of tokens. A clock that was set back refills nothing, and counts from its new time."""
    return min(bucket.tokens + max(moment - bucket.at, 0.0) / _REFILL_SECONDS, _BURST)


def _is_full(bucket: _Bucket, moment: float) -> bool:
    """True if it decides like a new bucket."""
    return _tokens(bucket, moment) >= _BURST


def _is_over(similar: _Similar, moment: float) -> bool:
    return not 0 <= moment - similar.began < _SIMILAR_SECONDS


def _long_ago(offered: float, moment: float) -> bool:
    return moment - offered > _REMEMBERED_SECONDS
