"""The type checker (cel-go v0.26.0 checker/checker.go): gives every node its type, every call its overloads.

The first error ends it. Aggregates and constant arguments are checked afterwards, as upstream's validators do.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from autoscaler.cel.checker import messages
from autoscaler.cel.checker.declarations import Overload
from autoscaler.cel.checker.environment import TYPE_NAMES, Environment
from autoscaler.cel.common import types
from autoscaler.cel.common.ast import (
    Call,
    Comprehension,
    Expression,
    ExpressionError,
    Identifier,
    ListLiteral,
    Literal,
    MapLiteral,
    MessageLiteral,
    Mistake,
    Select,
    other_type,
    parts,
    undeclared,
    undefined_field,
)
from autoscaler.cel.common.types import Substitution, Type
from autoscaler.cel.common.values import INT_MAX, UInt
from autoscaler.cel.parser.ast_builder import qualified_name

Scope = Mapping[str, Type]

_GLOBALS: Final[Scope] = {"device": types.DEVICE}
_LITERALS: Final[Mapping[type, Type]] = {
    bool: types.BOOL,
    int: types.INT,
    UInt: types.UINT,
    float: types.DOUBLE,
    str: types.STRING,
    bytes: types.BYTES,
    type(None): types.NULL,
}


class Checker:
    """Checks one expression. After `check`, the lists have the nodes that validators need."""

    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self._substitution = Substitution()
        self._variables = 0
        self._formats = 0
        self._seen: set[int] = set()
        self._nodes: list[Expression] = []
        self._resolved: dict[tuple[str, bool, tuple[Type, ...]], tuple[tuple[str, ...], Type]] = {}
        self.calls: list[Call] = []
        self.aggregates: list[ListLiteral | MapLiteral] = []

    @property
    def nodes(self) -> int:
        """The number of expressions that were checked, each once."""
        return len(self._nodes)

    def check(self, root: Expression) -> Type:
        """The type of the whole expression. Raises ExpressionError."""
        self._check(root, _GLOBALS)
        finished: dict[int, Type] = {}
        for node, found in [(node, node.type) for node in self._nodes]:  # kept alive: `finished` has identities
            node.type = self._substitution.finish(found, finished)
        return root.type

    def _check(self, node: Expression, scope: Scope) -> Type:
        """The type of `node`. Its parts are checked first, without recursion within a scope."""
        pending = [(node, False)]
        while pending:
            at, ready = pending.pop()
            if id(at) in self._seen:  # also the target of optMap, which is in the tree twice
                continue
            below = () if ready else self._parts(at)
            if below:
                pending.append((at, True))
                pending += [(part, False) for part in reversed(below)]
                continue
            self._seen.add(id(at))
            self._nodes.append(at)
            at.type = self._typed(at, scope)
        return node.type

    def _parts(self, node: Expression) -> list[Expression]:
        """The parts to check before `node`, in upstream's order; names that only look like parts are resolved."""
        if isinstance(node, Select):
            name = qualified_name(node)
            if name is not None and name.removeprefix(".") in TYPE_NAMES:
                node.qualified = name.removeprefix(".")
        elif isinstance(node, Call):
            self._formats += node.function == "format"
            self._namespaced(node)
        return parts(node)

    def _typed(self, node: Expression, scope: Scope) -> Type:
        match node:
            case Call():
                return self._call(node)
            case Select():
                return self._select(node)
            case Identifier():
                return self._identifier(node, scope)
            case ListLiteral():
                return self._list(node)
            case MapLiteral():
                return self._map(node)
            case Comprehension():
                return self._comprehension(node, scope)
            case MessageLiteral():
                return self._message(node, scope)
            case Literal():
                return self._literal(node)

    def _literal(self, node: Literal) -> Type:
        if type(node.value) is int and node.value > INT_MAX:
            raise ExpressionError("invalid int literal", node.position)
        return _LITERALS[type(node.value)]

    def _identifier(self, node: Identifier, scope: Scope) -> Type:
        name = node.name.removeprefix(".")
        # Since cel-go 0.29 a name with a leading dot is not a local variable.
        local = name == node.name or not self._environment.dialect.modern
        found = (scope if local else _GLOBALS).get(name)
        if found is None and name in TYPE_NAMES:
            found = types.type_of(TYPE_NAMES[name])
        if found is None:
            raise undeclared(node.name, node.position)
        return found

    def _select(self, node: Select) -> Type:
        if node.qualified is not None:
            return types.type_of(TYPE_NAMES[node.qualified])
        found = self._field(node.operand, node.name, position=node.position, optional=False)
        return types.BOOL if node.test_only else self._substitution.resolve(found)

    def _field(self, operand: Expression, name: str, *, position: int, optional: bool) -> Type:
        target, is_optional = types.unwrap_optional(self._substitution.resolve(operand.type))
        if target.kind == "map":
            found = target.parameters[1]
        elif target.kind == "struct":
            found = self._declared_field(target, name, position)
        elif target.kind == "param":
            self._substitution.assignable([types.DYN], [target])
            found = types.DYN
        elif types.is_dyn(target) or target.kind == "error":
            found = types.DYN
        else:
            raise ExpressionError(f"type '{target}' does not support field selection", position)
        return types.optional_of(found) if is_optional or optional else found

    def _declared_field(self, target: Type, name: str, position: int) -> Type:
        fields = self._environment.device_fields if target == types.DEVICE else messages.FIELDS.get(target.name, {})
        if name not in fields:
            raise undefined_field(name, position)
        return fields[name]

    def _call(self, node: Call) -> Type:
        self.calls.append(node)
        self._formats -= node.function == "format"
        if node.function == "_?._":
            operand, name = node.arguments
            assert isinstance(name, Literal)
            node.overloads = ("select_optional_field",)
            found = self._field(operand, name.value, position=node.position, optional=True)
            return self._substitution.resolve(found)
        arguments = [argument.type for argument in node.arguments]
        return self._overload(node, arguments if node.target is None else [node.target.type, *arguments])

    def _namespaced(self, node: Call) -> None:
        """Resolve `a.b.c()` as the function a.b.c if it is declared, whatever a.b is."""
        if node.target is None:
            node.function = node.function.removeprefix(".")
            return
        prefix = qualified_name(node.target)
        if prefix is not None and f"{prefix.removeprefix('.')}.{node.function}" in self._environment.functions:
            node.function = f"{prefix.removeprefix('.')}.{node.function}"
            node.target = None

    def _overload(self, node: Call, arguments: list[Type]) -> Type:
        declared = self._environment.functions.get(node.function)
        if declared is None:
            raise undeclared(node.function, node.position)
        if node.function in ("_&&_", "_||_"):
            return self._logical(node, arguments)
        # Long expressions contain repetitions: without free parameters the same call has the same result each time.
        key = (node.function, node.target is not None, tuple(arguments))
        if key in self._resolved:
            node.overloads, known = self._resolved[key]
            return known
        node.overloads, result = self._matching(node, declared, arguments)
        if result.ground and all(argument.ground for argument in arguments):
            self._resolved[key] = node.overloads, result
        return result

    def _matching(
        self, node: Call, declared: tuple[Overload, ...], arguments: list[Type]
    ) -> tuple[tuple[str, ...], Type]:
        """The overloads that may apply, and the type of their result."""
        result: Type | None = None
        matched: list[str] = []
        for overload in declared:
            if overload.method != (node.target is not None):
                continue
            expected, returned = overload.arguments, overload.result
            if overload.parameters:
                fresh = {name: self._variable() for name in overload.parameters}
                expected = tuple(_instantiated(t, fresh) for t in expected)
                returned = _instantiated(returned, fresh)
            if not self._substitution.assignable(arguments, expected):
                continue
            matched.append(overload.id)
            returned = self._substitution.resolve(returned)
            if result is None:
                result = returned
            elif not types.is_dyn(result) and returned != result:
                result = types.DYN
        if result is None:
            shown = [str(self._substitution.resolve(t, free_is_dyn=True)) for t in arguments]
            text = f"{shown[0]}.({', '.join(shown[1:])})" if node.target is not None else f"({', '.join(shown)})"
            raise ExpressionError(
                f"found no matching overload for '{node.function}' applied to '{text}'",
                node.position,
                Mistake.NO_OVERLOAD,
                name=node.function,
                operands=tuple(shown),
            )
        return tuple(matched), result

    def _logical(self, node: Call, arguments: list[Type]) -> Type:
        for argument, found in zip(node.arguments, arguments, strict=True):
            if not self._substitution.assignable([found], [types.BOOL]):
                raise other_type(types.BOOL, found, argument.position, Mistake.NOT_BOOL)
        return types.BOOL

    def _list(self, node: ListLiteral) -> Type:
        self._remember(node)
        joined: Type | None = None
        for index, item in enumerate(node.items):
            found = item.type
            if index in node.optional:
                found = self._unwrapped(found, item)
            joined = self._joined(joined, found)
        return types.list_of(joined or self._variable())

    def _map(self, node: MapLiteral) -> Type:
        self._remember(node)
        keys: Type | None = None
        values: Type | None = None
        for key, value, optional in node.entries:
            keys = self._joined(keys, key.type)
            found = value.type
            values = self._joined(values, self._unwrapped(found, value) if optional else found)
        if keys is None or values is None:
            return types.map_of(self._variable(), self._variable())
        return types.map_of(keys, values)

    def _remember(self, node: ListLiteral | MapLiteral) -> None:
        if not self._formats:
            self.aggregates.append(node)

    def _unwrapped(self, found: Type, node: Expression) -> Type:
        inner, is_optional = types.unwrap_optional(found)
        if not is_optional and not types.is_dyn(found):
            raise other_type(types.optional_of(found), found, node.position)
        return inner

    def _joined(self, previous: Type | None, current: Type) -> Type:
        """The common type; dyn if they differ, which the validators refuse outside of format()."""
        if previous is None:
            return current
        if not self._substitution.assignable([previous], [current]):
            return types.DYN
        return types.most_general(previous, current)

    def _message(self, node: MessageLiteral, scope: Scope) -> Type:
        name = node.name = node.name.removeprefix(".")
        if name == types.DEVICE.name:
            found, fields = types.DEVICE, self._environment.device_fields
        elif name in messages.TYPES:
            found, fields = messages.TYPES[name], messages.FIELDS[name]
        elif name in TYPE_NAMES or name in scope:
            raise ExpressionError(f"'{name}' is not a message type", node.position)
        else:
            raise undeclared(name, node.position)
        for field, value, optional in node.fields:
            given = value.type
            if field not in fields:
                raise undefined_field(field, value.position)
            if optional:
                given = self._unwrapped(given, value)
            if not self._substitution.assignable([fields[field]], [given]):
                raise ExpressionError(
                    f"expected type of field '{field}' is '{fields[field]}' but provided type is '{given}'",
                    value.position,
                    Mistake.OTHER_TYPE,
                )
        return found

    def _comprehension(self, node: Comprehension, scope: Scope) -> Type:
        ranged = self._substitution.resolve(node.iteration_range.type)
        initial = node.initial.type
        first, second = self._range_variables(ranged, node)
        outer = {**scope, node.accumulator: initial}
        inner = {**outer, node.variable: first}
        if node.second_variable:
            inner[node.second_variable] = second
        self._require(node.condition, self._check(node.condition, inner), types.BOOL)
        self._require(node.step, self._check(node.step, inner), initial)
        return self._substitution.resolve(self._check(node.result, outer))

    def _range_variables(self, ranged: Type, node: Comprehension) -> tuple[Type, Type]:
        if ranged.kind == "list":
            element = ranged.parameters[0]
            return (types.INT, element) if node.second_variable else (element, element)
        if ranged.kind == "map":
            return ranged.parameters[0], ranged.parameters[1]
        if ranged.kind in ("dyn", "error", "param"):
            self._substitution.assignable([types.DYN], [ranged])
            return types.DYN, types.DYN
        raise ExpressionError(
            f"expression of type '{ranged}' cannot be range of a comprehension (must be list, map, or dynamic)",
            node.iteration_range.position,
        )

    def _require(self, node: Expression, found: Type, expected: Type) -> None:
        if not self._substitution.assignable([expected], [found]):
            mistake = Mistake.NOT_BOOL if expected == types.BOOL else Mistake.OTHER_TYPE
            raise other_type(expected, found, node.position, mistake)

    def _variable(self) -> Type:
        self._variables += 1
        return types.parameter(f"_var{self._variables}")


def _instantiated(t: Type, fresh: Mapping[str, Type]) -> Type:
    if t.kind == "param":
        return fresh[t.name]
    if not t.parameters:
        return t
    return Type(t.kind, t.name, tuple(_instantiated(p, fresh) for p in t.parameters))
