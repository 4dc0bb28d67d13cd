"""Operations: an HTTP answer of 200 only means that Google accepted the call; its operation has the outcome."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final

from google.cloud import compute_v1

from providers.contract import Clock
from providers.errors import AmbiguousError, ProviderError
from providers.gcp.errors import of_code, of_http
from providers.gcp.session import Gcp

_PATIENCE: Final = timedelta(seconds=30)
_LOOK: Final = timedelta(seconds=1)


def finished(gcp: Gcp, clock: Clock, operation: Any, *, zone: str, what: str) -> None:
    """Wait until the group has accepted the call. Raises the error of the operation, and the errors of `outcome`."""
    error = outcome(gcp, clock, operation, zone=zone, what=what)
    if error is not None:
        raise error


def outcome(gcp: Gcp, clock: Clock, operation: Any, *, zone: str, what: str) -> ProviderError | None:
    """The error that the operation ended with, or None.

    If the operation cannot be read, raises the error of that call: the outcome stays unknown. Raises AmbiguousError if
    the operation takes too long.
    """
    deadline = clock.monotonic() + _PATIENCE.total_seconds()
    while operation.status != compute_v1.Operation.Status.DONE:
        if clock.monotonic() >= deadline:
            step = "Nothing to do: the call is repeated, and finds what this one has done."
            raise AmbiguousError(f"{what}: operation {operation.name} is not over yet", next_step=step)
        clock.wait(_LOOK.total_seconds())
        operation = gcp.call("zoneOperations.get", about=operation.name, zone=zone, operation=operation.name)
    first = next(iter(operation.error.errors), None)
    if first is not None:
        return of_code(what, first.code, first.message)
    status = operation.http_error_status_code
    return of_http(what, status, "", operation.http_error_message) if status >= 400 else None
