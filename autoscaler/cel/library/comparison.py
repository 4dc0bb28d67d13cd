"""Equality, order and membership (cel-go v0.26.0 common/types; Equal methods of k8s.io/apiserver v0.36.3 pkg/cel).

The asymmetries are upstream's: a Kubernetes type on the left of another type is an error, on the right it is only
unequal, and lists and maps treat a pair of elements whose comparison is an error as equal.
"""

from __future__ import annotations

import math

from autoscaler.cel.common.evaluation import enter, leave
from autoscaler.cel.common.values import (
    FAULTS,
    MAPS,
    MISSING,
    NONE,
    Address,
    CelMap,
    Duration,
    Failure,
    Message,
    NamedFormat,
    OptionalValue,
    Prefix,
    QuantityCell,
    Timestamp,
    UInt,
    Unknown,
    Url,
    Value,
)
from instance_catalog.kubernetes.semver import SemanticVersion

NO_OVERLOAD = Failure("no such overload")
_NUMBERS = frozenset({int, UInt, float})
_SAME_KIND = frozenset({str, int, bool, UInt, bytes, float, Duration, Timestamp})
_KUBERNETES = frozenset({QuantityCell, SemanticVersion, Address, Prefix, Url, NamedFormat})


def equal(left: Value, right: Value) -> Value:
    """`left == right`: True, False, or a Fault."""
    a, b = type(left), type(right)
    if a is b and a in _SAME_KIND:
        return left == right
    if a in FAULTS:
        return left
    if b in FAULTS:
        return right
    if left is None or right is None:
        return left is right
    if a in _NUMBERS:
        return b in _NUMBERS and _compare_numbers(left, right) == 0
    if a in _KUBERNETES:
        return _equal_kubernetes(left, right)
    if a is list:
        return b is list and _equal_lists(left, right)
    if a in MAPS:
        return b in MAPS and _equal_maps(left, right)
    if a is OptionalValue:
        return b is OptionalValue and _equal_optionals(left, right)
    if a is Message:
        return b is Message and left.type_name == right.type_name
    return a is b and left == right


def _equal_kubernetes(left: Value, right: Value) -> Value:
    if type(left) is not type(right):
        return NO_OVERLOAD
    if type(left) is QuantityCell:
        return NO_OVERLOAD if right.computed else left.quantity == right.quantity
    if type(left) is Url:
        return left.text == right.text
    if type(left) is NamedFormat:
        return left.name == right.name
    return left == right


def _equal_lists(left: list[Value], right: list[Value]) -> Value:
    if len(left) != len(right):
        return False
    enter(len(left))
    result: Value = True
    for a, b in zip(left, right, strict=True):
        same = equal(a, b)
        if same is False:
            result = False
            break
        if type(same) is Unknown:
            result = same
    leave()
    return result


def _equal_maps(left: Value, right: Value) -> Value:
    if len(left) != len(right):
        return False
    enter(len(left))
    result: Value = True
    for key, value in left.items():
        other = right.find(key)
        same = False if other is MISSING else equal(value, other)
        if same is False:
            result = False
            break
        if type(same) is Unknown:
            result = same
    leave()
    return result


def _equal_optionals(left: OptionalValue, right: OptionalValue) -> Value:
    if left is NONE or right is NONE:
        return left is right
    return equal(left.value, right.value)


def compare(left: Value, right: Value) -> Value:
    """-1, 0 or 1, or a Failure if the two have no order."""
    a, b = type(left), type(right)
    if a is b:
        if a is int or a is str or a is UInt or a is bool or a is bytes or a is Timestamp or a is Duration:
            return (left > right) - (left < right)
        if a is not float:
            return NO_OVERLOAD
    if a in _NUMBERS and b in _NUMBERS:
        order = _compare_numbers(left, right)
        return Failure("NaN values cannot be ordered") if order is None else order
    return NO_OVERLOAD


def _compare_numbers(left: Value, right: Value) -> int | None:
    """-1, 0 or 1, None with a NaN; an integer in range is compared with a double after conversion to double."""
    if type(left) is float or type(right) is float:
        x, y = _as_double(left, right), _as_double(right, left)
        if math.isnan(x) or math.isnan(y):
            return None
        return (x > y) - (x < y)
    order: int = (left > right) - (left < right)
    return order


def _as_double(number: Value, other: Value) -> float:
    if type(number) is not float and type(other) is float:
        limit = float(2**64) if type(number) is UInt else float(2**63)
        # A double beyond the integer's range decides by itself; its neighbour must not be rounded to it.
        if abs(other) > limit:
            return 0.0
    return float(number)


def contains_equal(items: list[Value], wanted: Value, *, wanted_first: bool = False) -> Value:
    """True if some item equals `wanted`; comparison errors count as unequal, unknowns stay unknown."""
    unknown: Value = None
    for item in items:
        same = equal(wanted, item) if wanted_first else equal(item, wanted)
        if same is True:
            return True
        if type(same) is Unknown:
            unknown = same
    return False if unknown is None else unknown


def member(element: Value, container: Value) -> Value:
    """`element in container`."""
    kind = type(container)
    if kind is list:
        return contains_equal(container, element, wanted_first=True)
    if kind in MAPS:
        if kind is CelMap:
            return container.find(element) is not MISSING
        return type(element) is str and element in container.entries
    return NO_OVERLOAD
