"""Selectors for people: on one line, the usual forms abbreviated, and not longer than a row allows."""

from __future__ import annotations

import re
from typing import Final

_FIELD: Final = re.compile(r"device\.(?:capacity|attributes)\[(['\"])[^'\"]+\1\]\.(\w+)")
_COMPARED: Final = re.compile(
    r"(\w+)\.compareTo\((?:quantity|semver)\((['\"])(?P<amount>[^'\"]*)\2\)\)\s*(?P<sign>[<>=!]=?)\s*0(?![\d.])"
)
_LESS: Final = re.compile(
    r"(\w+)\.is(?P<way>LessThan|GreaterThan)\((?:quantity|semver)\((['\"])(?P<amount>[^'\"]*)\3\)\)"
)


def one_line_cel(expression: str) -> str:
    return " ".join(expression.split())


def short_cel(expression: str, most: int = 60) -> str:
    """`memory >= 40Gi` for a comparison of capacities; at most `most` characters."""
    text = _FIELD.sub(r"\2", one_line_cel(expression))
    text = _COMPARED.sub(lambda m: f"{m[1]} {m['sign']} {m['amount']}", text)
    text = _LESS.sub(lambda m: f"{m[1]} {'<' if m['way'] == 'LessThan' else '>'} {m['amount']}", text)
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"
