"""Builds expressions: one method per grammar rule, called by the parser bottom-up (cel-go v0.26.0 parser.go).

There is no parse tree and no recursion here. Limits are upstream's: 250 nested expressions, 250 links of a
left-recursive chain; && and || chains are flattened and unlimited.
"""

from __future__ import annotations

from typing import Any, Final, TypeVar

from lark import Token

from autoscaler.cel.common.ast import (
    Call,
    Expression,
    ExpressionError,
    Identifier,
    ListLiteral,
    Literal,
    MapLiteral,
    MessageLiteral,
    Mistake,
    Node,
    Select,
)
from autoscaler.cel.parser import literals
from autoscaler.cel.parser.macros import expand

NodeT = TypeVar("NodeT", bound=Node)
MAX_DEPTH: Final = 250
# Chains count in the height of the tree, which the later phases walk recursively.
MAX_HEIGHT: Final = 251
_RESERVED: Final = frozenset(
    {
        "as", "break", "const", "continue", "else", "for", "function", "if", "import", "let", "loop", "package",
        "namespace", "return", "var", "void", "while",
    }
)  # fmt: skip
_SIGNS: Final = ("<", "<=", ">", ">=", "==", "!=", "+", "-", "*", "/", "%")
_BINARY: Final = {"in": "@in", **{sign: f"_{sign}_" for sign in _SIGNS}}
_CONSTANTS: Final = {"true": True, "false": False, "null": None}


class _Number(Literal):
    """A number without parentheses around it: a leading minus becomes part of it."""

    __slots__ = ()


class Builder:
    """Lark calls the method of a rule with the rule's children."""

    def ternary(self, children: list[Any]) -> Expression:
        condition, _, otherwise = children
        otherwise.depth += 1
        return _sized(Call(condition.position, "_?_:_", None, children), *children)

    def logical_or(self, children: list[Any]) -> Expression:
        return _logical("_||_", *children)

    def logical_and(self, children: list[Any]) -> Expression:
        return _logical("_&&_", *children)

    def binary(self, children: list[Any]) -> Expression:
        """An operator call. Its position is that of the operator, as in cel-go's messages."""
        left, operator, right = children
        return _sized(Call(_start(operator), _BINARY[operator], None, [left, right]), left, right)

    first = staticmethod(lambda _: 1)
    another = staticmethod(lambda children: children[0] + 1)

    def negated(self, children: list[Any]) -> Expression:
        operand: Expression = children[1]
        if children[0] % 2 == 0:
            return operand
        return _sized(Call(operand.position, "!_", None, [operand]), operand)

    def negative(self, children: list[Any]) -> Expression:
        count: int = children[0]
        operand: Expression = children[1]
        if count % 2 == 0:
            return operand
        if count == 1 and _negate_literal(operand):
            return operand
        return _sized(Call(operand.position, "-_", None, [operand]), operand)

    def field(self, children: list[Token]) -> Token:
        (token,) = children
        if token.type == "QUOTED_IDENT":
            return token.update(value=token[1:-1])
        if token in _CONSTANTS or token == "in":
            raise ExpressionError(f"Syntax error: unexpected {str(token)!r} after a dot", _start(token), Mistake.SYNTAX)
        return token

    def member_dot(self, children: list[Any]) -> Expression:
        operand, name = children
        return _sized(Select(_start(name), operand, str(name)), operand)

    def member_optdot(self, children: list[Any]) -> Expression:
        operand, name = children
        arguments = [operand, Literal(_start(name), str(name))]
        return _sized(Call(_start(name), "_?._", None, arguments), operand)

    def member_index(self, children: list[Any]) -> Expression:
        operand, key = children
        key.depth += 1
        return _sized(Call(operand.position, "_[_]", None, children), operand, key)

    def member_optindex(self, children: list[Any]) -> Expression:
        operand, key = children
        key.depth += 1
        return _sized(Call(operand.position, "_[?_]", None, children), operand, key)

    def member_dot_arg(self, children: list[Any]) -> Expression:
        target, name, *rest = children
        if name in _CONSTANTS or name == "in":
            raise ExpressionError(f"Syntax error: unexpected {str(name)!r} after a dot", _start(name), Mistake.SYNTAX)
        arguments = rest[0] if rest else []
        call = Call(_start(name), str(name), target, arguments)
        return expand(_sized(call, target, *arguments))

    def member_object(self, children: list[Any]) -> Expression:
        operand = children[0]
        name = qualified_name(operand)
        if name is None:
            raise ExpressionError(
                "Syntax error: only a type name can be followed by {", operand.position, Mistake.SYNTAX
            )
        fields = children[1] if len(children) > 1 else []
        return _sized(MessageLiteral(operand.position, name, fields), operand, *(value for _, value, _ in fields))

    def ident(self, children: list[Token]) -> Expression:
        (token,) = children
        if token in _CONSTANTS:
            return Literal(_start(token), _CONSTANTS[token])
        return Identifier(_start(token), _checked(token))

    def dot_ident(self, children: list[Token]) -> Expression:
        (token,) = children
        return Identifier(_start(token) - 1, "." + _name(token))

    def ident_arg(self, children: list[Any]) -> Expression:
        return self._global_call(children, "")

    def dot_ident_arg(self, children: list[Any]) -> Expression:
        return self._global_call(children, ".")

    def _global_call(self, children: list[Any], dot: str) -> Expression:
        token, *rest = children
        arguments = rest[0] if rest else []
        return expand(_sized(Call(_start(token), dot + _name(token), None, arguments), *arguments))

    def paren_expr(self, children: list[Any]) -> Expression:
        inner: Expression = children[0]
        inner.depth += 1
        if isinstance(inner, _Number):
            return Literal(inner.position, inner.value, depth=inner.depth)
        return _within_limits(inner)

    def exprlist(self, children: list[Any]) -> list[Any]:
        for child in children:
            child.depth += 1
        return children

    def optional_item(self, children: list[Any]) -> tuple[Expression]:
        return (children[0],)

    def list_lit(self, children: list[Any]) -> Expression:
        marked = children[0] if children else []
        items = [item[0] if type(item) is tuple else item for item in marked]
        for item in items:
            item.depth += 1
        optional = frozenset(index for index, item in enumerate(marked) if type(item) is tuple)
        position = items[0].position if items else 0
        return _sized(ListLiteral(position, items, optional), *items)

    def mapentry(self, children: list[Any]) -> tuple[Expression, Expression, bool]:
        return children[0], children[1], False

    def optional_entry(self, children: list[Any]) -> tuple[Expression, Expression, bool]:
        return children[0], children[1], True

    def map_lit(self, children: list[Any]) -> Expression:
        entries = children[0] if children else []
        parts = [part for key, value, _ in entries for part in (key, value)]
        for part in parts:
            part.depth += 1
        return _sized(MapLiteral(parts[0].position if parts else 0, entries), *parts)

    def fieldinit(self, children: list[Any]) -> tuple[str, Expression, bool]:
        children[1].depth += 1
        return str(children[0]), children[1], False

    def optional_field(self, children: list[Any]) -> tuple[str, Expression, bool]:
        children[1].depth += 1
        return str(children[0]), children[1], True

    def fieldinits(self, children: list[Any]) -> list[Any]:
        """A list grown by left recursion."""
        if len(children) == 1:
            return [children[0]]
        children[0].append(children[1])
        collected: list[Any] = children[0]
        return collected

    listitems = mapinits = fieldinits

    def literal(self, children: list[Token]) -> Expression:
        (token,) = children
        position = _start(token)
        try:
            match token.type:
                case "INT_LIT":
                    return _Number(position, literals.magnitude(token))
                case "UINT_LIT":
                    return Literal(position, literals.unsigned(token))
                case "FLOAT_LIT":
                    return _Number(position, literals.floating(token))
                case "BYTES_LIT":
                    return Literal(position, literals.byte_string(token))
        except literals.LiteralError as error:
            raise ExpressionError(str(error), position) from error
        try:
            return Literal(position, literals.string(token))
        except literals.LiteralError as error:
            raise ExpressionError(str(error), position) from error


