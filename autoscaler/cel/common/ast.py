"""The abstract syntax of an expression after macro expansion, like cel-go's (common/ast).

Operators are calls with cel-go's names ("_&&_", "_==_", "@in"): overloads and costs are declared by these names.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, auto
from typing import TypeAlias

from autoscaler.cel.common.types import ERROR, Type
from autoscaler.cel.common.values import Value

ACCUMULATOR = "@result"


class Mistake(Enum):
    """The common mistakes in expressions, for which there is a hint."""

    SYNTAX = auto()
    UNDECLARED = auto()
    UNDEFINED_FIELD = auto()
    NO_OVERLOAD = auto()
    NOT_BOOL = auto()  # an operand of &&, || and !, or the condition of a macro
    OTHER_TYPE = auto()
    NO_CONDITION = auto()  # the whole expression is not bool
    OTHER = auto()


class ExpressionError(Exception):
    """The expression cannot be compiled; `position` is the offset of the mistake in its text.

    `name` is the name, function or character of the mistake, `operands` the types of a function's arguments, the
    receiver of a method included.
    """

    def __init__(
        self,
        message: str,
        position: int,
        mistake: Mistake = Mistake.OTHER,
        *,
        name: str = "",
        operands: tuple[str, ...] = (),
    ) -> None:
        super().__init__(message)
        self.message = message
        self.position = position
        self.mistake = mistake
        self.name = name
        self.operands = operands


def undeclared(name: str, position: int) -> ExpressionError:
    """The error for a name that is not declared; the message is cel-go's."""
    text = f"undeclared reference to '{name}' (in container '')"
    return ExpressionError(text, position, Mistake.UNDECLARED, name=name)


def undefined_field(name: str, position: int) -> ExpressionError:
    """The error for a field that the message does not have; the message is cel-go's."""
    return ExpressionError(f"undefined field '{name}'", position, Mistake.UNDEFINED_FIELD, name=name)


def other_type(
    expected: object, found: object, position: int, mistake: Mistake = Mistake.OTHER_TYPE
) -> ExpressionError:
    """The error for a value of another type; the message is cel-go's."""
    return ExpressionError(f"expected type '{expected}' but found '{found}'", position, mistake)


@dataclass(slots=True, eq=False)
class Node:
    """`position` is an offset in the text; the checker sets `type`.

    `depth` counts the expressions nested within as upstream's limit does, `height` the levels of the tree below.
    `twice` marks a node that a macro evaluates a second time right after the first.
    """

    position: int
    depth: int = field(default=0, kw_only=True)
    height: int = field(default=0, kw_only=True)
    type: Type = field(default=ERROR, kw_only=True)
    twice: bool = field(default=False, kw_only=True)


@dataclass(slots=True, eq=False)
class Literal(Node):
    """A constant."""

    value: Value


@dataclass(slots=True, eq=False)
class Identifier(Node):
    """A variable or type name. A leading dot, which means the outermost scope, is kept in the name."""

    name: str


@dataclass(slots=True, eq=False)
class Select(Node):
    """operand.field, or has(operand.field) if `test_only`."""

    operand: Expression
    name: str
    test_only: bool = False
    qualified: str | None = None  # set by the checker if the whole chain names a type


@dataclass(slots=True, eq=False)
class Call(Node):
    """A function, method (with `target`) or operator."""

    function: str
    target: Expression | None
    arguments: list[Expression]
    overloads: tuple[str, ...] = ()  # set by the checker: every overload that may apply


@dataclass(slots=True, eq=False)
class ListLiteral(Node):
    """[a, ?b]: `optional` holds the indices of the optional items."""

    items: list[Expression]
    optional: frozenset[int] = frozenset()


@dataclass(slots=True, eq=False)
class MapLiteral(Node):
    """{a: b, ?c: d}."""

    entries: list[tuple[Expression, Expression, bool]]


@dataclass(slots=True, eq=False)
class MessageLiteral(Node):
    """google.protobuf.Int32Value{value: 1}."""

    name: str
    fields: list[tuple[str, Expression, bool]]


@dataclass(slots=True, eq=False)
class Comprehension(Node):
    """A fold, the expansion of every looping macro, cel.bind and optMap."""

    iteration_range: Expression
    variable: str
    second_variable: str
    accumulator: str
    initial: Expression
    condition: Expression
    step: Expression
    result: Expression


Expression: TypeAlias = Literal | Identifier | Select | Call | ListLiteral | MapLiteral | MessageLiteral | Comprehension


def parts(node: Expression) -> list[Expression]:
    """The parts of `node` in its own scope: without those parts of a comprehension that see its variables."""
    match node:
        case Select():
            return [] if node.qualified is not None else [node.operand]
        case Call():
            return node.arguments if node.target is None else [*node.arguments, node.target]
        case ListLiteral():
            return node.items
        case MapLiteral():
            return [part for key, value, _ in node.entries for part in (key, value)]
        case MessageLiteral():
            return [value for _, value, _ in node.fields]
        case Comprehension():
            return [node.iteration_range, node.initial]
    return []
