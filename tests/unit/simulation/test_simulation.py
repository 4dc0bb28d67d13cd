"""Whole lives in the simulated cluster: what is planned is what the scheduler does, and everything ends."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from autoscaler.cluster.api import list_all
from autoscaler.cluster.resources import (
    CAPACITY_POOLS,
    EVENTS,
    LAUNCH_BATCHES,
    NODES,
    PODS,
    PROVISIONED_NODES,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
)
from autoscaler.report.timeline import Summary
from autoscaler.simulation.scenario import parse_scenario
from autoscaler.simulation.simulation import Simulation
from autoscaler.simulation.timeline_recorder import TimelineRecorder
from instance_catalog.types.catalog import Catalog
from instance_catalog.types.instance_type import CapacityType
from providers.contract import OfferingKey
from tests.builders import shipped

START = datetime(2026, 1, 5, 9, tzinfo=UTC)
POOL = """
apiVersion: foreslice.dev/v1alpha1
kind: CapacityPool
metadata: {name: gpu}
spec:
  mode: MODE
  requirements: [{key: topology.kubernetes.io/zone, operator: In, values: [us-east-1a]}]
  nodeTemplateRef: {kind: SimulatedNodeTemplate, name: default}
  drivers: {profiles: [nvidia]}
  limits: {nodes: 4}
"""
CLAIMS = """
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: gpu}
spec: {spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.nvidia.com, count: COUNT}}]}}}
"""
POD = """
apiVersion: v1
kind: Pod
metadata:
  name: work
  labels: {app: work}
  annotations: {simulation.foreslice.dev/runs-for: 10m, simulation.foreslice.dev/expect: EXPECT}
spec:
  tolerations: [{key: foreslice.dev/capacity-block, operator: Exists}]
  resourceClaims: [{name: gpu, resourceClaimTemplateName: gpu}]
  containers: [{name: main, image: pause, resources: {claims: [{name: gpu}], requests: {cpu: "1"}}}]
"""
BLOCK = """
apiVersion: foreslice.dev/v1alpha1
kind: CapacityBlock
metadata: {name: cb}
spec:
  pool: gpu
  reservation: cr-1
  instanceType: g6.xlarge
  zone: us-east-1a
  count: 1
  startsAt: "2026-01-05T10:00:00Z"
  endsAt: "2026-01-05T14:00:00Z"
