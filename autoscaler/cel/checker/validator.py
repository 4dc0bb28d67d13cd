"""Checks after type checking: aggregates of one type, and constant arguments (cel-go v0.26.0 cel/validator.go)."""

from __future__ import annotations

from collections.abc import Iterable

from autoscaler.cel.common.ast import Call, Expression, ExpressionError, ListLiteral, Literal, MapLiteral, other_type
from autoscaler.cel.common.types import Type, equivalent
from autoscaler.cel.library.formatting import check_literal
from autoscaler.cel.library.pattern_tree import PatternError
from autoscaler.cel.library.patterns import UnsupportedPatternError, compiled


def validate(calls: Iterable[Call], aggregates: Iterable[ListLiteral | MapLiteral]) -> None:
    """Check all of them. Raises ExpressionError for the first violation."""
    for call in calls:
        _pattern(call)
        problem = check_literal(call)
        if problem:
            raise ExpressionError(problem, call.position)
    for aggregate in aggregates:
        if isinstance(aggregate, ListLiteral):
            _same_type(
                [
                    (item, _inner(item, optional=index in aggregate.optional))
                    for index, item in enumerate(aggregate.items)
                ]
            )
        else:
            _same_type([(key, key.type) for key, _, _ in aggregate.entries])
            _same_type([(value, _inner(value, optional=optional)) for _, value, optional in aggregate.entries])


def _inner(item: Expression, *, optional: bool) -> Type:
    return item.type.parameters[0] if optional and item.type.parameters else item.type


def _same_type(items: list[tuple[Expression, Type]]) -> None:
    for node, found in items[1:]:
        expected = items[0][1]
        if not equivalent(expected, found):
            raise other_type(expected, found, node.position)


def _pattern(call: Call) -> None:
    """Check a regular expression, by upstream the first argument: in the global form matches(s, re), that is the
    text."""
    if call.function != "matches" or not call.arguments:
        return
    argument = call.arguments[0]
    if isinstance(argument, Literal) and type(argument.value) is str:
        try:
            compiled(argument.value)
        except PatternError as error:
            raise ExpressionError(f"invalid matches argument: {error}", argument.position) from error
        except UnsupportedPatternError:  # reported at evaluation
            pass
