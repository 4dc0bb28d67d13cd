"""Paths to texts: files, directories (recursively) and standard input."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from instance_catalog.diagnostic import Diagnostic

STDIN = "-"
SUFFIXES = (".yaml", ".yml", ".json")


@dataclass(frozen=True, slots=True)
class Source:
    """A file's content, under the name the user knows it by."""

    file: str
    text: str


def read_sources(paths: Sequence[str], stdin: TextIO | None) -> Iterator[Source | Diagnostic]:
    """The texts of all files that `paths` name, in their order; files of a directory sorted by name."""
    seen: set[str] = set()
    for path in paths:
        for found in _files(path):
            if isinstance(found, Diagnostic):
                yield found
            elif found == STDIN or os.path.realpath(found) not in seen:
                seen.add(os.path.realpath(found))
                yield _read(found, stdin)


def _files(path: str) -> Iterator[str | Diagnostic]:
    if path == STDIN or not Path(path).is_dir():
        yield path
        return
    found: list[str] = []
    closed: list[OSError] = []
    for folder, below, names in os.walk(path, onerror=closed.append):
        below[:] = [name for name in below if not name.startswith(".")]
        found += (os.path.join(folder, name) for name in names if name.endswith(SUFFIXES) and name[0] != ".")
    for error in closed:
        yield _unreadable(str(error.filename), error)
    if not found and not closed:
        step = f"name a file, or put files ending in {', '.join(SUFFIXES)} there"
        yield Diagnostic("no manifests in this directory", step, file=path)
    for file in sorted(found):
        # A link to a device or a pipe would be read without end. Given by name, it is meant.
        odd = os.path.exists(file) and not os.path.isfile(file)
        yield Diagnostic("is not a file", "remove it, or give it by its name", file=file) if odd else file


def _read(file: str, stdin: TextIO | None) -> Source | Diagnostic:
    try:
        if file == STDIN:
            return Source(file, stdin.read() if stdin is not None else "")
        return Source(file, Path(file).read_text(encoding="utf-8-sig"))
    except OSError as error:
        return _unreadable(file, error)
    except (UnicodeDecodeError, ValueError) as error:
        return Diagnostic(f"is not text: {error}", "save the file as UTF-8", file=file)


def _unreadable(file: str, error: OSError) -> Diagnostic:
    step = "check the path and that you may read it"
    if "://" in file:
        step = "nothing is fetched here: download it first, or pipe it to `-f -`"
    return Diagnostic(f"cannot be read: {error.strerror or error}", step, file=file)
