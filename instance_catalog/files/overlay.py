"""Layers of catalog entries: later files complete or override earlier ones, field by field.

Pure, on plain mappings as read from YAML; the merged entry is checked once, afterwards. Every entry records the places
where it was written, latest last, so that a defect is reported with its line.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, TypeAlias

from instance_catalog.dataclass import dataclass
from instance_catalog.diagnostic import Path
from instance_catalog.files.yaml_text import contains


@dataclass(frozen=True, slots=True)
class Source:
    """A part of a file that contributed to an entry: `value` is at `path` in `file`."""

    file: str
    path: Path
    value: Mapping[str, Any]


# An entry's name and its content in one file.
Written: TypeAlias = tuple[str, tuple[Source, ...]]


@dataclass(frozen=True, slots=True)
class Layered:
    """An entry merged from its sources, in the order they apply."""

    merged: Mapping[str, Any]
    sources: tuple[Source, ...]

    def place(self, path: Path) -> tuple[str, Path]:
        """File and path in that file of the field at `path`: the latest source that has most of it."""
        best = max(enumerate(self.sources), key=lambda item: (contains(item[1].value, path), item[0]))[1]
        return best.file, (*best.path, *path)


EMPTY: Final = Layered({}, ())


@dataclass(frozen=True, slots=True)
class Origin:
    """A value of a merged entry at `path`, and all sources that gave one there; the last of them won."""

    path: Path
    value: Any
    sources: tuple[Source, ...]


def origins(entry: Layered) -> Iterator[Origin]:
    """Every value of the entry: mappings field by field, everything else (also lists and null) as a whole."""
    for path in _paths(entry.merged):
        given = tuple(source for source in entry.sources if contains(source.value, path) == len(path))
        yield Origin(path, value_at(entry.merged, path), given)


def value_at(value: Any, path: Path) -> Any:
    """The value at `path`. Raises LookupError."""
    for step in path:
        value = value[step]
    return value


def _paths(value: Mapping[str, Any], above: Path = ()) -> Iterator[Path]:
    for key, inner in value.items():
        if isinstance(inner, Mapping) and inner:
            yield from _paths(inner, (*above, key))
        else:
            yield (*above, key)


def layered(sources: Iterable[Source], *, onto: Layered = EMPTY) -> Layered:
    """`onto`, completed and overridden by `sources` in order."""
    added = tuple(sources)
    value = dict(onto.merged)
    for source in added:
        value = merge(value, source.value)
    return Layered(value, (*onto.sources, *added))


def merge(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """`below` overridden by `above`: mappings field by field, anything else (also lists and null) as a whole."""
    result = dict(below)
    for key, value in above.items():
        old = result.get(key)
        result[key] = merge(old, value) if isinstance(old, Mapping) and isinstance(value, Mapping) else value
    return result
