"""A small cache for pure functions whose arguments seldom change between reconciles, such as the offerings of pools.

A restart empties it, and equal arguments would give the same answer again. Arguments are compared, not hashed: their
parts are the same objects while nothing has changed, so a comparison is fast.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final, Generic, TypeVar

V = TypeVar("V")
_KEPT: Final = 4


class Same:
    """A value that equals only itself: comparing a whole catalog would take longer than computing again."""

    __slots__ = ("_value",)

    def __init__(self, value: object) -> None:
        self._value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and self._value is other._value

    def __hash__(self) -> int:
        return id(self._value)


class LastAnswers(Generic[V]):
    """The answers for the last few different arguments. Threads may share it: at worst one computes an answer again."""

    def __init__(self) -> None:
        self._known: deque[tuple[tuple[object, ...], V]] = deque(maxlen=_KEPT)

    def of(self, arguments: tuple[object, ...], compute: Callable[[], V]) -> V:
        for known, answer in tuple(self._known):
            if known == arguments:
                return answer
        answer = compute()
        self._known.append((arguments, answer))
        return answer
