"""Values of objects that two stores of one process read from the same API server in memory.

Its watches deliver the stored objects themselves, which never change: the first store converts an object, the second
one takes its value. Objects that a client decodes for each watch are not shared.
"""

from __future__ import annotations

from typing import Any, Final, TypeAlias

from autoscaler.cluster.api import Object
from instance_catalog.diagnostic import Diagnostic

Found: TypeAlias = tuple[Any, tuple[Diagnostic, ...]]
"""The value of an object, None if it cannot be used, and its problems."""

Name: TypeAlias = tuple[str, str]
"""An object: its resource, and its namespace and name."""

# A store that is not refreshed for long converts for itself again.
_MOST: Final = 4096


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
