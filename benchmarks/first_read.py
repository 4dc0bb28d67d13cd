"""The first reconcile in a large cluster, on the clock: every object is read over HTTP.

python -m benchmarks.first_read [--nodes 5000]. The cluster is that of benchmarks/scale.py, the client that of
`foreslice run`. Another process answers with pages of JSON that it wrote before the measurement, so the time is that of
the controller and of the connection, not that of an API server.
"""

from __future__ import annotations

import argparse
import gc
import json
import multiprocessing
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing.connection import Connection
from typing import Final, TypeAlias
from urllib.parse import parse_qs, urlsplit

from kubernetes.client import Configuration

from autoscaler.cli.main import collect_rarely
from autoscaler.clock import SystemClock
from autoscaler.cluster import resources
from autoscaler.cluster.api import KubernetesApi, NotFoundError
from autoscaler.cluster.client.client import KubernetesClient
from autoscaler.cluster.client.transport import Transport
from autoscaler.cluster.resources import Resource
from benchmarks.reconciles import Reconciles
from benchmarks.scale import Filled

_RESOURCES: Final = tuple(found for found in vars(resources).values() if isinstance(found, Resource))
_NOT_FOUND: Final = b'{"kind":"Status","code":404,"reason":"NotFound","message":"it is not served"}'
Pages: TypeAlias = Mapping[tuple[str, str], bytes]  # by path and token: where the page before it ended


@dataclass(frozen=True, slots=True)
class Server:
    """Where the pages are served."""

    port: int
    pages: int
    mebibytes: int


def rendered(api: KubernetesApi) -> Iterator[tuple[tuple[str, str], bytes]]:
    """All lists of an API server, page by page, as JSON."""
    for resource in _RESOURCES:
        root = f"/apis/{resource.group}/{resource.version}" if resource.group else f"/api/{resource.version}"
        token, more = "", True
        while more:
            try:
                page = api.list(resource, page=token)
            except NotFoundError:
                break
            metadata = {"resourceVersion": page.resource_version, "continue": page.next_page}
            body = json.dumps({"metadata": metadata, "items": page.items}, separators=(",", ":"))
            yield (f"{root}/{resource.plural}", token), body.encode()
            token, more = page.next_page, bool(page.next_page)


def _serve(pipe: Connection, nodes: int) -> None:
    pages = dict(rendered(Filled(nodes).api))
    gc.collect()
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(pages))
    pipe.send(Server(server.server_port, len(pages), sum(map(len, pages.values())) >> 20))
    server.serve_forever()


def _handler(pages: Pages) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1  # head and body in one write: otherwise the second waits for the first to be acknowledged

        def _list(self) -> None:
            url = urlsplit(self.path)
            token = parse_qs(url.query).get("continue", [""])[0]
            body = pages.get((url.path, token))
            self._send(404 if body is None else 200, body or _NOT_FOUND)

        def _write(self) -> None:
            """What is written counts as stored."""
            sent = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            stored = {**sent, "metadata": {**sent.get("metadata", {}), "resourceVersion": "1"}}
            self._send(200, json.dumps(stored).encode())

        def _send(self, status: int, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = _list  # noqa: N815  # the names that http.server asks for
        do_POST = do_PATCH = do_PUT = _write  # noqa: N815

        def log_message(self, *_: object) -> None:
            """Quiet."""

    return Handler


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--nodes", type=int, default=5000, help="nodes of eight devices")
    options = parser.parse_args()
    collect_rarely()  # as the controller does
    context = multiprocessing.get_context("spawn")
    pipe, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(theirs, options.nodes), daemon=True)
    process.start()
    server: Server = pipe.recv()
    clock = SystemClock()
    transport = Transport(Configuration(host=f"http://127.0.0.1:{server.port}"), clock)
    reconciles = Reconciles(KubernetesClient(transport, clock))
    began, cpu = time.perf_counter(), time.process_time()
    reconciles.act()
    seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
    process.terminate()
    print(f"| {options.nodes} nodes: pages of at most 500 objects | {server.pages} |")
    print(f"| MiB of JSON in them | {server.mebibytes} |")
    print(f"| the first reconcile, seconds on the clock | {seconds:.2f} |")
    print(f"| its CPU seconds | {cpu:.2f} |")
    print(f"| of them: reading | {reconciles.seconds['observe']:.2f} |")


if __name__ == "__main__":
    main()
