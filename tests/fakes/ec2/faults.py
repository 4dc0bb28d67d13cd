"""What goes wrong on demand, once for each fault that was injected: on the way there, inside, or on the way back."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from enum import Enum
from typing import Final

from tests.fakes.ec2.errors import ApiError


class Silence(Enum):
    """How a call ends without an answer."""

    CUT = "cut"  # the connection is closed
    TIMEOUT = "timeout"  # nothing comes until the caller gives up


@dataclass(frozen=True, slots=True)
class Fault:
    """`effect`: whether the call is carried out. Then it ends with an error answer or with silence instead."""

    effect: bool
    ending: Silence | ApiError


CUT_BEFORE: Final = Fault(effect=False, ending=Silence.CUT)
CUT_AFTER: Final = Fault(effect=True, ending=Silence.CUT)
TIMEOUT_BEFORE: Final = Fault(effect=False, ending=Silence.TIMEOUT)
TIMEOUT_AFTER: Final = Fault(effect=True, ending=Silence.TIMEOUT)
INTERNAL_ERROR: Final = Fault(effect=False, ending=ApiError("InternalError", "An internal error occurred.", status=500))
INTERNAL_ERROR_AFTER: Final = Fault(effect=True, ending=INTERNAL_ERROR.ending)
UNAVAILABLE: Final = Fault(effect=False, ending=ApiError("Unavailable", "The server is overloaded.", status=503))
THROTTLED: Final = Fault(effect=False, ending=ApiError("RequestLimitExceeded", "Request limit exceeded.", status=503))


def refused(code: str, message: str = "refused by the test", *, status: int = 400) -> Fault:
    """An error answer of any code, such as UnauthorizedOperation (403) or one that nobody knows."""
    return Fault(effect=False, ending=ApiError(code, message, status=status))


class Faults:
    """Faults that wait for the calls of an operation; each hits one call, in order. "" waits for any operation."""

    def __init__(self) -> None:
        self._waiting: dict[str, deque[Fault | None]] = {}

    def inject(self, operation: str, *faults: Fault | None) -> None:
        """Let the next calls of an operation fail; None is one that does not."""
        self._waiting.setdefault(operation, deque()).extend(faults)

    def clear(self) -> None:
        """Let everything work again."""
        self._waiting.clear()

    def next(self, operation: str) -> Fault | None:
        """The fault that hits this call."""
        for key in (operation, ""):
            if self._waiting.get(key):
                return self._waiting[key].popleft()
        return None
