"""The parts of a selector's text: its conditions, and the drivers and words that it names."""

from __future__ import annotations

import re
from typing import Final

from autoscaler.cel.common.outcome import CompileFailure
from autoscaler.cel.program import compile_selector
from instance_catalog.kubernetes.profile import KubernetesProfile

_TOKEN: Final = re.compile(
    r'"""(?:\\.|[^\\])*?"""|\'\'\'(?:\\.|[^\\])*?\'\'\'|"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'|&&|\|\||\?|//|[()\[\]{}]',
    re.DOTALL,
)
_DRIVER: Final = re.compile(
    r"device\.driver\s*==\s*([\"'])(?P<after>[^\"']+)\1|([\"'])(?P<before>[^\"']+)\3\s*==\s*device\.driver"
)
_WORD: Final = re.compile(r"[\"']([^\"'\\]+)[\"']")


def drivers_named(expressions: tuple[str, ...]) -> frozenset[str]:
    """The drivers that selectors compare device.driver with."""
    return frozenset(m["after"] or m["before"] for text in expressions for m in _DRIVER.finditer(text))


def words(expression: str) -> tuple[str, ...]:
    """The texts in quotes."""
    return tuple(_WORD.findall(expression))


def conditions(expression: str, profile: KubernetesProfile) -> tuple[str, ...]:
    """The conditions that `&&` joins; the expression itself where it is more than a conjunction."""
    parts = _split(expression)
    if any(isinstance(compile_selector(part, profile), CompileFailure) for part in parts):
        return (expression,)
    return parts


def _split(expression: str) -> tuple[str, ...]:
    depth, start, parts = 0, 0, []
    for found in _TOKEN.finditer(expression):
        token = found.group()
        if token in "([{":
            depth += 1
        elif token in ")]}":
            depth -= 1
        elif token == "//":
            return (expression,)
        elif depth == 0 and token == "&&":
            parts.append(expression[start : found.start()].strip())
            start = found.end()
        elif depth == 0 and (token == "||" or _is_ternary(expression, found.start(), token)):
            return (expression,)
    return (*parts, expression[start:].strip())


def _is_ternary(expression: str, position: int, token: str) -> bool:
    """True if a question mark begins the branches of a condition; after a dot it makes a field optional."""
    return token == "?" and not expression[:position].endswith(".")
