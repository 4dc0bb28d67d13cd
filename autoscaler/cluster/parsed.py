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

# A store that is not refreshed for long converts for itself again.
_MOST: Final = 4096


class Parsed:
    """By identity of the object. Both stores convert the objects of a resource in the same way."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Object, Found]] = {}

    def take(self, item: Object) -> Found | None:
        """What the other store kept for this very object; nobody else will ask for it."""
        known = self._known.pop(id(item), None)
        return None if known is None else known[1]

    def keep(self, item: Object, found: Found) -> None:
        if len(self._known) >= _MOST:
            self._known.clear()
        self._known[id(item)] = item, found  # the object stays, so that no other one gets its id
