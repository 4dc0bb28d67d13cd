"""Foreslice in a cluster as its users have it: installed by Helm from the chart, its controller a real process.

The process runs beside the cluster, with the settings, the service account and so the rights that the chart renders.
KWOK plays the kubelets. Everything the service account asks is in the audit log.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import httpx
import yaml

from autoscaler.clock import SystemClock
from autoscaler.cluster.api import NotFoundError, Object
from autoscaler.cluster.client.client import KubernetesClient
from autoscaler.cluster.client.transport import connect
from autoscaler.cluster.resources import (
    BY_KIND,
    CAPACITY_POOLS,
    NODES,
    PODS,
    PROVISIONED_NODES,
    RESOURCE_SLICES,
    Resource,
)
from autoscaler.execution.machine import machine_of
from autoscaler.kube.writing.objects import write_node
from autoscaler.kube.writing.slices import slice_manifest
from instance_catalog.dataclass import replace
from instance_catalog.drivers.facts import builtin_device_classes
from instance_catalog.files.loader import load_catalog
from instance_catalog.kubernetes import labels
from instance_catalog.kubernetes.profile import REFERENCE
from instance_catalog.prediction.concrete import make_concrete
from providers.contract import LaunchRequest
from providers.simulated.machines import Machine
from tests.e2e.harness.control_plane import PATIENCE, ControlPlane
from tests.e2e.harness.manifests import IMAGE
from tests.e2e.harness.steered import SteeredClock
from tests.e2e.harness.toolbox import Kwok, helm

ROOT: Final = Path(__file__).parents[3]
CHARTS: Final = ROOT / "deploy/charts"
NAMESPACE: Final = "foreslice-system"
NAME: Final = "foreslice"
ACCOUNT: Final = f"system:serviceaccount:{NAMESPACE}:{NAME}"
# Tests do not wait for what is looked at again. Changes are gathered as in production: watches of different kinds do
# not arrive together, and whoever decides in between sees a pod as pending that is bound already.
_ANY_PORT: Final = "127.0.0.1:0"
BRISK: Final = {
    "loop": {"resync": "2s"},
    "serve": {"metricsAddress": _ANY_PORT, "healthAddress": _ANY_PORT, "pageAddress": _ANY_PORT},
}


class Installation:
    """A cluster with Foreslice in it. A context manager; `api` is an administrator's."""

    def __init__(
        self,
        folder: Path,
        *,
        charts: Path = CHARTS,
        values: Object | None = None,
        control_plane: ControlPlane | None = None,
        jobs_end: bool = True,
    ) -> None:
        """`jobs_end`: pods of Jobs end as soon as they run."""
        self.folder = folder
        self._jobs_end = jobs_end
        self.control_plane = control_plane or ControlPlane(audited=True)
        self._charts = charts
        self._values = values or {}
        self._stack = ExitStack()

    def __enter__(self) -> Installation:
        with ExitStack() as stack:
            stack.enter_context(self.control_plane)
            self._admin = self.control_plane.identity("admin-client", "system:masters")
            clock = SystemClock()
            self.api = KubernetesClient(connect(clock, kubeconfig=str(self._admin)), clock)
            for facts in builtin_device_classes(REFERENCE):
                selectors = [{"cel": {"expression": text}} for text in facts.selectors]
                manifest = {"metadata": {"name": facts.name}, "spec": {"selectors": selectors}}
                self.api.create(BY_KIND["DeviceClass"], manifest)
            self.install(self._charts)
            kwok = self.control_plane.identity("kwok", "system:masters")
            stack.enter_context(Kwok(kwok, self.folder / "kwok.log", jobs_end=self._jobs_end))
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def install(self, charts: Path, **values: Any) -> None:
        """Install or upgrade both charts."""
        file = self.folder / "values.json"
        given = {"image": {"repository": IMAGE}, "settings": BRISK, **self._values, **values}
        file.write_text(json.dumps(given), encoding="utf-8")
        there = ["--namespace", NAMESPACE, "--create-namespace"]
        helm("upgrade", "--install", "foreslice-crds", str(charts / "foreslice-crds"), *there, kubeconfig=self._admin)
        release = ["upgrade", "--install", NAME, str(charts / "foreslice"), "--values", str(file), *there]
        helm(*release, kubeconfig=self._admin)
        self.wait_until(lambda: self._served(), "the custom resources")

    def roll_back(self) -> None:
        """Go back to the release before, as docs/operations.md says it: the custom resources stay as they are."""
        helm("rollback", NAME, "--namespace", NAMESPACE, kubeconfig=self._admin)

    @property
    def settings(self) -> Object:
        """What the chart gives the controller."""
        found = self.api.get(Resource("", "v1", "configmaps", "ConfigMap", namespaced=True), NAME, namespace=NAMESPACE)
        settings: Object = yaml.safe_load(found["data"]["settings.yaml"])
        return settings

    def apply(self, text: str) -> None:
        """Create all objects of a text."""
        for document in yaml.safe_load_all(text):
            self.api.create(BY_KIND[document["kind"]], document)

    def wait_until(self, done: Callable[[], bool], what: str, *, seconds: float = PATIENCE) -> None:
        """Poll until something holds; fails with the ends of the processes' logs."""
        try:
            self.control_plane.wait_until(done, what, seconds=seconds)
        except AssertionError as error:
            logs = [
                f"--- {path.name}\n{path.read_text(encoding='utf-8')[-2000:]}" for path in self.folder.glob("*.log")
            ]
            raise AssertionError("\n".join([*logs, str(error)[:2000]])) from None

    def mode(self, pool: str, mode: str) -> None:
        """Let a pool observe or act."""
        self.api.patch(CAPACITY_POOLS, pool, {"spec": {"mode": mode}})

    def pods(self) -> dict[str, Object]:
        """The pods of namespace default, by name."""
        return {found["metadata"]["name"]: found for found in self.api.list(PODS, namespace="default").items}

    def running(self, *names: str) -> bool:
        """Whether all these pods run."""
        found = self.pods()
        return all(found[name]["status"]["phase"] == "Running" for name in names)

    def is_empty(self) -> bool:
        """Whether no node, ours or in Kubernetes, is left."""
        return not self.api.list(NODES).items and not self.api.list(PROVISIONED_NODES).items

    def join(self, request: LaunchRequest, machine: Machine) -> None:
        """Let a machine become a Node with slices. As drivers publish: with the Node its slices go."""
        found = machine_of(request, machine.offering, machine.node, catalog=load_catalog(), profile=REFERENCE)
        manifest = write_node(replace(found.node, provider_id=machine.provider_id))
        manifest["metadata"].setdefault("annotations", {})[labels.KWOK_NODE] = "fake"
        created = self.api.create(NODES, manifest)
        owner = {"apiVersion": "v1", "kind": "Node", "name": machine.node, "uid": created["metadata"]["uid"]}
        for piece in make_concrete(found.slices, node_name=machine.node, seed=machine.id):
            published = slice_manifest(piece)
            published["metadata"]["ownerReferences"] = [owner]
            self.api.create(RESOURCE_SLICES, published)

    @contextmanager
    def controller(
        self, log: str = "controller.log", *, root: Path = ROOT, clock: SteeredClock | None = None, **environment: str
    ) -> Iterator[Controller]:
        """`foreslice run`, of the repository at `root`, as the chart's service account; by a clock that a test sets."""
        account = self.control_plane.service_account(NAMESPACE, NAME)
        settings = self.folder / f"settings-{Path(log).stem}.yaml"  # another process may be reading its own just now
        settings.write_text(yaml.safe_dump(self.settings), encoding="utf-8")
        command = ["autoscaler.cli", "run", "--kubeconfig", str(account), "--config", str(settings)]
        if clock is not None:
            command = ["tests.e2e.harness.steered", str(account), str(settings), str(clock.file)]
        started = Controller(command, self.folder / log, environment, root=root)
        try:
            yield started
            started.stop()  # gives its Lease back, so that the next one need not wait for it to run out
        finally:
            started.stop(signal.SIGKILL)

    def _served(self) -> bool:
        with suppress(NotFoundError):
            return all(self.api.list(kind).items is not None for kind in _OURS)
        return False


