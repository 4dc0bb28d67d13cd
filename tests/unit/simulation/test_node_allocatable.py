"""The simulated scheduler counts what claims take of a node's own amounts, and writes it as kube-scheduler does."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from autoscaler.cluster.api import Object
from autoscaler.cluster.resources import DEVICE_CLASSES, NODES, PODS, RESOURCE_CLAIMS, RESOURCE_SLICES
from autoscaler.simulation.simulation import Simulation
from instance_catalog.kubernetes.profile import profile_for
from tests.builders import shipped

START = datetime(2026, 1, 5, 9, tzinfo=UTC)
ON = profile_for("1.37.1").with_gates(node_allocatable_resources=True)


def cluster(**entry: Any) -> Simulation:
    """A node of eight cores whose three devices take of them as `entry` says."""
    simulation = Simulation(catalog=shipped("g6.xlarge"), start=START, profile=ON)
    status = {
        "allocatable": {"cpu": "8", "memory": "4Gi", "pods": "10"},
        "conditions": [{"type": "Ready", "status": "True"}],
    }
    simulation.api.create(NODES, {"metadata": {"name": "n"}, "status": status})
    devices = [{"name": name, "nodeAllocatableResources": {"cpu": entry}} for name in ("a", "b", "c")]
    pool = {"name": "n", "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": "cpu.example.com", "nodeName": "n", "pool": pool, "devices": devices}
    simulation.api.create(RESOURCE_SLICES, {"metadata": {"name": "s"}, "spec": spec})
    simulation.api.create(DEVICE_CLASSES, {"metadata": {"name": "cpus"}, "spec": {}})
    return simulation


def add(simulation: Simulation, name: str) -> None:
    """A pod with a core and a device."""
    exactly = {"deviceClassName": "cpus", "allocationMode": "ExactCount", "count": 1}
    spec = {"devices": {"requests": [{"name": "r", "exactly": exactly}]}}
    simulation.api.create(RESOURCE_CLAIMS, {"metadata": {"name": name, "namespace": "default"}, "spec": spec})
    resources = {"requests": {"cpu": "1"}, "claims": [{"name": "c"}]}
    pod = {
        "resourceClaims": [{"name": "c", "resourceClaimName": name}],
        "containers": [{"name": "main", "image": "pause", "resources": resources}],
    }
    simulation.api.create(PODS, {"metadata": {"name": name, "namespace": "default"}, "spec": pod})
    simulation.settle_cluster()


def bound(simulation: Simulation) -> dict[str, Object]:
    return {pod["metadata"]["name"]: pod for pod in simulation.api.stored(PODS) if pod["spec"].get("nodeName")}


def test_pods_come_until_cores_and_devices_are_taken() -> None:
    simulation = cluster(mapping={"deviceMultiplier": "3"})
    for name in ("p1", "p2", "p3"):
        add(simulation, name)
    found = bound(simulation)
    assert sorted(found) == ["p1", "p2"]
    assert found["p1"]["status"]["nodeAllocatableResourceClaimStatuses"] == [
        {
            "resourceClaimName": "p1",
            "containers": ["main"],
            "mapping": [{"name": "cpu", "quantity": "3"}],
            "overhead": [],
        }
    ]


def test_overheads_are_written_apart() -> None:
    simulation = cluster(overhead={"perPod": "2", "perContainer": "500m"})
    for name in ("p1", "p2", "p3"):
        add(simulation, name)
    found = bound(simulation)
    assert sorted(found) == ["p1", "p2"]
    (entry,) = found["p2"]["status"]["nodeAllocatableResourceClaimStatuses"]
    assert entry["overhead"] == [{"name": "cpu", "perPod": "2", "perContainer": "500m"}]
    assert entry["mapping"] == []
