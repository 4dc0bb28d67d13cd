"""What Google refuses, seen from the cluster: told with the next step, asked again rarely, and others go on."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from autoscaler.cluster.api import list_all
from autoscaler.cluster.resources import CAPACITY_POOLS, EVENTS, GCP_NODE_TEMPLATES
from instance_catalog.dataclass import replace
from tests.crash.life import SMALL, START, small_catalog
from tests.fakes.gce.errors import refused
from tests.faults.both_clouds import AWS_POOL, BothClouds
from tests.faults.gcp.schedules import GcpSchedules
from tests.faults.gcp.world import ACCELERATORS
from tests.faults.scenes import PODS_OF
from tests.faults.schedules import scenario
from tests.gcp import expired

MINUTE = timedelta(minutes=1)
PODS = "---" + PODS_OF.format(number=1, copies=2, minutes=240, gang="")
TEMPLATE = """---
apiVersion: foreslice.dev/v1alpha1
kind: GCPNodeTemplate
metadata: {name: gpu}
spec: {cluster: {name: c1, location: us-central1}, nodePools: [gone]}
"""
QUOTA = refused("quotaExceeded", 403, "Quota 'NVIDIA_L4_GPUS' exceeded. Limit: 0.0 in region us-central1.")


def begun() -> BothClouds:
    """Two pods that fit machines of both clouds, Google's for less. Each cloud has a pool."""
    simulation = BothClouds(catalog=small_catalog(*SMALL, *ACCELERATORS), start=START)
    simulation.add(scenario(f"{GcpSchedules.pools}---{AWS_POOL}{TEMPLATE}{PODS}"))
    return simulation


def told(simulation: BothClouds, kind: str) -> dict[str, str]:
    """The messages of warnings about objects of a kind, by reason."""
    found = [event for event in list_all(simulation.api, EVENTS)[0] if event["type"] == "Warning"]
    return {one["reason"]: one["message"] for one in found if one["involvedObject"]["kind"] == kind}


def pool(simulation: BothClouds) -> dict[str, Any]:
    return next(one for one in list_all(simulation.api, CAPACITY_POOLS)[0] if one["metadata"]["name"] == "gpu")[
        "status"
    ]


def ready(simulation: BothClouds) -> dict[str, Any]:
    """The condition Ready of the GCPNodeTemplate."""
    (found,) = list_all(simulation.api, GCP_NODE_TEMPLATES)[0]
    return next(one for one in found["status"]["conditions"] if one["type"] == "Ready")


def test_nothing_is_wrong_where_google_serves() -> None:
    simulation = begun()
    simulation.run(START + 10 * MINUTE)
    assert simulation.ours_by_cloud() == {"aws": 0, "gcp": 2}
    assert ready(simulation)["status"] == "True"
    assert told(simulation, "LaunchBatch") == told(simulation, "GCPNodeTemplate") == {}


def test_a_quota_is_told_at_the_pool_and_another_pool_serves() -> None:
    simulation = begun()
    simulation.fake.faults.inject("createInstances", *[QUOTA] * 100)
    simulation.run(START + 10 * MINUTE)
    assert simulation.ours_by_cloud() == {"aws": 2, "gcp": 0}
    resting = pool(simulation)["backoffs"]
    assert {one["reason"] for one in resting} == {"AcceleratorQuota"}
    # Once for each accelerator, of two: another one may have a quota of its own. Every offering rests 15 minutes.
    assert (simulation.fake.calls["createInstances"], len(resting)) == (2, 8)
    assert all("NVIDIA_L4_GPUS" in one["message"] and "IAM & Admin, Quotas" in one["message"] for one in resting)
    assert set(told(simulation, "ProvisionedNode")) == {"NoOfferingLeft"}


def test_an_api_that_is_off_is_told_with_the_command_and_the_other_cloud_serves() -> None:
    simulation = begun()
    simulation.fake.disabled = True
    simulation.run(START + 10 * MINUTE)
    assert simulation.ours_by_cloud() == {"aws": 2, "gcp": 0}
    command = "gcloud services enable compute.googleapis.com"
    assert (ready(simulation)["status"], ready(simulation)["reason"]) == ("Unknown", "Permission")
    assert ready(simulation)["message"].count(command) == 1  # not once for each group
    assert command in told(simulation, "GCPNodeTemplate")["Permission"]
    assert command in told(simulation, "LaunchBatch")["Permission"]
    assert command in told(simulation, "CapacityPool")["ProviderRefuses"]
    assert [one["reason"] for one in pool(simulation)["backoffs"]] == ["Permission"]


def test_credentials_that_expire_are_told_and_the_other_cloud_serves(monkeypatch: pytest.MonkeyPatch) -> None:
    """Machines that run keep running: nothing is concluded from a project that cannot be called."""
    simulation = begun()
    simulation.run(START + 5 * MINUTE)
    assert simulation.ours_by_cloud() == {"aws": 0, "gcp": 2}
    monkeypatch.setattr("tests.faults.both_clouds.gcp", expired)
    simulation.over_http = True
    simulation.new_loop()
    simulation.add(scenario(PODS_OF.format(number=2, copies=1, minutes=240, gang="")))
    simulation.run(START + 20 * MINUTE)
    assert simulation.ours_by_cloud() == {"aws": 1, "gcp": 2}
    step = "gcloud auth application-default login"
    assert (ready(simulation)["status"], ready(simulation)["reason"]) == ("Unknown", "RefreshError")
    assert step in ready(simulation)["message"]
    assert "Token has been expired or revoked" in told(simulation, "Provider")["Permission"]
    assert step in told(simulation, "CapacityPool")["ProviderRefuses"]
    monkeypatch.undo()
    simulation.new_loop()
    simulation.run(START + 45 * MINUTE)
    assert ready(simulation)["status"] == "True"
    assert simulation.ours_by_cloud() == {"aws": 1, "gcp": 2}


def test_a_node_pool_that_is_gone_is_told_and_another_pool_serves() -> None:
    simulation = begun()
    of = {"cluster": "c1", "location": "us-central1", "node_pools": ("gone",), "groups": ()}
    simulation.template.found = replace(simulation.template.found, **of)
    simulation.run(START + 10 * MINUTE)
    assert simulation.ours_by_cloud() == {"aws": 2, "gcp": 0}
    assert (ready(simulation)["status"], ready(simulation)["reason"]) == ("False", "NoNodePool")
    assert "gcloud container node-pools list --cluster c1" in ready(simulation)["message"]
    assert "'gone'" in told(simulation, "GCPNodeTemplate")["NoNodePool"]
    assert simulation.fake.calls["createInstances"] == 0
