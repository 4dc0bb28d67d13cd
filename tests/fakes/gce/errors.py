"""What goes wrong: HTTP errors as Google writes them, errors inside operations, and faults that a test asks for."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final


class ApiError(Exception):
    """An HTTP answer other than 200. `reason` is what errors[].reason says."""

    def __init__(self, status: int, reason: str, message: str = "refused by the test") -> None:
        super().__init__(f"{status} {reason}: {message}")
        self.status = status
        self.reason = reason
        self.message = message

    def body(self) -> Mapping[str, Any]:
        """The JSON of the answer."""
        rows = [{"message": self.message, "domain": "global", "reason": self.reason}]
        return {"error": {"code": self.status, "message": self.message, "errors": rows}}


class Silence(Enum):
    """The connection is closed without an answer."""

    CUT = "cut"


@dataclass(frozen=True, slots=True)
class LateError:
    """The call is answered with 200, and its operation ends without an effect: with this error, or none for code ""."""

    code: str
    message: str = "the operation failed"
    status: int = 400


@dataclass(frozen=True, slots=True)
class Fault:
    """`effect`: whether the call is carried out before it ends so."""

    ending: ApiError | Silence | LateError
    effect: bool = False


CUT_BEFORE: Final = Fault(Silence.CUT)
CUT_AFTER: Final = Fault(Silence.CUT, effect=True)
THROTTLED: Final = Fault(ApiError(403, "rateLimitExceeded", "Rate Limit Exceeded"))
UNAVAILABLE: Final = Fault(ApiError(503, "backendError", "The service is currently unavailable."))


def refused(reason: str, status: int = 400, message: str = "refused by the test") -> Fault:
    """An error answer without an effect."""
    return Fault(ApiError(status, reason, message))


class Faults:
    """Faults that wait for the calls of a method ("createInstances"); each hits one call, in order."""

    def __init__(self) -> None:
        self._waiting: dict[str, deque[Fault]] = {}
        self.met: Counter[str] = Counter()  # how many calls of each method were hit

    def inject(self, method: str, *faults: Fault) -> None:
        """Let the next calls of a method fail."""
        self._waiting.setdefault(method, deque()).extend(faults)

    def next(self, method: str) -> Fault | None:
        """The fault that hits this call."""
        waiting = self._waiting.get(method)
        if not waiting:
            return None
        self.met[method] += 1
        return waiting.popleft()

    def clear(self) -> None:
        """No more faults."""
        self._waiting.clear()
