"""Pods come at the worst moment: no running pod is evicted from a node that goes because it is empty.

A pod that comes while a node is about to go either keeps it, or gets another one. It never runs and is ended.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta

import pytest

from autoscaler.cluster.api import list_all
from autoscaler.cluster.intercepted import InterceptedApi
from autoscaler.cluster.resources import EVENTS, NODES, PODS, PROVISIONED_NODES, Resource
from autoscaler.simulation.scenario import parse_scenario
from autoscaler.simulation.simulation import Simulation
from instance_catalog.types.catalog import Catalog
from providers.simulated.machines import Behaviour
from tests.builders import shipped

START = datetime(2026, 1, 5, 9, tzinfo=UTC)
POOL = """
apiVersion: foreslice.dev/v1alpha1
kind: CapacityPool
metadata: {name: gpu}
spec:
  mode: Act
  requirements: [{key: topology.kubernetes.io/zone, operator: In, values: [us-east-1a]}]
  nodeTemplateRef: {kind: SimulatedNodeTemplate, name: default}
  drivers: {profiles: [nvidia]}
  disruption: {after: 2s}
  limits: {nodes: NODES}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: gpu}
spec: {spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.nvidia.com, count: 1}}]}}}
"""
POD = """
apiVersion: v1
kind: Pod
metadata:
  name: NAME
  annotations: {simulation.foreslice.dev/runs-for: 5m}
spec:
  resourceClaims: [{name: gpu, resourceClaimTemplateName: gpu}]
  containers: [{name: main, image: pause, resources: {claims: [{name: gpu}], requests: {cpu: "1"}}}]
"""
WAVE = 2


def catalog() -> Catalog:
    return shipped("g6.xlarge")


def pods(wave: str) -> str:
    return "---".join(POD.replace("NAME", f"{wave}{number}") for number in range(WAVE))


def simulation(*documents: str, nodes: int = 8, behaviour: Behaviour | None = None) -> Simulation:
    made = Simulation(catalog=catalog(), start=START, **({"behaviour": behaviour} if behaviour else {}))
    made.add(parse_scenario("---".join((POOL.replace("NODES", str(nodes)), *documents))))
    return made


class Interrupted:
    """The API of a controller: after its write number `at` (the events left out), `then` happens."""

    def __init__(self, made: Simulation, at: int, then: Callable[[], None]) -> None:
        self.writes = 0
        self._at, self._then = at, then
        made.new_loop(InterceptedApi(made.api, self._attend))

    @contextmanager
    def _attend(self, verb: str, resource: Resource) -> Iterator[None]:
        yield
        if verb not in ("get", "list", "watch") and resource != EVENTS:
            self.writes += 1
            if self.writes == self._at:
                self._then()


def lost(made: Simulation) -> list[str]:
    """Pods that ran and were ended by somebody, before they had finished."""
    phases: dict[str, str] = {}
    found = []
    for event in made.api.watch(PODS, resource_version="0"):
        if event.type == "BOOKMARK":
            continue
        name = event.object["metadata"]["name"]
        if event.type == "DELETED" and phases.get(name) in ("Pending", "Running"):
            found.append(name)
        phases[name] = event.object.get("status", {}).get("phase", "")
    return sorted(set(found))


def finished(made: Simulation) -> int:
    """How many pods ran to their end; they go with their nodes."""
    events = made.api.watch(PODS, resource_version="0")
    done = (event.object for event in events if event.object.get("status", {}).get("phase") == "Succeeded")
    return len({pod["metadata"]["name"] for pod in done})


def idle_writes() -> int:
    """How many writes a life has, of which the last ones end the nodes."""
    made = simulation(pods("a"))
    api = Interrupted(made, 0, lambda: None)
    made.run(START + timedelta(minutes=30))
    assert list_all(made.api, NODES)[0] == ()
    return api.writes


@pytest.mark.slow
@pytest.mark.parametrize("restarts", [False, True], ids=["alive", "killed"])
def test_pods_that_come_after_any_write_of_a_drain_run_to_their_end(restarts: bool) -> None:
    writes = idle_writes()
    assert writes > 20
    for at in range(writes - 16, writes + 1):
        made = simulation(pods("a"))

        def come(made: Simulation = made) -> None:
            made.add(parse_scenario(pods("b")))
            made.settle_cluster()  # whoever can be bound is bound, and runs, before the controller goes on
            if restarts:
                made.new_loop()
                raise KilledError

        api = Interrupted(made, at, come)
        for minute in range(45):
            with suppress(KilledError):
                made.run(START + timedelta(minutes=minute))
        assert api.writes >= at
        assert lost(made) == [], f"after write {at} of {writes}"
        assert finished(made) == 2 * WAVE, f"after write {at} of {writes}"
        assert list_all(made.api, NODES)[0] == (), f"after write {at} of {writes}"
        assert list_all(made.api, PROVISIONED_NODES)[0] == (), f"after write {at} of {writes}"


class KilledError(BaseException):
    """The controller is dead. Not an Exception, so that nothing handles it."""


def test_pods_created_when_the_first_node_says_draining_keep_running() -> None:
    """As an outside review found it: `disruption.after: 2s`, and a wave of pods when the first node says Draining."""
    made = simulation(pods("a"))
    waves = iter("bcd")
    drained: set[str] = set()

    @contextmanager
    def attend(verb: str, resource: Resource) -> Iterator[None]:
        yield
        if (verb, resource) != ("update", PROVISIONED_NODES):
            return
        draining = {
            node["metadata"]["uid"]
            for node in list_all(made.api, PROVISIONED_NODES)[0]
            if node.get("status", {}).get("phase") == "Draining"
        }
        if draining - drained and (wave := next(waves, "")):
            drained.update(draining)
            made.add(parse_scenario(pods(wave)))
            made.settle_cluster()

    made.new_loop(InterceptedApi(made.api, attend))
    made.run(START + timedelta(hours=2))
    assert next(waves, "") == "", "each wave came"
    assert (lost(made), finished(made)) == ([], 4 * WAVE)


def test_a_failed_machine_counts_against_the_limit_until_it_is_gone() -> None:
    """Machines that never register, in a pool of at most one: never do two occupy capacity."""
    slow = Behaviour(boot=timedelta(hours=5), shutdown=timedelta(minutes=2))
    made = simulation(pods("a"), nodes=1, behaviour=slow)
    most = 0
    for minute in range(80):
        made.run(START + timedelta(minutes=minute))
        now = made.clock.now()
        there = [m for m in made.cloud.machines.values() if m.state(now, slow).value != "terminated"]
        most = max(most, len(there))
    assert most == 1
    assert len(made.cloud.machines) > 2, "the boots failed, and others were tried"
