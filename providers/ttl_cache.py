"""Values that are read from a cloud and kept for a limited time; never across restarts."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Generic, TypeVar

from providers.contract import Clock

V = TypeVar("V")


class TtlCache(Generic[V]):
    """Answers by key, each read again if it is older than `lifetime`. A failed read is not remembered."""

    def __init__(self, clock: Clock, lifetime: timedelta) -> None:
        self._clock = clock
        self._lifetime = lifetime.total_seconds()
        self._values: dict[object, tuple[float, V]] = {}

    def get(self, key: object, read: Callable[[], V]) -> V:
        if self.fresh(key):
            return self._values[key][1]
        now, value = self._clock.monotonic(), read()
        self._values[key] = (now, value)
        return value

    def fresh(self, key: object) -> bool:
        known = self._values.get(key)
        return known is not None and self._clock.monotonic() - known[0] < self._lifetime

    def last(self, key: object) -> V | None:
        """The value that was read last, of any age, without reading."""
        known = self._values.get(key)
        return known[1] if known else None

    def forget(self, key: object) -> None:
        """Read it again next time."""
        self._values.pop(key, None)
