"""Changes to the text of catalog files: sets values, and reduces entries to the changed fields; comments stay.

Pure, text to text. merging.py checks the result, as for any file.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.error import MarkedYAMLError

from instance_catalog.dataclass import dataclass
from instance_catalog.diagnostic import Path

_KEYS: Final = {"types": "name", "accelerators": "key"}


class EditError(ValueError):
    """A change that cannot be written into the text; the message has the reason."""


@dataclass(frozen=True, slots=True)
class Header:
    """The header of an overlay; "" and None: as it is in the text already."""

    reason: str = ""
    expires: str = ""
    priority: int | None = None


@dataclass(frozen=True, slots=True)
class EntryName:
    """An entry of a catalog file: `section` is "types" or "accelerators"."""

    section: str
    name: str


def with_values(text: str, entry: EntryName, values: Mapping[Path, Any], header: Header) -> str:
    """The text of an overlay ("": a new one) in which the entry has these values; its reason is their provenance."""
    document = _loaded(text)
    _head(document, header)
    item = _item(document, entry)
    for path, value in values.items():
        _put(item, path, value)
    return _dumped(document)


def only_changes(text: str, entry: EntryName, before: Mapping[str, Any]) -> str:
    """The text with the entry reduced to the fields that differ from `before`, which is plain data.

    Mappings are reduced field by field, as layers are merged. Fields that are gone from the text stay as they were.
    """
    document = _loaded(text)
    item = _item(document, entry)
    _cut(item, before, keep={_KEYS[entry.section]})
    return _dumped(document)


def is_changed(text: str, entry: EntryName) -> bool:
    """True if fields of the entry are left after `only_changes`."""
    return len(_item(_loaded(text), entry)) > 1


def value_of(text: str) -> Any:
    """A value as one would write it in a file: 31.5, [spot, on-demand], {model: nvidia-h200, count: 8}."""
    try:
        return _yaml().load(text)
    except MarkedYAMLError as error:
        raise EditError(f"{text!r} is no YAML value: {error.problem}") from error


def new_document(entry: EntryName, content: Mapping[str, Any], *, comments: Sequence[str] = ()) -> str:
    """A file with one entry, after lines of comment."""
    document = CommentedMap()
    document[entry.section] = [_short(content)]
    return "".join(f"# {line}\n" for line in comments) + _dumped(document)


def _yaml() -> YAML:
    yaml = YAML(typ="rt")
    yaml.preserve_quotes = True
    yaml.width = 120
    yaml.indent(mapping=2, sequence=4, offset=2)
    return yaml


def _loaded(text: str) -> CommentedMap:
    try:
        document = _yaml().load(text)
    except MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise EditError(f"line {line}: {error.problem}; correct the YAML first") from error
    if document is None:
        return CommentedMap()
    if not isinstance(document, CommentedMap):
        raise EditError("the file is not a mapping; a catalog file has sections such as `types:`")
    return document


def _dumped(document: CommentedMap) -> str:
    stream = io.StringIO()
    _yaml().dump(document, stream)
    text = stream.getvalue()
    return text if text.endswith("\n") else f"{text}\n"


def _head(document: CommentedMap, header: Header) -> None:
    """New header fields are written at the top, in this order."""
    given = {"priority": header.priority, "reason": header.reason or None, "expires": header.expires or None}
    for place, (name, value) in enumerate((n, v) for n, v in given.items() if v is not None):
        if name in document:
            document[name] = value
        else:
            document.insert(place, name, value)


def _item(document: CommentedMap, entry: EntryName) -> CommentedMap:
    """The entry's mapping; created if there is none."""
    items = document.setdefault(entry.section, CommentedSeq())
    if not isinstance(items, CommentedSeq):
        raise EditError(f"{entry.section} is not a list")
    key = _KEYS[entry.section]
    for item in items:
        if isinstance(item, CommentedMap) and item.get(key) == entry.name:
            return item
    item = CommentedMap({key: entry.name})
    items.append(item)
    return item


def _put(item: CommentedMap, path: Path, value: Any) -> None:
    for step in path[:-1]:
        inner = item.get(step)
        if not isinstance(inner, CommentedMap):
            inner = item[step] = CommentedMap()
        item = inner
    item[path[-1]] = value


def _cut(item: CommentedMap, before: Mapping[str, Any], *, keep: Iterable[str] = ()) -> None:
    for name in list(item):
        old, new = before.get(name), item[name]
        if name in keep:
            continue
        if isinstance(old, Mapping) and isinstance(new, CommentedMap):
            _cut(new, old)
            if not new:
                del item[name]
        elif name in before and _plain(new) == _plain(old):
            del item[name]


def _short(value: Any) -> Any:
    """Plain data to be written with lists of scalars on one line."""
    if isinstance(value, Mapping):
        return {name: _short(inner) for name, inner in value.items()}
    if isinstance(value, list) and not any(isinstance(inner, Mapping | list) for inner in value):
        sequence = CommentedSeq(value)
        sequence.fa.set_flow_style()
        return sequence
    return [_short(inner) for inner in value] if isinstance(value, list) else value


def _plain(value: Any) -> Any:
    """For comparing: numbers, dates and text that read the same are the same."""
    if isinstance(value, Mapping):
        return {str(name): _plain(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    return value if value is None or isinstance(value, bool) else str(value)
