"""The values that an expression requires, such as "memory is at least 500Gi", to explain why nothing matches.

Only conditions that must all hold (joined by &&) count, and only comparisons of one value with a constant.
"""

from __future__ import annotations

from collections.abc import Iterator

from autoscaler.cel.common.ast import Call, Expression, Literal
from autoscaler.cel.interpreter.reads import Path, paths_read
from instance_catalog.dataclass import dataclass

_AT_LEAST = {(">=", 0): True, (">", 0): True, ("==", 0): True, ("==", 1): True, (">=", 1): True, (">", -1): True}


@dataclass(frozen=True, slots=True)
class Demand:
    """`path` must be (at least, for capacities) `wanted`: a quantity in its written form, or a text.

    The name of the driver has the path ("driver", "", "").
    """

    path: Path
    wanted: str


def demands(root: Expression) -> Iterator[Demand]:
    if isinstance(root, Call) and root.function == "_&&_":
        for term in root.arguments:
            yield from demands(term)
        return
    found = _demand(root)
    if found is not None:
        yield found


def _demand(node: Expression) -> Demand | None:
    if not isinstance(node, Call):
        return None
    if node.function == "isGreaterThan" and node.target is not None:
        return _of_capacity(node.target, node.arguments[0])
    if node.function not in ("_==_", "_>=_", "_>_"):
        return None
    left, right = node.arguments
    if isinstance(left, Call) and left.function == "compareTo" and left.target is not None:
        sign = right.value if isinstance(right, Literal) else _negative(right)
        return _of_capacity(left.target, left.arguments[0]) if (node.function[1:-1], sign) in _AT_LEAST else None
    if node.function == "_==_" and isinstance(right, Literal) and type(right.value) is str:
        path = _path(left)
        return Demand(path, right.value) if path is not None and path[0] in ("attributes", "driver") else None
    return None


def _negative(node: Expression) -> int | None:
    """-1, which is the negation of a literal."""
    if isinstance(node, Call) and node.function == "-_" and isinstance(node.arguments[0], Literal):
        value = node.arguments[0].value
        return -value if type(value) is int else None
    return None


def _of_capacity(value: Expression, amount: Expression) -> Demand | None:
    path = _path(value)
    constant = isinstance(amount, Call) and amount.function == "quantity" and isinstance(amount.arguments[0], Literal)
    if path is None or path[0] != "capacity" or not constant:
        return None
    assert isinstance(amount, Call)
    literal = amount.arguments[0]
    assert isinstance(literal, Literal)
    return Demand(path, literal.value) if type(literal.value) is str else None


def _path(node: Expression) -> Path | None:
    """The path of the device's value that the node reads; None for all other nodes."""
    if isinstance(node, Literal):
        return None
    if isinstance(node, Call) and node.function not in ("_[_]",):
        return None
    read = paths_read(node)
    return next(iter(read)) if read is not None and len(read) == 1 else None
