"""Why upstream may answer one question in several ways, and what the simulator may leave undecided.

Whatever is not named here is a difference.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from tests.oracle.difference import Field
from tests.oracle.selector_cases import text
from tests.oracle.upstream import Json, Release

_PATTERN = re.compile(r"\b(matches|find|findAll)\(")
_LOOP = re.compile(r"\.(all|exists|exists_one|existsOne)\(")


@dataclass(frozen=True)
class Chance:
    """A reason, the parts of an answer that it may change, and whether a case has what it takes."""

    name: str
    why: str
    fields: frozenset[Field]
    possible: Callable[[Json, Release], bool]


def _loops(case: Json, _: Release) -> bool:
    return _LOOP.search(text(case["tree"])) is not None


def has_pattern(case: Json) -> bool:
    """Whether a selector has a regular expression, for which the simulator's library is another than Go's."""
    return _PATTERN.search(text(case["tree"])) is not None


def needs_a_search(_: Json) -> bool:
    """An allocation of 1.34, which tries permutations: a million steps do not always suffice."""
    return True


MAP_ORDER = Chance(
    "order of a map",
    "a loop that stops early in a map costs what it did until then, and Go draws the order of a map each time",
    frozenset({Field.COST}),
    _loops,
)
