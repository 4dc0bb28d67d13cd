"""HTTP to a Kubernetes API server: one request and its answer as JSON, with the rules for repetitions.

The `kubernetes` package provides the connection pool; its typed models are not used, because they cost many times what
the JSON costs. This module handles paths and repetitions, not resources; client/answers.py reads the answers.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from autoscaler.cluster.api import BlockedError, MalformedAnswerError, UnavailableError
from autoscaler.cluster.client.answers import TOO_MANY_REQUESTS, address_of, decoded, error_of, words_of
from autoscaler.cluster.client.kubeconfig import load_configuration
from autoscaler.errors import ConfigurationError
from autoscaler.report.printable import one_line
from providers.contract import Clock

if TYPE_CHECKING:
    from urllib3 import BaseHTTPResponse

# Its own source: drawing from the module's would change what others draw from it.
JITTER: Final[Callable[[], float]] = random.SystemRandom().random
MERGE_PATCH: Final = "application/merge-patch+json"
_JSON: Final = "application/json"
# One connection for each watch, and some for requests.
_CONNECTIONS: Final = 32
_CONNECT_SECONDS: Final = 10.0
_READ_SECONDS: Final = 60.0  # an API server's own limit for a request
_ATTEMPTS: Final = 5
_FIRST_WAIT: Final = 0.25  # seconds; doubles, with jitter
LONGEST_WAIT: Final = 10.0


def backoff_seconds(
    failures: int, asked: str = "", *, draw: Callable[[], float] = JITTER, longest: float = LONGEST_WAIT
) -> float:
    """The wait after this number of failures (>= 1) in a row; `asked` is a Retry-After header, in seconds.

    It doubles up to `longest`; of that, `draw` (a number from 0 to 1) chooses a part between half and all.
    """
    doubled = min(_FIRST_WAIT * 2.0 ** min(failures - 1, 16), longest) * (0.5 + draw() / 2)
    return max(doubled, min(float(asked), longest)) if asked.isascii() and asked.isdigit() else doubled


class Transport:
    """One API server as one identity. Safe to use from several threads."""

    def __init__(self, configuration: Any, clock: Clock, *, draw: Callable[[], float] = JITTER) -> None:
        from kubernetes.client import ApiClient

        self._configuration = configuration
        try:
            self._pool = ApiClient(configuration).rest_client.pool_manager
        except Exception as error:  # files of certificates, addresses of proxies: whatever their libraries raise
            raise ConfigurationError(
                f"the connection to {address_of(configuration.host)} cannot be set up: {words_of(error)}",
                next_step="correct the certificates, the key or the proxy of the kubeconfig",
            ) from error
        self._clock = clock
        self._draw = draw
        self._url: str = configuration.host.rstrip("/")
        self.server: str = address_of(self._url)
        """The API server's address, without credentials that it may contain."""

    def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: object = None,
        content_type: str = _JSON,
    ) -> dict[str, Any]:
        """The decoded answer. Raises the error of autoscaler/cluster/api.py for the status code.

        Reads are repeated while the server is overloaded or unreachable, for about as long as one request may last.
        Writes are repeated only if the server did not accept them (429): whether any other failed write was carried out
        is for the caller to find out.
        """
        until = self._clock.monotonic() + _READ_SECONDS
        for failures in range(1, _ATTEMPTS + 1):
            try:
                response = self._send(method, path, query, body=body, content_type=content_type)
            except UnavailableError:
                if self._gives_up(failures, until) or method != "GET":
                    raise
                self._clock.wait(backoff_seconds(failures, draw=self._draw))
                continue
            request, seen = f"{method} {path}", self._seen(response)
            if response.status < 300:
                return decoded(response.data, request, seen=seen)
            error = error_of(response.status, response.data, request, seen=seen)
            overloaded = response.status == TOO_MANY_REQUESTS and not isinstance(error, BlockedError)
            passing = isinstance(error, UnavailableError) and not isinstance(error, MalformedAnswerError)
            if self._gives_up(failures, until) or not (overloaded or (method == "GET" and passing)):
                raise error
            asked = response.headers.get("Retry-After", "")
            self._clock.wait(backoff_seconds(failures, asked, draw=self._draw))
        raise AssertionError("the last attempt returns or raises")

    @contextmanager
    def lines(
        self, path: str, *, query: Mapping[str, str], silence: float = _READ_SECONDS
    ) -> Iterator[Iterator[bytes]]:
        """The lines of an answer as they arrive. Raises UnavailableError if it breaks off, or if nothing arrives for
        `silence` seconds."""
        response = self._send("GET", path, query, silence=silence)
        try:
            if response.status >= 300:
                raise error_of(response.status, _all(response), f"GET {path}", seen=self._seen(response))
            yield _lines(response)
        finally:
            response.close()

    def _gives_up(self, failures: int, until: float) -> bool:
        """True after the last attempt: the caller must get the error before its own watchdog reports it as stuck."""
        return failures == _ATTEMPTS or self._clock.monotonic() >= until

    def _seen(self, response: BaseHTTPResponse) -> str:
        """A description of the answer, for a message: status, type, and the target of a redirect."""
        kind = one_line(response.headers.get("Content-Type", "") or "no content type")[:60]
        to = response.headers.get("Location", "") if 300 <= response.status < 400 else ""
        target = address_of(to) if "://" in to else "another page"
        return f"what {self.server} answered ({response.status}, {kind}{f', redirects to {target}' if to else ''})"

    def _send(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None,
        *,
        body: object = None,
        content_type: str = _JSON,
        silence: float = 0,
    ) -> BaseHTTPResponse:
        from urllib3 import Timeout
        from urllib3.exceptions import HTTPError
        from urllib3.util import Url

        request = f"{method} {path}"
        headers = {"Accept": _JSON, **self._identity(request)}
        if body is not None:
            headers["Content-Type"] = content_type
        encoded = "&".join(f"{_quoted(key)}={_quoted(value)}" for key, value in (query or {}).items())
        try:
            answer: BaseHTTPResponse = self._pool.request(
                method,
                self._url + Url(path=path, query=encoded or None).request_uri,
                body=None if body is None else json.dumps(body).encode(),
                headers=headers,
                timeout=Timeout(connect=_CONNECT_SECONDS, read=silence or _READ_SECONDS),
                retries=False,
                redirect=False,
                preload_content=not silence,
            )
        except (HTTPError, OSError) as error:
            raise UnavailableError(
                f"{request}: no answer from {self.server} ({words_of(error)})",
                next_step="check that the API server can be reached and that the kubeconfig's certificates fit it",
            ) from error
        except Exception as error:  # noqa: BLE001  # whatever the libraries raise, the loop must know
            raise self._unsendable(request, error) from None
        return answer

    def _unsendable(self, request: str, error: Exception) -> UnavailableError:
        # Not in words of the library: http.client repeats a header that it refuses, token and all.
        return UnavailableError(
            f"{request}: no request to {self.server} can be made ({type(error).__name__})",
            next_step="look for line breaks and other strange characters in the kubeconfig's token and address",
        )

    def _identity(self, request: str) -> dict[str, str]:
        """The authorization header; exec plug-ins and service account tokens are renewed on the way."""
        try:
            settings = self._configuration.auth_settings()
            return {found["key"]: str(found["value"]) for found in settings.values() if found["in"] == "header"}
        except Exception as error:  # a plug-in is any program, so it may raise anything
            raise UnavailableError(
                f"{request}: no credentials for {self.server} ({type(error).__name__}: {words_of(error)})",
                next_step="run the kubeconfig's credential plug-in by hand; in a pod, look at its mounted token",
            ) from error


