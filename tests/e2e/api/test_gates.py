"""A real API server keeps and drops gated fields as the trials expect, and stores nothing of them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from autoscaler.clock import SystemClock
from autoscaler.cluster.client.client import KubernetesClient
from autoscaler.cluster.client.transport import connect
from autoscaler.cluster.gate_trials import TRIALS, prove
from instance_catalog.kubernetes.feature_gates import GATES
from tests.e2e.harness.control_plane import ControlPlane

ALL = frozenset(trial.gate for trial in TRIALS)


def client_for(control_plane: ControlPlane, user: str, *groups: str) -> KubernetesClient:
    clock = SystemClock()
    return KubernetesClient(connect(clock, kubeconfig=str(control_plane.identity(user, *groups))), clock)


def test_the_defaults_of_the_version_are_proven(control_plane: ControlPlane) -> None:
    client = client_for(control_plane, "gates", "system:masters")
    proof = prove(client)
    assert proof.unproven == {}
    assert proof.gates == {name: getattr(client.profile().gates, GATES[name]) for name in ALL}
    assert all(client.list(resource).items == () for resource in {trial.resource for trial in TRIALS})


def test_who_may_not_create_learns_nothing(control_plane: ControlPlane) -> None:
    proof = prove(client_for(control_plane, "nobody"))
    assert proof.gates == {}
    assert proof.unproven.keys() == ALL


@pytest.fixture
def otherwise() -> Iterator[ControlPlane]:
    """Kubernetes with those gates the other way round that are not locked to their defaults."""
    off = {"DRAPartitionableDevices": False, "DRAConsumableCapacity": False}
    gates = {"DRAListTypeAttributes": True, "DRANodeAllocatableResources": True, **off}
    with ControlPlane(gates=gates) as running:
        yield running


def test_gates_that_are_set_otherwise_are_found(otherwise: ControlPlane) -> None:
    client = client_for(otherwise, "gates", "system:masters")
    assert prove(client).contradicts(client.profile()) == {
        "DRAListTypeAttributes": True,
        "DRANodeAllocatableResources": True,
        "DRAPartitionableDevices": False,
        "DRAConsumableCapacity": False,
    }
