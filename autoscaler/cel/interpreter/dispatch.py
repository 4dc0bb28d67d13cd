"""Finds the code of a call: by overload, with a guard for its arguments, or by function (cel-go decls.go)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Final

from autoscaler.cel.checker.declarations import Overload
from autoscaler.cel.common.types import Type
from autoscaler.cel.common.values import (
    MAPS,
    Address,
    Duration,
    NamedFormat,
    OptionalValue,
    Prefix,
    QuantityCell,
    Timestamp,
    TypeName,
    UInt,
    Url,
    Value,
)
from autoscaler.cel.library import (
    arithmetic,
    conversions,
    formatting,
    instants,
    lists,
    name_formats,
    network,
    patterns,
    quantities,
    text,
    urls,
)
from autoscaler.cel.library.comparison import NO_OVERLOAD
from instance_catalog.kubernetes.semver import SemanticVersion

SINGLETONS: Final[Mapping[str, Callable[..., Any]]] = {
    **arithmetic.SINGLETONS,
    **conversions.SINGLETONS,
    **text.SINGLETONS,
    **patterns.SINGLETONS,
    **lists.SINGLETONS,
}
_CLASSES: Final[Mapping[str, frozenset[type]]] = {
    "bool": frozenset({bool}),
    "int": frozenset({int}),
    "uint": frozenset({UInt}),
    "double": frozenset({float}),
    "string": frozenset({str}),
    "bytes": frozenset({bytes}),
    "list": frozenset({list}),
    "map": MAPS,
    "type": frozenset({TypeName}),
    "optional_type": frozenset({OptionalValue}),
    "google.protobuf.Timestamp": frozenset({Timestamp}),
    "google.protobuf.Duration": frozenset({Duration}),
    "net.IP": frozenset({Address}),
    "net.CIDR": frozenset({Prefix}),
    "kubernetes.Quantity": frozenset({QuantityCell}),
    "kubernetes.Semver": frozenset({SemanticVersion}),
    "kubernetes.URL": frozenset({Url}),
    "kubernetes.NamedFormat": frozenset({NamedFormat}),
}
# Upstream disables the guards of these: the implementation checks its arguments itself.
_UNGUARDED: Final = frozenset({"list_flatten", "list_flatten_int"})


@cache
def implementations(*, modern: bool, mutating: bool, converting: bool) -> Mapping[str, Callable[..., Any]]:
    """Code by overload; `modern` is cel-go 0.29, `mutating` lets add and sub change big receivers.

    `converting` lets comparisons change the form of quantities.
    """
    table = {
        **conversions.IMPLEMENTATIONS,
        **text.IMPLEMENTATIONS,
        **patterns.IMPLEMENTATIONS,
        **lists.IMPLEMENTATIONS,
        **quantities.IMPLEMENTATIONS,
        **network.IMPLEMENTATIONS,
        **urls.IMPLEMENTATIONS,
        **name_formats.IMPLEMENTATIONS,
        **formatting.IMPLEMENTATIONS,
        **instants.IMPLEMENTATIONS,
    }
    if mutating:
        table |= quantities.MUTATING
    if converting:
        table |= quantities.CONVERTING
    if modern:
        table |= text.MODERN
        table |= lists.MODERN
    return table


def accepts(t: Type, value: Value) -> bool:
    """True if a value's kind fits a declared argument. For lists and maps the first element is checked."""
    if t.kind in ("dyn", "any", "param"):
        return True
    if type(value) not in _CLASSES[t.name]:
        return False
    if t.kind == "list" and value:
        return accepts(t.parameters[0], value[0])
    if t.kind == "map" and len(value):
        key, item = next(value.items())
        return accepts(t.parameters[0], key) and accepts(t.parameters[1], item)
    return True


def guarded(overload: Overload, code: Callable[..., Any]) -> Callable[..., Value]:
    """`code` with a run-time check of its arguments."""
    if overload.id in _UNGUARDED or all(t.kind in ("dyn", "param") for t in overload.arguments):
        return code
    expected = overload.arguments
    if all(not t.parameters for t in expected):
        classes = tuple(None if t.kind in ("dyn", "param") else _CLASSES[t.name] for t in expected)
        if len(classes) == 1:
            (only,) = classes
            assert only is not None
            return lambda value: code(value) if type(value) in only else NO_OVERLOAD
        first, second = (*classes, None)[:2]
        if len(classes) == 2 and first is not None and second is not None:
            return lambda a, b: code(a, b) if type(a) in first and type(b) in second else NO_OVERLOAD

    def run(*arguments: Value) -> Value:
        if all(map(accepts, expected, arguments)):
            return code(*arguments)
        return NO_OVERLOAD

    return run


def dispatched(candidates: list[tuple[Overload, Callable[..., Any]]]) -> Callable[..., Value]:
    """A function that calls the first overload for which the arguments fit."""

    def run(*arguments: Value) -> Value:
        for overload, code in candidates:
            if len(overload.arguments) == len(arguments) and (
                overload.id in _UNGUARDED or all(map(accepts, overload.arguments, arguments))
            ):
                return code(*arguments)
        return NO_OVERLOAD

    return run
