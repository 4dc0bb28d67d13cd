"""HTTP to a Kubernetes API server: one request and its answer as JSON, and the errors.

The `kubernetes` package gives the connection pool; its typed models are not used, because they cost many times what the
JSON costs. This module knows paths and status codes, not resources.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

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
from autoscaler.cluster.client_kubeconfig import load_configuration
from providers.contract import Clock

if TYPE_CHECKING:
    from urllib3 import BaseHTTPResponse

MERGE_PATCH: Final = "application/merge-patch+json"
_JSON: Final = "application/json"
# One connection for each watch, and some for requests.
_CONNECTIONS: Final = 32
_CONNECT_SECONDS: Final = 10.0
_READ_SECONDS: Final = 60.0  # what an API server itself gives a request
_ATTEMPTS: Final = 5
_FIRST_WAIT: Final = 0.25  # seconds; doubles, with jitter
_LONGEST_WAIT: Final = 10.0
_TOO_MANY_REQUESTS: Final = 429


def backoff_seconds(failures: int, asked: str = "") -> float:
    """How long to wait after so many failures (>= 1) in a row; `asked` is a Retry-After header, in seconds."""
    doubled = min(_FIRST_WAIT * 2.0 ** min(failures - 1, 16), _LONGEST_WAIT) * random.uniform(0.5, 1.0)
    return max(doubled, min(float(asked), _LONGEST_WAIT)) if asked.isdigit() else doubled


class Transport:
    """One API server as one identity. Safe to use from several threads."""

    def __init__(self, configuration: Any, clock: Clock) -> None:
        from kubernetes.client import ApiClient

        self._configuration = configuration
        self._pool = ApiClient(configuration).rest_client.pool_manager
        self._clock = clock
        self.server: str = configuration.host.rstrip("/")

    def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: object = None,
        content_type: str = _JSON,
    ) -> Any:
        """The decoded answer. Raises the error of autoscaler/cluster/api.py that the status code stands for.

        Reads are repeated while the server is overloaded or unreachable. Writes only while it says that it did not
        take them up (429): whether any other failed write was carried out is for the caller to find out.
        """
        for failures in range(1, _ATTEMPTS + 1):
            last = failures == _ATTEMPTS
            try:
                response = self._send(method, path, query, body=body, content_type=content_type)
            except UnavailableError:
                if last or method != "GET":
                    raise
                self._clock.wait(backoff_seconds(failures))
                continue
            if response.status < 400:
                return json.loads(response.data)
            error = error_of(response.status, response.data, f"{method} {path}")
            overloaded = response.status == _TOO_MANY_REQUESTS and not isinstance(error, BlockedError)
            if last or not (overloaded or (method == "GET" and isinstance(error, UnavailableError))):
                raise error
            self._clock.wait(backoff_seconds(failures, response.headers.get("Retry-After", "")))
        raise AssertionError("the last attempt returns or raises")

    @contextmanager
    def lines(self, path: str, *, query: Mapping[str, str], seconds: float) -> Iterator[Iterator[bytes]]:
        """The lines of an answer as they arrive, for at most about `seconds`; UnavailableError when it breaks off."""
        response = self._send("GET", path, query, stream_seconds=seconds)
        try:
            if response.status >= 400:
                raise error_of(response.status, response.data, f"GET {path}")
            yield _lines(response)
        finally:
            response.close()

    def _send(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None,
        *,
        body: object = None,
        content_type: str = _JSON,
        stream_seconds: float = 0,
    ) -> BaseHTTPResponse:
        from urllib3 import Timeout
        from urllib3.exceptions import HTTPError
        from urllib3.util import Url

        headers = {"Accept": _JSON, **self._identity()}
        if body is not None:
            headers["Content-Type"] = content_type
        encoded = "&".join(f"{_quoted(key)}={_quoted(value)}" for key, value in (query or {}).items())
        try:
            answer: BaseHTTPResponse = self._pool.request(
                method,
                self.server + Url(path=path, query=encoded or None).request_uri,
                body=None if body is None else json.dumps(body).encode(),
                headers=headers,
                timeout=Timeout(connect=_CONNECT_SECONDS, read=_READ_SECONDS + stream_seconds),
                retries=False,
                preload_content=not stream_seconds,
            )
        except HTTPError as error:
            raise UnavailableError(
                f"{method} {path}: no answer from {without_password(self.server)} ({error})",
                next_step="check that the API server can be reached and that the kubeconfig's certificates fit it",
            ) from error
        return answer

    def _identity(self) -> dict[str, str]:
        """The authorization header; exec plug-ins and service account tokens are renewed on the way."""
        settings = self._configuration.auth_settings()
        return {found["key"]: found["value"] for found in settings.values() if found["in"] == "header"}


def connect(clock: Clock, *, kubeconfig: str = "", context: str = "") -> Transport:
    """The API server of a kubeconfig, or inside a pod (and without either argument) that of the service account.

    Raises ConfigurationError when there is neither.
    """
    configuration = load_configuration(kubeconfig=kubeconfig, context=context)
    configuration.connection_pool_maxsize = _CONNECTIONS
    return Transport(configuration, clock)


def without_password(url: str) -> str:
    """A URL as it may be told."""
    scheme, mark, rest = url.partition("://")
    host, slash, path = rest.partition("/")
    return f"{scheme}{mark}{host.rpartition('@')[2]}{slash}{path}"


def error_of(status: int, body: bytes, request: str) -> ApiError:
    """The error that an answer of 400 or above stands for (apimachinery api/errors, metav1.Status)."""
    answer = _status(body)
    message = f"{request}: {answer.get('message') or body[:200].decode(errors='replace').strip()} ({status})"
    reason = answer.get("reason", "")
    causes = [cause.get("reason", "") for cause in (answer.get("details") or {}).get("causes") or ()]
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
        case 429 if "DisruptionBudget" in causes:
            return BlockedError(message, next_step="wait until the budget allows a disruption, or relax it")
        case 500 if "more than one PodDisruptionBudget" in message:
            return BlockedError(message, next_step="let only one PodDisruptionBudget select the pod")
        case _ if status >= 500 or status in (408, _TOO_MANY_REQUESTS):
            return UnavailableError(message, next_step="the API server is overloaded or failing; it is asked again")
        case _:
            return InvalidError(message, next_step="correct the field that the message names")


def _status(body: bytes) -> dict[str, Any]:
    try:
        found = json.loads(body)
    except ValueError:
        return {}  # not every proxy and not every path answers in JSON
    return found if isinstance(found, dict) else {}


def _lines(response: BaseHTTPResponse) -> Iterator[bytes]:
    from urllib3.exceptions import HTTPError

    rest = b""
    try:
        for chunk in response.stream(amt=None):
            *whole, rest = (rest + chunk).split(b"\n")
            yield from whole
    except HTTPError as error:
        raise UnavailableError(f"a watch broke off: {error}", next_step="it is resumed where it ended") from error


def _quoted(text: str) -> str:
    from urllib.parse import quote

    return quote(text, safe="")
