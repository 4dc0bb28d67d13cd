"""Kill the controller before and after every write it makes, restart it with empty memory, and count the machines.

The in-memory API server and cloud survive; the loop, its journal and its store do not. Between two writes lies every
provider call, so dying before each write is dying after each call.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

import pytest

from autoscaler.cluster.api import Object, Page, Subresource, WatchEvent, list_all
from autoscaler.cluster.resources import EVENTS, LAUNCH_BATCHES, NODES, PODS, PROVISIONED_NODES, Resource
from autoscaler.simulation.api_server import ApiServer
from autoscaler.simulation.chronicle import Chronicle
from autoscaler.simulation.scenario import Scenario, parse_scenario
from autoscaler.simulation.simulation import Simulation
from instance_catalog.catalog import Catalog
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.loader import load_catalog
from providers.contract import InstanceState, OfferingKey
from providers.simulated.cloud import Call, Fault

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
  nodeTemplateRef: {kind: SimulatedNodeTemplate, name: default}
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
    writes: int = 0
    step: str = ""

    def get(self, resource: Resource, name: str, *, namespace: str = "") -> Object:
        return self.api.get(resource, name, namespace=namespace)

    def list(self, resource: Resource, *, namespace: str = "", limit: int = 500, page: str = "") -> Page:
        return self.api.list(resource, namespace=namespace, limit=limit, page=page)

    def watch(self, resource: Resource, *, resource_version: str, timeout_seconds: float = 0) -> Iterator[WatchEvent]:
        return self.api.watch(resource, resource_version=resource_version, timeout_seconds=timeout_seconds)

    def create(self, resource: Resource, manifest: Object) -> Object:
        return self._write(f"create {resource}", resource, lambda: self.api.create(resource, manifest))

    def update(self, resource: Resource, manifest: Object, *, subresource: Subresource = "") -> Object:
        step = f"update {resource} {manifest['metadata']['name']} {manifest.get('status', {})}"
        return self._write(step, resource, lambda: self.api.update(resource, manifest, subresource=subresource))

    def patch(
        self, resource: Resource, name: str, patch: Object, *, namespace: str = "", subresource: Subresource = ""
    ) -> Object:
        def write() -> Object:
            return self.api.patch(resource, name, patch, namespace=namespace, subresource=subresource)

        return self._write(f"patch {resource} {name} {patch}", resource, write)

    def delete(self, resource: Resource, name: str, **options: Any) -> None:
        self._write(f"delete {resource} {name}", resource, lambda: self.api.delete(resource, name, **options))

    def evict(self, name: str, *, namespace: str, uid: str = "") -> None:
        self._write(f"evict {name}", PODS, lambda: self.api.evict(name, namespace=namespace, uid=uid))

    def _write(self, step: str, resource: Resource, write: Any) -> Any:
        if resource == EVENTS:  # they tell, nothing follows from them
            return write()
        self.writes += 1
        dies = self.writes == self.at
        if dies:
            self.step = step
        if dies and self.before:
            raise CrashError(step)
        answer = write()
        if dies:
            raise CrashError(step)
        return answer


@cache
def small_catalog() -> Catalog:
    catalog = load_catalog()
    return replace(catalog, types=FrozenMap({name: catalog.types[name] for name in ("g6.xlarge", "g6e.xlarge")}))


@cache
def scenario() -> Scenario:
    return parse_scenario(SCENARIO)


def withdrawn(simulation: Simulation) -> None:
    """The first zone sells nothing, so the second attempt of the batch succeeds."""
    simulation.cloud.withdraw(OfferingKey("g6.xlarge", "us-east-1a", "on-demand"))


def one_left(simulation: Simulation) -> None:
    """One machine in the first zone, the other in the second."""
    simulation.cloud.limit(OfferingKey("g6.xlarge", "us-east-1a", "on-demand"), 1)


def deaf(simulation: Simulation) -> None:
    """The answers to the first launches are lost."""
    simulation.cloud.inject(Call.LAUNCH, *[Fault.LOST_ANSWER] * 4)


def undisturbed(simulation: Simulation) -> None:
    """Everything goes well."""


WORLDS = [undisturbed, withdrawn, one_left, deaf]


def live(prepare: Any, *, at: int = 0, before: bool = False) -> tuple[Simulation, Dying]:
    """A whole life, with the controller killed at its write number `at` and started again."""
    simulation = Simulation(catalog=small_catalog(), start=START)
    prepare(simulation)
    simulation.add(scenario())
    dying = Dying(simulation.api, at, before)
    simulation.new_loop(dying)
    try:
        simulation.run(END)
    except CrashError:
        simulation.new_loop()
        simulation.run(END)
    return simulation, dying


def check(simulation: Simulation, step: str) -> None:
    """Exactly one machine a node, no orphan, no double, nothing left; the pods ran."""
    machines = list(simulation.cloud.machines.values())
    names = [machine.node for machine in machines]
    assert len(names) == len(set(names)) == 2, f"{names} after dying at: {step}"
    states = {m.state(simulation.clock.now(), simulation.cloud.behaviour) for m in machines}
    assert states == {InstanceState.TERMINATED}, f"{states} after dying at: {step}"
    chronicle = Chronicle(simulation.api)
    chronicle.catch_up(simulation.clock.now())
    results = [pod.result for pod in chronicle.summary(scenario().expected(), simulation.clock.now()).pods]
    assert results == ["Succeeded", "Succeeded"], f"{results} after dying at: {step}"
    for resource in (PROVISIONED_NODES, LAUNCH_BATCHES, NODES):
        left = [item["metadata"]["name"] for item in list_all(simulation.api, resource)[0]]
        assert left == [], f"{resource} {left} left after dying at: {step}"


@pytest.mark.parametrize("prepare", WORLDS, ids=lambda world: world.__name__)
def test_a_life_without_crash(prepare: Any) -> None:
    simulation, dying = live(prepare)
    check(simulation, "nothing")
    assert dying.writes > 20


@pytest.mark.parametrize("before", [True, False], ids=["before", "after"])
@pytest.mark.parametrize("prepare", WORLDS, ids=lambda world: world.__name__)
def test_dying_at_any_write_leaves_exactly_one_machine_a_node(prepare: Any, before: bool) -> None:
    writes = live(prepare)[1].writes
    for at in range(1, writes + 1):
        simulation, dying = live(prepare, at=at, before=before)
        assert dying.step, f"write {at} of {writes} was never reached"
        check(simulation, dying.step)
