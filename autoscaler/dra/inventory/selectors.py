"""The seam to CEL: the question "does this device match this expression" and its possible answers.

The allocator needs no more than this, so tests can answer without CEL; `cel_selectors` has the production answer.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from enum import Enum
from typing import Protocol, TypeAlias

from instance_catalog.dataclass import dataclass
from instance_catalog.kubernetes.resource_slice import Device

# A field of a device, as the engine names it.
Path: TypeAlias = tuple[str, str, str]


class Answer(Enum):
    """What one expression says about one device."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"  # it depends on a value that is not known before the node runs
    ERROR = "error"  # run-time error
    INVALID = "invalid"  # does not compile


@dataclass(frozen=True, slots=True)
class Match:
    """An answer; `message` explains ERROR and INVALID, `attributes` names what made it UNKNOWN.

    `missing_key` is the attribute or capacity that the device does not have, where that is the ERROR.
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
        """Whether the device, published by `driver`, matches."""

    def reads(self, expressions: Iterable[str]) -> frozenset[Path] | None:
        """What these expressions may read of a device; None where their text does not say. Raises BudgetSpentError."""

    def seen(self, reads: frozenset[Path], *, driver: str, device: Device) -> Hashable | None:
        """Equal for devices that expressions with these reads cannot tell apart; None for one like no other."""
