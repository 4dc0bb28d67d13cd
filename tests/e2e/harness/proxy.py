"""An HTTP proxy in front of the API server that spoils watches, as gateways and middleboxes do."""

from __future__ import annotations

import json
import socket
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from enum import Enum
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import urllib3
from kubernetes.client import ApiClient

from autoscaler.cluster.client.kubeconfig import load_configuration


class Spoil(Enum):
    """What becomes of watches."""

    NOTHING = "nothing"
    PAGE = "a page of HTML, with status 200"
    CUT = "a line that ends in its middle"
    BARE = "objects without resourceVersion"
    HANG = "nothing ever comes"


class Proxy:
    """Passes requests on as the identity of a kubeconfig. `kubeconfig` leads to it; `met` counts spoiled watches."""

    def __init__(self, identity: Path, kubeconfig: Path) -> None:
        configuration = load_configuration(kubeconfig=str(identity))
        self._upstream: str = configuration.host
        self._pool = ApiClient(configuration).rest_client.pool_manager
        self._spoil = Spoil.NOTHING
        self._watches: set[socket.socket] = set()
        self._over = threading.Event()
        self.met: Counter[Spoil] = Counter()
        self.kubeconfig = kubeconfig

    def spoil(self, how: Spoil) -> None:
        """From now on; watches that are open are cut."""
        self._spoil = how
        for connection in tuple(self._watches):
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def heal(self) -> None:
        """Spoil no further watch. Those that are open stay as they are."""
        self._spoil = Spoil.NOTHING

    @contextmanager
    def serving(self) -> Iterator[Proxy]:
        """On a port of this machine."""
        handler = type("Handler", (_Handler,), {"proxy": self})
        server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        server.daemon_threads = True
        server.block_on_close = False
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        address = f"http://127.0.0.1:{server.server_port}"
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "c", "cluster": {"server": address}}],
            "users": [{"name": "u", "user": {}}],
            "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
            "current-context": "x",
        }
        self.kubeconfig.write_text(json.dumps(config), encoding="utf-8")
        try:
            yield self
        finally:
            self._over.set()
            self.spoil(Spoil.NOTHING)
            server.shutdown()
            thread.join()
            server.server_close()

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        """Pass a request on and its answer back."""
        watching = "watch=true" in request.path
        spoil = self._spoil if watching else Spoil.NOTHING
        length = int(request.headers.get("Content-Length", 0))
        body = request.rfile.read(length) if length else None
        headers = {name: request.headers[name] for name in ("Accept", "Content-Type") if name in request.headers}
        if watching:
            self._watches.add(request.connection)
        try:
            if spoil is Spoil.PAGE:
                self.met[spoil] += 1
                self._begin(request, 200, "text/html")
                request.wfile.write(b"<html><title>Sign in</title></html>")
                return
            answer = self._pool.request(
                request.command,
                self._upstream + request.path,
                body=body,
                headers=headers,
                preload_content=False,
                retries=False,
            )
            self._begin(request, answer.status, answer.headers.get("Content-Type", ""))
            if spoil is Spoil.HANG:
                self.met[spoil] += 1
                request.wfile.flush()
                self._over.wait()
            elif watching:
                self._lines(request, answer, spoil)
            else:
                request.wfile.write(answer.read())
        except (OSError, urllib3.exceptions.HTTPError):
            pass  # either side has gone
        finally:
            self._watches.discard(request.connection)

    def _begin(self, request: BaseHTTPRequestHandler, status: int, kind: str) -> None:
        request.send_response(status)
        request.send_header("Content-Type", kind)
        request.end_headers()

    def _lines(self, request: BaseHTTPRequestHandler, answer: urllib3.BaseHTTPResponse, spoil: Spoil) -> None:
        rest = b""
        while chunk := answer.read1():
            *whole, rest = (rest + chunk).split(b"\n")
            for line in whole:
                sent = line + b"\n"
                if spoil is Spoil.CUT:
                    sent = line[: len(line) // 2]
                elif spoil is Spoil.BARE:
                    sent = json.dumps(_bare(json.loads(line))).encode() + b"\n"
                self.met[spoil] += 1
                request.wfile.write(sent)
                request.wfile.flush()
                if spoil is Spoil.CUT:
                    return


def _bare(event: dict[str, Any]) -> dict[str, Any]:
    event["object"]["metadata"].pop("resourceVersion", None)
    return event


class _Handler(BaseHTTPRequestHandler):
    proxy: Proxy

    def _respond(self) -> None:
        self.proxy.answer(self)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _respond  # noqa: N815  # the names that http.server asks for

    def log_message(self, *_: object) -> None:
        """Quiet."""
