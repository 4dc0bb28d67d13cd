"""Paths to texts: files, directories (recursively) and standard input."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, TextIO

from instance_catalog.dataclass import dataclass
from instance_catalog.diagnostic import Diagnostic

STDIN = "-"
SUFFIXES = (".yaml", ".yml", ".json")
# Characters of all files together, so that a device or a pipe without end is not read for ever. Objects of the largest
# clusters that Kubernetes supports (5,000 nodes, 150,000 pods) are fewer.
MOST_TEXT: Final = 1 << 30
_PIECE: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Source:
    """A file's content, under the name the user knows it by."""

    file: str
    text: str


def read_sources(paths: Sequence[str], stdin: TextIO | None) -> Iterator[Source | Diagnostic]:
    """The texts of all files that `paths` name, in their order; files of a directory sorted by name."""
    seen: set[str] = set()
    left = MOST_TEXT
    for path in paths:
        for found in _files(path):
            if isinstance(found, Diagnostic):
                yield found
            elif found == STDIN or os.path.realpath(found) not in seen:
                seen.add(os.path.realpath(found))
                read = _read(found, stdin, left)
                left -= len(read.text) if isinstance(read, Source) else 0
                yield read


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


def _read(file: str, stdin: TextIO | None, most: int) -> Source | Diagnostic:
    try:
        if file == STDIN:
            return _text(file, stdin, most) if stdin is not None else Source(file, "")
        with Path(file).open(encoding="utf-8-sig") as opened:
            return _text(file, opened, most)
    except OSError as error:
        return _unreadable(file, error)
    except (UnicodeDecodeError, ValueError) as error:
        return Diagnostic(f"is not text: {error}", "save the file as UTF-8", file=file)


def _text(file: str, opened: TextIO, most: int) -> Source | Diagnostic:
    """Everything up to the end, which a device or a pipe may not have."""
    pieces: list[str] = []
    while piece := opened.read(_PIECE):
        if "\0" in piece:
            return Diagnostic("is not text: it has NUL characters", "save the file as UTF-8", file=file)
        pieces.append(piece)
        most -= len(piece)
        if most < 0:
            step = (
                "give a file that ends, and only the objects that matter: pods that wait, their claims, nodes, slices"
            )
            size = f"{MOST_TEXT:,} characters"
            return Diagnostic(f"is too large: all files together have more than {size}", step, file=file)
    return Source(file, "".join(pieces))


def _unreadable(file: str, error: OSError) -> Diagnostic:
    step = "check the path and that you may read it"
    if "://" in file:
        step = "nothing is fetched here: download it first, or pipe it to `-f -`"
    return Diagnostic(f"cannot be read: {error.strerror or error}", step, file=file)
