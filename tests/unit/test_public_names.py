"""Names that users filter by stay as they are when a class is renamed: reasons of events, labels of metrics."""

from __future__ import annotations

from collections.abc import Iterator
from typing import get_args

import autoscaler.cluster.lease
import autoscaler.externalgrpc.refusal
import autoscaler.externalgrpc.wire
import autoscaler.serve.access  # noqa: F401 - defines errors
from autoscaler.errors import ForesliceError
from autoscaler.report.timeline import Change, Trigger


def test_reasons_of_errors() -> None:
    own = {error.__name__: error.__dict__.get("reason") for error in (ForesliceError, *_below(ForesliceError))}
    assert own == {
        "ForesliceError": "Foreslice",
        "BadInputError": "BadInput",
        "ConfigurationError": "Configuration",
        "InternalError": "Internal",
        "ApiError": "Api",
        "NotFoundError": "NotFound",
        "AlreadyExistsError": "AlreadyExists",
        "ConflictError": "Conflict",
        "GoneError": "Gone",
        "ForbiddenError": "Forbidden",
        "InvalidError": "Invalid",
        "BlockedError": "Blocked",
        "UnavailableError": "Unavailable",
        "MalformedAnswerError": "MalformedAnswer",
        "LeadershipLostError": "LeadershipLost",
        "UnauthenticatedError": "Unauthenticated",
        "UnauthorizedError": "Unauthorized",
        "UndecidedError": "Undecided",
        "CallRefusedError": "CallRefused",
        "WireError": "Wire",
    }


def test_events_of_the_demo() -> None:
    assert [kind.event for kind in (*get_args(Trigger), *get_args(Change))] == [
        "Arrived", "Reused", "Chosen", "Refused",
        "Launched", "Registered", "Published", "Bound", "Ended", "Held", "Noticed", "Draining", "Gone",
    ]  # fmt: skip


def _below(error: type[ForesliceError]) -> Iterator[type[ForesliceError]]:
    for kind in error.__subclasses__():
        if kind.__module__.startswith("autoscaler."):
            yield kind
            yield from _below(kind)
