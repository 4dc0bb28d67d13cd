"""Functions on lists, sets, maps under construction, and optionals. Comparison errors count as "not equal".

Rules: cel-go v0.26.0 ext/{lists,sets,comprehensions}.go and cel/library.go; k8s.io/apiserver v0.36.3 library/lists.go.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cmp_to_key
from itertools import pairwise
from typing import Any, Final

from autoscaler.cel.common.evaluation import spend
from autoscaler.cel.common.values import (
    MAPS,
    MISSING,
    NONE,
    Duration,
    Failure,
    OptionalValue,
    Timestamp,
    UInt,
    Unknown,
    Value,
    key_of,
)
from autoscaler.cel.library.arithmetic import MAX_ITEMS, TOO_LARGE
from autoscaler.cel.library.arithmetic import SINGLETONS as _OPERATORS
from autoscaler.cel.library.comparison import NO_OVERLOAD, compare, contains_equal, equal

_INCLUDES_LIMIT: Final = 48
_SORTABLE: Final = frozenset({int, UInt, float, bool, Duration, Timestamp, str, bytes})
_RANGE_LIMIT: Final = 1_000_000


def _is_sorted(items: list[Value]) -> Value:
    if items and type(items[0]) not in _SORTABLE:
        return NO_OVERLOAD
    for before, after in pairwise(items):
        if type(after) not in _SORTABLE:
            return NO_OVERLOAD
        if compare(before, after) == 1:
            return False
    return True


def _sum(zero: Value) -> Callable[[list[Value]], Value]:
    add = _OPERATORS["_+_"]

    def total(items: list[Value]) -> Value:
        result = zero
        for item in items:
            result = add(result, item)
            if type(result) is Failure:
                return result
        return result

    return total


def _extreme(name: str, replaces: int) -> Callable[[list[Value]], Value]:
    def extreme(items: list[Value]) -> Value:
        if not items:
            return Failure(f"{name} called on empty list")
        if any(type(item) not in _SORTABLE for item in items):
            return NO_OVERLOAD
        result = items[0]
        for item in items[1:]:
            if compare(result, item) == replaces:
                result = item
        return result

    return extreme


def _index_of(items: list[Value], wanted: Value) -> int:
    return next((index for index, item in enumerate(items) if equal(item, wanted) is True), -1)


def _last_index_of(items: list[Value], wanted: Value) -> int:
    return next((index for index in range(len(items) - 1, -1, -1) if equal(items[index], wanted) is True), -1)


def _slice(items: list[Value], start: int, end: int) -> Value:
    if start < 0 or end < 0:
        return Failure(f"cannot slice({start}, {end}), negative indexes not supported")
    if start > end:
        return Failure(f"cannot slice({start}, {end}), start index must be less than or equal to end index")
    if len(items) < end:
        return Failure(f"cannot slice({start}, {end}), list is length {len(items)}")
    return items[start:end]


def _flatten(items: list[Value], levels: int = 1) -> Value:
    if type(items) is not list or type(levels) is not int:
        return NO_OVERLOAD
    if levels < 0:
        return Failure("level must be non-negative")
    # Literals nest at most 250 deep, so further levels change nothing.
    for _ in range(min(levels, 300)):
        if not any(type(item) is list for item in items):
            break
        length = sum(len(item) if type(item) is list else 1 for item in items)
        spend(length)
        if length > MAX_ITEMS:
            return TOO_LARGE
        items = [part for item in items for part in (item if type(item) is list else [item])]
    return items


def _sort(items: Value) -> Value:
    return _sort_by(items, items)


def _sort_by(items: Value, keys: Value) -> Value:
    if type(items) is not list or type(keys) is not list:
        return NO_OVERLOAD
    if len(items) != len(keys):
        return Failure("@sortByAssociatedKeys() expected a list of the same size as the associated keys list")
    if not keys:
        return items
    if type(keys[0]) not in _SORTABLE:
        return Failure("list elements must be comparable")
    if any(type(key) is not type(keys[0]) for key in keys):
        return Failure("list elements must have the same type")
    pairs: list[tuple[Value, Value]] = list(zip(keys, items, strict=True))
    pairs.sort(key=cmp_to_key(_before))
    return [item for _, item in pairs]


def _before(left: tuple[Value, Value], right: tuple[Value, Value]) -> int:
    """The order of two keys. Unordered ones, which are NaN, keep their places."""
    order = compare(left[0], right[0])
    return order if type(order) is int else 0


def _distinct(items: list[Value]) -> list[Value]:
    unique: list[Value] = []
    for item in items:
        if contains_equal(unique, item, wanted_first=True) is not True:
            unique.append(item)
    return unique


def _range(count: int) -> Value:
    # The cost limit stops longer lists anyway.
    return list(range(min(count, _RANGE_LIMIT + 1))) if count > 0 else []


def _range_checked(count: int) -> Value:
    if not 0 <= count <= _RANGE_LIMIT:
        return Failure(f"lists.range() size must be between 0 and {_RANGE_LIMIT}")
    return list(range(count))


def _sets_contains(container: list[Value], items: list[Value]) -> Value:
    return all(contains_equal(container, item, wanted_first=True) is True for item in items)


def _sets_intersects(left: list[Value], right: list[Value]) -> Value:
    return any(contains_equal(right, item, wanted_first=True) is True for item in left)


def _sets_equivalent(left: list[Value], right: list[Value]) -> Value:
    return _sets_contains(left, right) and _sets_contains(right, left)


def _insert(target: Value, key: Value, value: Value) -> Value:
    if target.find(key) is not MISSING:
        return Failure(f"insert failed: key {key!r} already exists")
    target.entries[key_of(key)] = value  # the map under construction, which no other value refers to
    return target


def _insert_map(target: Value, update: Value) -> Value:
    for key, value in update.items():
        target = _insert(target, key, value)
        if type(target) is Failure:
            return target
    return target


def _includes(target: Value, wanted: Value) -> Value:
    if type(target) is not list:
        same = equal(target, wanted)
        return same if type(same) is Unknown else same is True
    found = contains_equal(target[:_INCLUDES_LIMIT], wanted)
    if found is False and len(target) > _INCLUDES_LIMIT:
        return Failure(f"'includes' function cannot be applied to lists longer than {_INCLUDES_LIMIT} values")
    return found


def _includes_unlimited(target: Value, wanted: Value) -> Value:
    if type(target) is list:
        return contains_equal(target, wanted)
    same = equal(target, wanted)
    return same if type(same) is Unknown else same is True


def _is_zero(value: Value) -> bool:
    kind = type(value)
    if kind is Duration:
        return bool(value.nanoseconds == 0)
    if kind in (bool, int, UInt, float, str, bytes, list) or kind in MAPS:
        return not value
    return value is None


def _unwrap(items: list[Value]) -> Value:
    if not all(type(item) is OptionalValue for item in items):
        return Failure("value is not optional")
    return [item.value for item in items if item is not NONE]


_KINDS: Final = ("int", "uint", "double", "bool", "dur", "ts", "string", "bytes")
SINGLETONS: Final[Mapping[str, Callable[..., Any]]] = {"sort": _sort, "@sortByAssociatedKeys": _sort_by}
IMPLEMENTATIONS: Final[Mapping[str, Callable[..., Any]]] = {
    **{f"list_{kind}_is_sorted_bool": _is_sorted for kind in _KINDS},
    **{f"list_{kind}_max": _extreme("max", -1) for kind in _KINDS},
    **{f"list_{kind}_min": _extreme("min", 1) for kind in _KINDS},
    "list_int_sum": _sum(0),
    "list_uint_sum": _sum(UInt(0)),
    "list_double_sum": _sum(0.0),
    "list_dur_sum": _sum(Duration(0)),
    "list_a_index_of_int": _index_of,
    "list_a_last_index_of_int": _last_index_of,
    "list_slice": _slice,
    "list_flatten": _flatten,
    "list_flatten_int": _flatten,
    "lists_range": _range,
    "list_reverse": lambda items: items[::-1],
    "list_distinct": _distinct,
    "list_sets_contains_list": _sets_contains,
    "list_sets_intersects_list": _sets_intersects,
    "list_sets_equivalent_list": _sets_equivalent,
    "map_insert_key_value": _insert,
    "map_insert_map": _insert_map,
    "dra_includes_dyn_dyn": _includes,
    "optional_of": OptionalValue,
    "optional_ofNonZeroValue": lambda value: NONE if _is_zero(value) else OptionalValue(value),
    "optional_none": lambda: NONE,
    "optional_value": lambda value: Failure("optional.none() dereference") if value is NONE else value.value,
    "optional_hasValue": lambda value: value is not NONE,
    "list_last": lambda items: OptionalValue(items[-1]) if items else NONE,
    "list_first": lambda items: OptionalValue(items[0]) if items else NONE,
    "optional_unwrap": _unwrap,
    "optional_unwrapOpt": _unwrap,
}
MODERN: Final[Mapping[str, Callable[..., Any]]] = {
    "lists_range": _range_checked,
    "dra_includes_dyn_dyn": _includes_unlimited,
}
