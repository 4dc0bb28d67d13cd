"""The expansions of macros: has(), the comprehensions, cel.bind, optMap and sortBy.

Expansions are those of cel-go v0.26.0 (parser/macro.go, ext/comprehensions.go, ext/bindings.go, ext/lists.go,
cel/library.go); run-time cost follows from their shape. A call whose name, receiver or number of arguments fits no
macro stays a call.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from autoscaler.cel.common.ast import (
    ACCUMULATOR,
    Call,
    Comprehension,
    Expression,
    ExpressionError,
    Identifier,
    ListLiteral,
    Literal,
    MapLiteral,
    Select,
)

_UNUSED: Final = "#unused"
_SORT_INPUT: Final = "@__sortBy_input__"


def expand(call: Call) -> Expression:
    """The expansion of `call`, or `call` itself. Raises ExpressionError."""
    if call.target is None:
        return _has(call) if call.function == "has" and len(call.arguments) == 1 else call
    macro = _RECEIVER_MACROS.get((call.function, len(call.arguments)))
    if macro is None:
        return call
    expansion = macro(call, call.target)
    if expansion is not call:
        expansion.depth, expansion.height = call.depth, call.height + 1
    return expansion


def _has(call: Call) -> Expression:
    (argument,) = call.arguments
    if type(argument) is not Select or argument.test_only:
        raise ExpressionError("invalid argument to has() macro", call.position)
    return Select(
        argument.position, argument.operand, argument.name, test_only=True, depth=call.depth, height=argument.height
    )


def _variable(node: Expression) -> str:
    # `.y` is accepted as a name, but nothing can refer to it.
    if type(node) is not Identifier:
        raise ExpressionError("argument must be a simple name", node.position)
    if node.name in (ACCUMULATOR, "__result__"):
        raise ExpressionError("iteration variable overwrites accumulator variable", node.position)
    return node.name


def _variables(call: Call, count: int) -> list[str]:
    names = [_variable(argument) for argument in call.arguments[:count]]
    if count == 2 and names[0] == names[1]:
        raise ExpressionError(f"duplicate variable name: {names[0]}", call.arguments[1].position)
    return names


def _accumulator(position: int) -> Identifier:
    return Identifier(position, ACCUMULATOR)


def _call(position: int, function: str, *arguments: Expression) -> Call:
    return Call(position, function, None, list(arguments))


def _fold(
    call: Call,
    target: Expression,
    names: list[str],
    *,
    initial: Expression,
    condition: Expression,
    step: Expression,
    result: Expression | None = None,
) -> Comprehension:
    return Comprehension(
        call.position,
        target,
        names[0],
        names[1] if len(names) == 2 else "",
        ACCUMULATOR,
        initial,
        condition,
        step,
        result or _accumulator(call.position),
    )


def _all(count: int) -> Callable[[Call, Expression], Expression]:
    def macro(call: Call, target: Expression) -> Expression:
        at = call.position
        return _fold(
            call,
            target,
            _variables(call, count),
            initial=Literal(at, True),
            condition=_call(at, "@not_strictly_false", _accumulator(at)),
            step=_call(at, "_&&_", _accumulator(at), call.arguments[count]),
        )

    return macro


def _exists(count: int) -> Callable[[Call, Expression], Expression]:
    def macro(call: Call, target: Expression) -> Expression:
        at = call.position
        return _fold(
            call,
            target,
            _variables(call, count),
            initial=Literal(at, False),
            condition=_call(at, "@not_strictly_false", _call(at, "!_", _accumulator(at))),
            step=_call(at, "_||_", _accumulator(at), call.arguments[count]),
        )

    return macro


def _exists_one(count: int) -> Callable[[Call, Expression], Expression]:
    def macro(call: Call, target: Expression) -> Expression:
        at = call.position
        counted = _call(at, "_+_", _accumulator(at), Literal(at, 1))
        return _fold(
            call,
            target,
            _variables(call, count),
            initial=Literal(at, 0),
            condition=Literal(at, True),
            step=_call(at, "_?_:_", call.arguments[count], counted, _accumulator(at)),
            result=_call(at, "_==_", _accumulator(at), Literal(at, 1)),
        )

    return macro


def _collect(
    count: int, initial: type[ListLiteral] | type[MapLiteral], grown: Callable[[int, list[str], Expression], Expression]
) -> Callable[[Call, Expression], Expression]:
    """A fold that adds one transformed element after another; an additional argument is a filter before it."""

    def macro(call: Call, target: Expression) -> Expression:
        at, names = call.position, _variables(call, count)
        *filters, transform = call.arguments[count:]
        step = grown(at, names, transform)
        if filters:
            step = _call(at, "_?_:_", filters[0], step, _accumulator(at))
        return _fold(call, target, names, initial=initial(at, []), condition=Literal(at, True), step=step)

    return macro


def _append(at: int, _: list[str], transform: Expression) -> Expression:
    return _call(at, "_+_", _accumulator(at), ListLiteral(at, [transform]))


def _insert(at: int, names: list[str], transform: Expression) -> Expression:
    return _call(at, "cel.@mapInsert", _accumulator(at), Identifier(at, names[0]), transform)


def _insert_entry(at: int, _: list[str], transform: Expression) -> Expression:
    return _call(at, "cel.@mapInsert", _accumulator(at), transform)


def _filter(call: Call, target: Expression) -> Expression:
    at, names = call.position, _variables(call, 1)
    step = _call(at, "_?_:_", call.arguments[1], _append(at, names, Identifier(at, names[0])), _accumulator(at))
    return _fold(call, target, names, initial=ListLiteral(at, []), condition=Literal(at, True), step=step)


def _bound(at: int, name: str, value: Expression, result: Expression) -> Comprehension:
    """A fold over nothing: `name` is evaluated when `result` first uses it."""
    nothing = ListLiteral(at, [])
    return Comprehension(at, nothing, _UNUSED, "", name, value, Literal(at, False), Identifier(at, name), result)


def _bind(call: Call, target: Expression) -> Expression:
    if type(target) is not Identifier or target.name != "cel":
        return call
    name, value, result = call.arguments
    if type(name) is not Identifier:
        raise ExpressionError("cel.bind() variable names must be simple identifiers", name.position)
    return _bound(call.position, name.name, value, result)


def _optional_map(call: Call, target: Expression) -> Expression:
    at = call.position
    name, result = call.arguments
    if type(name) is not Identifier:
        raise ExpressionError(f"{call.function}() variable name must be a simple identifier", name.position)
    target.twice = True
    body: Expression = _bound(at, name.name, Call(at, "value", target, []), result)
    if call.function == "optMap":
        body = _call(at, "optional.of", body)
    return _call(at, "_?_:_", Call(at, "hasValue", target, []), body, _call(at, "optional.none"))


def _sort_by(call: Call, target: Expression) -> Expression:
    at = call.position
    if type(target) not in (ListLiteral, Select, Identifier, Comprehension, Call):
        raise ExpressionError(
            "sortBy can only be applied to a list, identifier, comprehension, call or select expression", at
        )
    keys = _RECEIVER_MACROS["map", 2](call, Identifier(at, _SORT_INPUT))
    return _bound(at, _SORT_INPUT, target, Call(at, "@sortByAssociatedKeys", Identifier(at, _SORT_INPUT), [keys]))


_RECEIVER_MACROS: Final[dict[tuple[str, int], Callable[[Call, Expression], Expression]]] = {
    ("all", 2): _all(1),
    ("all", 3): _all(2),
    ("exists", 2): _exists(1),
    ("exists", 3): _exists(2),
    ("exists_one", 2): _exists_one(1),
    ("exists_one", 3): _exists_one(2),
    ("existsOne", 3): _exists_one(2),
    ("map", 2): _collect(1, ListLiteral, _append),
    ("map", 3): _collect(1, ListLiteral, _append),
    ("filter", 2): _filter,
    ("transformList", 3): _collect(2, ListLiteral, _append),
    ("transformList", 4): _collect(2, ListLiteral, _append),
    ("transformMap", 3): _collect(2, MapLiteral, _insert),
    ("transformMap", 4): _collect(2, MapLiteral, _insert),
    ("transformMapEntry", 3): _collect(2, MapLiteral, _insert_entry),
    ("transformMapEntry", 4): _collect(2, MapLiteral, _insert_entry),
    ("bind", 3): _bind,
    ("optMap", 2): _optional_map,
    ("optFlatMap", 2): _optional_map,
    ("sortBy", 2): _sort_by,
}
MACRO_NAMES: Final = frozenset({"has", *(name for name, _ in _RECEIVER_MACROS)})
