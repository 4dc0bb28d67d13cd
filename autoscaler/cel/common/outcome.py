"""The results of compiling and evaluating an expression."""

from __future__ import annotations

from enum import Enum

from instance_catalog.dataclass import dataclass


class Outcome(Enum):
    """The result for one device. ERROR stops the whole allocation upstream; UNKNOWN exists only here."""

    TRUE = "true"
    FALSE = "false"
    ERROR = "error"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Evaluation:
    """`message` explains ERROR and UNKNOWN, `unknown_attributes` ("domain/id") are the cause of UNKNOWN.

    `missing_key` is the key that does not exist, if that is the ERROR. `cost` is the run-time cost in Kubernetes'
    units, also of evaluations that ended in an error.
    """

    outcome: Outcome
    message: str = ""
    unknown_attributes: tuple[str, ...] = ()
    cost: int = 0
    missing_key: str = ""


@dataclass(frozen=True, slots=True)
class CompileFailure:
    """An expression that does not compile. `line` and `column` count from 1; `hint` is the usual fix or empty."""

    expression: str
    message: str
    line: int
    column: int
    hint: str = ""

    def __str__(self) -> str:
        text = f"{self.line}:{self.column}: {self.message}"
        return f"{text}\n  {self.hint}" if self.hint else text
