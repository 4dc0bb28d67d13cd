"""Objects that only Foreslice writes: as last read or as last written, whichever is newer.

A watch lags behind. A decision from the watch alone would ignore recent writes. resourceVersions of one API server are
compared as numbers here, as Kubernetes allows.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

from autoscaler.cluster.api import Object, key_of
from autoscaler.cluster.parsed import Written
from autoscaler.cluster.resources import Resource


class Versioned(Protocol):
    """An object with a name and a resourceVersion ("" before it was written)."""

    @property
    def name(self) -> str: ...

    @property
    def resource_version(self) -> str: ...


V = TypeVar("V", bound=Versioned)


class OwnWrites(Generic[V]):
    """The objects of one kind, by name. May be used from several threads.

    `values` is the same tuple until an object is put, dropped or merged: nothing else changes what is known.
    """

    def __init__(self, resource: Resource, parse: Callable[[Object], V], written: Written | None = None) -> None:
        """`written`: for the informer of this kind, which need not convert the answers to writes again."""
        self._resource = str(resource)
        self._parse = parse
        self._written = written
        self._lock = threading.Lock()  # held by all that change or sort what is known
        self._known: dict[str, V] = {}
        self._removed: dict[str, int] = {}  # the last version of objects that Foreslice removed
        self._values: tuple[V, ...] | None = None  # by name; None after a change
        self._merged: tuple[V, ...] | None = None  # what was read last, unless this process knows better

    def get(self, name: str) -> V | None:
        return self._known.get(name)

    def values(self) -> tuple[V, ...]:
        found = self._values
        if found is None:
            with self._lock:
                found = self._values = tuple(self._known[name] for name in sorted(self._known))
        return found

    def put(self, item: V) -> V:
        with self._lock:
            self._known[item.name] = item
            self._values = self._merged = None
        return item

    def read(self, answer: Object) -> V:
        """Accepts an object as the API server answered. Raises the error of one that cannot be read."""
        item = self._parse(answer)
        if self._written is not None:
            self._written.put((self._resource, key_of(answer)), answer, item)
        return self.put(item)

    def drop(self, name: str) -> None:
        """Remember that an object was removed."""
        with self._lock:
            item = self._known.pop(name, None)
            if item is not None:
                self._removed[name] = _version(item)
                self._values = self._merged = None

    def merge(self, seen: tuple[V, ...], seen_up_to: int) -> None:
        """Accepts what was read, except for objects that this process wrote or removed later."""
        if seen is self._merged:
            return  # the same was read before, and nothing was written or removed since
        with self._lock:
            self._removed = {name: version for name, version in self._removed.items() if version >= seen_up_to}
            fresh = {item.name: item for item in seen}
            for name, removed in self._removed.items():
                if name in fresh and _version(fresh[name]) <= removed:
                    del fresh[name]
            self._merged = None if self._removed else seen
            for name, mine in self._known.items():
                if fresh.get(name) is mine:
                    continue
                newest = _version(fresh[name]) if name in fresh else seen_up_to
                if _version(mine) > newest:
                    fresh[name] = mine
                    self._merged = None
            self._known, self._values = fresh, None


def _version(item: Versioned) -> int:
    return int(item.resource_version or 0)
