"""The errors that stop something, in one tree.

    ForesliceError
    ├── BadInputError        what the user gave cannot be used: file, line, object, reason, next step
    ├── ConfigurationError   settings or custom resources that contradict each other
    └── InternalError        a state that must not occur; please report

Whatever prevents only one pod or claim is a Verdict or a Reason, never an exception.
"""

from __future__ import annotations

from typing import ClassVar


class ForesliceError(Exception):
    """`message` says what is wrong, `next_step` what a person does about it.

    `reason` is public: it is the reason of events and a label of metrics. Every subclass has its own.
    """

    reason: ClassVar[str] = "Foreslice"

    def __init__(self, message: str, *, next_step: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.next_step = next_step

    def __str__(self) -> str:
        return f"{self.message}\n  {self.next_step}" if self.next_step else self.message


class BadInputError(ForesliceError):
    reason = "BadInput"


class ConfigurationError(ForesliceError):
    """Settings that contradict each other or the cluster."""

    reason = "Configuration"


class InternalError(ForesliceError):
    """A broken invariant."""

    reason = "Internal"
