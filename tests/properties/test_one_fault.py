"""Whatever request of the controller fails, an ordinary pod beside the odd one gets its node, and in the end both do.

A life in memory: two pods, each of which needs a node of its own, in pools of their own. Requests for everything that
is about one of them fail, by every verb, for every kind, in every way; then the fault ends. Every day runs a third of
the combinations, in which each verb, kind and fault occurs; HYPOTHESIS_PROFILE=explore runs all of them.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import timedelta
from typing import Final, TypeVar

import pytest

from autoscaler.cluster.api import Object, list_all
from autoscaler.cluster.resources import (
    CAPACITY_POOLS,
    EVENTS,
    LAUNCH_BATCHES,
    NODES,
    PODS,
    PROVISIONED_NODES,
    SPENDINGS,
    Resource,
)
from autoscaler.loop.loop import Tick
from autoscaler.simulation.scenario import parse_scenario
from autoscaler.simulation.simulation import Simulation
from providers.contract import InstanceState
from tests.crash.life import START, small_catalog
from tests.unit.cluster.odd import FAULTS, OddApi

_CLUSTER: Final = """
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: gpu}
spec: {spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.nvidia.com, count: 1}}]}}}
"""
_HALF: Final = """---
apiVersion: foreslice.dev/v1alpha1
kind: CapacityPool
metadata: {name: pool-NAME}
spec:
  mode: Act
  requirements: [{key: topology.kubernetes.io/zone, operator: In, values: [us-east-1a, us-east-1b]}]
  nodeTemplateRef: {kind: SimulatedNodeTemplate, name: gpu}
  drivers: {profiles: [nvidia]}
  labels: {team: NAME}
  limits: {nodes: 4}
---
apiVersion: v1
kind: Pod
metadata: {name: NAME}
spec:
  nodeSelector: {team: NAME}
  resourceClaims: [{name: gpu, resourceClaimTemplateName: gpu}]
  containers: [{name: main, image: pause, resources: {claims: [{name: gpu}], requests: {cpu: "1"}}}]
"""
# Everything that the controller writes in such a life.
WRITES: Final = (
    ("create", LAUNCH_BATCHES),
    ("update", LAUNCH_BATCHES),
    ("create", PROVISIONED_NODES),
    ("update", PROVISIONED_NODES),
    ("patch", CAPACITY_POOLS),
    ("patch", PODS),
    ("create", EVENTS),
)


T = TypeVar("T")
EVERY: Final = 1 if os.environ.get("HYPOTHESIS_PROFILE") == "explore" else 3


def combined(what: Sequence[T]) -> list[tuple[T, str]]:
    pairs = [(one, fault) for one in what for fault in FAULTS]
    return pairs[::EVERY]


KINDS: Final = (SPENDINGS, EVENTS, CAPACITY_POOLS, PODS, LAUNCH_BATCHES, PROVISIONED_NODES)


def life() -> tuple[Simulation, OddApi]:
    simulation = Simulation(catalog=small_catalog(), start=START)
    simulation.add(parse_scenario(_CLUSTER + _HALF.replace("NAME", "odd") + _HALF.replace("NAME", "plain")))
    api = OddApi(simulation.api)
    simulation.new_loop(api)
    return simulation, api


def running(simulation: Simulation) -> set[str]:
    pods: tuple[Object, ...] = list_all(simulation.api, PODS)[0]
    return {pod["metadata"]["name"] for pod in pods if pod.get("status", {}).get("phase") == "Running"}


def machines(simulation: Simulation) -> int:
    return sum(machine.state is not InstanceState.TERMINATED for machine in simulation.cloud.machines.values())


@pytest.mark.parametrize(("write", "fault"), combined(WRITES), ids=str)
def test_what_fails_for_one_pod_is_left_out(write: tuple[str, Resource], fault: str) -> None:
    verb, resource = write
    simulation, api = life()
    # Names of nodes and batches begin with that of their pool.
    api.fails = lambda v, r, text: (v, r) == (verb, resource) and ("pool-odd" in text or "'name': 'odd'" in text)
    api.fault = FAULTS[fault]
    first: list[Tick] = []
    simulation.run(START, first.append)
    launched = {machine.node for machine in simulation.cloud.machines.values()}
    assert any(node.startswith("pool-plain") for node in launched), "the ordinary pod's node is launched in its round"
    simulation.run(START + timedelta(minutes=10))
    assert "plain" in running(simulation)
    assert api.failed
    unwritten = (verb, resource) in (("create", LAUNCH_BATCHES), ("create", PROVISIONED_NODES))
    if unwritten and fault != "409 exists":
        assert machines(simulation) == 1, "nothing is launched that is not written down"
    api.fails = lambda v, r, text: False
    simulation.run(START + timedelta(minutes=30))
    assert running(simulation) == {"odd", "plain"}
    assert machines(simulation) == len(list_all(simulation.api, NODES)[0]) == 2


@pytest.mark.parametrize(("resource", "fault"), combined(KINDS), ids=str)
def test_what_fails_for_all_is_carried_out_once_it_ends(resource: Resource, fault: str) -> None:
    simulation, api = life()
    api.fails = lambda verb, r, text: r == resource and verb not in ("get", "list", "watch")
    api.fault = FAULTS[fault]
    simulation.run(START + timedelta(minutes=10))
    launched = machines(simulation)
    assert launched == (2 if resource in (EVENTS, CAPACITY_POOLS, PODS) else 0)
    api.fails = lambda verb, r, text: False
    simulation.run(START + timedelta(minutes=30))
    assert running(simulation) == {"odd", "plain"}
    assert machines(simulation) == len(list_all(simulation.api, NODES)[0]) == 2
