"""The cost of a call at run time. Constants cost nothing; access chains and literals charge for themselves.

Rules: cel-go v0.26.0 interpreter/runtimecost.go and ext/{lists,sets}.go; k8s.io/apiserver v0.36.3 library/cost.go.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import ceil
from typing import Final, TypeAlias

from autoscaler.cel.common.evaluation import enter, leave
from autoscaler.cel.common.values import (
    MAPS,
    NONE,
    Address,
    NamedFormat,
    OptionalValue,
    PanicError,
    Prefix,
    QuantityCell,
    Url,
    Value,
)
from instance_catalog.kubernetes.semver import SemanticVersion

Arguments: TypeAlias = tuple[Value, ...]
# From the arguments alone, so that it can be charged before the work is done …
Cost: TypeAlias = Callable[[Arguments], int]
# … or from the result as well.
ResultCost: TypeAlias = Callable[[Arguments, Value], int]

_SIZED: Final = frozenset({str, bytes, list}) | MAPS
_KUBERNETES: Final = frozenset({QuantityCell, SemanticVersion, Address, Prefix, Url, NamedFormat})


def size(value: Value) -> int:
    """actualSize of the Kubernetes estimator: code points, bytes, elements; 1 for everything else, faults included."""
    kind = type(value)
    if kind in _SIZED:
        length: int = len(value)
        return length
    if kind is Address:
        return 16 if value.family == 6 else 4
    if kind is Prefix:
        whole: int = ceil(value.length / 8)
        return whole
    return 1


def _inner_size(value: Value) -> int:
    """The size in cel-go's own actualSize, which uses the value inside an optional."""
    return _inner_size(value.value) if type(value) is OptionalValue and value is not NONE else size(value)


def _tenth(index: int = 0) -> Cost:
    return lambda arguments: ceil(size(arguments[index]) * 0.1)


def _fifth(arguments: Arguments) -> int:
    return ceil(size(arguments[0]) * 2 * 0.1)


def shorter(arguments: Arguments) -> int:
    """A tenth of the shorter operand."""
    return ceil(min(_inner_size(arguments[0]), _inner_size(arguments[1])) * 0.1)


def equality(arguments: Arguments) -> int:
    """`==`: one unit for Kubernetes types on the left, else a tenth of the shorter operand."""
    return 1 if type(arguments[0]) in _KUBERNETES else shorter(arguments)


def _pattern(arguments: Arguments) -> int:
    return ceil((1.0 + size(arguments[0])) * 0.1) * ceil(size(arguments[1]) * 0.25)


def _traversal(value: Value) -> int:
    kind = type(value)
    if kind is str:
        return int(len(value.encode("utf-8", "surrogatepass")) * 0.1)
    if kind is bytes:
        return int(len(value) * 0.1)
    if kind is not list and kind not in MAPS:
        return 1
    enter(len(value))
    parts = value if kind is list else [part for pair in value.items() for part in pair]
    total = sum(map(_traversal, parts))
    leave()
    return total


def _contains_address(arguments: Arguments) -> int:
    return ceil(size(arguments[0]) * 2 * 0.1)


def _contains_prefix(arguments: Arguments) -> int:
    return _contains_address(arguments) + ceil(size(arguments[0]) * 0.1) + 1


def _validate(arguments: Arguments) -> int:
    if type(arguments[0]) is not NamedFormat:
        return 1
    return ceil((1.0 + size(arguments[1])) * 0.1) * ceil(arguments[0].regex_size * 0.25)


def _self_comparison(items: Value) -> int:
    if type(items) is not list:
        raise PanicError("interface conversion: not a list")
    factor = 2.1 if items and type(items[0]) in (str, bytes) else 2.0
    return int(float(len(items) ** 2) * factor) + 11


def _flatten(arguments: Arguments) -> int:
    depth = 1.0
    if len(arguments) == 2:
        if type(arguments[1]) is not int:
            raise PanicError("interface conversion: not an int")
        depth = float(arguments[1])
    product = size(arguments[0]) * depth
    # Go's result for a float64 beyond uint64 on amd64; a negative one lowers the sum, which may wrap.
    return (int(product) if -(2.0**63) <= product < 2.0**64 else 2**63) + 11


def _sets(factor: float) -> Cost:
    return lambda arguments: 1 + int(float(size(arguments[0]) * size(arguments[1])) * factor)


def _sum_tenth(arguments: Arguments) -> int:
    return ceil((_inner_size(arguments[0]) + _inner_size(arguments[1])) * 0.1)


