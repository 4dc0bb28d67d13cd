"""An immutable, hashable mapping.

Python takes True for 1 and False for 0. Attributes of devices do not, so a map with 1 is not the map with True.

Snapshots, devices and plans are values: they are compared, used as memo keys and shared between threads. A plain dict
is none of that, and a tuple of pairs cannot be looked up.
"""

from __future__ import annotations

from collections.abc import ItemsView, Iterable, Iterator, KeysView, Mapping, ValuesView
from typing import Any, Generic, TypeVar, overload

K = TypeVar("K")
V_co = TypeVar("V_co", covariant=True)
T = TypeVar("T")


class FrozenMap(Mapping[K, V_co], Generic[K, V_co]):
    """A mapping that keeps insertion order, compares by content and caches its hash.

    Values must be hashable themselves for `hash()` to work.
    """

    __slots__ = ("_hash", "_items")

    def __init__(self, items: Mapping[K, V_co] | Iterable[tuple[K, V_co]] = ()) -> None:
        self._items: dict[K, V_co] = dict(items)
        self._hash: int | None = None

    def __getitem__(self, key: K) -> V_co:
        return self._items[key]

    def __iter__(self) -> Iterator[K]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __contains__(self, key: object) -> bool:
        return key in self._items

    # Mapping has these methods as well, with exceptions and views written in Python: too slow for maps that are read
    # this often.

    @overload
    def get(self, key: K, /) -> V_co | None: ...
    @overload
    def get(self, key: K, /, default: V_co | T) -> V_co | T: ...
    def get(self, key: K, /, default: object = None) -> object:
        return self._items.get(key, default)

    def keys(self) -> KeysView[K]:
        return self._items.keys()

    def values(self) -> ValuesView[V_co]:
        return self._items.values()

    def items(self) -> ItemsView[K, V_co]:
        return self._items.items()

    def __eq__(self, other: object) -> bool:
        if isinstance(other, FrozenMap):
            return self is other or _same_items(self._items, other._items)
        if isinstance(other, Mapping):
            return _same_items(self._items, dict(other))
        return NotImplemented

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash(frozenset(self._items.items()))
        return self._hash

    def __reduce__(self) -> tuple[type[FrozenMap[K, V_co]], tuple[dict[K, V_co]]]:
        # Without the hash: texts hash differently in every process.
        return FrozenMap, (self._items,)

    def __repr__(self) -> str:
        return f"FrozenMap({self._items!r})"

    def with_items(self, items: Mapping[K, V_co]) -> FrozenMap[K, V_co]:
        """A new map with `items` added or replaced."""
        return FrozenMap({**self._items, **items})


def _same_items(one: dict[Any, Any], other: dict[Any, Any]) -> bool:
    """Equal, and bool where the other is bool."""
    if one != other:
        return False
    return all(
        value is other[key] or isinstance(value, bool) is isinstance(other[key], bool) for key, value in one.items()
    )


EMPTY: FrozenMap[str, str] = FrozenMap()
