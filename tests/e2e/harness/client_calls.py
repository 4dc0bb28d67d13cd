"""Cluster Autoscaler's client calls: a Go program that makes them, against the service that `foreslice run` serves."""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

from autoscaler.cluster.api import list_all
from autoscaler.cluster.resources import NODES, PODS, RESOURCE_SLICES
from autoscaler.externalgrpc.server import Certificates, GrpcServer, credentials_of
from autoscaler.externalgrpc.wire import Json
from tests.e2e.harness.authority import Authority
from tests.go_binary import GoProgram
from tests.unit.externalgrpc.cluster import Cluster

_PROGRAM: Final = GoProgram(
    "calls", Path(__file__).parent / "calls", requires="k8s.io/api", takes="about a minute on two cores"
)
DRIVER: Final = "gpu.nvidia.com"
LOOP: Final = 10  # seconds from loop to loop
_PATIENCE: Final = 60.0  # real seconds for an answer on a loaded machine; an answer that does not come is a failure


class Served:
    """The service with mTLS beside a simulated cluster in virtual time, as a process that can be ended."""

    def __init__(self, cluster: Cluster, folder: Path, authority: Authority, *, age: timedelta = timedelta(0)) -> None:
        """`age` is that of its certificate."""
        self.cluster = cluster
        self._answer: Callable[[str, Json], Json] = lambda method, asked: cluster.provider.call(method, asked)
        certificate, key = authority.server(age=age)
        self._files = Certificates(
            _written(folder, "server.crt", certificate),
            _written(folder, "server.key", key),
            _written(folder, "ca.crt", authority.pem),
        )
        self._server = self._started("127.0.0.1:0")
        self.port = self._server.port

    def _started(self, address: str) -> GrpcServer:
        credentials = credentials_of(address, self._files, insecure=False, mutual=True)
        server = GrpcServer.of_provider(
            lambda method, asked: self._answer(method, asked), address, credentials, lambda *_: None
        )
        server.start()
        return server

    def answering(self, answer: Callable[[str, Json], Json] | None) -> None:
        """Answer so instead, or as always."""
        self._answer = answer or (lambda method, asked: self.cluster.provider.call(method, asked))

    def end(self) -> None:
        """The process ends."""
        self._server.stop()

    def restart(self) -> None:
        """Another process with empty memory at the same address."""
        self.end()
        self.cluster.restart_service()
        self._server = self._started(f"127.0.0.1:{self.port}")


class Held:
    """Answers one method only after `release`: the caller gives up before."""

    def __init__(self, cluster: Cluster, method: str, *, before: bool) -> None:
        """`before`: hold the call before it is carried out, otherwise only its answer."""
        self._cluster, self._method, self._before = cluster, method, before
        self._released = threading.Event()
        self.done = threading.Event()

    def __call__(self, method: str, asked: Json) -> Json:
        if method != self._method:
            return self._cluster.provider.call(method, asked)
        if self._before:
            assert self._released.wait(_PATIENCE)
        found = self._cluster.provider.call(method, asked)
        if not self._before:
            assert self._released.wait(_PATIENCE)
        self.done.set()
        return found

    def release(self) -> None:
        """Let it go on, and wait until it is done."""
        self._released.set()
        assert self.done.wait(_PATIENCE)


class Autoscaler:
    """The Go program as a process; it remembers what Cluster Autoscaler remembers."""

    def __init__(self, served: Served, folder: Path, authority: Authority, *, age: timedelta = timedelta(0)) -> None:
        """`age` is that of its certificate."""
        self._cluster = served.cluster
        certificate, key = authority.client("cluster-autoscaler", age=age)
        self.config: dict[str, Any] = {
            "address": f"localhost:{served.port}",
            "cert": _written(folder, "client.crt", certificate),
            "key": _written(folder, "client.key", key),
            "cacert": _written(folder, "ca.crt", authority.pem),
        }
        self._process = subprocess.Popen(
            [str(_PROGRAM.binary())], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.start()

    def start(self, **config: Any) -> None:
        """Cluster Autoscaler starts, and has forgotten what it knew."""
        self._ask(start={**self.config, **config})

    def connect(self) -> None:
        """Wait until the connection is there again: gRPC makes it anew by itself, not before a second has passed."""
        assert self._ask(connect=True) == {"connected": True}

    def loop(self, *, unneeded: tuple[str, ...] = ()) -> Json:
        """One loop over what the API server has now."""
        published = {found["spec"].get("nodeName") for found in self._listed(RESOURCE_SLICES)}
        nodes = [
            {
                "name": found["metadata"]["name"],
                "providerID": found["spec"]["providerID"],
                # processors/customresources/dra_processor.go: a node without its slices is not ready yet.
                "ready": _is_ready(found) and found["metadata"]["name"] in published,
            }
            for found in self._listed(NODES)
            if found.get("spec", {}).get("providerID")
        ]
        pending = [pod for pod in self._listed(PODS) if not pod["spec"].get("nodeName")]
        return self._ask(
            loop={
                "now": self._cluster.simulation.clock.now().timestamp(),
                "nodes": nodes,
                "pods": len(pending),
                "devices": 1,
                "driver": DRIVER,
                "unneeded": [node for node in nodes if node["providerID"] in unneeded],
            }
        )

    def loops(self, *, minutes: int) -> list[Json]:
        """A loop every ten seconds of virtual time."""
        found = []
        for _ in range(minutes * 60 // LOOP):
            self._cluster.run(seconds=LOOP)
            found.append(self.loop())
        return found

    def increase(self, group: str, delta: int) -> Json:
        """The call alone."""
        return self._ask(increase={"id": group, "delta": delta})

    def delete(self, group: str, *machines: str) -> Json:
        """The call alone."""
        return self._ask(delete={"id": group, "nodes": [{"name": each, "providerID": each} for each in machines]})

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(_PATIENCE)
        self._process.stdout.close()

    def _ask(self, **asked: Any) -> Json:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(asked) + "\n")
        self._process.stdin.flush()
        found: Json = json.loads(self._process.stdout.readline())
        return found

    def _listed(self, resource: Any) -> list[Json]:
        return list(list_all(self._cluster.simulation.api, resource)[0])


def _is_ready(found: Json) -> bool:
    conditions = found.get("status", {}).get("conditions", [])
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def _written(folder: Path, name: str, content: bytes) -> str:
    folder.mkdir(exist_ok=True)
    (folder / name).write_bytes(content)
    return str(folder / name)
