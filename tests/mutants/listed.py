"""The curated mutants: small changes to safety-critical code that a test must notice.

They are data, in the YAML files beside this one, a file for each room. Fields of an entry:
id     names it, as in `make mutants ID=…`
file   the source file, from the root of the repository
old    text that occurs exactly once in it
new    what stands there instead
does   what a controller with it would do
tests  the test paths of its room, as narrow as they can be and still kill it
hangs  true: the tests do not end with it, so that the time limit kills it
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

import yaml

ROOT: Final = Path(__file__).parents[2]
FOLDER: Final = Path(__file__).parent


class StaleMutantError(Exception):
    """The text that a mutant changes is not there exactly once: the code has moved on and the list has to follow."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """One entry of the list."""

    id: str
    file: str
    old: str
    new: str
    does: str
    tests: tuple[str, ...]
    hangs: bool = False

    def mutated(self, text: str) -> str:
        """The file's text with the change. Raises StaleMutantError."""
        found = text.count(self.old)
        if found != 1:
            raise StaleMutantError(f"{self.id}: {self.file} has its text {found} times, not once:\n{self.old}")
        return text.replace(self.old, self.new)


@cache
def mutants() -> tuple[Mutant, ...]:
    """All of them, by file of the list."""
    return tuple(mutant for path in sorted(FOLDER.glob("*.yaml")) for mutant in _read(path))


def _read(path: Path) -> Iterator[Mutant]:
    for entry in yaml.load(path.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader):
        yield Mutant(**{**entry, "tests": tuple(entry["tests"])})
