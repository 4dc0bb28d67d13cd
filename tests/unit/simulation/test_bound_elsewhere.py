"""Pods for which no node is launched take those of others: nobody waits for more than one launch because of them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from autoscaler.cluster.resources import CAPACITY_POOLS, CLAIM_TEMPLATES, NAMESPACES, PODS
from autoscaler.simulation.simulation import ORDINARY, Simulation
from instance_catalog.kubernetes import labels
from tests.builders import pool_manifest
from tests.crash.life import START, small_catalog

ODD = 6
WAYS = {
    "a-delay-of-years": {"annotations": {labels.CA_POD_SCALE_UP_DELAY: "87600h"}},
    "a-request-that-does-not-exist": {"annotations": {labels.CA_CONSUME_PROVISIONING_REQUEST: "nowhere"}},
    "a-group-that-does-not-exist": {"labels": {labels.COSCHEDULING_POD_GROUP: "nowhere"}},
}


def cluster() -> Simulation:
    simulation = Simulation(catalog=small_catalog(), start=START)
    simulation.api.create(NAMESPACES, {"metadata": {"name": "tenant"}})
    simulation.api.create(CAPACITY_POOLS, pool_manifest(nodes=2 * ODD))
    request = {"name": "gpu", "exactly": {"deviceClassName": "gpu.nvidia.com"}}
    for namespace in ("default", "tenant"):
        metadata = {"name": "one", "namespace": namespace}
        spec = {"spec": {"devices": {"requests": [request]}}}
        simulation.api.create(CLAIM_TEMPLATES, {"metadata": metadata, "spec": spec})
    return simulation


def pod(name: str, **metadata: Any) -> dict[str, Any]:
    container = {"name": "main", "resources": {"requests": {"cpu": "1"}, "claims": [{"name": "gpu"}]}}
    claims = [{"name": "gpu", "resourceClaimTemplateName": "one"}]
    return {"metadata": {"name": name, **metadata}, "spec": {"containers": [container], "resourceClaims": claims}}


@pytest.mark.parametrize("metadata", WAYS.values(), ids=WAYS)
def test_a_pod_of_another_namespace_waits_for_one_launch(metadata: dict[str, Any]) -> None:
    simulation = cluster()
    for number in range(ODD):
        simulation.api.create(PODS, pod(f"odd-{number}", namespace="tenant", **metadata))
    simulation.run(START + timedelta(minutes=1))
    assert not simulation.cloud.machines  # alone they get no node

    simulation.api.create(PODS, pod("good"))
    simulation.run(simulation.clock.now() + ORDINARY.boot + timedelta(minutes=1))
    assert simulation.api.get(PODS, "good", namespace="default")["spec"].get("nodeName")
    assert len(simulation.cloud.machines) == ODD + 1
