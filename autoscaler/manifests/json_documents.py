"""JSON text to documents: several values may follow each other, and the items of a List keep their own lines.

Lines of fields are found when a problem asks for them, by walking the text again from the start of the object.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from autoscaler.kube.problem import Path
from autoscaler.manifests.document import Document, UnreadableError

_BLANK = re.compile(r"[ \t\r\n]*")
_DIGITS = 4000  # Python converts at most 4300; no Kubernetes field holds such a number


def read_json(text: str, file: str) -> Iterator[Document]:
    """The values of a JSON stream. Raises UnreadableError where the text stops being JSON."""
    position = _skip(text, 0)
    while position < len(text):
        try:
            value, end = _DECODER.raw_decode(text, position)
        except json.JSONDecodeError as error:
            message = f"invalid JSON (line {error.lineno}, column {error.colno}): {error.msg}"
            raise UnreadableError(
                message, error.lineno, "check commas, quotes and brackets around this line"
            ) from error
        except RecursionError:
            raise UnreadableError("nested too deeply", _line(text, position), "give Kubernetes objects only") from None
        yield Document(file, _line(text, position), value, _Locator(text, position))
        position = _skip(text, end)


class _Locator:
    """Finds lines below the value that starts at `start`."""

    __slots__ = ("_start", "_text")

    def __init__(self, text: str, start: int) -> None:
        self._text = text
        self._start = start

    def __call__(self, path: Path) -> int:
        position = line_at = self._start
        for step in path:
            found = _find(self._text, position, step)
            if found is None:
                break
            line_at, position = found
        return _line(self._text, line_at)


def _find(text: str, start: int, step: str | int) -> tuple[int, int] | None:
    """(where the key or item begins, where its value begins) of `step` inside the object or list at `start`."""
    opening = text[start]
    if opening not in "{[":
        return None
    position, index = _skip(text, start + 1), 0
    while text[position] not in "}]":
        begin, name = position, None
        if opening == "{":
            name, position = _DECODER.raw_decode(text, position)
            position = _skip(text, _skip(text, position) + 1)  # past the colon
        if step == (name if opening == "{" else index):
            return begin, position
        _, position = _DECODER.raw_decode(text, position)
        position = _skip(text, position)
        if text[position] == ",":
            position = _skip(text, position + 1)
        index += 1
    return None


def _skip(text: str, position: int) -> int:
    found = _BLANK.match(text, position)
    return found.end() if found else position


def _line(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1


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
