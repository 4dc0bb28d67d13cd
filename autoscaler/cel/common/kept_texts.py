"""A cache of what texts compile to, bounded by their number and by the memory that they take.

A compiled selector takes up to 340 bytes for each of its expressions, 1.4 MB for one of 10 kB. Anybody may write
thousands.
"""

from __future__ import annotations

from typing import Final, Generic, TypeVar

V = TypeVar("V")

MOST_TEXTS: Final = 4096
MOST_BYTES: Final = 100_000_000
_OF_EXPRESSION: Final = 340  # bytes, measured on texts of 10 kB


class KeptTexts(Generic[V]):
    """Values by text and `kind`. If there are too many, the oldest eighth is forgotten, and more of them if need be.

    Not all: what is compiled anew is paid from the budget of a plan, and every pod would be unknown for several plans.
    """

    __slots__ = ("_bytes", "_values")

    def __init__(self) -> None:
        self._values: dict[tuple[str, object], tuple[V, int]] = {}
        self._bytes = 0

    def of(self, text: str, kind: object = None) -> V | None:
        found = self._values.get((text, kind))
        return None if found is None else found[0]

    def keep(self, text: str, value: V, kind: object = None, *, nodes: int) -> None:
        """Keep the value of a text with so many expressions."""
        size = _OF_EXPRESSION * nodes + len(text)
        while self._values and (len(self._values) >= MOST_TEXTS or self._bytes + size > MOST_BYTES):
            for key in list(self._values)[: 1 + len(self._values) // 8]:
                self._values.pop(key, None)
            self._bytes = sum(known for _, known in list(self._values.values()))
        self._values[text, kind] = value, size
        self._bytes += size

    def clear(self) -> None:
        self._values.clear()
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._values)
