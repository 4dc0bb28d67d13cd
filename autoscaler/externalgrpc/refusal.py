"""The reason why a call is not carried out, as a status of gRPC."""

from __future__ import annotations

from enum import Enum
from typing import ClassVar

from autoscaler.errors import ForesliceError


class Status(Enum):
    """The status codes of gRPC that are used, by their names there."""

    INVALID_ARGUMENT = "INVALID_ARGUMENT"
    NOT_FOUND = "NOT_FOUND"
    FAILED_PRECONDITION = "FAILED_PRECONDITION"
    OUT_OF_RANGE = "OUT_OF_RANGE"
    UNIMPLEMENTED = "UNIMPLEMENTED"
    UNAVAILABLE = "UNAVAILABLE"


class CallRefusedError(ForesliceError):
    """A call that is answered with an error. UNIMPLEMENTED makes Cluster Autoscaler do without; after all others it
    tries again in a later loop."""

    reason: ClassVar[str] = "CallRefused"

    def __init__(self, status: Status, message: str, *, next_step: str = "") -> None:
        super().__init__(message, next_step=next_step)
        self.status = status
