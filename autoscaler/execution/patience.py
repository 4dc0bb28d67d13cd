"""How soon a provider is asked again for what it failed at: ever more rarely, whoever wakes the loop how often.

Kept in memory. A process that begins anew asks once more, which is one call and no danger; what a launch met is kept in
the pools' statuses instead (cluster/backoffs.py).
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

from providers.contract import Clock
from providers.errors import ProviderError, UnclassifiedError

# A person who corrects what the error names does not wait longer than this to see it.
LONGEST: Final = timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class _Failure:
    error: Exception
    count: int
    until: float


@dataclass(slots=True)
class Patience:
    """What failed, by a key of the caller's. `longest` bounds every wait."""

    clock: Clock
    longest: timedelta = LONGEST
    _failed: dict[str, _Failure] = field(default_factory=dict)

    def attempt(self, key: str, call: Callable[[], None]) -> None:
        """Call, unless that failed a short while ago. Raises what it raises, or what it raised then."""
        known = self._failed.get(key)
        if known is not None and self.clock.monotonic() < known.until:
            raise known.error.with_traceback(None)  # or it grows with every raise
        try:
            call()
        except Exception as error:
            count = 1 + (known.count if known is not None else 0)
            # What a provider never promised to raise is waited out like an error of unknown kind.
            wait = error.backoff(count) if isinstance(error, ProviderError) else UnclassifiedError.doubled(count)
            until = self.clock.monotonic() + min(wait, self.longest).total_seconds()
            self._failed[key] = _Failure(error, count, until)
            raise
        self._failed.pop(key, None)

    def error(self, key: str) -> Exception | None:
        """What the last call of this key raised; None after one that went well."""
        known = self._failed.get(key)
        return None if known is None else known.error

    def keep(self, keys: Collection[str]) -> None:
        """Forget all others."""
        self._failed = {key: known for key, known in self._failed.items() if key in keys}
