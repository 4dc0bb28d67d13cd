"""The greatest cost of one call and size of its result, without the costs of its arguments.

Rules: k8s.io/apiserver v0.36.3 library/cost.go; cel-go v0.26.0 ext/{lists,sets}.go and functionCost of checker/cost.go.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, TypeAlias

from autoscaler.cel.common.ast import Expression, Literal
from autoscaler.cel.cost.intervals import (
    SATURATED,
    UNKNOWN,
    Interval,
    Path,
    device_size,
    fixed,
    plus,
    scaled,
    times,
    union,
)
from instance_catalog.dataclass import dataclass

Estimate: TypeAlias = tuple[Interval, Interval | None]

_INCLUDES: Final = (0, 48)
_FORMAT_REGEX: Final = 128
_FORMAT_SIZE: Final = 64


@dataclass(frozen=True, slots=True)
class Operand:
    """An argument: its expression, its path from the device, and its size if known."""

    node: Expression
    path: Path
    size: Interval | None

    @property
    def size_or_unknown(self) -> Interval:
        """The size, or anything."""
        return self.size or UNKNOWN

    def constant(self, default: int) -> int:
        """The value of an integer literal, at least 0; `default` for anything else."""
        if isinstance(self.node, Literal) and type(self.node.value) is int:
            return max(self.node.value, 0)
        return default


def estimated_call(
    function: str, overload: str, target: Operand | None, arguments: Sequence[Operand], *, modern: bool
) -> Estimate:
    """Cost and result size of a call by one overload; `modern` is cel-go 0.29 with Kubernetes 1.37."""
    if modern and overload == "matches":
        return _pattern(arguments[0].size_or_unknown, arguments[1].size_or_unknown), None
    if modern and function == "includes" and target is not None:
        return _traversal(target) if target.node.type.parameters else (target.size_or_unknown, None)
    for rule in (_list_call, _kubernetes_call, _standard_call):
        found = rule(function, overload, target, arguments)
        if found is not None:
            return found
    return fixed(1), None


def _list_call(_: str, overload: str, target: Operand | None, arguments: Sequence[Operand]) -> Estimate | None:
    if overload in ("list_sets_contains_list", "list_sets_intersects_list", "list_sets_equivalent_list"):
        factor = 2.0 if overload == "list_sets_equivalent_list" else 1.0
        product = times(arguments[0].size_or_unknown, arguments[1].size_or_unknown)
        return plus(scaled(product, factor), fixed(1)), None
    if overload == "lists_range":
        return _allocating(1, fixed(arguments[0].constant(SATURATED)))
    if target is None:
        return None
    size = target.size_or_unknown
    if overload == "list_slice":
        length = arguments[1].constant(size[1]) - arguments[0].constant(0)
        return _allocating(1, fixed(length % 2**64))
    if overload in ("list_flatten", "list_flatten_int"):
        return _allocating(float(arguments[0].constant(SATURATED)) if arguments else 1.0, size)
    if overload == "list_reverse":
        return _allocating(1, size)
    if overload == "list_distinct":
        return _allocating(2.0, times(size, size))
    if overload.endswith(("_sort", "_sort_by")) and overload.startswith("list_"):
        keys = arguments[0].size_or_unknown if overload.endswith("_sort_by") else size
        return _allocating(2.1 if overload.split("_")[1] in ("string", "bytes") else 2.0, times(keys, keys))
    return None


def _allocating(factor: float, size: Interval) -> Estimate:
    return plus(scaled(size, factor), fixed(11)), size


def _kubernetes_call(
    function: str, overload: str, target: Operand | None, arguments: Sequence[Operand]
) -> Estimate | None:
    first = arguments[0].size_or_unknown if arguments else UNKNOWN
    match function:
        case "includes":
            return _INCLUDES, None
        case "isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf" if target is not None:
            return _traversal(target)
        case "url":
            return scaled(first, 0.1), first
        case "lowerAscii" | "upperAscii" | "substring" | "trim" if target is not None:
            return scaled(target.size_or_unknown, 0.1), target.size_or_unknown
        case "replace" if target is not None:
            return scaled(target.size_or_unknown, 0.2), _replaced_size(target, arguments)
        case "split" if target is not None:
            most = target.size_or_unknown[1]
            if len(arguments) > 1 and isinstance(arguments[1].node, Literal):
                most = arguments[1].node.value % 2**64
            return scaled(target.size_or_unknown, 0.2), (0, most)
        case "join" if target is not None:
            size = _joined_size(target, arguments)
            return scaled(size, 0.1), size
        case "find" | "findAll" if target is not None:
            return _pattern(target.size_or_unknown, first), (0, target.size_or_unknown[1])
        case "ip" if overload == "cidr_ip":
            return fixed(1), None
        case "cidr" | "isIP" | "isCIDR" | "ip" | "quantity" | "isQuantity" | "semver" | "isSemver":
            return scaled(first, 0.1), None
        case "ip.isCanonical":
            return scaled(first, 0.2), None
        case "containsIP" | "containsCIDR":
            return _containment(overload, first), None
        case "validate":
            return scaled(scaled(first, 0.1), _FORMAT_REGEX * 0.25), None
        case "_==_":
            return _kubernetes_equality(arguments[0], arguments[1])
    return None


def _traversal(target: Operand) -> Estimate:
    parameters = target.node.type.parameters
    if not parameters:
        return scaled(target.size_or_unknown, 0.1), None
    element = fixed(1)
    if parameters[0].kind in ("string", "bytes"):
        element = plus(element, scaled(_element_size(target), 0.1))
    return times(target.size_or_unknown, element), None


def _element_size(target: Operand) -> Interval:
    return (device_size((*target.path, "@items")) if target.path else None) or UNKNOWN


def _replaced_size(target: Operand, arguments: Sequence[Operand]) -> Interval:
    size, old, new = target.size_or_unknown, arguments[0].size_or_unknown, arguments[1].size_or_unknown
    most, kept_most = 0, 0
    if old[0] == 0:
        most, kept_most = min(size[1] + 1, SATURATED), size[1]
    elif new[1] <= old[0]:
        kept_most = size[1]
    else:
        most = min(math.ceil(float(size[1]) / float(old[0])), SATURATED)
    least, kept_least = 0, 0
    if old[1] == 0:
        least, kept_least = min(size[0] + 1, SATURATED), size[0]
    elif old[1] <= new[0]:
        kept_least = size[0]
    else:
        least = math.ceil(float(size[0]) / float(old[1]))
    return plus(times((least, most), new), (kept_least, kept_most))


def _joined_size(target: Operand, arguments: Sequence[Operand]) -> Interval:
    count = target.size_or_unknown
    size: Interval = (0, 0)
    if target.node.type.parameters:
        size = times(count, _element_size(target))
    if arguments:
        separators = (max(count[0] - 1, 0), max(count[1] - 1, 0))
        size = plus(size, times(arguments[0].size_or_unknown, separators))
    return size


def _pattern(text: Interval, pattern: Interval) -> Interval:
    return times(scaled(plus(text, fixed(1)), 0.1), scaled(pattern, 0.25))


def _containment(overload: str, argument: Interval) -> Interval:
    address: Interval = (4, 16)
    cost = scaled(plus(address, address), 0.1)
    if overload.startswith("cidr_contains_cidr"):
        cost = plus(cost, scaled(address, 0.1), fixed(1))
    return plus(cost, scaled(argument, 0.1)) if overload.endswith("_string") else cost


def _kubernetes_equality(left: Operand, right: Operand) -> Estimate | None:
    if left.node.type != right.node.type:
        return None
    match left.node.type.name:
        case "net.IP" | "net.CIDR" | "kubernetes.Quantity" | "kubernetes.Semver":
            return fixed(1), None
        case "kubernetes.NamedFormat":
            return scaled((1, _FORMAT_SIZE), 0.1), None
        case "kubernetes.URL":
            size = union(right.size, right.size) if right.size else fixed(1)
            return scaled((1, size[1]), 0.1), None
    return None


def _standard_call(_: str, overload: str, target: Operand | None, arguments: Sequence[Operand]) -> Estimate | None:
    first = arguments[0].size_or_unknown if arguments else UNKNOWN
    match overload:
        case "string_format" if target is not None:
            return scaled(target.size_or_unknown, 0.1), None
        case "string_to_bytes":
            return scaled(first, 0.1), (first[0], first[1] * 4 % 2**64)
        case "bytes_to_string":
            return scaled(first, 0.1), (first[0] // 4, first[1])
        case "strings_quote":
            return scaled(first, 0.1), (first[0] + 2, (first[1] * 2 + 2) % 2**64)
        case "starts_with_string" | "ends_with_string":
            return scaled(first, 0.1), None
        case "in_list":
            return scaled(arguments[1].size_or_unknown, 1.0), None
        case "matches_string" if target is not None:
            return _pattern(target.size_or_unknown, first), None
        case "contains_string" if target is not None:
            return times(scaled(target.size_or_unknown, 0.1), scaled(first, 0.1)), None
        case "equals" | "not_equals":
            return _smaller(arguments), None
    if overload.startswith(("less_", "greater_")) and overload.endswith(("_string", "_bytes")):
        return _smaller(arguments), None
    return None


def _smaller(arguments: Sequence[Operand]) -> Interval:
    most = min(arguments[0].size_or_unknown[1], arguments[1].size_or_unknown[1])
    return scaled((1 if most else 0, most), 0.1)
