"""Reads an API server's answers: JSON objects, the errors of status codes, and answers of other servers.

For a gateway's page, an object that is cut off, or a redirect to a login, the error has one sentence: what answered,
where, and how the answer begins. It never contains credentials or control characters.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from autoscaler.cluster.api import (
    AlreadyExistsError,
    ApiError,
    BlockedError,
    ConflictError,
    ForbiddenError,
    GoneError,
    InvalidError,
    MalformedAnswerError,
    NotFoundError,
    UnavailableError,
)
from autoscaler.report.printable import one_line

TOO_MANY_REQUESTS: Final = 429
_SHOWN: Final = 80  # characters of an answer that is no answer
_LONGEST_WORDS: Final = 200
_LONGEST_ADDRESS: Final = 120
_STEP: Final = (
    "see what answers there: `kubectl get --raw /version`; if it is a proxy or its login page, sign in or give the API "
    "server's own address (--kubeconfig, --context)"
)


def decoded(body: bytes | str, request: str, *, seen: str = "an answer") -> dict[str, Any]:
    """The JSON object of an answer. `seen` describes the answer and its sender. Raises MalformedAnswerError for
    anything else."""
    try:
        found = json.loads(body)
    except (ValueError, RecursionError) as error:
        cut = body.lstrip()[:1] in (b"{", "{")
        what = f"ends or breaks within its JSON, after {len(body):,} bytes" if cut else "is no JSON"
        raise malformed(request, f"{seen} {what}", body) from error
    if not isinstance(found, dict):
        raise malformed(request, f"{seen} is not an object", body)
    return found


def part(found: Mapping[str, Any], field: str, kind: type, request: str, *, seen: str = "an answer") -> Any:
    """A field that every answer of its kind has. Raises MalformedAnswerError if it is missing or of another type."""
    value = found.get(field)
    if not isinstance(value, kind):
        raise malformed(request, f"{seen} has no {field}", json.dumps(found)[: _SHOWN * 2])
    return value


def malformed(request: str, what: str, body: bytes | str) -> MalformedAnswerError:
    """The error about an answer that no API server gives."""
    shown = excerpt(body)
    return MalformedAnswerError(f"{request}: {what}{f': {shown}' if shown else ''}", next_step=_STEP)


def excerpt(body: bytes | str) -> str:
    """The beginning of a text, in quotes, on one line and without characters that control a terminal; "" for
    nothing."""
    text = (body[: _SHOWN * 8].decode(errors="replace") if isinstance(body, bytes) else body[: _SHOWN * 8]).strip()
    line = one_line(" ".join(text.split()))
    return f'"{line[:_SHOWN]}{"…" if len(line) > _SHOWN or len(body) > _SHOWN * 8 else ""}"' if line else ""


def words_of(error: BaseException) -> str:
    """The message of a library's error, shortened to one line."""
    line = one_line(" ".join(str(error).split()))
    return f"{line[:_LONGEST_WORDS]}…" if len(line) > _LONGEST_WORDS else line


def address_of(url: str) -> str:
    """Scheme, host and port of a URL, for messages: without credentials, path and query."""
    try:
        found = urlsplit(url)
        host, port = found.hostname or "", found.port
    except ValueError:
        return "an address that cannot be read"
    host = f"[{host}]" if ":" in host else host
    return one_line(f"{found.scheme}://{host}{f':{port}' if port else ''}")[:_LONGEST_ADDRESS]


def error_of(status: int, body: bytes, request: str, *, seen: str = "an answer") -> ApiError:
    """The error for an answer with status 300 or above (apimachinery api/errors, metav1.Status)."""
    transient = status >= 500 or status in (408, TOO_MANY_REQUESTS)
    if status < 400 or (not transient and body.lstrip().startswith(b"<")):
        return malformed(request, f"{seen} is none of an API server", body)
    answer = _status(body)
    message = answer.get("message")
    text = one_line(" ".join(message.split())) if isinstance(message, str) and message else excerpt(body)
    message = f"{request}: {text} ({status})"
    reason = answer.get("reason", "")
    match status:
        case 404:
            return NotFoundError(message, next_step="it was deleted, never created, or the API does not serve its kind")
        case 409 if reason == "AlreadyExists":
            return AlreadyExistsError(message, next_step="read it and update it instead")
        case 409:
            return ConflictError(message, next_step="read it again and apply the change to what is there now")
        case 410:
            return GoneError(message, next_step="list again and watch on")
        case 401:
            return ForbiddenError(message, next_step="renew the credentials: the API server does not know them")
        case 403:
            return ForbiddenError(message, next_step="grant the verb that the message names to this identity")
        case 429 if "DisruptionBudget" in _causes(answer):
            return BlockedError(message, next_step="wait until the budget allows a disruption, or relax it")
        case 500 if "more than one PodDisruptionBudget" in message:
            return BlockedError(message, next_step="let only one PodDisruptionBudget select the pod")
        case _ if transient:
            return UnavailableError(message, next_step="the API server is overloaded or failing; it is asked again")
        case _:
            return InvalidError(message, next_step="correct the field that the message names")


def _causes(answer: Mapping[str, Any]) -> tuple[object, ...]:
    details = answer.get("details")
    causes = details.get("causes") if isinstance(details, dict) else ()
    return tuple(cause.get("reason") for cause in causes or () if isinstance(cause, dict))


def _status(body: bytes) -> dict[str, Any]:
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return {}  # not every proxy and not every path answers in JSON
    return found if isinstance(found, dict) else {}
