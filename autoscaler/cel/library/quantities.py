"""Functions on quantities and semantic versions (k8s.io/apiserver v0.36.3 library/{quantity,semverlib}.go).

A comparison with a big quantity converts the receiver, and before Kubernetes 1.37 add and sub change a big receiver:
both are visible within one evaluation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from operator import add, sub
from typing import Any, Final

from autoscaler.cel.common.values import Failure, QuantityCell, Unknown, Value
from instance_catalog.dataclass import replace
from instance_catalog.kubernetes.quantity import Quantity, QuantityError
from instance_catalog.kubernetes.semver import SemanticVersion, SemverError


def _quantity(text: str) -> Value:
    try:
        return QuantityCell(Quantity.parse(text))
    except QuantityError as error:
        return Failure(str(error))


def _is_quantity(text: str) -> bool:
    return type(_quantity(text)) is QuantityCell


def _compare(receiver: QuantityCell, other: QuantityCell) -> int:
    return receiver.quantity.compare(other.quantity)


def _compare_and_convert(receiver: QuantityCell, other: QuantityCell) -> int:
    if other.quantity.big:
        receiver.quantity = receiver.quantity.as_big()
    return _compare(receiver, other)


def _comparisons(compare: Callable[[QuantityCell, QuantityCell], int]) -> Mapping[str, Callable[..., Any]]:
    return {
        "quantity_is_greater_than": lambda cell, other: compare(cell, other) == 1,
        "quantity_is_less_than": lambda cell, other: compare(cell, other) == -1,
        "quantity_compare_to": compare,
    }


def _as_integer(cell: QuantityCell) -> Value:
    value = cell.quantity.as_int64()
    return Failure("cannot convert value to integer") if value is None else value


def _total(
    receiver: QuantityCell, other: Quantity, operation: Callable[[Quantity, Quantity], Quantity], *, mutates: bool
) -> Value:
    try:
        total = operation(receiver.quantity, other)
    except QuantityError as error:
        return Unknown(frozenset(), str(error))
    if mutates and receiver.quantity.big:
        receiver.quantity = replace(total, format=receiver.quantity.format)
    return QuantityCell(total, computed=True)


def _whole(value: int) -> Quantity:
    return Quantity.of(value, "DecimalExponent")


def _arithmetic(*, mutates: bool) -> Mapping[str, Callable[..., Any]]:
    return {
        "quantity_add": lambda cell, other: _total(cell, other.quantity, add, mutates=mutates),
        "quantity_add_int": lambda cell, other: _total(cell, _whole(other), add, mutates=mutates),
        "quantity_sub": lambda cell, other: _total(cell, other.quantity, sub, mutates=mutates),
        "quantity_sub_int": lambda cell, other: _total(cell, _whole(other), sub, mutates=mutates),
    }


def _semver(text: str, *, normalize: bool) -> Value:
    try:
        return SemanticVersion.parse(text, normalize=normalize)
    except SemverError as error:
        return Failure(str(error))


def _is_semver(text: str, *, normalize: bool) -> bool:
    return type(_semver(text, normalize=normalize)) is SemanticVersion


def _wrapped(number: int) -> int:
    """A uint64 read as int64."""
    return (number + 2**63) % 2**64 - 2**63


MUTATING: Final[Mapping[str, Callable[..., Any]]] = _arithmetic(mutates=True)
# For programs that can observe the conversion; they use quantities of their own.
CONVERTING: Final[Mapping[str, Callable[..., Any]]] = _comparisons(_compare_and_convert)
IMPLEMENTATIONS: Final[Mapping[str, Callable[..., Any]]] = {
    **_arithmetic(mutates=False),
    **_comparisons(_compare),
    "string_to_quantity": _quantity,
    "is_quantity_string": _is_quantity,
    "quantity_sign": lambda cell: cell.quantity.sign,
    "quantity_get_float": lambda cell: cell.quantity.as_approximate_float(),
    "quantity_get_int": _as_integer,
    "quantity_is_integer": lambda cell: cell.quantity.as_int64() is not None,
    "string_to_semver": partial(_semver, normalize=False),
    "string_bool_to_semver": lambda text, normalize: _semver(text, normalize=normalize),
    "is_semver_string": partial(_is_semver, normalize=False),
    "is_semver_string_bool": lambda text, normalize: _is_semver(text, normalize=normalize),
    "semver_is_greater_than": lambda left, right: left.compare(right) == 1,
    "semver_is_less_than": lambda left, right: left.compare(right) == -1,
    "semver_compare_to": lambda left, right: left.compare(right),
    "semver_major": lambda version: _wrapped(version.major),
    "semver_minor": lambda version: _wrapped(version.minor),
    "semver_patch": lambda version: _wrapped(version.patch),
}
