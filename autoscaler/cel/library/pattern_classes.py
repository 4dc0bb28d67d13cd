"""Character classes of Go's regular expressions (regexp/syntax/{parse,perl_groups}.go and unicode of Go 1.26.8).

The tables of `unicode-15.0.0.json.gz` are those of Go's package unicode: classes whose names regexp/syntax accepts, the
runes that the flag i adds to them, and runes that differ only in case. A class is a sorted tuple of ranges.
"""

from __future__ import annotations

import gzip
import json
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, lru_cache
from importlib.resources import files
from typing import Final, TypeAlias

from instance_catalog.dataclass import dataclass

Ranges: TypeAlias = tuple[tuple[int, int], ...]

MAX_RUNE: Final = 0x10FFFF
_ANY: Final[Ranges] = ((0, MAX_RUNE),)
_ASCII: Final[Ranges] = ((0, 0x7F),)
_ASCII_FOLD: Final[Ranges] = ((0x17F, 0x17F), (0x212A, 0x212A))
_DIGIT: Final[Ranges] = ((0x30, 0x39),)
_UPPER: Final[Ranges] = ((0x41, 0x5A),)
_LOWER: Final[Ranges] = ((0x61, 0x7A),)
_ALPHA: Final[Ranges] = (*_UPPER, *_LOWER)
_WORD: Final[Ranges] = (*_DIGIT, *_UPPER, (0x5F, 0x5F), *_LOWER)
# By the letter of the escape, and by the name between [: and :].
PERL: Final[Mapping[str, Ranges]] = {"d": _DIGIT, "s": ((0x9, 0xA), (0xC, 0xD), (0x20, 0x20)), "w": _WORD}
POSIX: Final[Mapping[str, Ranges]] = {
    "alnum": (*_DIGIT, *_ALPHA),
    "alpha": _ALPHA,
    "ascii": _ASCII,
    "blank": ((0x9, 0x9), (0x20, 0x20)),
    "cntrl": ((0, 0x1F), (0x7F, 0x7F)),
    "digit": _DIGIT,
    "graph": ((0x21, 0x7E),),
    "lower": _LOWER,
    "print": ((0x20, 0x7E),),
    "punct": ((0x21, 0x2F), (0x3A, 0x40), (0x5B, 0x60), (0x7B, 0x7E)),
    "space": ((0x9, 0xD), (0x20, 0x20)),
    "upper": _UPPER,
    "word": _WORD,
    "xdigit": (*_DIGIT, (0x41, 0x46), (0x61, 0x66)),
}


@dataclass(frozen=True, slots=True)
class _Tables:
    classes: Mapping[str, Ranges]
    folds: Mapping[str, Ranges]
    aliases: Mapping[str, str]
    orbits: Mapping[int, tuple[int, ...]]
    cased: Sequence[int]  # the runes that have an orbit, in order


@cache
def _tables() -> _Tables:
    packed = (files("autoscaler.cel.library") / "unicode-15.0.0.json.gz").read_bytes()
    raw = json.loads(gzip.decompress(packed))
    return _Tables(
        {name: _unpacked(deltas) for name, deltas in raw["classes"].items()},
        {name: _unpacked(deltas) for name, deltas in raw["folds"].items()},
        {_canonical(name): actual for name, actual in raw["aliases"].items()},
        {rune: tuple(orbit) for orbit in raw["orbits"] for rune in orbit},
        sorted(rune for orbit in raw["orbits"] for rune in orbit),
    )


def _unpacked(deltas: list[int]) -> Ranges:
    """Pairs of the distance from the previous end, and the length less one."""
    ranges, last = [], 0
    for gap, length in zip(deltas[::2], deltas[1::2], strict=True):
        ranges.append((last + gap, last + gap + length))
        last += gap + length
    return tuple(ranges)


def _canonical(name: str) -> str:
    """The name with a capital first letter only, and without "_- ". Handles only ASCII, like canonicalName."""
    text = "".join(c for c in name if c not in "_- ")
    first, rest = text[:1], text[1:]
    lowered = "".join(c.lower() if c.isascii() else c for c in rest)
    return (first.upper() if first.isascii() else first) + lowered


@lru_cache(maxsize=1024)
def unicode_class(name: str, *, fold: bool) -> Ranges | None:
    r"""The class of \p{name}, None for a name that Go refuses. `fold`: the flag i is set."""
    name = _canonical(name)
    if name == "Any":
        return _ANY
    if name == "Ascii":
        return union((*_ASCII, *_ASCII_FOLD)) if fold else _ASCII
    tables = _tables()
    if name == "Assigned":
        return negated(tables.classes["Cn"])
    actual = "LC" if name == "Lc" else name
    # Names of scripts with a capital or an underscore inside are never found; Go behaves the same way.
    if actual not in tables.classes:
        actual = tables.aliases.get(name, "")
    found = tables.classes.get(actual)
    if found is None or not fold or actual not in tables.folds:
        return found
    return union((*found, *tables.folds[actual]))


def orbit(rune: int) -> tuple[int, ...]:
    """All runes that differ from this one only in case, itself included."""
    return _tables().orbits.get(rune, (rune,))


def union(ranges: Iterable[tuple[int, int]]) -> Ranges:
    """cleanClass: sorted, with adjacent ranges joined."""
    out: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if out and low <= out[-1][1] + 1:
            out[-1] = out[-1][0], max(out[-1][1], high)
        else:
            out.append((low, high))
    return tuple(out)


def negated(ranges: Ranges) -> Ranges:
    """All other runes. `ranges` is clean."""
    out, following = [], 0
    for low, high in ranges:
        if following < low:
            out.append((following, low - 1))
        following = high + 1
    if following <= MAX_RUNE:
        out.append((following, MAX_RUNE))
    return tuple(out)


@lru_cache(maxsize=1024)
def folded(ranges: Ranges) -> Ranges:
    """The ranges, with all runes that differ from one of them only in case."""
    tables = _tables()
    cased = (
        rune
        for low, high in ranges
        for rune in tables.cased[bisect_left(tables.cased, low) : bisect_right(tables.cased, high)]
    )
    return union((*ranges, *((other, other) for rune in cased for other in tables.orbits[rune])))
