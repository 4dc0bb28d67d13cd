"""How the real boto3 talks to a fake.

`Wire` hangs below boto3, where a request has been serialised and signed and would go to a socket: nothing of the SDK
is bypassed but the socket. A wire can be pointed at one fake after the other, so that random suites make their clients
once. `Server` is the same over loopback HTTP.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final

import boto3
import botocore.config
import botocore.session
from botocore.awsrequest import AWSPreparedRequest, AWSResponse
from botocore.exceptions import ConnectionClosedError, ReadTimeoutError

from tests.fakes.ec2.answers import HttpResponse
from tests.fakes.ec2.faults import Silence
from tests.fakes.ec2.requests import HttpRequest
from tests.model_rules import CENSUS

if TYPE_CHECKING:
    from tests.fakes.ec2.fake import FakeEc2

_CREDENTIALS: Final = {"aws_access_key_id": "AKIAFAKE", "aws_secret_access_key": "fake"}


@cache
def _loader() -> Any:
    """Reading EC2's model takes longer than most tests do, so sessions share what was read."""
    return botocore.session.get_session().get_component("data_loader")


def session() -> boto3.Session:
    """A session with credentials of nobody, in the fake's region."""
    core = botocore.session.get_session()
    core.register_component("data_loader", _loader())
    return boto3.Session(region_name="us-east-1", botocore_session=core, **_CREDENTIALS)


class Wire:
    """Clients whose requests are answered by `fake`, which may be exchanged at any time."""

    def __init__(self, fake: FakeEc2) -> None:
        self.fake = fake
        self._session = session()
        self._clients: dict[str, Any] = {}

    def client(self, service: str) -> Any:
        """A client of a service that makes each call once; the same one every time."""
        if service not in self._clients:
            once = botocore.config.Config(retries={"total_max_attempts": 1})
            self._clients[service] = self.attach(self._session.client(service, config=once))
        return self._clients[service]

    def attach(self, client: Any) -> Any:
        """Let the requests of a client that somebody else made come here."""
        client.meta.events.register_first("before-send", self._send)
        return CENSUS.attach(client)

    def _send(self, request: AWSPreparedRequest, **_: Any) -> AWSResponse:
        headers = {name.lower(): _text(value) for name, value in request.headers.items()}
        answer = self.fake.exchange(HttpRequest(request.method, request.url, headers, _bytes(request.body)))
        if isinstance(answer, HttpResponse):
            return AWSResponse(request.url, answer.status, answer.headers, _Raw(answer.body))
        if answer is Silence.CUT:
            raise ConnectionClosedError(endpoint_url=request.url)
        raise ReadTimeoutError(endpoint_url=request.url)


class _Raw:
    """A body as the SDK reads it."""

    def __init__(self, body: bytes) -> None:
        self._body = body

    def stream(self) -> Iterator[bytes]:
        yield self._body


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value


def _bytes(body: str | bytes | None) -> bytes:
    return body.encode() if isinstance(body, str) else body or b""


class Server:
    """A fake on a loopback port, as a context manager. Calls are answered one at a time, as the clock is not shared."""

    def __init__(self, fake: FakeEc2) -> None:
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), _handler(fake))
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.01})

    @property
    def url(self) -> str:
        """The endpoint_url for clients."""
        return f"http://127.0.0.1:{self._http.server_port}"

    def client(self, service: str, **config: Any) -> Any:
        """A client that talks to it; `config` are botocore's settings."""
        once = {"retries": {"total_max_attempts": 1}} | config
        made = session().client(service, endpoint_url=self.url, config=botocore.config.Config(**once))
        return CENSUS.attach(made)

    def __enter__(self) -> Server:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()


def _handler(fake: FakeEc2) -> type[BaseHTTPRequestHandler]:
    one_at_a_time = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        # A second small write would wait for the first one's acknowledgement, which the other side delays by 40 ms.
        wbufsize = -1
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            headers = {name.lower(): value for name, value in self.headers.items()}
            with one_at_a_time:
                answer = fake.exchange(HttpRequest(self.command, self.path, headers, body))
            if isinstance(answer, Silence):
                self._fall_silent(answer)
                return
            self.send_response(answer.status)
            for name, value in answer.headers.items():
                self.send_header(name, value)
            self.send_header("content-length", str(len(answer.body)))
            self.end_headers()
            self.wfile.write(answer.body)
            self.wfile.flush()

        do_GET = do_PUT = do_DELETE = do_POST  # noqa: N815  # names that http.server looks for

        def _fall_silent(self, silence: Silence) -> None:
            if silence is Silence.TIMEOUT:
                self.rfile.read(1)  # until the caller hangs up
            self.close_connection = True

        def log_message(self, *args: Any) -> None:
            """Tests say what they see; the server does not."""

    return Handler