_OURS: Final = tuple(found for found in BY_KIND.values() if found.group == "foreslice.dev")


class Controller:
    """`foreslice run` as a process."""

    def __init__(self, command: Sequence[str], log: Path, environment: dict[str, str], *, root: Path) -> None:
        """`command` is a module and its arguments."""
        self._log = log
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-m", *command],
                cwd=root,
                # Other versions need not know the variables of this one's commands, and a controller keeps nothing.
                env={**{k: v for k, v in os.environ.items() if k != "FORESLICE_CACHE_DIR"}, **environment},
                stdout=output,
                stderr=output,
            )

    @property
    def log(self) -> str:
        """What it has said so far."""
        return self._log.read_text(encoding="utf-8")

    def answer(self, serves: str, path: str) -> httpx.Response:
        """What it answers over HTTP; the log says where it listens."""
        lines = (json.loads(line) for line in self.log.splitlines())
        (address,) = (line["address"] for line in lines if line["event"] == "listening" and line["serves"] == serves)
        return httpx.get(f"http://{address}{path}", trust_env=False, timeout=PATIENCE)

    @property
    def lives(self) -> bool:
        """Whether it still runs."""
        return self._process.poll() is None

    @property
    def resident(self) -> int:
        """Bytes of memory that it holds."""
        pages = int(Path(f"/proc/{self._process.pid}/statm").read_text(encoding="ascii").split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")

    @property
    def cpu_seconds(self) -> float:
        """What it has used of one core so far."""
        # proc(5): the name in parentheses may contain spaces; utime and stime are the 12th and 13th field after it.
        fields = Path(f"/proc/{self._process.pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
        return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")

    def send(self, number: signal.Signals) -> None:
        """Send it a signal."""
        self._process.send_signal(number)

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Its exit status after a signal; that of its end if it has ended already."""
        self.send(number)
        return self._process.wait(timeout=PATIENCE)
