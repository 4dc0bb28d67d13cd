"""JSON text to documents: several values may follow each other, and the items of a List keep their own lines.

Lines of fields are found when a problem asks for them, by walking the text again from the start of the object.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections.abc import Iterator
from typing import Any

from autoscaler.manifests.document import Document, UnreadableError
from instance_catalog.diagnostic import Path

_BLANK = re.compile(r"[ \t\r\n]*")
_DIGITS = 4000  # Python converts at most 4300; no Kubernetes field holds such a number


def read_json(text: str, file: str) -> Iterator[Document]:
    """The values of a JSON stream. Raises UnreadableError where the text stops being JSON."""
    lines = _Lines(text)
    position = _skip(text, 0)
    while position < len(text):
        try:
            value, end = _DECODER.raw_decode(text, position)
        except json.JSONDecodeError as error:
            message = f"invalid JSON (line {error.lineno}, column {error.colno}): {error.msg}"
            step = "check commas, quotes and brackets around this line"
            raise UnreadableError(message, error.lineno, step) from error
        except RecursionError:
            raise UnreadableError("nested too deeply", lines.of(position), "give Kubernetes objects only") from None
        yield Document(file, lines.of(position), value, _Locator(text, position, lines))
        position = _skip(text, end)


class _Lines:
    """From offsets to 1-based lines."""

    __slots__ = ("_ends",)

    def __init__(self, text: str) -> None:
        self._ends = [found.start() for found in re.finditer("\n", text)]

    def of(self, position: int) -> int:
        return bisect_left(self._ends, position) + 1


class _Locator:
    """Finds lines below the value that starts at `start`. Each object or list on the way is read once, however many
    problems are inside."""

    __slots__ = ("_known", "_lines", "_start", "_text")

    def __init__(self, text: str, start: int, lines: _Lines) -> None:
        self._text = text
        self._start = start
        self._lines = lines
        self._known: dict[int, dict[str | int, tuple[int, int]]] = {}

    def __call__(self, path: Path) -> int:
        position = line_at = self._start
        for step in path:
            if position not in self._known:
                self._known[position] = {key: (begin, value) for key, begin, value in _entries(self._text, position)}
            found = self._known[position].get(step)
            if found is None:
                break
            line_at, position = found
        return self._lines.of(line_at)

    def items(self, name: str) -> list[_Locator]:
        for key, _, position in _entries(self._text, self._start):
            if key == name:
                return [_Locator(self._text, start, self._lines) for _, _, start in _entries(self._text, position)]
        return []


def _entries(text: str, start: int) -> Iterator[tuple[str | int, int, int]]:
    """(name or index, where the entry begins, where its value begins) inside the object or list at `start`."""
    opening = text[start]
    if opening not in "{[":
        return
    position, index = _skip(text, start + 1), 0
    while text[position] not in "}]":
        begin, key = position, index
        if opening == "{":
            key, position = _DECODER.raw_decode(text, position)
            position = _skip(text, _skip(text, position) + 1)  # past the colon
        yield key, begin, position
        _, position = _DECODER.raw_decode(text, position)
        position = _skip(text, position)
        if text[position] == ",":
            position = _skip(text, position + 1)
        index += 1


def _skip(text: str, position: int) -> int:
    found = _BLANK.match(text, position)
    return found.end() if found else position


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise json.JSONDecodeError(f"field {twice!r} is given twice in one object", "", 0)
    return found


def _integer(digits: str) -> int | str:
    return int(digits) if len(digits) < _DIGITS else digits


_DECODER = json.JSONDecoder(object_pairs_hook=_unique, parse_int=_integer)
