"""CapacityBuffers of the production loop in virtual time: room is kept, and refilled behind real pods."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from autoscaler.cluster.api import Object, list_all
from autoscaler.cluster.resources import (
    CAPACITY_BUFFERS,
    CAPACITY_POOLS,
    CLAIM_TEMPLATES,
    DEPLOYMENTS,
    NODES,
    POD_TEMPLATES,
    PODS,
)
from autoscaler.simulation.simulation import Simulation
from instance_catalog.kubernetes import labels
from tests.builders import pool_manifest, shipped
from tests.unit.simulation.queue import RUNS_FOR, claim_template, condition, machines, named, template

START = datetime(2026, 1, 5, 9, tzinfo=UTC)
STRATEGY = "foreslice.dev/active-capacity"


def cluster(limit: int = 6, types: tuple[str, ...] = ("g6.xlarge",), **spec: Any) -> Simulation:
    simulation = Simulation(catalog=shipped(*types), start=START)
    simulation.api.create(CAPACITY_POOLS, pool_manifest(nodes=limit, **spec))
    simulation.api.create(CLAIM_TEMPLATES, claim_template("gpu", 1))
    simulation.api.create(POD_TEMPLATES, {"metadata": named("warm"), "template": template("warm", "1", "gpu")})
    return simulation


def buffer(simulation: Simulation, strategy: str = STRATEGY, **spec: Any) -> None:
    wanted = {"provisioningStrategy": strategy, "podTemplateRef": {"name": "warm"}, **spec}
    wanted = {name: value for name, value in wanted.items() if value is not None}
    simulation.api.create(CAPACITY_BUFFERS, {"metadata": named("warm"), "spec": wanted})


def status(simulation: Simulation) -> Object:
    found: Object = simulation.api.get(CAPACITY_BUFFERS, "warm", namespace="default")
    return found


def run(simulation: Simulation, minutes: float) -> None:
    simulation.run(simulation.clock.now() + timedelta(minutes=minutes))


def nodes(simulation: Simulation) -> dict[str, str]:
    """uid -> instance type."""
    found = list_all(simulation.api, NODES)[0]
    return {node["metadata"]["uid"]: node["metadata"]["labels"][labels.INSTANCE_TYPE] for node in found}


def work(simulation: Simulation, name: str, runs_for: str, claims: str = "gpu") -> None:
    pod = template(name, "1", claims)
    metadata = {**named(name), "annotations": {RUNS_FOR: runs_for}}
    simulation.api.create(PODS, {"metadata": metadata, "spec": pod["spec"]})


def test_room_is_kept_and_says_what_it_costs() -> None:
    simulation = cluster()
    buffer(simulation, replicas=2)
    run(simulation, 5)
    found = status(simulation)
    assert machines(simulation.api) == 2, "a GPU of each g6.xlarge"
    assert found["status"]["replicas"] == 2
    assert found["status"]["provisioningStrategy"] == STRATEGY
    assert found["status"]["podTemplateRef"] == {"name": "warm"}
    assert condition(found, "ReadyForProvisioning")["reason"] == "Resolved"
    said = condition(found, "Provisioning")
    assert (said["status"], said["reason"]) == ("True", "FitsExistingCapacity")
    assert "$/h" in said["message"]
    before = simulation.api.version
    run(simulation, 120)
    assert machines(simulation.api) == 2, "what a buffer needs is kept although it is empty"
    assert simulation.api.version == before, "nothing is written where nothing changes"


def test_a_real_pod_starts_at_once_and_the_room_is_refilled_behind_it() -> None:
    simulation = cluster()
    buffer(simulation, replicas=1)
    run(simulation, 5)
    work(simulation, "job", "30m")
    run(simulation, 0.1)
    assert simulation.api.get(PODS, "job", namespace="default")["spec"]["nodeName"]
    run(simulation, 5)
    assert machines(simulation.api) == 2
    assert condition(status(simulation), "Provisioning")["reason"] == "FitsExistingCapacity"
    run(simulation, 60)
    assert machines(simulation.api) == 1, "no more is kept than the buffer needs"


def test_real_pods_come_first_where_there_is_not_room_for_both() -> None:
    simulation = cluster(limit=1)
    buffer(simulation, replicas=1)
    work(simulation, "job", "30m")
    run(simulation, 6)
    assert simulation.api.get(PODS, "job", namespace="default")["spec"]["nodeName"]
    said = condition(status(simulation), "Provisioning")
    assert (said["status"], said["reason"]) == ("False", "CapacityIsNotFound")
    assert "limit" in said["message"]


A10G = 'device.attributes["gpu.nvidia.com"].productName == "NVIDIA A10G"'


def test_nodes_of_a_buffer_give_way_to_a_pod_of_another_type_and_no_more_of_them_than_it_needs() -> None:
    simulation = cluster(limit=3, types=("g6.xlarge", "g5.xlarge"))
    buffer(simulation, replicas=9)
    run(simulation, 30)
    assert machines(simulation.api) == 3, "the buffer fills the limit of the pool"
    before = nodes(simulation)
    simulation.api.create(CLAIM_TEMPLATES, claim_template("a10g", 1, A10G))
    work(simulation, "job", "2h", claims="a10g")
    run(simulation, 15)
    assert simulation.api.get(PODS, "job", namespace="default")["spec"].get("nodeName"), "one node gave way to it"
    after = nodes(simulation)
    assert sorted(after.values()) == ["g5.xlarge", "g6.xlarge", "g6.xlarge"]
    assert len(before.keys() & after.keys()) == 2
    run(simulation, 60)
    assert nodes(simulation) == after, "and nothing more ends, or is bought, because of it"


def test_nodes_of_a_buffer_stay_where_their_end_would_help_no_pod() -> None:
    simulation = cluster(types=("g6.xlarge", "g6.12xlarge"), limits={"accelerators": 3})
    buffer(simulation, replicas=3)
    run(simulation, 30)
    before = nodes(simulation)
    simulation.api.create(CLAIM_TEMPLATES, claim_template("four", 4))
    work(simulation, "job", "2h", claims="four")
    run(simulation, 60)
    assert len(before) == 3
    assert nodes(simulation) == before


def test_a_buffer_that_is_deleted_gives_its_nodes_back() -> None:
    simulation = cluster()
    buffer(simulation, replicas=2)
    run(simulation, 5)
    simulation.api.delete(CAPACITY_BUFFERS, "warm", namespace="default")
    run(simulation, 20)
    assert machines(simulation.api) == 0


def test_buffers_of_other_strategies_are_left_alone() -> None:
    simulation = cluster()
    buffer(simulation, "buffer.x-k8s.io/active-capacity", replicas=2)
    run(simulation, 5)
    assert "status" not in status(simulation)
    assert machines(simulation.api) == 0


def test_karpenter_with_its_gate_serves_every_buffer_and_nothing_is_doubled() -> None:
    simulation = cluster()
    container = {
        "name": "controller",
        "image": "public.ecr.aws/karpenter/controller:1.14.1",
        "env": [{"name": "FEATURE_GATES", "value": "NodeRepair=false,CapacityBuffer=true"}],
    }
    spec = {"replicas": 1, "template": {"spec": {"containers": [container]}}}
    simulation.api.create(DEPLOYMENTS, {"metadata": {"name": "karpenter", "namespace": "kube-system"}, "spec": spec})
    buffer(simulation, replicas=2)
    run(simulation, 5)
    assert machines(simulation.api) == 0
    said = condition(status(simulation), "ReadyForProvisioning")
    assert said["status"] == "False"
    assert "Karpenter serves CapacityBuffers of every strategy" in said["message"]


@pytest.mark.parametrize(
    ("spec", "replicas"),
    [
        pytest.param({"replicas": 1}, 1, id="replicas"),
        pytest.param({"percentage": 25}, 3, id="a-share-is-rounded-up"),
        pytest.param({"percentage": 10, "replicas": 1}, 1, id="the-larger-one"),
        pytest.param({"replicas": 5, "limits": {"cpu": "2500m"}}, 2, id="limits-cut"),
        pytest.param({"limits": {"gpu.nvidia.com.deviceclass.resource.k8s.io/devices": "3"}}, 3, id="limits-alone"),
        pytest.param({"replicas": 2, "limits": {"memory": "1Gi"}}, 2, id="a-limit-on-what-nobody-asks-for"),
        pytest.param({"replicas": 0}, 0, id="nothing"),
    ],
)
def test_how_much_a_buffer_asks_for(spec: dict[str, Any], replicas: int) -> None:
    simulation = cluster()
    if "percentage" in spec:
        # Without claims its own pods are none of the pool's: ten of them only count.
        body = template("web", "1", "gpu")
        deployment = {"metadata": named("web"), "spec": {"replicas": 10, "template": body}}
        simulation.api.create(DEPLOYMENTS, deployment)
        spec = {
            **spec,
            "podTemplateRef": None,
            "scalableRef": {"apiGroup": "apps", "kind": "Deployment", "name": "web"},
        }
    buffer(simulation, **spec)
    run(simulation, 0.2)
    found = status(simulation)
    assert found["status"]["replicas"] == replicas
    assert condition(found, "ReadyForProvisioning")["status"] == "True"


@pytest.mark.parametrize(
    ("spec", "reason", "word"),
    [
        pytest.param({"podTemplateRef": {"name": "none"}, "replicas": 1}, "PodTemplateNotFound", "none", id="template"),
        pytest.param(
            {"podTemplateRef": None, "scalableRef": {"apiGroup": "apps", "kind": "Deployment", "name": "x"}},
            "ScalableRefNotFound",
            "Deployment default/x",
            id="workload",
        ),
        pytest.param(
            {"podTemplateRef": None, "scalableRef": {"apiGroup": "batch", "kind": "Job", "name": "x"}, "replicas": 1},
            "ResolutionFailed",
            "Job",
            id="kind",
        ),
        pytest.param({}, "ResolutionFailed", "neither replicas", id="no-number"),
    ],
)
def test_a_buffer_that_cannot_be_resolved_says_why(spec: dict[str, Any], reason: str, word: str) -> None:
    simulation = cluster()
    buffer(simulation, **spec)
    run(simulation, 1)
    said = condition(status(simulation), "ReadyForProvisioning")
    assert (said["status"], said["reason"]) == ("False", reason)
    assert word in said["message"]
    assert condition(status(simulation), "Provisioning")["reason"] == "NotReadyForProvisioning"
    assert machines(simulation.api) == 0


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ({"limits": {"cpu": "-1"}, "replicas": 1}, "limits.cpu below zero (write at least 0"),
        ({"limits": {"cpu": "plenty"}, "replicas": 1}, "limits.cpu as written (write a quantity"),
        ({"replicas": 1, "scalableRef": {"apiGroup": "apps", "kind": "Deployment", "name": "x"}}, "at once (keep one"),
        ({"replicas": 1_000_000}, "replicas outside 0"),
        ({"replicas": 1, "podTemplateRef": None}, "without a reference (keep one"),
    ],
)
def test_what_cannot_be_honoured_is_said_with_the_remedy(spec: Object, says: str) -> None:
    simulation = cluster()
    buffer(simulation, **spec)
    run(simulation, 3)
    ready = condition(status(simulation), "ReadyForProvisioning")
    assert ready["status"] == "False"
    assert says in ready["message"]
    assert machines(simulation.api) == 0


@pytest.mark.parametrize(("limit", "replicas"), [("64", 2), ("31", 0)])
def test_all_devices_count_as_many_as_a_claim_can_get(limit: str, replicas: int) -> None:
    simulation = cluster()
    requests = [{"name": "gpu", "exactly": {"deviceClassName": "gpu.nvidia.com", "allocationMode": "All"}}]
    devices = {"spec": {"spec": {"devices": {"requests": requests}}}}
    simulation.api.patch(CLAIM_TEMPLATES, "gpu", devices, namespace="default")
    buffer(simulation, limits={"gpu.nvidia.com.deviceclass.resource.k8s.io/devices": limit})
    run(simulation, 3)
    assert status(simulation)["status"]["replicas"] == replicas
    ready = condition(status(simulation), "ReadyForProvisioning")
    assert ready["status"] == ("True" if replicas else "False")
    assert ("does not hold one pod (raise it" in ready["message"]) is (replicas == 0)
