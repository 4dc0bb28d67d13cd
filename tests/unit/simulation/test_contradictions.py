"""Reality contradicts the catalog: what was bought is not bought again, and something else is tried."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from autoscaler.cluster.api import list_all
from autoscaler.cluster.resources import CAPACITY_POOLS, EVENTS
from autoscaler.dra.drift import DriftPolicy
from autoscaler.settings.settings import DEFAULTS, DriftSettings
from autoscaler.simulation.scenario import parse_scenario
from autoscaler.simulation.simulation import Simulation
from instance_catalog.dataclass import replace
from instance_catalog.types.catalog import Catalog
from providers.simulated.machines import Behaviour
from tests.builders import shipped

START = datetime(2026, 1, 5, 9, tzinfo=UTC)
SCENARIO = """
apiVersion: foreslice.dev/v1alpha1
kind: CapacityPool
metadata: {name: gpu}
spec:
  mode: Act
  requirements: [{key: topology.kubernetes.io/zone, operator: In, values: [us-east-1a]}]
  nodeTemplateRef: {kind: SimulatedNodeTemplate, name: default}
  drivers: {profiles: [nvidia]}
  limits: {nodes: 4}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: l4}
spec:
  spec:
    devices:
      requests:
      - name: gpu
        exactly:
          deviceClassName: gpu.nvidia.com
          selectors: [{cel: {expression: "device.attributes['gpu.nvidia.com'].productName == 'NVIDIA L4'"}}]
---
apiVersion: v1
kind: Pod
metadata:
  name: work
  annotations: {simulation.foreslice.dev/runs-for: 10m}
spec:
  resourceClaims: [{name: gpu, resourceClaimTemplateName: l4}]
  containers: [{name: main, image: pause, resources: {claims: [{name: gpu}], requests: {cpu: "1"}}}]
"""


def believed() -> Catalog:
    return shipped("g6.xlarge", "g6.12xlarge")


def with_another_gpu(catalog: Catalog, name: str) -> Catalog:
    """The truth: this type has a GPU of another product than the catalog says."""
    found = catalog.types[name]
    assert found.accelerator is not None
    other = replace(found, accelerator=replace(found.accelerator, product_name="NVIDIA L4-R"))
    return replace(catalog, types=catalog.types.with_items({name: other}))


def live(simulation: Simulation, hours: float) -> list[str]:
    """Types launched, in order."""
    simulation.add(parse_scenario(SCENARIO))
    simulation.run(START + timedelta(hours=hours))
    return [machine.offering.instance_type for machine in simulation.cloud.machines.values()]


def test_a_type_that_publishes_something_else_is_quarantined_and_another_one_taken() -> None:
    simulation = Simulation(catalog=with_another_gpu(believed(), "g6.xlarge"), start=START)
    simulation.new_loop(catalog=believed())
    assert live(simulation, 0.9) == ["g6.xlarge", "g6.12xlarge"]
    (quarantine,) = simulation.api.get(CAPACITY_POOLS, "gpu")["status"]["quarantines"]
    assert (quarantine["instanceType"], quarantine["drivers"], quarantine["times"]) == ("g6.xlarge", ["nvidia"], 1)
    first = next(iter(simulation.cloud.machines))
    assert [machine.rpartition("/")[2] for machine in quarantine["drifts"]] == [first]


def test_without_a_look_at_the_slices_the_pod_that_stays_pending_is_evidence_enough() -> None:
    settings = replace(DEFAULTS, drift=DriftSettings(DriftPolicy.NEVER))
    simulation = Simulation(catalog=with_another_gpu(believed(), "g6.xlarge"), start=START, settings=settings)
    simulation.new_loop(catalog=believed())
    launched = live(simulation, 0.9)
    # One more may be bought while nobody can know yet whether the pod is only seen late.
    assert launched in (["g6.xlarge", "g6.12xlarge"], ["g6.xlarge", "g6.xlarge", "g6.12xlarge"])
    (quarantine,) = simulation.api.get(CAPACITY_POOLS, "gpu")["status"]["quarantines"]
    assert quarantine["mispredictions"][0].startswith("default/work on ")
    told = [event for event in list_all(simulation.api, EVENTS)[0] if event["reason"] == "Misprediction"]
    assert {event["involvedObject"]["name"] for event in told} == {"work"}
    assert "quarantined" in told[0]["message"]


def with_another_brand(catalog: Catalog, name: str) -> Catalog:
    """The truth: a fact that no claim asks for is another one."""
    found = catalog.types[name]
    assert found.accelerator is not None
    other = replace(found, accelerator=replace(found.accelerator, brand="Other"))
    return replace(catalog, types=catalog.types.with_items({name: other}))


@pytest.mark.parametrize(
    ("policy", "quarantines"),
    [(DriftPolicy.MATTERS, 0), (DriftPolicy.ALWAYS, 1)],
    ids=["it-does-not-matter", "it-is-always-avoided"],
)
def test_drift_is_told_once_and_avoided_where_the_policy_says_so(policy: DriftPolicy, quarantines: int) -> None:
    settings = replace(DEFAULTS, drift=DriftSettings(policy))
    simulation = Simulation(catalog=with_another_brand(believed(), "g6.xlarge"), start=START, settings=settings)
    simulation.new_loop(catalog=believed())
    assert live(simulation, 0.2) == ["g6.xlarge"]
    found = simulation.api.get(CAPACITY_POOLS, "gpu")["status"].get("quarantines", [])
    assert [len(q["drifts"]) for q in found] == [1] * quarantines
    (event,) = [event for event in list_all(simulation.api, EVENTS)[0] if event["reason"] == "Drifted"]
    assert event["involvedObject"]["kind"] == "ProvisionedNode"
    assert "brand" in event["message"]


@pytest.mark.slow
def test_machines_that_never_boot_are_not_bought_for_ever() -> None:
    simulation = Simulation(catalog=believed(), start=START, behaviour=Behaviour(boot=timedelta(days=2)))
    launched = live(simulation, 12)
    # Three of each, then one more whenever a quarantine of 1, 2, 4, ... hours is over.
    assert launched[:6] == ["g6.xlarge"] * 3 + ["g6.12xlarge"] * 3
    assert len(launched) <= 12
    quarantines = simulation.api.get(CAPACITY_POOLS, "gpu")["status"]["quarantines"]
    assert {q["instanceType"] for q in quarantines} == {"g6.xlarge", "g6.12xlarge"}
    assert all(q["times"] >= 3 for q in quarantines)
