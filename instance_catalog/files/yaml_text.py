"""YAML whose dates and numbers keep their written form, and the line of each value.

Catalog files are read with libyaml and a small set of scalar rules, because YAML 1.1 reads 0000:53:00.0 as a number to
the base of 60, 2026-08-03 as a date object, 0.202 as a binary fraction, and `no` as false. Numbers with a point and
dates stay text here; the schema makes exact values of them. Positions are only computed for a defect, by composing the
text a second time. Does not depend on catalogs.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable
from typing import Any, Final

import yaml

from instance_catalog.diagnostic import Path

# No catalog file nests deeper than a dozen levels; libyaml takes some ten thousand.
_DEEPEST: Final = 200
_SUSPICIOUS: Final = 1000
_LONG_BEGINNING: Final = re.compile(r"^[ ?:-]{500}", re.MULTILINE)


class YamlTextError(ValueError):
    """Text that is not YAML, or that has a key twice. `line` is 1-based."""

    def __init__(self, message: str, line: int) -> None:
        super().__init__(message)
        self.line = line


class _Loader(yaml.CSafeLoader):
    """Plain scalars: null, true, false and whole numbers; everything else is text."""

    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012  # PyYAML's own protocol: replaced, not shared

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:  # noqa: FBT001, FBT002 - PyYAML's signature
        mapping = super().construct_mapping(node, deep=deep)
        if len(mapping) != len(node.value):
            _refuse_duplicates(node)
        return mapping


_Loader.add_implicit_resolver("tag:yaml.org,2002:null", re.compile(r"(?:~|null|)\Z"), ["~", "n", ""])
_Loader.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile(r"(?:true|false)\Z"), ["t", "f"])
_Loader.add_implicit_resolver("tag:yaml.org,2002:int", re.compile(r"-?(?:0|[1-9][0-9]*)\Z"), list("-0123456789"))


def read(text: str) -> Any:
    """The value of one YAML document. Raises YamlTextError."""
    _check_nesting(text)
    try:
        return yaml.load(text, Loader=_Loader)  # a safe loader with fewer rules
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        problem = ", ".join(part for part in (error.problem, error.context) if part)
        raise YamlTextError(f"text that is no YAML ({problem})", mark.line + 1 if mark else 1) from error
    except yaml.YAMLError as error:
        raise YamlTextError(str(error), 1) from error


def _check_nesting(text: str) -> None:
    """Refuse nesting that would overflow the stack of libyaml's composer, which ends the process.

    Events need no recursion. Most texts cannot nest that deep, as their brackets and first characters show.
    """
    if text.count("[") + text.count("{") < _SUSPICIOUS and not _LONG_BEGINNING.search(text):
        return
    depth = 0
    try:
        for event in yaml.parse(text, Loader=_Loader):
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > _DEEPEST:
                raise YamlTextError("text that nests too deep", event.start_mark.line + 1 if event.start_mark else 1)
    except yaml.YAMLError:
        return  # read reports the defect


def line_of(text: str, path: Path) -> int:
    """The 1-based line of the key or list item at `path`, or of its parent if it is absent."""
    node = yaml.compose(text, Loader=_Loader)
    return 1 if node is None else line_below(node, path)


def line_below(node: yaml.Node, path: Path) -> int:
    """The same, below a node of a composed text."""
    line: int = node.start_mark.line
    for step in path:
        found = child(node, step)
        if found is None:
            break
        line, node = found
    return line + 1


def contains(value: Any, path: Path) -> int:
    """The number of leading steps of `path` that exist in `value`."""
    for depth, step in enumerate(path):
        if isinstance(value, str):  # its characters are no fields
            return depth
        try:
            value = value[step]
        except (KeyError, IndexError, TypeError):
            return depth
    return len(path)


def child(node: yaml.Node, step: str | int) -> tuple[int, yaml.Node] | None:
    """The value of a key or the item of a list, with its line from 0."""
    if isinstance(node, yaml.MappingNode):
        # The last of equal keys counts, and what merge keys brought stands in front.
        for key, value in reversed(node.value):
            if isinstance(key, yaml.ScalarNode) and key.value == step:
                return key.start_mark.line, value
    if isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
        return node.value[step].start_mark.line, node.value[step]
    return None


def _refuse_duplicates(node: yaml.MappingNode) -> None:
    seen: set[str] = set()
    for key, _ in _plain(node.value):
        if key.value in seen:
            raise YamlTextError(f"key {key.value!r} is given twice", key.start_mark.line + 1)
        seen.add(key.value)


def _plain(pairs: Iterable[tuple[yaml.Node, yaml.Node]]) -> Iterable[tuple[yaml.Node, yaml.Node]]:
    return (pair for pair in pairs if isinstance(pair[0], yaml.ScalarNode))
