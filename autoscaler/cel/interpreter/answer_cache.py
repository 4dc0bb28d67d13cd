"""Cached answers: by program, and by the fields of a device that the program may read.

Devices that differ only in fields that an expression does not read have one answer. Values are distinguished by type
and form, as in expressions: 1 is not true, and `1000m` is not `1`.
"""

from __future__ import annotations

from collections.abc import Hashable
from functools import lru_cache
from typing import Final, TypeAlias

from autoscaler.cel.common.outcome import Evaluation
from autoscaler.cel.common.values import QuantityCell, StringMap, Unknown, Value
from autoscaler.cel.interpreter.reads import Path
from instance_catalog.kubernetes.quantity import Quantity
from instance_catalog.kubernetes.semver import SemanticVersion

Key: TypeAlias = tuple[Hashable, ...]

# Answers in each of two generations, about 200 bytes each.
_MOST: Final = 20_000
_ABSENT: Final = (None, "absent")
_NO_DOMAIN: Final = (None, "no domain")
_OWN: Final = (None, "its own")  # in place of a value that equals only itself


class KeptAnswers:
    """A bounded cache with two generations: answers used since the last change of generations stay."""

    __slots__ = ("_most", "_old", "_young")

    def __init__(self, most: int = _MOST) -> None:
        self._most = most
        self._young: dict[Key, Evaluation] = {}
        self._old: dict[Key, Evaluation] = {}

    def of(self, key: Key) -> Evaluation | None:
        found = self._young.get(key)
        if found is None and (found := self._old.get(key)) is not None:
            self.keep(key, found)
        return found

    def keep(self, key: Key, answer: Evaluation) -> None:
        if len(self._young) >= self._most:
            self._old, self._young = self._young, {}
        self._young[key] = answer

    def __len__(self) -> int:
        return len(self._young) + len(self._old)


KEPT: Final = KeptAnswers()


def part_read(root: StringMap, reads: frozenset[Path] | None) -> tuple[Hashable, ...] | None:
    """The key of the device's fields that the program reads; None if they are unknown or equal nothing else.

    One flat tuple, with two entries for each path: there may be many thousands of them.
    """
    if reads is None:
        return None
    found: list[Hashable] = []
    for path in _in_order(reads):
        part = _read(root, path)
        if part is _OWN:
            return None
        found += part
    return tuple(found)


@lru_cache(maxsize=4096)
def _in_order(reads: frozenset[Path]) -> tuple[Path, ...]:
    return tuple(sorted(reads))


def _read(root: StringMap, path: Path) -> tuple[type | None, Hashable]:
    group, domain, identifier = path
    found = root.entries.get(group)
    if not domain and not identifier:
        return _ABSENT if found is None else _typed(found)
    names = found.entries.get(domain) if found is not None else None
    if names is None:
        return _NO_DOMAIN
    return _typed(names.entries[identifier]) if identifier in names.entries else _ABSENT


def _typed(value: Value) -> tuple[type | None, Hashable]:
    """A key that is equal for values that no expression can distinguish; _OWN for any other value."""
    kind = type(value)
    if kind in (bool, int, str):
        return kind, value
    if kind is list:
        parts = tuple(map(_typed, value))
        return _OWN if any(part is _OWN for part in parts) else (kind, parts)
    if kind is QuantityCell:
        amount = value.quantity
        return kind, (value.computed, amount.digits, amount.scale, amount.format, amount.big, amount.text)
    if kind is Unknown:
        low, high = value.bounds or (None, None)
        forms = low.form if isinstance(low, Quantity) else low, high.form if isinstance(high, Quantity) else high
        return kind, (value.attributes, value.reason, value.bounds, forms, tuple(map(_typed, value.choices)))
    if kind is SemanticVersion:
        return kind, (value.major, value.minor, value.patch, value.prerelease, value.build)
    return _OWN
