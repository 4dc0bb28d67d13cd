"""Launches that the API server refuses to write down use up nothing of what may be launched in an hour."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from autoscaler.cluster.api import ApiError, InvalidError, Object, UnavailableError, list_all
from autoscaler.cluster.resources import CAPACITY_POOLS, LAUNCH_BATCHES, PODS, PROVISIONED_NODES, SPENDINGS
from autoscaler.settings.settings import Settings, SpendingSettings
from autoscaler.simulation.scenario import parse_scenario
from autoscaler.simulation.simulation import Simulation
from tests.builders import pool_manifest, shipped
from tests.unit.simulation.queue import Gang, Queue, condition

START = datetime(2026, 1, 5, 9, tzinfo=UTC)
REFUSED = InvalidError("denied the request", next_step="correct the policy")
UNANSWERED = UnavailableError("no answer", next_step="wait")


class Refusing:
    """An API server that writes no LaunchBatch while `error` is set."""

    def __init__(self, api: Any, error: ApiError | None) -> None:
        self._api = api
        self.error = error
        self.refused = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._api, name)

    def create(self, resource: Any, manifest: Object) -> Object:
        if resource is LAUNCH_BATCHES and self.error is not None:
            self.refused += 1
            raise self.error
        found: Object = self._api.create(resource, manifest)
        return found


def cluster(error: ApiError | None) -> tuple[Simulation, Queue, Refusing]:
    settings = Settings(spending=SpendingSettings(max_launches_per_hour=2))
    simulation = Simulation(catalog=shipped("g6.xlarge"), start=START, settings=settings)
    simulation.api.create(CAPACITY_POOLS, pool_manifest(nodes=6))
    refusing = Refusing(simulation.api, error)
    simulation.new_loop(refusing)  # type: ignore[arg-type]
    return simulation, Queue(simulation.api), refusing


def charged(simulation: Simulation) -> float:
    (found,) = list_all(simulation.api, SPENDINGS)[0]
    return float(found["status"].get("recentLaunches", 0))


def test_a_request_has_what_it_may_have_once_the_refusal_is_over() -> None:
    simulation, queue, refusing = cluster(REFUSED)
    queue.ask(Gang("train", ((2, 1, "1"),)))
    simulation.run(START + timedelta(minutes=5))
    assert refusing.refused > 1, "it is tried again"
    assert charged(simulation) == 0
    assert "guard" not in condition(queue.request("train"), "Provisioned")["message"]
    refusing.error = None
    simulation.run(START + timedelta(minutes=15))
    assert len(list_all(simulation.api, PROVISIONED_NODES)[0]) == 2
    assert charged(simulation) > 0


@pytest.mark.parametrize("error", [UNANSWERED, None], ids=["it-may-have-been-written", "it-was-written"])
def test_what_may_have_been_written_stays_charged(error: ApiError | None) -> None:
    simulation, queue, _ = cluster(error)
    queue.ask(Gang("train", ((2, 1, "1"),)))
    simulation.run(START + timedelta(seconds=5))
    assert charged(simulation) >= 1.9


POD = """
apiVersion: v1
kind: Pod
metadata:
  name: NAME
  annotations: {simulation.foreslice.dev/runs-for: 10h}
spec:
  resourceClaims: [{name: gpu, resourceClaimTemplateName: gpu}]
  containers: [{name: main, image: pause, resources: {claims: [{name: gpu}], requests: {cpu: "1"}}}]
"""
TEMPLATE = """
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: gpu}
spec: {spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.nvidia.com, count: 1}}]}}}
"""


def names(simulation: Simulation) -> set[str]:
    return {node["metadata"]["name"] for node in list_all(simulation.api, PROVISIONED_NODES)[0]}


def test_a_name_that_an_earlier_batch_has_is_no_launch_that_was_written() -> None:
    """Names follow from pods. The batch of both nodes lives on with one of them when the other one's pod is new."""
    simulation, _, refusing = cluster(None)
    simulation.add(parse_scenario("---".join((TEMPLATE, *(POD.replace("NAME", name) for name in "ab")))))
    simulation.run(START + timedelta(minutes=10))
    before = names(simulation)
    (batch,) = list_all(simulation.api, LAUNCH_BATCHES)[0]
    assert set(batch["spec"]["nodes"]) == before
    node = simulation.api.get(PODS, "b", namespace="default")["spec"]["nodeName"]
    simulation.api.delete(PROVISIONED_NODES, node)
    simulation.api.delete(PODS, "b", namespace="default")
    simulation.run(START + timedelta(hours=3))
    assert names(simulation) == before - {node}
    refusing.error = REFUSED
    simulation.add(parse_scenario(POD.replace("NAME", "b")))
    simulation.run(START + timedelta(hours=3, minutes=5))
    assert (refusing.refused > 1, charged(simulation)) == (True, 0)
    refusing.error = None
    simulation.run(START + timedelta(hours=3, minutes=15))
    assert names(simulation) == before
