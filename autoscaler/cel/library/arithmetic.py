"""Operators and size(): int64 and uint64 with overflow checks, doubles, text, lists and time (cel-go common/types)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Final

from autoscaler.cel.common.evaluation import spend
from autoscaler.cel.common.values import (
    FAULTS,
    INT_MAX,
    INT_MIN,
    MAPS,
    UINT_MAX,
    Duration,
    Failure,
    Timestamp,
    UInt,
    Unknown,
    Value,
)
from autoscaler.cel.library.comparison import NO_OVERLOAD, compare, member
from autoscaler.cel.library.instants import EARLIEST, LATEST, SECOND

# Beyond these sizes a result is unknown instead of computed: upstream would need as much memory as well.
MAX_TEXT: Final = 16 * 2**20
MAX_ITEMS: Final = 2 * 2**20
TOO_LARGE: Final = Unknown(frozenset(), "a value larger than 16 MiB")

_INT_OVERFLOW: Final = Failure("integer overflow")
_UINT_OVERFLOW: Final = Failure("unsigned integer overflow")
_TIME_OVERFLOW: Final = Failure("timestamp overflow")
_DIVIDE_BY_ZERO: Final = Failure("division by zero")
_MODULUS_BY_ZERO: Final = Failure("modulus by zero")


def _int(value: int) -> Value:
    return value if INT_MIN <= value <= INT_MAX else _INT_OVERFLOW


def _uint(value: int) -> Value:
    return UInt(value) if 0 <= value <= UINT_MAX else _UINT_OVERFLOW


def _duration(nanoseconds: int) -> Value:
    return Duration(nanoseconds) if INT_MIN <= nanoseconds <= INT_MAX else _INT_OVERFLOW


def _moved(start: Timestamp, nanoseconds: int) -> Value:
    moved = start.nanoseconds + nanoseconds
    return Timestamp(moved, start.offset) if EARLIEST <= moved // SECOND <= LATEST else _TIME_OVERFLOW


def _joined(left: Any, right: Any) -> Value:
    length = len(left) + len(right)
    if type(left) is not list:
        return TOO_LARGE if length > MAX_TEXT else left + right
    spend(length // 16)  # copying is quick, and upstream does not copy
    return TOO_LARGE if length > MAX_ITEMS else left + right


_ADD: Final[Mapping[tuple[type, type], Callable[[Any, Any], Value]]] = {
    (int, int): lambda a, b: _int(a + b),
    (UInt, UInt): lambda a, b: _uint(int(a) + int(b)),
    (float, float): lambda a, b: a + b,
    (str, str): _joined,
    (bytes, bytes): _joined,
    (list, list): _joined,
    (Duration, Duration): lambda a, b: _duration(a.nanoseconds + b.nanoseconds),
    (Duration, Timestamp): lambda a, b: _moved(b, a.nanoseconds),
    (Timestamp, Duration): lambda a, b: _moved(a, b.nanoseconds),
}
_SUBTRACT: Final[Mapping[tuple[type, type], Callable[[Any, Any], Value]]] = {
    (int, int): lambda a, b: _int(a - b),
    (UInt, UInt): lambda a, b: _uint(int(a) - int(b)),
    (float, float): lambda a, b: a - b,
    (Duration, Duration): lambda a, b: _duration(a.nanoseconds - b.nanoseconds),
    (Timestamp, Duration): lambda a, b: _INT_OVERFLOW if b.nanoseconds == INT_MIN else _moved(a, -b.nanoseconds),
    (Timestamp, Timestamp): lambda a, b: _duration(a.nanoseconds - b.nanoseconds),
}
_MULTIPLY: Final[Mapping[tuple[type, type], Callable[[Any, Any], Value]]] = {
    (int, int): lambda a, b: _int(a * b),
    (UInt, UInt): lambda a, b: _uint(int(a) * int(b)),
    (float, float): lambda a, b: a * b,
}


def _truncated(a: int, b: int) -> int:
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def _divide_ints(a: int, b: int) -> Value:
    if b == 0:
        return _DIVIDE_BY_ZERO
    return _int(_truncated(a, b))


def _divide_floats(a: float, b: float) -> Value:
    if b != 0 or math.isnan(a):
        return a / b if b != 0 else math.nan
    if a == 0:
        return math.nan
    return math.copysign(math.inf, a) * math.copysign(1.0, b)


def _modulo_ints(a: int, b: int) -> Value:
    if b == 0:
        return _MODULUS_BY_ZERO
    if a == INT_MIN and b == -1:
        return _INT_OVERFLOW
    return a - b * _truncated(a, b)


_DIVIDE: Final[Mapping[tuple[type, type], Callable[[Any, Any], Value]]] = {
    (int, int): _divide_ints,
    (UInt, UInt): lambda a, b: UInt(int(a) // int(b)) if b else _DIVIDE_BY_ZERO,
    (float, float): _divide_floats,
}
_MODULO: Final[Mapping[tuple[type, type], Callable[[Any, Any], Value]]] = {
    (int, int): _modulo_ints,
    (UInt, UInt): lambda a, b: UInt(int(a) % int(b)) if b else _MODULUS_BY_ZERO,
}


def _dispatched(table: Mapping[tuple[type, type], Callable[[Any, Any], Value]]) -> Callable[[Value, Value], Value]:
    def operate(left: Value, right: Value) -> Value:
        operation = table.get((type(left), type(right)))
        return NO_OVERLOAD if operation is None else operation(left, right)

    return operate


def _ordered(*accepted: int) -> Callable[[Value, Value], Value]:
    def operate(left: Value, right: Value) -> Value:
        order = compare(left, right)
        return order if type(order) in FAULTS else order in accepted

    return operate


def _negate(value: Value) -> Value:
    kind = type(value)
    if kind is int:
        return _int(-value)
    if kind is float:
        return -value
    return _duration(-value.nanoseconds) if kind is Duration else NO_OVERLOAD


def _not(value: Value) -> Value:
    return not value if type(value) is bool else NO_OVERLOAD


def _size(value: Value) -> Value:
    kind = type(value)
    return len(value) if kind in (str, bytes, list) or kind in MAPS else NO_OVERLOAD


SINGLETONS: Final[Mapping[str, Callable[..., Value]]] = {
    "_+_": _dispatched(_ADD),
    "_-_": _dispatched(_SUBTRACT),
    "_*_": _dispatched(_MULTIPLY),
    "_/_": _dispatched(_DIVIDE),
    "_%_": _dispatched(_MODULO),
    "_<_": _ordered(-1),
    "_<=_": _ordered(-1, 0),
    "_>_": _ordered(1),
    "_>=_": _ordered(0, 1),
    "-_": _negate,
    "!_": _not,
    "@in": member,
    "size": _size,
}
