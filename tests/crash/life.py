"""A whole life of a node in the simulated cluster, with a controller that dies at chosen writes; and what must hold.

The in-memory API server and the cloud survive; the loop, its journal, its store and the provider do not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any, TypeVar

from autoscaler.cluster.api import NO_LABELS, Object, Page, Subresource, WatchEvent, list_all
from autoscaler.cluster.resources import EVENTS, LAUNCH_BATCHES, NODES, PODS, PROVISIONED_NODES, Resource
from autoscaler.simulation.api_server import ApiServer
from autoscaler.simulation.chronicle import Chronicle
from autoscaler.simulation.scenario import Scenario, parse_scenario
from autoscaler.simulation.simulation import Simulation
from instance_catalog.catalog import Catalog
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.loader import load_catalog
from providers.contract import InstanceState

T = TypeVar("T")
START = datetime(2026, 1, 5, 9, tzinfo=UTC)
# The pod runs for ten minutes, its node is empty for five, and then everything should be gone.
END = START + timedelta(hours=1)
SCENARIO = """
apiVersion: foreslice.dev/v1alpha1
kind: CapacityPool
metadata: {name: gpu}
spec:
  mode: Act
  requirements: [{key: topology.kubernetes.io/zone, operator: In, values: [us-east-1a, us-east-1b]}]
  nodeTemplateRef: {kind: KIND, name: gpu}
  drivers: {profiles: [nvidia]}
  limits: {nodes: 4}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: gpu}
spec: {spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.nvidia.com}}]}}}
---
apiVersion: v1
kind: Pod
metadata:
  name: work
  annotations: {simulation.foreslice.dev/copies: "2", simulation.foreslice.dev/runs-for: 10m}
spec:
  resourceClaims: [{name: gpu, resourceClaimTemplateName: gpu}]
  containers: [{name: main, image: pause, resources: {claims: [{name: gpu}], requests: {cpu: "1"}}}]
"""


class CrashError(BaseException):
    """The process is dead. Not an Exception, so that nothing handles it."""


@dataclass
class Dying:
    """The API as a process sees it that dies before or after its write number `at` (counted from 1)."""

    api: ApiServer
    at: int = 0
    before: bool = False
    step: str = ""
    kinds: list[str] = field(default_factory=list)

    @property
    def writes(self) -> int:
        """How many writes it has begun."""
        return len(self.kinds)

    def get(self, resource: Resource, name: str, *, namespace: str = "") -> Object:
        return self.api.get(resource, name, namespace=namespace)

    def list(
        self,
        resource: Resource,
        *,
        namespace: str = "",
        labels: Mapping[str, str] = NO_LABELS,
        limit: int = 500,
        page: str = "",
    ) -> Page:
        return self.api.list(resource, namespace=namespace, labels=labels, limit=limit, page=page)

    def watch(self, resource: Resource, *, resource_version: str, timeout_seconds: float = 0) -> Iterator[WatchEvent]:
        return self.api.watch(resource, resource_version=resource_version, timeout_seconds=timeout_seconds)

    def create(self, resource: Resource, manifest: Object) -> Object:
        return self._write("create", resource, lambda: self.api.create(resource, manifest))

    def update(self, resource: Resource, manifest: Object, *, subresource: Subresource = "") -> Object:
        def write() -> Object:
            return self.api.update(resource, manifest, subresource=subresource)

        status = manifest.get("status", {})
        reached = status.get("phase") or status.get("outcome")
        return self._write("update", resource, write, manifest["metadata"]["name"], f"to {reached}" if reached else "")

    def patch(
        self, resource: Resource, name: str, patch: Object, *, namespace: str = "", subresource: Subresource = ""
    ) -> Object:
        def write() -> Object:
            return self.api.patch(resource, name, patch, namespace=namespace, subresource=subresource)

        fields = (f"{part}.{name}" for part, inside in patch.items() for name in inside)
        told = ", ".join(path for path in fields if path != "metadata.resourceVersion")
        return self._write("patch", resource, write, name, told)

    def delete(self, resource: Resource, name: str, **options: Any) -> None:
        self._write("delete", resource, lambda: self.api.delete(resource, name, **options), name)

    def evict(self, name: str, *, namespace: str, uid: str = "") -> None:
        self._write("evict", PODS, lambda: self.api.evict(name, namespace=namespace, uid=uid), name)

    def _write(self, verb: str, resource: Resource, write: Callable[[], T], name: str = "", what: str = "") -> T:
        if resource == EVENTS:  # they tell, nothing follows from them
            return write()
        self.kinds.append(" ".join(part for part in (verb, resource.kind, what) if part))
        dies = self.writes == self.at
        if dies:
            self.step = f"{self.kinds[-1]} {name}"
        if dies and self.before:
            raise CrashError(self.step)
        answer = write()
        if dies:
            raise CrashError(self.step)
        return answer


@cache
def small_catalog() -> Catalog:
    catalog = load_catalog()
    return replace(catalog, types=FrozenMap({name: catalog.types[name] for name in ("g6.xlarge", "g6e.xlarge")}))


@cache
def scenario(kind: str = "SimulatedNodeTemplate") -> Scenario:
    return parse_scenario(SCENARIO.replace("KIND", kind))


@dataclass(frozen=True)
class Cloud:
    """Where the machines of a life come from: `kind` of node template, the simulation over it, and its machines.

    `machines` answers, for each machine there ever was, what tells it apart from a double and whether it has ended.
    """

    kind: str
    simulation: Callable[..., Simulation]
    machines: Callable[[Simulation], list[tuple[str, bool]]]


def _simulated(simulation: Simulation) -> list[tuple[str, bool]]:
    now, behaviour = simulation.clock.now(), simulation.cloud.behaviour
    machines = simulation.cloud.machines.values()
    return [(machine.node, machine.state(now, behaviour) is InstanceState.TERMINATED) for machine in machines]


SIMULATED = Cloud("SimulatedNodeTemplate", Simulation, _simulated)


def live(
    prepare: Callable[[Any], None], *deaths: tuple[int, bool], cloud: Cloud = SIMULATED
) -> tuple[Simulation, list[Dying]]:
    """A whole life, with one process after the other dying before (True) or after its write number …; the last lives.

    Answers the simulation and the controllers' processes in order.
    """
    simulation = cloud.simulation(catalog=small_catalog(), start=START)
    prepare(simulation)
    simulation.add(scenario(cloud.kind))
    processes = [*(Dying(simulation.api, at, before) for at, before in deaths), Dying(simulation.api)]
    for process in processes:
        simulation.new_loop(process)
        with suppress(CrashError):
            simulation.run(END)
    return simulation, processes


def check(simulation: Simulation, step: str, *, cloud: Cloud = SIMULATED) -> None:
    """Exactly one machine a node, no orphan, no double, nothing left; the pods ran."""
    machines = cloud.machines(simulation)
    names = [name for name, _ in machines]
    assert len(names) == len(set(names)) == 2, f"{names} after dying at: {step}"
    assert all(ended for _, ended in machines), f"{machines} after dying at: {step}"
    chronicle = Chronicle(simulation.api)
    chronicle.catch_up(simulation.clock.now())
    results = [pod.result for pod in chronicle.summary(scenario(cloud.kind).expected(), simulation.clock.now()).pods]
    assert results == ["Succeeded", "Succeeded"], f"{results} after dying at: {step}"
    for resource in (PROVISIONED_NODES, LAUNCH_BATCHES, NODES):
        left = [item["metadata"]["name"] for item in list_all(simulation.api, resource)[0]]
        assert left == [], f"{resource} {left} left after dying at: {step}"
