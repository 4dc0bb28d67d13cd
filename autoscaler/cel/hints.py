"""Fixes for common mistakes in selectors."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

from autoscaler.cel.checker.declarations import Overload
from autoscaler.cel.common.ast import ExpressionError, Mistake
from autoscaler.cel.parser.macros import MACRO_NAMES
from instance_catalog.spelling import nearest

_FIELDS: Final = ("driver", "attributes", "capacity", "allowMultipleAllocations")
_ORDERS: Final = frozenset({"_<_", "_<=_", "_>_", "_>=_"})
_CALLED: Final = re.compile(r"\.(?P<name>\w+)\(\s*\Z")
_COMPARISON: Final = re.compile(
    r"(?P<left>device\.capacity\[[^\]]*\](?:\.\w+|\[[^\]]*\]))\s*(?P<op><=|>=|<|>)\s*"
    r"(?:quantity\(\s*)?(?P<quote>[\"'])(?P<amount>[^\"']+)(?P=quote)\s*\)?"
)
_METHODS: Final = {">": "isGreaterThan", "<": "isLessThan"}
_WORDS: Final = {"and": "&&", "or": "||", "not": "!"}
_WORD: Final = re.compile(r"\b(and|or|not)\b", re.IGNORECASE)
_QUANTITY: Final = "kubernetes.Quantity"
_SEMVER: Final = "kubernetes.Semver"
_QUOTES: Final = frozenset({"'", '"'})
_OTHER_TYPES: Final = "The two sides have different types; compare text with text in quotes and numbers with numbers."
_INCLUDES: Final = "includes() exists from Kubernetes 1.36 on; use == for a single value."
_SIGNATURES: Final = 3  # shown per function

Functions: TypeAlias = Mapping[str, Sequence[Overload]]


def hint_for(expression: str, error: ExpressionError, functions: Functions) -> str:
    """One line with the correct form, or an empty text; `functions` are the declared ones."""
    match error.mistake:
        case Mistake.NO_OVERLOAD:
            return _no_overload(expression, error, functions)
        case Mistake.UNDEFINED_FIELD:
            return _undefined(error.name)
        case Mistake.UNDECLARED:
            return _nothing_called(error.name, expression, error.position, functions)
        case Mistake.NO_CONDITION:
            return 'A selector must be a condition, for example device.attributes["<driver>"].<name> == "<value>".'
        case Mistake.NOT_BOOL:
            return "&&, ||, !, all(), exists() and filter() take only true or false; compare the value."
        case Mistake.OTHER_TYPE:
            return _OTHER_TYPES
        case Mistake.SYNTAX if error.name in _QUOTES and expression.count(error.name) % 2:
            return f"The text that begins here has no closing {error.name}"
        case Mistake.SYNTAX:
            return _syntax(expression, error.position)
        case Mistake.OTHER:
            return ""


def _no_overload(expression: str, error: ExpressionError, functions: Functions) -> str:
    """The hint for a function or an operator that does not accept these types."""
    name = error.name
    if name in _ORDERS:
        return _ordering(expression, name.strip("_"), error.operands)
    if name in ("_+_", "_-_") and error.operands[0] == _QUANTITY:
        return f"Quantities have no operator {name[1]}; use .add(…) or .sub(…)."
    return _signatures(name, functions) if name[0].isalpha() else _OTHER_TYPES


def _nothing_called(name: str, expression: str, position: int, functions: Functions) -> str:
    """The hint for a function or a variable that is not declared."""
    if re.compile(rf"{re.escape(name)}\s*\(").match(expression, position):
        return _no_function(name, functions)
    called = _CALLED.search(expression, 0, position)
    if called and called["name"] not in functions:  # its variable comes first
        return _no_function(called["name"], functions)
    return _undeclared(name)


def _syntax(expression: str, offset: int) -> str:
    """The hint for a syntax error at `offset`, or in the word before."""
    if re.search(r"(?<![=!<>])=(?!=)", expression[max(offset - 1, 0) : offset + 2]):
        return "Write == to compare."
    word = _WORD.match(expression, offset) or re.search(r"\b(not)\s*\Z", expression[:offset], re.IGNORECASE)
    if word:
        return f"Write {_WORDS[word[1].lower()]} instead of {word[1]}."
    if expression[offset : offset + 1] in ("&", "|"):
        return "Write && for and, || for or."
    return ""


def _no_function(name: str, functions: Functions) -> str:
    if name == "includes":
        return _INCLUDES
    if name in MACRO_NAMES:
        return f"{name}() exists, but not with these arguments."
    near = nearest(name, [found for found in (*functions, *MACRO_NAMES) if found[0].isalpha()])
    return f"Did you mean {near[0]}()?" if near else "There is no function of this name."


def _signatures(name: str, functions: Functions) -> str:
    """The signatures of a function that was called with other arguments."""
    found = [_signature(name, overload) for overload in functions.get(name, ())]
    shown = " or ".join(found[:_SIGNATURES])
    more = f" or in {len(found) - _SIGNATURES} other ways" if len(found) > _SIGNATURES else ""
    return f"It is called as {shown}{more}." if found else ""


def _signature(name: str, overload: Overload) -> str:
    types = [str(argument) for argument in overload.arguments]
    if overload.method:
        return f"<{types[0]}>.{name}({', '.join(types[1:])})"
    return f"{name}({', '.join(types)})"


def _ordering(expression: str, operator: str, operands: tuple[str, ...]) -> str:
    if _QUANTITY in operands:
        found = _COMPARISON.search(expression)
        left, amount = (found["left"], found["amount"]) if found else ("<quantity>", "40Gi")
        if operator in _METHODS:
            fixed = f'{left}.{_METHODS[operator]}(quantity("{amount}"))'
        else:
            fixed = f'{left}.compareTo(quantity("{amount}")) {operator} 0'
        return f"Quantities have no operator {operator}; write {fixed}"
    if _SEMVER in operands:
        return f'Versions have no operator {operator}; write <version>.compareTo(semver("1.2.3")) {operator} 0'
    return "Compare values of one type; attributes compare with literals of their own type."


def _undefined(name: str) -> str:
    if name in ("name", "pool", "node", "nodeName", "taints"):
        return f"Selectors cannot see a device's {name}; use device.driver, device.attributes or device.capacity."
    close = nearest(name, _FIELDS)
    if close:
        return f"Did you mean device.{close[0]}?"
    return f"A device has the fields {', '.join(_FIELDS)}."


def _undeclared(name: str) -> str:
    if name in _FIELDS:
        return f"Write device.{name}."
    return f'If {name} is meant as text, put it in quotes: "{name}".'
