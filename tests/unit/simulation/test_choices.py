"""Whoever the scheduler picks among equally good nodes: pods that were promised a node run in the end."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from autoscaler.scheduling.schedule import Choice, adversarial, first, seeded
from autoscaler.simulation.scenario import parse_scenario
from autoscaler.simulation.simulation import Simulation
from autoscaler.simulation.timeline_recorder import TimelineRecorder
from tests.builders import shipped

START = datetime(2026, 1, 5, 9, tzinfo=UTC)
# The heavy pod fits the large type only, the light ones fit both; all run long enough to be in each other's way.
SCENARIO = """
apiVersion: foreslice.dev/v1alpha1
kind: CapacityPool
metadata: {name: gpu}
spec:
  mode: Act
  nodeTemplateRef: {kind: SimulatedNodeTemplate, name: default}
  drivers: {profiles: [nvidia]}
  limits: {nodes: 8}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: gpu}
spec: {spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.nvidia.com}}]}}}
---
apiVersion: v1
kind: Pod
metadata:
  name: light
  annotations: {simulation.foreslice.dev/runs-for: 20m, simulation.foreslice.dev/copies: "5"}
spec:
  resourceClaims: [{name: gpu, resourceClaimTemplateName: gpu}]
  containers: [{name: main, image: pause, resources: {claims: [{name: gpu}], requests: {cpu: "1"}}}]
---
apiVersion: v1
kind: Pod
metadata:
  name: heavy
  annotations: {simulation.foreslice.dev/runs-for: 20m, simulation.foreslice.dev/at: 1m}
spec:
  resourceClaims: [{name: gpu, resourceClaimTemplateName: gpu}]
  containers: [{name: main, image: pause, resources: {claims: [{name: gpu}], requests: {cpu: "30"}}}]
"""
CHOICES: dict[str, Choice] = {"first": first, "adversarial": adversarial, "drawn": seeded(1), "drawn again": seeded(2)}


@pytest.mark.parametrize("choose", CHOICES.values(), ids=CHOICES)
def test_every_pod_runs_whatever_is_chosen(choose: Choice) -> None:
    scenario = parse_scenario(SCENARIO)
    simulation = Simulation(catalog=shipped("g6.xlarge", "g6.12xlarge"), start=START, choose=choose)
    simulation.add(scenario)
    recorder = TimelineRecorder(simulation.api)
    simulation.run(START + timedelta(hours=2), recorder.observe)
    recorder.catch_up(simulation.clock.now())
    summary = recorder.summary(scenario.expected(), simulation.clock.now())
    assert summary.succeeded
    assert len(summary.pods) == 6
    assert summary.running == 0
