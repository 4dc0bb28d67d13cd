"""The interface to CEL: the question "does this device match this expression" and its possible answers.

The allocator needs only this, so tests can answer without CEL; `cel_selectors` implements it with CEL.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from enum import Enum
from typing import Protocol, TypeAlias

from instance_catalog.dataclass import dataclass
from instance_catalog.kubernetes.resource_slice import Device

# A field of a device, with the name that the engine uses.
Path: TypeAlias = tuple[str, str, str]


class Answer(Enum):
    """The answer of one expression for one device."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"  # it depends on a value that is not known before the node runs
    ERROR = "error"  # run-time error
    INVALID = "invalid"  # does not compile


@dataclass(frozen=True, slots=True)
class Match:
    """An answer; `message` explains ERROR and INVALID, `attributes` names what made it UNKNOWN.

    `missing_key` is the attribute or capacity that the device lacks, if that is the ERROR.
    """

    answer: Answer
    message: str = ""
    attributes: tuple[str, ...] = ()
    missing_key: str = ""


YES = Match(Answer.YES)
NO = Match(Answer.NO)


class SelectorEngine(Protocol):
    """Evaluates expressions; answers depend on the arguments alone."""

    def evaluate(self, expression: str, *, driver: str, device: Device) -> Match:
        """The answer for the device, which `driver` publishes."""

    def reads(self, expressions: Iterable[str]) -> frozenset[Path] | None:
        """The fields that these expressions may read; None if their text does not show them. Raises
        BudgetSpentError."""

    def seen(self, reads: frozenset[Path], *, driver: str, device: Device) -> Hashable | None:
        """A value that is equal for devices which expressions with these reads cannot distinguish; None for a device
        that equals no other."""
