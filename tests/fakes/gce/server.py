"""The fake on a loopback port. Which fake answers may change: clients are made once for a whole run of tests."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.fakes.gce.errors import Silence
from tests.fakes.gce.fake import FakeGce


class Server:
    """Serves until the process ends; its threads keep nobody from ending."""

    def __init__(self) -> None:
        self.fake: FakeGce | None = None
        # Held while the fake answers. A test that looks at it while another process asks holds it too.
        self.lock = threading.RLock()
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._http.daemon_threads = True
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        """The endpoint for clients."""
        return f"http://127.0.0.1:{self._http.server_port}"


def _handler(server: Server) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1
        disable_nagle_algorithm = True

        def _respond(self) -> None:
            parts = urlsplit(self.path)
            query = {name: values[0] for name, values in parse_qs(parts.query).items()}
            body = self.rfile.read(int(self.headers.get("content-length", 0) or 0)).decode()
            if server.fake is None:
                raise AssertionError("no fake is being served")
            with server.lock:
                answer: Any = server.fake.answer(self.command, parts.path, query, body)
            if answer is Silence.CUT:
                self.close_connection = True
                return
            content = json.dumps(answer[1]).encode()
            self.send_response(answer[0])
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)
            self.wfile.flush()

        do_GET = do_POST = do_DELETE = _respond  # noqa: N815  # the names that http.server asks for

        def log_message(self, *_: object) -> None:
            """Quiet."""

    return Handler
