"""Kueue's queued jobs with claims: its ProvisioningRequests, our nodes, running pods. Both are real processes.

Steps and objects are those of docs/kueue.md.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Final

import pytest
import yaml

from autoscaler.clock import SystemClock
from autoscaler.cluster.api import NotFoundError, Object
from autoscaler.cluster.resources import EVENTS, LAUNCH_BATCHES, NODES, PROVISIONED_NODES, PROVISIONING_REQUESTS
from instance_catalog.kubernetes import labels
from tests.e2e.harness.deaths import outcomes
from tests.e2e.harness.installation import ROOT, Installation
from tests.e2e.harness.queueing import CHECK_CONFIGS, JOBS, WORKLOADS, Kueue
from tests.e2e.harness.steered import SteeredClock

EXAMPLES: Final = ROOT / "docs/examples/kueue"
POOL: Final = """
apiVersion: foreslice.dev/v1alpha1
kind: KwokNodeTemplate
metadata: {name: default}
spec: {}
---
apiVersion: foreslice.dev/v1alpha1
kind: CapacityPool
metadata: {name: gpu}
spec:
  mode: Act
  nodeTemplateRef: {kind: KwokNodeTemplate, name: default}
  requirements:
  - {key: topology.kubernetes.io/zone, operator: In, values: [us-east-1a]}
  - {key: node.kubernetes.io/instance-type, operator: In, values: [g6.xlarge]}
  drivers: {profiles: [nvidia]}
  taints: [{key: example.com/queued, value: "true", effect: NoSchedule}]
  limits: {nodes: 4}
  disruption: {after: 1s}
"""
ALONE: Final = {"FORESLICE_LEASE_ELECT": "false"}
IMPOSSIBLE: Final = "device.attributes['gpu.nvidia.com'].productName == 'no such GPU'"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    with Installation(tmp_path_factory.mktemp("kueue"), jobs_end=False) as installed:
        with Kueue(installed, yaml.safe_load(_example("configuration"))) as kueue:
            installed.apply(POOL)
            for name in ("queue", "cluster-queue", "job"):
                kueue.apply(_example(name).replace("parallelism: 2", "parallelism: 2"))
            yield installed


def test_a_queued_job_runs_on_nodes_that_were_bought_for_it(cluster: Installation) -> None:
    with cluster.controller("job.log") as controller:
        cluster.wait_until(lambda: _running(cluster, "train") == 2, "two running pods")
        (request,) = cluster.api.list(PROVISIONING_REQUESTS, namespace="default").items
        nodes = {found["metadata"]["name"]: found for found in cluster.api.list(NODES).items}
        pods = _pods(cluster, "train")
        assert {pod["spec"]["nodeName"] for pod in pods} == nodes.keys()
        uid = request["metadata"]["uid"]
        assert {node["metadata"]["labels"][labels.PROVISIONING_REQUEST] for node in nodes.values()} == {uid}
        assert {pod["spec"]["nodeSelector"][labels.PROVISIONING_REQUEST] for pod in pods} == {uid}
        cluster.wait_until(lambda: _condition(cluster, request, "BookingExpired") == "CapacityBookingConsumed", "use")
        assert _condition(cluster, request, "Provisioned") == "CapacityIsProvisioned"
        cluster.api.delete(JOBS, "train", namespace="default")
        cluster.wait_until(cluster.is_empty, "no node")
        assert controller.stop() == 0


def _example(name: str) -> str:
    return (EXAMPLES / f"{name}.yaml").read_text(encoding="utf-8")


def _pods(cluster: Installation, job: str) -> list[Object]:
    return [pod for pod in cluster.pods().values() if pod["metadata"]["labels"].get("job-name") == job]


def _running(cluster: Installation, job: str) -> int:
    return sum(pod["status"]["phase"] == "Running" for pod in _pods(cluster, job))


def _condition(cluster: Installation, request: Object, kind: str) -> str:
    """The reason of a condition that is True; "" if it is not."""
    name = request["metadata"]["name"]
    found = cluster.api.get(PROVISIONING_REQUESTS, name, namespace="default")
    conditions = found.get("status", {}).get("conditions", [])
    return next((c["reason"] for c in conditions if c["type"] == kind and c["status"] == "True"), "")
