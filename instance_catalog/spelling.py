"""Finds the known name that is most similar to an unknown one. The only module that compares names by similarity.

It is below all other modules, because every reader of users' input may use it. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Final

# As much alike as difflib takes for a match. Names that resemble each other anyway, such as domains, need more.
ALIKE: Final = 0.6
_MANY: Final = 300


def nearest(name: str, known: Iterable[str], *, most: int = 1, equivalence_key: float = ALIKE) -> list[str]:
    """Known names that are near enough to be meant, the nearest first; case does not count.

    Comparing takes time; of very many names only those with the same beginning are compared.
    """
    by_lower = {candidate.lower(): candidate for candidate in sorted(known)}
    candidates = list(by_lower)
    if len(candidates) > _MANY:
        start = name.lower()[:3]
        candidates = [lower for lower in candidates if lower.startswith(start)][:_MANY]
    return [by_lower[found] for found in get_close_matches(name.lower(), candidates, n=most, cutoff=equivalence_key)]


def completed(part: str, known: Iterable[str], *, most: int = 3) -> list[str]:
    """Known names that contain `part`, which may be an abbreviation, the shortest first; else the nearest."""
    names = sorted(known)
    longer = sorted((name for name in names if part.lower() in name.lower()), key=len)
    return longer[:most] if len(part) > 1 and longer else nearest(part, names, most=most)


def did_you_mean(
    name: str, known: Iterable[str], otherwise: str = "", *, most: int = 1, equivalence_key: float = ALIKE
) -> str:
    """ "did you mean 'x' or 'y'?" with the nearest known names; `otherwise` when none is near."""
    return question(nearest(name, known, most=most, equivalence_key=equivalence_key), otherwise)


def question(names: Iterable[str], otherwise: str = "") -> str:
    """ "did you mean 'x' or 'y'?"; `otherwise` without names."""
    asked = " or ".join(map(repr, names))
    return f"did you mean {asked}?" if asked else otherwise