"""


def catalog() -> Catalog:
    return shipped("g6.xlarge", "g6.12xlarge")


def new_simulation() -> Simulation:
    return Simulation(catalog=catalog(), start=START)


def live(
    simulation: Simulation,
    *documents: str,
    hours: float = 1,
    mode: str = "Act",
    count: int = 1,
    expect: str = "Succeeded",
) -> Summary:
    """Play the documents; the summary of what came of them."""
    text = "---".join(documents).replace("MODE", mode).replace("COUNT", str(count)).replace("EXPECT", expect)
    scenario = parse_scenario(text)
    simulation.add(scenario)
    chronicle = TimelineRecorder(simulation.api)
    simulation.run(START + timedelta(hours=hours), chronicle.observe)
    chronicle.catch_up(simulation.clock.now())
    return chronicle.summary(scenario.expected(), simulation.clock.now())


def names(simulation: Simulation, resource: Any) -> list[str]:
    return [item["metadata"]["name"] for item in list_all(simulation.api, resource)[0]]


def test_a_pod_gets_a_node_and_a_device_and_afterwards_everything_is_gone() -> None:
    simulation = new_simulation()
    summary = live(simulation, POOL, CLAIMS, POD)
    assert summary.succeeded
    assert (summary.launched, summary.terminated, summary.running) == (1, 1, 0)
    assert summary.pods[0].devices == ("gpu.nvidia.com/gpu-0",)
    for resource in (NODES, PROVISIONED_NODES, RESOURCE_SLICES, RESOURCE_CLAIMS):
        assert names(simulation, resource) == []


def test_the_cheapest_type_that_fits_is_taken_and_paid_by_the_hour() -> None:
    simulation = new_simulation()
    summary = live(simulation, POOL, CLAIMS, POD, count=4)
    (machine,) = simulation.cloud.machines.values()
    assert machine.offering.instance_type == "g6.12xlarge"
    assert len(summary.pods[0].devices) == 4
    assert summary.usd > 0


def test_a_pool_that_observes_launches_nothing_and_says_what_it_would() -> None:
    simulation = new_simulation()
    summary = live(simulation, POOL, CLAIMS, POD, mode="Observe", expect="Pending")
    assert summary.succeeded
    assert simulation.cloud.machines == {}
    (proposal,) = simulation.api.get(CAPACITY_POOLS, "gpu")["status"]["proposedLaunches"]
    assert (proposal["instanceType"], proposal["pods"]) == ("g6.xlarge", 1)


def test_a_pod_that_nothing_fits_is_told_why_and_costs_nothing() -> None:
    simulation = new_simulation()
    assert live(simulation, POOL, CLAIMS, POD, count=9, expect="Pending").succeeded
    assert simulation.cloud.machines == {}
    reasons = [event["reason"] for event in list_all(simulation.api, EVENTS)[0]]
    assert reasons == ["NotTriggerScaleUp"]


GANG = """
apiVersion: scheduling.x-k8s.io/v1alpha1
kind: PodGroup
metadata: {name: g}
spec: {minMember: 2}
"""


ONE_NODE = """
apiVersion: foreslice.dev/v1alpha1
kind: CapacityPool
metadata: {name: gpu}
spec:
  mode: MODE
  requirements: [{key: node.kubernetes.io/instance-type, operator: In, values: [g6.12xlarge]}]
  nodeTemplateRef: {kind: SimulatedNodeTemplate, name: default}
  drivers: {profiles: [nvidia]}
  limits: {nodes: 1}
  baseline: [{replicas: BASELINE}]
