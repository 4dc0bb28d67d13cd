"""Closures for operators and function calls.

A call of one or two arguments evaluates and charges for all of them even if one is a fault; others stop at the first
fault and charge only if it was the last argument.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from autoscaler.cel.common.evaluation import COST, COST_LIMIT, CostExceededError, Frame, Run, charge
from autoscaler.cel.common.values import FAULTS, NONE, Failure, OptionalValue, UInt, Unknown, Value, key_of
from autoscaler.cel.cost.call_costs import Cost, ResultCost, equality, shorter
from autoscaler.cel.interpreter.attributes import Code, Constant, Step
from autoscaler.cel.interpreter.bounds import unequal
from autoscaler.cel.library.comparison import NO_OVERLOAD, equal

_PRIMITIVES = frozenset({bool, int, UInt, float, str})


def unary_run(run: Run, code: Callable[..., Any], before: Cost | None, after: ResultCost | None) -> Run:

    def call(frame: Frame) -> Value:
        value = run(frame)
        if before is not None:
            charge(frame, before((value,)))
        result = value if type(value) in FAULTS else code(value)
        if before is None:
            charge(frame, 1 if after is None else after((value,), result))
        return result

    return call


def binary_run(left: Run, right: Run, code: Callable[..., Any], before: Cost | None, after: ResultCost | None) -> Run:
    if before is None and after is None:
        return _unit_binary_run(left, right, code)

    def call(frame: Frame) -> Value:
        a = left(frame)
        b = right(frame)
        if before is not None:
            charge(frame, before((a, b)))
        if type(a) in FAULTS:
            result = a
        elif type(b) in FAULTS:
            result = b
        else:
            result = code(a, b)
        if before is None:
            charge(frame, 1 if after is None else after((a, b), result))
        return result

    return call


def _unit_binary_run(left: Run, right: Run, code: Callable[..., Any]) -> Run:
    """A call of two arguments that costs one unit, as most operators do."""

    def call(frame: Frame) -> Value:
        a = left(frame)
        b = right(frame)
        if type(a) in FAULTS:
            result = a
        elif type(b) in FAULTS:
            result = b
        else:
            result = code(a, b)
        cost = frame[COST] = frame[COST] + 1
        if cost > COST_LIMIT:
            raise CostExceededError
        return result

    return call


def variadic_run(runs: Sequence[Run], code: Callable[..., Any], before: Cost | None, after: ResultCost | None) -> Run:
    """A call of any number of arguments, evaluated one after the other."""
    last = len(runs) - 1

    def call(frame: Frame) -> Value:
        arguments: list[Value] = []
        fault: Value = None
        for index, run in enumerate(runs):
            value = run(frame)
            arguments.append(value)
            if type(value) in FAULTS:
                if index < last:
                    return value
                fault = value
        given = tuple(arguments)
        if before is not None:
            charge(frame, before(given))
        result = code(*given) if fault is None else fault
        if before is None:
            charge(frame, 1 if after is None else after(given, result))
        return result

    return call


def equality_run(steps: Sequence[Step], runs: Sequence[Run], bounded: Sequence[bool], *, negated: bool) -> Run:
    """`==` and `!=`. A comparison with an error makes `!=` true; an operand with an error makes it an error.

    `bounded`: True for operands that may have bounds of their own.
    """
    left, right = runs
    if isinstance(steps[1], Constant) and type(steps[1].value) is str:
        return _equals_text(left, steps[1].value, negated=negated)

    def call(frame: Frame) -> Value:
        a = left(frame)
        b = right(frame)
        charge(frame, shorter((a, b)) if negated else equality((a, b)))
        if type(a) in FAULTS or type(b) in FAULTS:
            same = unequal((a, b), bounded)
            return negated if same is False else same
        same = equal(a, b)
        if not negated:
            return same
        return same if type(same) is Unknown else same is not True

    return call


def _equals_text(left: Run, text: str, *, negated: bool) -> Run:
    """The most frequent comparison: with a constant string."""
    length = len(text)
    whole = math.ceil(length * 0.1)

    def call(frame: Frame) -> Value:
        value = left(frame)
        if type(value) is str:
            cost = frame[COST] + (whole if len(value) >= length else math.ceil(len(value) * 0.1))
            frame[COST] = cost
            if cost > COST_LIMIT:
                raise CostExceededError
            return (value == text) is not negated
        charge(frame, shorter((value, text)) if negated else equality((value, text)))
        if type(value) in FAULTS:
            return value
        same = equal(value, text)
        return same if not negated else same is not True

    return call


def logical_run(terms: Sequence[Run], *, decisive: bool) -> Run:
    """`||` (decisive True) and `&&` (decisive False): a deciding term wins, then an unknown, then the first error."""
    if len(terms) == 2:
        first, second = terms

        def pair(frame: Frame) -> Value:
            value = first(frame)
            if value is decisive:
                return decisive
            other = second(frame)
            if other is decisive:
                return decisive
            if type(value) is bool and type(other) is bool:
                return not decisive
            return undecided((value, other))

        return pair

    def call(frame: Frame) -> Value:
        faults: list[Value] = []
        for term in terms:
            value = term(frame)
            if value is decisive:
                return decisive
            if type(value) is not bool:
                faults.append(value)
        return undecided(faults) if faults else not decisive

    return call


def undecided(values: Sequence[Value]) -> Value:
    """The result of && or || if no term decides: an unknown, else the first error."""
    error: Value = None
    unknown: Unknown | None = None
    for value in values:
        if type(value) is Unknown:
            unknown = value if unknown is None else unknown.merged(value)
        elif type(value) is not bool and error is None:
            error = value if type(value) is Failure else NO_OVERLOAD
    return unknown or error


def or_value_run(left: Run, right: Run, *, unwrap: bool, strict: bool) -> Run:
    """optional.or() and orValue(): the other side is evaluated only if needed, and neither costs anything."""

    def call(frame: Frame) -> Value:
        value = left(frame)
        if type(value) is not OptionalValue:
            # Before 0.29 cel-go returns a value that is not an optional unchanged.
            return NO_OVERLOAD if strict and type(value) not in FAULTS else value
        if value is NONE:
            return right(frame)
        return value.value if unwrap else value

    return call


def membership_run(element: Run, items: list[Value]) -> Step | None:
    """`x in [constants]` as a look-up in a set; None if the list has items that are no plain constants."""
    if not items:
        return Constant(False)
    if any(type(item) not in _PRIMITIVES for item in items):
        return None
    known = {key for item in items for key in _equal_keys(item)}

    def call(frame: Frame) -> Value:
        value = element(frame)
        if type(value) in FAULTS:
            return value
        return ((type(value), value) if type(value) in _PRIMITIVES else key_of(value)) in known

    return Code(call)


def _equal_keys(item: Value) -> list[tuple[type, Value]]:
    """An element as a key of every number type in which it has an equal."""
    kind = type(item)
    keys: list[tuple[type, Value]] = [(kind, item)]
    if kind is float and math.isfinite(item) and item == int(item):
        if -(2**63) <= item < 2**63:
            keys.append((int, int(item)))
        if 0 <= item < 2**64:
            keys.append((UInt, UInt(int(item))))
    elif kind is int:
        keys.append((float, float(item)))
        if item >= 0:
            keys.append((UInt, UInt(item)))
    elif kind is UInt:
        keys.append((float, float(item)))
        if item < 2**63:
            keys.append((int, int(item)))
    return keys
