"""Recognizes selectors that differ from each other only in quantities or versions of the same length.

"At least so much memory" is written once per kind of pods, with another amount each time. Types, estimated costs and
the fields that are read do not depend on the characters of such a constant, only on their number. So the first selector
is parsed and checked for all of them, and only the closures are made for each.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

from autoscaler.cel.common.ast import Call, Literal

# Constants without escapes, as arguments of functions that take nothing else.
_CONSTANT: Final = re.compile(r"\b(?:quantity|semver)\(\s*([\"'])([0-9A-Za-z.+-]+)\1\s*\)")
_FUNCTIONS: Final = frozenset({"quantity", "semver"})
# The longest text of which an outline is kept.
_LONGEST: Final = 1000


def outline_of(expression: str) -> tuple[str, Mapping[int, str]] | None:
    """The text with zeros in place of its constants, and the constants by the offset of their quotation marks.

    None if there are no constants, or the text is long.
    """
    if len(expression) > _LONGEST:
        return None
    constants = {found.start(1): found[2] for found in _CONSTANT.finditer(expression)}
    if not constants:
        return None
    outline = expression
    for at, constant in constants.items():
        outline = f"{outline[: at + 1]}{'0' * len(constant)}{outline[at + 1 + len(constant) :]}"
    return outline, constants


def places_of(calls: Iterable[Call], constants: Mapping[int, str]) -> Mapping[int, int] | None:
    """By identity of the literal that is a constant, its offset. None if one of them is no such literal: it is in a
    comment, or in another constant."""
    arguments = [(call.arguments, call.target) for call in calls if call.function in _FUNCTIONS]
    found = {
        id(only[0]): only[0].position
        for only, target in arguments
        if target is None and len(only) == 1 and isinstance(only[0], Literal)
        if constants.get(only[0].position) == only[0].value
    }
    return found if set(found.values()) == constants.keys() else None
