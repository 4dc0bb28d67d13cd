"""The in-memory API server behind real HTTP, as far as reading goes: for commands that connect with a kubeconfig."""

from __future__ import annotations

import json
import threading
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from autoscaler.clock import VirtualClock
from autoscaler.cluster import resources
from autoscaler.cluster.resources import Resource
from autoscaler.simulation.api_server import ApiServer

EVERY = tuple(value for value in vars(resources).values() if isinstance(value, Resource))


@dataclass(frozen=True, slots=True)
class Spoiled:
    """An answer that no API server gives. `lost` bytes of the body are announced and not sent."""

    body: bytes
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=lambda: {"Content-Type": "text/html"})
    lost: int = 0


@dataclass
class HttpApi:
    """What is served. `served` are versions of resource.k8s.io, `gangs` of scheduling.k8s.io beside v1. `denied` (verb,
    plural) pairs are refused; plurals that are `missing` are not known to the server."""

    objects: ApiServer = field(default_factory=lambda: ApiServer(VirtualClock()))
    version: str = "v1.36.3"
    served: tuple[str, ...] = ("v1", "v1beta2", "v1beta1")
    gangs: tuple[str, ...] = ()
    denied: Collection[tuple[str, str]] = ()
    missing: Collection[str] = ()
    spoiled: Mapping[str, Spoiled] = field(default_factory=dict)  # by the path's beginning: what answers instead
    dry_runs: bool = False  # whether they are permitted; what they would create is kept as it is
    requests: list[str] = field(default_factory=list)
    kubeconfig: str = ""

    def answer(self, method: str, url: str, body: Any) -> tuple[int, Mapping[str, Any]]:
        """(status, JSON)."""
        self.requests.append(f"{method} {url}")
        path, query = urlsplit(url).path, {k: v[0] for k, v in parse_qs(urlsplit(url).query).items()}
        if path == "/version":
            return 200, {"gitVersion": self.version}
        versions = {"/apis/resource.k8s.io": self.served, "/apis/scheduling.k8s.io": ("v1", *self.gangs)}
        if path in versions:
            return 200, {"versions": [{"version": version} for version in versions[path]]}
        if method == "POST" and path.endswith("/selfsubjectaccessreviews"):
            asked = body["spec"]["resourceAttributes"]
            allowed = (asked["verb"], asked["resource"]) not in self.denied
            return 201, {"metadata": {}, "status": {"allowed": allowed}}
        if query.get("dryRun") == "All":
            return (201, body) if self.dry_runs else (403, {"reason": "Forbidden", "message": "cannot create"})
        parts = path.strip("/").split("/")
        group, version, rest = ("", parts[1], parts[2:]) if parts[0] == "api" else (parts[1], parts[2], parts[3:])
        if not rest:
            return 200, {"resources": [{"name": r.plural} for r in EVERY if r.group == group]}
        namespace = ""
        if len(rest) > 2 and rest[0] == "namespaces":
            _, namespace, *rest = rest
        return self._listed(group, version, rest, {**query, "namespace": namespace})

    def _listed(
        self, group: str, version: str, rest: list[str], query: Mapping[str, str]
    ) -> tuple[int, dict[str, Any]]:
        resource = next((r for r in EVERY if (r.group, r.plural) == (group, rest[0])), None)
        known = resource is not None and (version == resource.version or version in (*self.served, *self.gangs))
        if resource is None or not known or resource.plural in self.missing:
            return 404, {"reason": "NotFound", "message": "the server could not find the requested resource"}
        if ("list", resource.plural) in self.denied:
            return 403, {"reason": "Forbidden", "message": f"cannot list {resource}"}
        page = self.objects.list(resource, namespace=query["namespace"], page=query.get("continue", ""))
        if len(rest) > 1:
            found = [item for item in page.items if item["metadata"]["name"] == rest[1]]
            return (200, found[0]) if found else (404, {"reason": "NotFound", "message": "not found"})
        metadata = {"resourceVersion": page.resource_version, "continue": page.next_page}
        return 200, {"metadata": metadata, "items": list(page.items)}


@contextmanager
def serving(folder: Path, **settings: Any) -> Iterator[HttpApi]:
    """The API on a port of this machine, with a kubeconfig for it in `folder`."""
    api = HttpApi(**settings)

    class Handler(BaseHTTPRequestHandler):
        def _respond(self) -> None:
            length = int(self.headers.get("Content-Length", 0))
            body = json.loads(self.rfile.read(length)) if length else None
            spoiled = next((found for path, found in api.spoiled.items() if self.path.startswith(path)), None)
            if spoiled is None:
                status, answer = api.answer(self.command, self.path, body)
                spoiled = Spoiled(json.dumps(answer).encode(), status, {"Content-Type": "application/json"})
            else:
                api.requests.append(f"{self.command} {self.path}")
            self.send_response(spoiled.status)
            for name, value in spoiled.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(spoiled.body) + spoiled.lost))
            self.end_headers()
            self.wfile.write(spoiled.body)
            self.close_connection = bool(spoiled.lost)

        do_GET = do_POST = _respond  # noqa: N815  # the names that http.server asks for

        def log_message(self, *_: object) -> None:
            """Quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    cluster = {"name": "c", "cluster": {"server": f"http://127.0.0.1:{server.server_port}"}}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [cluster],
        "users": [{"name": "u", "user": {}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    path = folder / "kubeconfig"
    path.write_text(json.dumps(config))
    api.kubeconfig = str(path)
    try:
        yield api
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
