"""A copy of one resource of the cluster as model values, maintained by list and watch.

Objects are converted on arrival and dropped, page by page: only one page of a list is ever in memory as JSON. Of an
object that changed several times between two refreshes, the last state is converted: no other is ever asked for. An
expired version (410 Gone) is listed again. An API that is not served has no objects and is requested rarely; the same
holds for one that may not be read, if it is optional. An object that cannot be used does not hide others: it is left
out and its problems are reported.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from typing import Final, Generic, TypeVar

import structlog

from autoscaler.cluster.api import (
    ApiError,
    ForbiddenError,
    KubernetesApi,
    MalformedAnswerError,
    NotFoundError,
    Object,
    UnavailableError,
    key_of,
    pages,
)
from autoscaler.cluster.parsed import Conversions
from autoscaler.cluster.resources import Resource
from autoscaler.kube.problem import Problems
from instance_catalog.diagnostic import Diagnostic
from providers.contract import Clock

_LOG: Final = structlog.get_logger("foreslice.informer")
_REPORT: Final = "report it with the log line `unexpected_error`; it counts as it was read last"
T_co = TypeVar("T_co", covariant=True)
# An API that is not served is requested at every n-th refresh, n doubling up to this.
_RAREST: Final = 16


class Informer(Generic[T_co]):
    """All objects of `resource` as values of `parse`, which answers None for an object that cannot be used.

    Without the right to read them there are none if they are `optional`; otherwise `refresh` raises ForbiddenError.
    After a `refresh` no informer is older than half of `stale` by its `clock`, for it lists in time. Without a clock it
    never is, which is for those who read a cluster once.
    """

    def __init__(
        self,
        api: KubernetesApi,
        resource: Resource,
        parse: Callable[[Object, Problems], T_co | None],
        *,
        optional: bool = False,
        clock: Clock | None = None,
        stale: timedelta = timedelta.max,
        parsed: Conversions | None = None,
    ) -> None:
        self._api = api
        self._parsed = parsed
        self._shared_as = str(resource)
        self._clock = clock
        self._longest = stale.total_seconds() / 2
        self._heard_at = 0.0 if clock is None else clock.monotonic()
        self._resource = resource
        self._parse = parse
        self._version = ""
        self._values: dict[str, T_co] = {}
        self._problems: dict[str, tuple[Diagnostic, ...]] = {}
        self._ordered: tuple[T_co, ...] | None = None
        self._keys: list[str] | None = None  # those of the values, sorted
        self._unserved = 0  # how often in a row it was not served
        self._skipped = 0  # refreshes since its last request
        self._optional = optional
        self._refused = False

    @property
    def lacks(self) -> str:
        """The missing right without which the resource cannot be read, "" if none is missing."""
        return f"list and watch {self._resource}" if self._refused else ""

    @property
    def kind(self) -> str:
        """The kind of the objects, for messages."""
        return self._resource.kind

    @property
    def group(self) -> str:
        """The API group of the resource, "" for the core group."""
        return self._resource.group

    @property
    def name(self) -> str:
        """The resource, with its group: two groups have PodGroups."""
        return str(self._resource)

    @property
    def age(self) -> float | None:
        """Seconds since the last event, bookmark or list was accepted. May be called from any thread.

        None if it is not read: the cluster does not serve it, or it is optional and may not be read.
        """
        return None if self._unserved or self._clock is None else self._clock.monotonic() - self._heard_at

    @property
    def version(self) -> int:
        """The resourceVersion up to which everything was seen, 0 before the first refresh."""
        return int(self._version or 0)

    @property
    def values(self) -> tuple[T_co, ...]:
        """The values by namespace and name, as of the last refresh."""
        if self._ordered is None:
            self._ordered = tuple(map(self._values.__getitem__, self._sorted()))
        return self._ordered

    @property
    def items(self) -> Iterator[tuple[str, T_co]]:
        """The same, each with its key: namespace/name, or the name of a cluster-scoped object."""
        return zip(self._sorted(), self.values, strict=True)

    def _sorted(self) -> list[str]:
        if self._keys is None:
            self._keys = sorted(self._values)
        return self._keys

    @property
    def problems(self) -> Mapping[str, tuple[Diagnostic, ...]]:
        """The problems of objects, by namespace/name."""
        return self._problems

    def refresh(self) -> bool:
        """Take over what changed since the last time; whether anything did."""
        if self._unserved:
            self._skipped += 1
            if self._skipped < min(1 << (self._unserved - 1), _RAREST):
                return False
        if not self._version:
            return self._list()
        try:
            changed = self._watch()
        except UnavailableError as error:
            if not isinstance(error, MalformedAnswerError):
                raise
            return self._list()
        except ApiError:
            return self._list()
        # A watch without events may be frozen, which looks like a quiet cluster.
        return self._list() or changed if (self.age or 0.0) >= self._longest else changed

    def reread(self) -> bool:
        """Lists everything again, because the inputs of the conversion have changed."""
        return self._list()

    def _list(self) -> bool:
        values_before, problems_before = self._values, self._problems
        self._skipped = 0
        self._refused = False
        # A list that breaks off is begun anew, and until then everything is as it was last seen.
        self._version = ""
        values: dict[str, T_co] = {}
        found: dict[str, tuple[Diagnostic, ...]] = {}
        version = ""
        try:
            for page in pages(self._api, self._resource):
                for item in page.items:
                    self._read(item, values, found)
                version = page.resource_version
        except NotFoundError as error:
            if not self._resource.group:
                # Every API server serves the core group: something else answers, and no object has ended.
                message = f"{self._resource} cannot be read, which every API server has: {error.message}"
                raise MalformedAnswerError(
                    message, next_step="look at what answers in the API server's place"
                ) from error
            # The API is not served, as that of gangs without its CRD: it has no objects until it is.
            self._unserved += 1
            values, found = {}, {}
        except ForbiddenError as error:
            if not self._optional:
                message = f"{self._resource} cannot be read: {error.message}"
                step = f"{error.next_step}; the ClusterRole foreslice-observe grants all that is needed"
                raise ForbiddenError(message, next_step=step) from error
            self._unserved += 1
            self._refused = True
            values, found = {}, {}
        else:
            self._version, self._unserved = version, 0
            self._heard()
        self._values, self._problems, self._ordered, self._keys = values, found, None, None
        return (values_before, problems_before) != (values, found)

    def _watch(self) -> bool:
        changed = False
        latest: dict[str, Object] = {}  # by key: the objects that changed and exist
        try:
            for event in self._api.watch(self._resource, resource_version=self._version):
                self._version = event.resource_version
                self._heard()
                if event.type in ("ADDED", "MODIFIED"):
                    latest[key_of(event.object)] = event.object
                elif event.type == "DELETED":
                    key = key_of(event.object)
                    latest.pop(key, None)
                    if self._parsed is not None:
                        self._parsed.forget((self._shared_as, key))
                    changed |= self._drop(key)
        finally:
            # Also of a watch that breaks off: the next one begins after these.
            for item in latest.values():
                changed |= self._take(item)
        return changed

    def _take(self, item: Object) -> bool:
        """Accepts an object. Returns True if that changes a value or a problem; a heartbeat does not."""
        key, values, found = key_of(item), dict[str, T_co](), dict[str, tuple[Diagnostic, ...]]()
        self._read_once(item, values, found)
        if values.get(key) == self._values.get(key) and found.get(key) == self._problems.get(key):
            return False
        self._drop(key)
        self._values |= values
        if values and self._keys is not None:
            insort(self._keys, key)
        self._problems |= found
        return True

    def _read_once(self, item: Object, values: dict[str, T_co], found: dict[str, tuple[Diagnostic, ...]]) -> None:
        """As `_read`, of an object of a watch, which another store may have converted."""
        key = key_of(item)
        known = None if self._parsed is None else self._parsed.take((self._shared_as, key), item)
        if known is None:
            if self._read(item, values, found) and self._parsed is not None:
                self._parsed.keep((self._shared_as, key), item, (values.get(key), found.get(key, ())))
            return
        value, problems = known
        if value is not None:
            values[key] = value
        if problems:
            found[key] = problems

    def _read(self, item: Object, values: dict[str, T_co], found: dict[str, tuple[Diagnostic, ...]]) -> bool:
        """Adds the value of an object, if it has one, and its problems.

        If reading it fails (False), it keeps its last value, if any: the others must be seen.
        """
        key, problems, done = key_of(item), Problems(), True
        try:
            value = self._parse(item, problems)
        except Exception as error:  # noqa: BLE001  # the boundary: one object must not hide the others
            _LOG.error("unexpected_error", kind=self.kind, name=key, exc_info=error)
            problems.error((), f"it cannot be read: {type(error).__name__}: {error}", _REPORT)
            # The last valid value stays: an object that exists must not seem gone.
            value, done = self._values.get(key), False
        if value is not None:
            values[key] = value
        if len(problems):
            found[key] = tuple(problems)
        return done

    def _heard(self) -> None:
        if self._clock is not None:
            self._heard_at = self._clock.monotonic()

    def _drop(self, key: str) -> bool:
        known = key in self._values or key in self._problems
        if key in self._values and self._keys is not None:
            del self._keys[bisect_left(self._keys, key)]
        self._values.pop(key, None)
        self._problems.pop(key, None)
        self._ordered = None
        return known
