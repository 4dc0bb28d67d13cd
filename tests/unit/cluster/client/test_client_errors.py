"""Every answer of an API server becomes the error that callers decide by."""

from __future__ import annotations

import json

import pytest

from autoscaler.cluster.api import (
    AlreadyExistsError,
    ApiError,
    BlockedError,
    ConflictError,
    ForbiddenError,
    GoneError,
    InvalidError,
    NotFoundError,
    UnavailableError,
)
from autoscaler.cluster.client.answers import error_of
from autoscaler.cluster.client.transport import backoff_seconds

BUDGET = {"causes": [{"reason": "DisruptionBudget", "message": "The budget b needs 1 healthy pods and has 1"}]}


@pytest.mark.parametrize(
    ("code", "status", "kind"),
    [
        pytest.param(400, {"reason": "BadRequest"}, InvalidError, id="malformed"),
        pytest.param(401, {"reason": "Unauthorized"}, ForbiddenError, id="unknown credentials"),
        pytest.param(403, {"reason": "Forbidden"}, ForbiddenError, id="not granted"),
        pytest.param(404, {"reason": "NotFound"}, NotFoundError, id="no such object"),
        pytest.param(409, {"reason": "AlreadyExists"}, AlreadyExistsError, id="name taken"),
        pytest.param(409, {"reason": "Conflict"}, ConflictError, id="stale version"),
        pytest.param(410, {"reason": "Expired"}, GoneError, id="version expired"),
        pytest.param(413, {"reason": "RequestEntityTooLarge"}, InvalidError, id="too large"),
        pytest.param(422, {"reason": "Invalid"}, InvalidError, id="refused by the schema"),
        pytest.param(429, {"reason": "TooManyRequests"}, UnavailableError, id="overloaded"),
        pytest.param(429, {"reason": "TooManyRequests", "details": BUDGET}, BlockedError, id="budget"),
        pytest.param(
            500,
            {"message": "This pod has more than one PodDisruptionBudget, which the eviction subresource …"},
            BlockedError,
            id="two budgets",
        ),
        pytest.param(500, {"reason": "InternalError"}, UnavailableError, id="fault"),
        pytest.param(503, {"reason": "ServiceUnavailable"}, UnavailableError, id="starting"),
        pytest.param(504, {"reason": "Timeout"}, UnavailableError, id="too slow"),
    ],
)
def test_codes_and_reasons(code: int, status: dict[str, object], kind: type[ApiError]) -> None:
    error = error_of(code, json.dumps({"message": "it says why", **status}).encode(), "GET /api/v1/pods/x")
    assert type(error) is kind
    assert error.message.startswith("GET /api/v1/pods/x: ")
    assert str(status.get("message", "it says why")) in error.message
    assert error.next_step


@pytest.mark.parametrize("body", [b"404 page not found\n", b"[]", b""], ids=["text", "a list", "nothing"])
def test_answers_that_are_no_status(body: bytes) -> None:
    error = error_of(404, body, "GET /apis/x/v1/things")
    assert type(error) is NotFoundError
    assert "(404)" in error.message


def test_waiting_doubles_with_jitter_up_to_a_limit() -> None:
    waits = [backoff_seconds(failures) for failures in range(1, 40)]
    assert all(0.125 * 2**index <= wait <= 0.25 * 2**index for index, wait in enumerate(waits[:5]))
    assert all(5 <= wait <= 10 for wait in waits[6:])


@pytest.mark.parametrize(
    ("asked", "least", "most"),
    [
        pytest.param("3", 3, 3, id="seconds"),
        pytest.param("3600", 10, 10, id="longer than we wait"),
        pytest.param("Wed, 21 Oct 2026 07:28:00 GMT", 0.1, 0.25, id="a date is not read"),
        pytest.param("", 0.1, 0.25, id="absent"),
    ],
)
def test_a_server_may_ask_for_a_longer_wait(asked: str, least: float, most: float) -> None:
    assert least <= backoff_seconds(1, asked) <= most
