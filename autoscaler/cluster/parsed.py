"""Values of objects that a watch delivers and that need not be converted, because this process has done so already.

Parsed is for two stores of one process that read the same API server in memory. Its watches deliver the stored objects
themselves, which never change: the first store converts an object, the second one takes its value. Objects that a
client decodes for each watch are not shared.

Written is for objects that this process wrote: it has converted the answer to each write.
"""

from __future__ import annotations

from typing import Any, Final, Protocol, TypeAlias

from autoscaler.cluster.api import Object
from instance_catalog.diagnostic import Diagnostic

Found: TypeAlias = tuple[Any, tuple[Diagnostic, ...]]
"""The value of an object, None if it cannot be used, and its problems."""

Name: TypeAlias = tuple[str, str]
"""An object: its resource, and its namespace and name."""

# A store that is not refreshed for long converts for itself again.
_MOST: Final = 4096
# An object stays if no watch showed its deletion.
_MOST_WRITTEN: Final = 1024


class Conversions(Protocol):
    """Values of objects, as an informer asks for them."""

    def take(self, name: Name, item: Object) -> Found | None:
        """The value of this object, if it is known."""

    def keep(self, name: Name, item: Object, found: Found) -> None:
        """Called with the value of an object for which `take` had none."""

    def forget(self, name: Name) -> None:
        """Called for an object that was deleted."""


class Parsed:
    """The last state of each object that one store has converted, as long as the other may ask for it.

    A value is given only for the very same object. Both stores convert the objects of a resource in the same way.
    """

    def __init__(self) -> None:
        self._known: dict[Name, tuple[Object, Found]] = {}

    def take(self, name: Name, item: Object) -> Found | None:
        """What the other store kept for this very object; nobody else will ask for it."""
        known = self._known.get(name)
        if known is None or known[0] is not item:
            return None
        del self._known[name]
        return known[1]

    def keep(self, name: Name, item: Object, found: Found) -> None:
        """An earlier state is forgotten: a store that was not refreshed since converts only this one."""
        if len(self._known) >= _MOST:
            self._known.clear()
        self._known[name] = item, found

    def forget(self, name: Name) -> None:
        """Of an object that was deleted."""
        self._known.pop(name, None)


class Written:
    """The last answer to a write of each object, until a watch shows it. May be used from several threads.

    A value cannot be out of date: the object of the watch must equal the answer in all its content, of which the uid
    and the resourceVersion are a part.
    """

    def __init__(self) -> None:
        self._known: dict[Name, tuple[Object, Any]] = {}

    def put(self, name: Name, answer: Object, value: object) -> None:
        """The value of the answer to a write, which nobody changes afterwards."""
        if len(self._known) >= _MOST_WRITTEN:
            self._known.clear()
        self._known[name] = answer, value

    def take(self, name: Name, item: Object) -> Found | None:
        """The value of the answer that is equal to `item`. Each is asked for once."""
        known = self._known.get(name)
        if known is None or known[0] != item:
            return None  # an earlier state, or what another client wrote
        self._known.pop(name, None)
        return known[1], ()

    def keep(self, name: Name, item: Object, found: Found) -> None:
        """What others wrote is seen once, and not kept."""

    def forget(self, name: Name) -> None:
        """Of an object that was deleted."""
        self._known.pop(name, None)
