"""The fake without a socket: what the clients' HTTP session would send goes to the fake, and its answer comes back.

Everything above the session is the clients' own: the request's type, its path, query and body, and the answer read
into its type. What this leaves out is HTTP itself; the same fake serves it in server.py, and the tests of the adapter
and a part of the schedules go over it.

The clients turn equal requests into equal paths, and equal answers into equal messages. So a request that reads and was
sent before, and is answered with the same text, gets the message that a client made of this text the first time. Any
other text, and every request that changes something, goes through the client.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

import requests

from providers.gcp.calls import BY_NAME
from providers.gcp.session import Gcp
from tests.fakes.gce.errors import Silence
from tests.fakes.gce.fake import FakeGce

# No request goes there: clients want an address.
_ENDPOINT: Final = "http://fake.invalid"
# So many messages are kept: those of some dozen schedules.
_MOST: Final = 5000
Answer = tuple[int, str] | Silence


@dataclass(frozen=True, slots=True)
class Sent:
    """What goes over the wire."""

    verb: str
    path: str
    query: tuple[tuple[str, str], ...]
    body: str


class Session:
    """What the clients use of requests.Session. `fake` answers, and may be another one for each test."""

    def __init__(self) -> None:
        self.fake: FakeGce | None = None
        self.sent: Sent | None = None  # by the last request
        self.text = ""  # of the last answer
        self._waiting: Answer | None = None

    def ask(self, sent: Sent) -> Answer:
        """What the fake answers."""
        if self.fake is None:
            raise AssertionError("no fake is being served")
        answer = self.fake.answer(sent.verb, sent.path, dict(sent.query), sent.body)
        return answer if isinstance(answer, Silence) else (answer[0], json.dumps(answer[1]))

    def expect(self, answer: Answer) -> None:
        """The next request has been asked already."""
        self._waiting = answer

    def get(self, url: str, **sent: Any) -> requests.Response:
        """As requests.Session.get."""
        return self._send("GET", url, **sent)

    def post(self, url: str, **sent: Any) -> requests.Response:
        """As requests.Session.post."""
        return self._send("POST", url, **sent)

    def delete(self, url: str, **sent: Any) -> requests.Response:
        """As requests.Session.delete."""
        return self._send("DELETE", url, **sent)

    def _send(
        self,
        verb: str,
        url: str,
        *,
        params: Any = (),
        data: str | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float | None = None,
    ) -> requests.Response:
        if timeout is None:
            raise AssertionError(f"{verb} {url} may wait for ever")
        if data is not None and (headers or {}).get("Content-Type") != "application/json":
            raise AssertionError(f"{verb} {url}: the body is not sent as JSON")
        query = tuple((name, value if isinstance(value, str) else str(value)) for name, value in dict(params).items())
        self.sent = Sent(verb, urlsplit(url).path, query, data or "")
        answer, self._waiting = self._waiting or self.ask(self.sent), None
        if isinstance(answer, Silence):
            raise requests.ConnectionError("('Connection aborted.', the fake closed it without an answer)")
        self.text = answer[1]
        response = requests.Response()
        response.status_code = answer[0]
        response._content = answer[1].encode()
        response.headers["content-type"] = "application/json"
        response.encoding = "utf-8"
        response.url = url
        response.request = requests.Request(verb, url).prepare() if answer[0] >= 400 else None  # type: ignore[assignment]
        return response


class InProcess(Gcp):
    """One project whose clients end in such a session."""

    def __init__(self, project: str) -> None:
        super().__init__(project, endpoint=_ENDPOINT)
        self.session = Session()
        self._requests: dict[object, Sent] = {}
        self._read: dict[tuple[object, str], Any] = {}

    def _method(self, method: str) -> Any:
        found = super()._method(method)
        session = found.__self__.transport._session  # stays what it is: the transport looks methods up by it
        session.get, session.post, session.delete = self.session.get, self.session.post, self.session.delete
        if BY_NAME[method].changes:
            return found

        def call(*, request: Mapping[str, Any], **options: Any) -> Any:
            if not all(isinstance(value, (str, int)) for value in request.values()):
                return found(request=request, **options)
            key = (method, tuple(request.items()))
            if (sent := self._requests.get(key)) is not None:
                answer = self.session.ask(sent)
                if not isinstance(answer, Silence) and answer[0] == 200 and (key, answer[1]) in self._read:
                    return self._read[key, answer[1]]
                self.session.expect(answer)
            message = found(request=request, **options)
            assert self.session.sent is not None
            if len(self._read) >= _MOST:
                self._read.clear()
            self._requests[key] = self.session.sent
            self._read[key, self.session.text] = message
            return message

        return call

    @property
    def _http(self) -> Any:  # type: ignore[override]
        return self.session