"""


@pytest.mark.parametrize("baseline", [0, 1], ids=["no node", "a node for one of them"])
def test_a_gang_that_cannot_be_whole_does_not_start(baseline: int) -> None:
    simulation = new_simulation()
    members = POD.replace("labels: {app: work}", "labels: {scheduling.x-k8s.io/pod-group: g}")
    members = members.replace("expect: EXPECT", 'expect: EXPECT, simulation.foreslice.dev/copies: "2"')
    summary = live(
        simulation, ONE_NODE.replace("BASELINE", str(baseline)), GANG, CLAIMS, members, count=4, expect="Pending"
    )
    assert summary.succeeded
    assert len(names(simulation, NODES)) == baseline


def test_extended_resources_get_a_claim_that_nobody_wrote() -> None:
    simulation = new_simulation()
    pod = POD.replace("  resourceClaims: [{name: gpu, resourceClaimTemplateName: gpu}]\n", "")
    pod = pod.replace('{claims: [{name: gpu}], requests: {cpu: "1"}}', '{limits: {nvidia.com/gpu: "2"}}')
    pod = pod.replace("10m", "3h")
    live(simulation, POOL, pod, hours=0.5)
    (claim,) = list_all(simulation.api, RESOURCE_CLAIMS)[0]
    assert claim["metadata"]["annotations"] == {"resource.kubernetes.io/extended-resource-claim": "true"}
    assert len(claim["status"]["allocation"]["devices"]["results"]) == 2
    (machine,) = simulation.cloud.machines.values()
    assert machine.offering.instance_type == "g6.12xlarge"


def reserve(simulation: Simulation) -> None:
    key = OfferingKey("g6.xlarge", "us-east-1a", CapacityType.CAPACITY_BLOCK)
    simulation.cloud.reserve(
        "cr-1", key, count=1, starts_at=START + timedelta(hours=1), ends_at=START + timedelta(hours=5)
    )


@pytest.mark.parametrize(
    ("hours", "alive"),
    [(0.5, 0), (2, 1), (3.9, 1), (4.6, 0)],
    ids=["before the block", "held without a pod", "until the drain", "gone before the end"],
)
def test_a_block_is_held_while_it_lasts_and_gone_before_its_end(hours: float, alive: int) -> None:
    simulation = new_simulation()
    reserve(simulation)
    summary = live(simulation, POOL, BLOCK, hours=hours)
    assert summary.running == alive
    assert len(names(simulation, NODES)) == alive
    assert summary.usd == 0


def test_a_pod_on_a_block_is_told_and_evicted_before_the_end() -> None:
    simulation = new_simulation()
    reserve(simulation)
    forever = POD.replace("simulation.foreslice.dev/runs-for: 10m", "simulation.foreslice.dev/at: 2h")
    summary = live(simulation, POOL, BLOCK, CLAIMS, forever, hours=4.4, expect="Evicted")
    assert summary.succeeded
    assert summary.usd == 0
    told = [event["reason"] for event in list_all(simulation.api, EVENTS)[0]]
    assert "CapacityEnding" in told
    assert "Draining" in told


def test_a_lost_machine_is_noticed_and_replaced() -> None:
    simulation = new_simulation()
    live(simulation, POOL, CLAIMS, POD.replace("10m", "3h"), hours=0.5)
    (lost,) = simulation.cloud.machines
    simulation.cloud.lose(lost)
    simulation.run(START + timedelta(hours=0.6))
    assert names(simulation, NODES) == []
    simulation.add(parse_scenario(POD.replace("name: work", "name: again").replace("EXPECT", "Succeeded")))
    simulation.run(START + timedelta(hours=0.7))
    assert len(simulation.cloud.machines) == 2
    (pod,) = list_all(simulation.api, PODS)[0]
    assert pod["status"]["phase"] == "Running"


def test_deleting_a_provisioned_node_ends_its_machine_after_a_drain() -> None:
    simulation = new_simulation()
    live(simulation, POOL, CLAIMS, POD.replace("10m", "3h"), hours=0.5)
    (name,) = names(simulation, PROVISIONED_NODES)
    simulation.api.delete(PROVISIONED_NODES, name)
    simulation.run(START + timedelta(hours=0.6))
    assert name not in names(simulation, PROVISIONED_NODES)
    (machine,) = simulation.cloud.machines.values()
    assert machine.message == "terminated by request"


def test_machines_whose_objects_were_lost_are_adopted_and_go_when_empty() -> None:
    simulation = new_simulation()
    live(simulation, POOL, CLAIMS, POD.replace("10m", "2h"), hours=0.5)
    for resource in (PROVISIONED_NODES, LAUNCH_BATCHES):
        for name in names(simulation, resource):
            simulation.api.patch(resource, name, {"metadata": {"finalizers": None}})
            simulation.api.delete(resource, name)
    simulation.run(START + timedelta(hours=1))
    assert names(simulation, PROVISIONED_NODES) == names(simulation, NODES)
    assert len(simulation.cloud.machines) == 1
    simulation.run(START + timedelta(hours=3))
    assert names(simulation, NODES) == []


def test_when_nothing_changes_nothing_is_written() -> None:
    simulation = new_simulation()
    reserve(simulation)
    live(simulation, POOL, BLOCK, CLAIMS, POD, hours=2)
    before = simulation.api.writes
    for _ in range(3):
        simulation.loop.tick()
    assert simulation.api.writes == before


def test_a_restarted_loop_has_nothing_to_say_again() -> None:
    simulation = new_simulation()
    reserve(simulation)
    live(simulation, POOL, BLOCK, CLAIMS, POD, hours=2)
    before = simulation.api.writes
    simulation.new_loop().tick()
    assert simulation.api.writes == before
