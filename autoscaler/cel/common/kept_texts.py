"""A cache of what texts compile to, bounded by their number and by their length.

A compiled selector takes up to 170 bytes for each character, 1.7 MB for one of 10 kB. Anybody may write thousands.
"""

from __future__ import annotations

from typing import Final, Generic, TypeVar

V = TypeVar("V")

MOST_TEXTS: Final = 4096
MOST_CHARACTERS: Final = 600_000  # at most some 100 MB; 4,096 usual selectors have 400,000


class KeptTexts(Generic[V]):
    """Values by text and `kind`. If there are too many, the oldest eighth is forgotten, and more of them if need be.

    Not all: what is compiled anew is paid from the budget of a plan, and every pod would be unknown for several plans.
    """

    __slots__ = ("_characters", "_values")

    def __init__(self) -> None:
        self._values: dict[tuple[str, object], V] = {}
        self._characters = 0

    def of(self, text: str, kind: object = None) -> V | None:
        return self._values.get((text, kind))

    def keep(self, text: str, value: V, kind: object = None) -> None:
        while self._values and (len(self._values) >= MOST_TEXTS or self._characters + len(text) > MOST_CHARACTERS):
            for key in list(self._values)[: 1 + len(self._values) // 8]:
                self._values.pop(key, None)
            self._characters = sum(len(known) for known, _ in list(self._values))
        self._values[text, kind] = value
        self._characters += len(text)

    def clear(self) -> None:
        self._values.clear()
        self._characters = 0

    def __len__(self) -> int:
        return len(self._values)
