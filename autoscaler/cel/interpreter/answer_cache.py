"""Answers that are kept: by program, and by what the program may read of a device.

Devices that differ only in what an expression does not read have one answer. Values are distinguished by type and
form, as in expressions: 1 is not true, and `1000m` is not `1`.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final, TypeAlias

from autoscaler.cel.common.outcome import Evaluation
from autoscaler.cel.common.values import QuantityCell, StringMap, Unknown, Value
from autoscaler.cel.interpreter.reads import Path
from instance_catalog.kubernetes.semver import SemanticVersion

Key: TypeAlias = tuple[object, Hashable]

# Two generations of so many answers each, about 200 bytes an answer.
_MOST: Final = 100_000
_ABSENT: Final = ("absent",)


class KeptAnswers:
    """A bounded memo with two generations: what was used since the last change of generations stays."""

    __slots__ = ("_most", "_old", "_young")

    def __init__(self, most: int = _MOST) -> None:
        self._most = most
        self._young: dict[Key, Evaluation] = {}
        self._old: dict[Key, Evaluation] = {}

    def of(self, key: Key) -> Evaluation | None:
        """The answer, if it is still kept."""
        found = self._young.get(key)
        if found is None and (found := self._old.get(key)) is not None:
            self.keep(key, found)
        return found

    def keep(self, key: Key, answer: Evaluation) -> None:
        """Keep an answer."""
        if len(self._young) >= self._most:
            self._old, self._young = self._young, {}
        self._young[key] = answer

    def __len__(self) -> int:
        return len(self._young) + len(self._old)


KEPT: Final = KeptAnswers()


def part_read(root: StringMap, reads: frozenset[Path] | None) -> Hashable:
    """What of the device the program reads, as a key; the device itself where that is not known."""
    if reads is None:
        return _Same(root)
    return tuple((path, _read(root, path)) for path in sorted(reads))


def _read(root: StringMap, path: Path) -> Hashable:
    group, domain, identifier = path
    found = root.entries.get(group)
    if not domain and not identifier:
        return _ABSENT if found is None else _typed(found)
    names = found.entries.get(domain) if found is not None else None
    if names is None:
        return None
    return _typed(names.entries[identifier]) if identifier in names.entries else _ABSENT


def _typed(value: Value) -> Hashable:
    """A key that is equal for values that no expression can distinguish; the object itself for any other value."""
    kind = type(value)
    if kind in (bool, int, str):
        return kind, value
    if kind is list:
        return kind, tuple(map(_typed, value))
    if kind is QuantityCell:
        amount = value.quantity
        return kind, value.computed, amount.digits, amount.scale, amount.format, amount.big, amount.text
    if kind is Unknown:
        return kind, value.attributes, value.reason
    if kind is SemanticVersion:
        return kind, value.major, value.minor, value.patch, value.prerelease, value.build
    return kind, _Same(value)


class _Same:
    """A value that equals nothing but itself, and is kept as long as the key."""

    __slots__ = ("value",)

    def __init__(self, value: Value) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.value is self.value

    def __hash__(self) -> int:
        return id(self.value)
