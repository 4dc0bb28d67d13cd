"""Other values of a file to fill in, which are no problem by themselves, such as those of `env`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from autoscaler.manifests.document import Document, Json
from instance_catalog.diagnostic import Path

# Fields whose text a shell or a program reads, with variables of its own.
OF_PROGRAMS: Final = frozenset({"command", "args", "data", "env", "script", "stringData"})
VARIABLE: Final = re.compile(r"\$(?:\{([A-Za-z_]\w*)\}|([A-Za-z_]\w*))")
_PLACEHOLDER: Final = re.compile(r"<[A-Za-z][\w.-]*>")
# In a longer text, such as a script, <word> may mean something else.
_YOURS: Final = re.compile(r"<(?:your|insert|enter|replace)[-_ ][\w .-]*>", re.IGNORECASE)
_FIRST_WORD: Final = re.compile(r"(?:your|insert|enter|replace|change|fill)[-_]", re.IGNORECASE)
_NAME: Final = re.compile(r"([A-Z][A-Z0-9]*_)[A-Z0-9_]+")

Find = Callable[[Path, str], Iterable[str]]


def placeholders(path: Path, text: str) -> list[str]:
    """Placeholders such as <name> in a value."""
    return (_YOURS if re.search(r"\s", text) else _PLACEHOLDER).findall(text)


def placeholders_like(known: Iterable[str]) -> Find:
    """A function for the same and for values with the first word of a `known` one: REPLACE_WITH_PATH of
    REPLACE_WITH_NAME, your-bucket of your-pvc."""
    words = {found[0].lower() for name in known if (found := _FIRST_WORD.match(name))}

    def find(path: Path, text: str) -> list[str]:
        first = None if re.search(r"\s", text) else _FIRST_WORD.match(text)
        return [text] if first and first[0].lower() in words else placeholders(path, text)

    return find


def names_like(known: Iterable[str]) -> Find:
    """A function for values with the first word of a `known` one: V_BUCKET of V_KSA."""
    words = {found[1] for name in known if (found := _NAME.fullmatch(name))}

    def find(path: Path, text: str) -> list[str]:
        found = _NAME.fullmatch(text)
        return [text] if found and found[1] in words else []

    return find


def variables(names: Sequence[str]) -> Find:
    """A function for values with one of these variables that no program reads."""

    def find(path: Path, text: str) -> list[str]:
        if not OF_PROGRAMS.isdisjoint(path) or re.search(r"\s", text):
            return []
        return [found[0] for found in VARIABLE.finditer(text) if (found[1] or found[2]) in names]

    return find


def places(documents: Iterable[Document], find: Find) -> list[tuple[int, str]]:
    """Line and text of everything that `find` sees in the values of the documents, in the order of the file."""
    found = [
        (one.locate(path), text)
        for one in documents
        for path, value in _texts(one.value if one.written is None else one.written, ())
        for text in find(path, value)
    ]
    return sorted(dict.fromkeys(found), key=lambda place: place[0])


def _texts(value: Json, path: Path) -> Iterator[tuple[Path, str]]:
    if isinstance(value, str):
        yield path, value
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in parts:
        yield from _texts(part, (*path, key))
