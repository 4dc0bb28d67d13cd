"""The usual fix for the usual mistakes in selectors."""

from __future__ import annotations

import re
from typing import Final

from instance_catalog.spelling import nearest

_FIELDS: Final = ("driver", "attributes", "capacity", "allowMultipleAllocations")
_ORDER: Final = re.compile(r"found no matching overload for '_(?P<op><|<=|>|>=)_' applied to '\((?P<types>.*)\)'")
_ARITHMETIC: Final = re.compile(r"found no matching overload for '_(?P<op>[+-])_' applied to '\(kubernetes\.Quantity")
_UNDECLARED: Final = re.compile(r"undeclared reference to '(?P<name>[^']+)'")
_UNDEFINED: Final = re.compile(r"undefined field '(?P<name>[^']+)'")
_QUOTE: Final = re.compile(r"""Syntax error: unexpected (["'])(?P<mark>["'])\1""")
_RESULT: Final = re.compile(r"must evaluate to bool or the unknown type, not (?P<type>.+)")
_COMPARISON: Final = re.compile(
    r"(?P<left>device\.capacity\[[^\]]*\](?:\.\w+|\[[^\]]*\]))\s*(?P<op><=|>=|<|>)\s*"
    r"(?:quantity\(\s*)?(?P<quote>[\"'])(?P<amount>[^\"']+)(?P=quote)\s*\)?"
)
_METHODS: Final = {">": "isGreaterThan", "<": "isLessThan"}


def hint_for(expression: str, message: str, offset: int) -> str:
    """One line that says what to write instead, or an empty text."""
    order = _ORDER.search(message)
    if order:
        return _ordering(expression, order["op"], order["types"])
    arithmetic = _ARITHMETIC.search(message)
    if arithmetic:
        return f"Quantities have no operator {arithmetic['op']}; use .add(…) or .sub(…)."
    undefined = _UNDEFINED.search(message)
    if undefined:
        return _undefined(undefined["name"])
    undeclared = _UNDECLARED.search(message)
    if undeclared:
        return _undeclared(undeclared["name"])
    result = _RESULT.search(message)
    if result:
        return 'A selector must be a condition, for example device.attributes["<driver>"].<name> == "<value>".'
    if message.startswith("expected type") or "found no matching overload" in message:
        return "The two sides have different types; compare text with text in quotes and numbers with numbers."
    quote = _QUOTE.match(message)
    if quote and expression.count(quote["mark"]) % 2:
        return f"The text that begins here has no closing {quote['mark']}"
    if message.startswith("Syntax error") and re.search(
        r"(?<![=!<>])=(?!=)", expression[max(offset - 1, 0) : offset + 2]
    ):
        return "Write == to compare."
    return ""


def _ordering(expression: str, operator: str, operands: str) -> str:
    if "kubernetes.Quantity" in operands:
        found = _COMPARISON.search(expression)
        left, amount = (found["left"], found["amount"]) if found else ("<quantity>", "40Gi")
        if operator in _METHODS:
            fixed = f'{left}.{_METHODS[operator]}(quantity("{amount}"))'
        else:
            fixed = f'{left}.compareTo(quantity("{amount}")) {operator} 0'
        return f"Quantities have no operator {operator}; write {fixed}"
    if "kubernetes.Semver" in operands:
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
    if name == "includes":
        return "includes() exists from Kubernetes 1.36 on; use == for a single value."
    return f'If {name} is meant as text, put it in quotes: "{name}".'
