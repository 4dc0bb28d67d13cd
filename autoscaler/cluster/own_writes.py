"""Objects that only Foreslice writes: as last read or as last written, whichever is newer.

A watch lags behind. A decision from the watch alone would ignore recent writes. resourceVersions of one API server are
compared as numbers here, as Kubernetes allows.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Generic, Protocol, TypeVar


class Versioned(Protocol):
    """An object with a name and a resourceVersion ("" before it was written)."""

    @property
    def name(self) -> str: ...

    @property
    def resource_version(self) -> str: ...


V = TypeVar("V", bound=Versioned)


class OwnWrites(Generic[V]):
    """The objects of one kind, by name."""

    def __init__(self) -> None:
        self._known: dict[str, V] = {}
        self._removed: dict[str, int] = {}  # the last version of objects that Foreslice removed

    def get(self, name: str) -> V | None:
        return self._known.get(name)

    def values(self) -> tuple[V, ...]:
        return tuple(self._known[name] for name in sorted(self._known))

    def put(self, item: V) -> V:
        self._known[item.name] = item
        return item

    def drop(self, name: str) -> None:
        """Remember that an object was removed."""
        item = self._known.pop(name, None)
        if item is not None:
            self._removed[name] = _version(item)

    def merge(self, seen: Iterable[V], seen_up_to: int) -> None:
        """Accepts what was read, except for objects that this process wrote or removed later."""
        self._removed = {name: version for name, version in self._removed.items() if version >= seen_up_to}
        fresh = {item.name: item for item in seen if _version(item) > self._removed.get(item.name, -1)}
        for name, mine in self._known.items():
            newest = _version(fresh[name]) if name in fresh else seen_up_to
            if _version(mine) > newest:
                fresh[name] = mine
        self._known = fresh


def _version(item: Versioned) -> int:
    return int(item.resource_version or 0)
