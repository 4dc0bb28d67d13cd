"""Comparisons of values with known bounds: for example, the catalog has a GPU's memory as about 12Gi, not exactly.

Order is monotone in both arguments, so the results at the ends of the bounds enclose all results in between. This is
true of no other function, and an unknown value passes through every other function unchanged: bounds count only if the
operand is syntactically a device's capacity itself or compareTo() of one (`has_bounds`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from autoscaler.cel.common.ast import Call, Expression
from autoscaler.cel.common.evaluation import DEVICE, Frame, Run, charge
from autoscaler.cel.common.values import FAULTS, QuantityCell, Unknown, Value
from autoscaler.cel.cost.call_costs import Cost, ResultCost
from autoscaler.cel.interpreter.attributes import Chain, Step
from autoscaler.cel.library.comparison import equal
from instance_catalog.kubernetes.quantity import Quantity

MONOTONE: Final = frozenset({"compareTo", "isGreaterThan", "isLessThan", "_<_", "_<=_", "_>_", "_>=_"})


def has_bounds(node: Expression, step: Step) -> bool:
    """True if the bounds of an unknown result of the step are its own."""
    if isinstance(step, Chain):
        plain = not any(link.optional or link.test_only for link in step.links)
        return step.slot == DEVICE and plain and bool(step.links) and step.links[0].key == "capacity"
    return isinstance(node, Call) and node.function == "compareTo"


def ordered_run(
    runs: Sequence[Run],
    trusted: Sequence[bool],
    code: Callable[..., Any],
    before: Cost | None,
    after: ResultCost | None,
) -> Run:
    """A monotone call of two arguments, of which the `trusted` ones may have bounds."""
    left, right = runs

    def call(frame: Frame) -> Value:
        a = left(frame)
        b = right(frame)
        if before is not None:
            charge(frame, before((a, b)))
        result = code(a, b) if type(a) not in FAULTS and type(b) not in FAULTS else _enclosed((a, b), trusted, code)
        if before is None:
            charge(frame, 1 if after is None else after((a, b), result))
        return result

    return call


def unequal(values: Sequence[Value], trusted: Sequence[bool]) -> Value:
    """`==` if a value is a fault: False if the bounds exclude each other, else the first fault."""
    fault = _fault(values)
    ends = _ends(values, trusted)
    if ends is None:
        return fault
    (low, high), (least, most) = ends
    if any(type(equal(a, b)) is not bool for a in (low, high) for b in (least, most)):
        return fault
    return False if _less(high, least) or _less(most, low) else fault


def _enclosed(values: Sequence[Value], trusted: Sequence[bool], code: Callable[..., Any]) -> Value:
    fault = _fault(values)
    ends = _ends(values, trusted)
    if ends is None:
        return fault
    results = [code(a, b) for a in ends[0] for b in ends[1]]
    if all(type(result) is bool for result in results):
        return results[0] if len(set(results)) == 1 else fault
    if not all(type(result) is int for result in results):
        return fault
    low, high = min(results), max(results)
    assert type(fault) is Unknown
    return low if low == high else Unknown(fault.attributes, fault.reason, bounds=(low, high))


def _fault(values: Sequence[Value]) -> Value:
    """The first fault; an unknown without its bounds, because the bounds are not those of the call."""
    fault = next(value for value in values if type(value) in FAULTS)
    return Unknown(fault.attributes, fault.reason) if type(fault) is Unknown else fault


def _ends(values: Sequence[Value], trusted: Sequence[bool]) -> list[tuple[Value, Value]] | None:
    """The least and the greatest possible value of each; None if one of them has no bounds."""
    found: list[tuple[Value, Value]] = []
    for value, own in zip(values, trusted, strict=True):
        if type(value) is Unknown and own and value.bounds is not None:
            found.append((_value(value.bounds[0]), _value(value.bounds[1])))
        elif type(value) in FAULTS:
            return None
        else:
            found.append((value, value))
    return found


def _value(bound: Quantity | int) -> Value:
    return QuantityCell(bound) if isinstance(bound, Quantity) else bound


def _less(left: Value, right: Value) -> bool:
    if type(left) is QuantityCell and type(right) is QuantityCell:
        return left.quantity.compare(right.quantity) < 0
    return type(left) is int and type(right) is int and left < right