def _substring(arguments: Arguments) -> int:
    return ceil(_inner_size(arguments[0]) * 0.1) * ceil(_inner_size(arguments[1]) * 0.1)


# By function name, for all overloads.
_BY_FUNCTION: Final[Mapping[str, Cost]] = {
    **dict.fromkeys(
        ("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf"), lambda arguments: _traversal(arguments[0])
    ),
    **dict.fromkeys(
        (
            "url", "lowerAscii", "upperAscii", "substring", "trim", "cidr", "isIP", "isCIDR", "ip", "quantity",
            "isQuantity", "semver", "isSemver",
        ),
        _tenth(),
    ),
    **dict.fromkeys(("replace", "split", "ip.isCanonical"), _fifth),
    "find": _pattern,
    "findAll": _pattern,
    "containsIP": _contains_address,
    "containsCIDR": _contains_prefix,
    "validate": _validate,
    "_==_": equality,
    "_!=_": shorter,
}  # fmt: skip
# By overload, only if a single one matches.
_BY_OVERLOAD: Final[Mapping[str, Cost]] = {
    **dict.fromkeys(("list_flatten", "list_flatten_int"), _flatten),
    "list_distinct": lambda arguments: _self_comparison(arguments[0]),
    **{
        f"list_{kind}_sort": lambda arguments: _self_comparison(arguments[0])
        for kind in ("int", "uint", "double", "bool", "dur", "ts", "string", "bytes")
    },
    **{
        f"list_{kind}_sort_by": lambda arguments: _self_comparison(arguments[1])
        for kind in ("int", "uint", "double", "bool", "dur", "ts", "string", "bytes")
    },
    **dict.fromkeys(("list_sets_contains_list", "list_sets_intersects_list"), _sets(1.0)),
    "list_sets_equivalent_list": _sets(2.0),
    "cidr_ip": lambda _: 1,
    "cidr_contains_ip_string": lambda arguments: _contains_address(arguments) + ceil(size(arguments[1]) * 0.1),
    "cidr_contains_cidr_string": lambda arguments: _contains_prefix(arguments) + ceil(size(arguments[1]) * 0.1),
    **dict.fromkeys(
        (
            "starts_with_string", "ends_with_string", "string_to_bytes", "bytes_to_string", "strings_quote",
            "string_format",
        ),
        lambda arguments: ceil(_inner_size(arguments[0]) * 0.1),
    ),
    "in_list": lambda arguments: _inner_size(arguments[1]),
    **{
        f"{name}_{kind}": shorter
        for name in ("less", "less_equals", "greater", "greater_equals")
        for kind in ("string", "bytes")
    },
    "add_string": _sum_tenth,
    "add_bytes": _sum_tenth,
    "matches_string": _pattern,
    "contains_string": _substring,
}  # fmt: skip
_RESULT: Final[Mapping[str, ResultCost]] = {
    "join": lambda _, result: ceil(size(result) * 2 * 0.1),
    "list_slice": lambda _, result: size(result) + 11,
    "lists_range": lambda _, result: size(result) + 11,
    "list_reverse": lambda _, result: size(result) + 11,
}
_MODERN: Final[Mapping[str, Cost]] = {
    "list_flatten_int": lambda arguments: (
        size(arguments[0]) + 11 if type(arguments[1]) is int and arguments[1] < 0 else _flatten(arguments)
    ),
    "starts_with_string": lambda arguments: ceil(_inner_size(arguments[1]) * 0.1),
    "ends_with_string": lambda arguments: ceil(_inner_size(arguments[1]) * 0.1),
    "matches": _pattern,
    "dra_includes_dyn_dyn": lambda arguments: _traversal(arguments[0]),
}


def call_cost(function: str, overloads: tuple[str, ...], *, modern: bool) -> Cost | None:
    """The cost of a call by its arguments; None if it is one unit, or if `result_cost` has it."""
    overload = overloads[0] if len(overloads) == 1 else ""
    if modern and overload in _MODERN:
        return _MODERN[overload]
    if overload in _BY_OVERLOAD:
        return _BY_OVERLOAD[overload]
    return _BY_FUNCTION.get(function)


def result_cost(function: str, overloads: tuple[str, ...]) -> ResultCost | None:
    """The cost of a call that depends on its result."""
    overload = overloads[0] if len(overloads) == 1 else ""
    return _RESULT.get(overload) or _RESULT.get(function)
