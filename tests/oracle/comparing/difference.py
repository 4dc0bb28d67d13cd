"""What can differ between two answers to one question."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Field(Enum):
    """The part of an answer that differs."""

    OUTCOME = "outcome"
    NODE_ERROR = "node error"
    RESULT = "result"
    COST = "cost"
    ESTIMATE = "estimate"
    REFUSAL = "refusal"
    SCORE = "score"
    ALLOCATION = "allocation"


@dataclass(frozen=True)
class Difference:
    """One part that differs. `place` is the device, node or plugin that it is about, empty for all of the answer."""

    field: Field
    text: str
    place: str = ""

    @property
    def key(self) -> tuple[Field, str]:
        """What two comparisons of the same question have in common."""
        return self.field, self.place

    def __str__(self) -> str:
        return f"{self.field.value}{f' of {self.place}' if self.place else ''}: {self.text}"