def qualified_name(node: Expression) -> str | None:
    """The dotted name of an identifier or a chain of selections, None for anything else."""
    names: list[str] = []
    while type(node) is Select and not node.test_only:
        names.append(node.name)
        node = node.operand
    if type(node) is not Identifier:
        return None
    return ".".join([node.name, *reversed(names)])


def _negate_literal(node: Expression) -> bool:
    """Negate the number that a chain such as -1.5.f() starts with. True if there is one."""
    while type(node) is not _Number:
        if isinstance(node, Select):
            node = node.operand
        elif isinstance(node, Call) and node.target is not None:
            node = node.target
        elif isinstance(node, Call) and node.function in ("_[_]", "_[?_]", "_?._"):
            node = node.arguments[0]
        else:
            return False
    node.value = -node.value
    return True


def _logical(function: str, left: Any, right: Any) -> Expression:
    if type(left) is Call and left.function == function:
        left.arguments.append(right)
        left.depth = max(left.depth, right.depth)
        left.height = max(left.height, right.height + 1)
        return left
    return _sized(Call(left.position, function, None, [left, right]), left, right)


def _sized(node: NodeT, *children: Expression) -> NodeT:
    if children:
        node.depth = max(child.depth for child in children)
        node.height = max(child.height for child in children) + 1
    return _within_limits(node)


def _within_limits(node: NodeT) -> NodeT:
    if node.depth >= MAX_DEPTH or node.height >= MAX_HEIGHT:
        raise ExpressionError(f"expression recursion limit exceeded: {MAX_DEPTH}", node.position)
    return node


def _start(token: Token) -> int:
    return token.start_pos or 0


def _name(token: Token) -> str:
    if token in _CONSTANTS:
        raise ExpressionError(f"Syntax error: unexpected {str(token)!r}", _start(token), Mistake.SYNTAX)
    return _checked(token)


def _checked(token: Token) -> str:
    if token in _RESERVED:
        raise ExpressionError(f"reserved identifier: {token}", _start(token))
    return str(token)