def connect(clock: Clock, *, kubeconfig: str = "", context: str = "") -> Transport:
    """The API server of a kubeconfig, or inside a pod (and without either argument) that of the service account.

    Raises ConfigurationError if there is neither.
    """
    configuration = load_configuration(kubeconfig=kubeconfig, context=context)
    configuration.connection_pool_maxsize = _CONNECTIONS
    return Transport(configuration, clock)


def _all(response: BaseHTTPResponse) -> bytes:
    from urllib3.exceptions import HTTPError

    try:
        return bytes(response.data)
    except HTTPError:
        return b""  # the status is sufficient


def _lines(response: BaseHTTPResponse) -> Iterator[bytes]:
    from urllib3.exceptions import HTTPError

    rest = b""
    try:
        # As it arrives: `stream` would wait for the end of an answer that a proxy does not send in chunks.
        while chunk := response.read1():
            *whole, rest = (rest + chunk).split(b"\n")
            yield from whole
    except (HTTPError, OSError) as error:
        raise UnavailableError(
            f"a watch broke off: {words_of(error)}", next_step="it is resumed where it ended"
        ) from error
    if rest.strip():
        yield rest  # a last line without its end: cut off, or not sent by an API server


def _quoted(text: str) -> str:
    from urllib.parse import quote

    return quote(text, safe="")
