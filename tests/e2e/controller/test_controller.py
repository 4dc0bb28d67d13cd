"""The controller as a process on a real control plane: it observes without touching, and acts when it is told to.

It runs with the rights of deploy/manifests/rbac.yaml and nothing else, so whatever it does beyond them fails here. The
scheduler is real; kubelets are not: `Kubelets` reports nodes ready and pods running, as KWOK would.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import pytest
import yaml

from autoscaler.clock import SystemClock
from autoscaler.cluster.api import ConflictError, NotFoundError, Object
from autoscaler.cluster.client.client import KubernetesClient
from autoscaler.cluster.client.transport import connect
from autoscaler.cluster.resources import (
    BY_KIND,
    CAPACITY_POOLS,
    EVENTS,
    LAUNCH_BATCHES,
    NODES,
    PODS,
    PROVISIONED_NODES,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    Resource,
)
from instance_catalog.drivers.facts import builtin_device_classes
from instance_catalog.kubernetes import labels
from instance_catalog.kubernetes.profile import REFERENCE
from tests.e2e.harness.control_plane import ControlPlane
from tests.e2e.harness.gpu_pods import pool
from tests.e2e.harness.installation import ACCOUNT, ROOT, Controller

RBAC: Final = "rbac.authorization.k8s.io"
ADMISSION: Final = "admissionregistration.k8s.io"
KINDS: Final = {
    **BY_KIND,
    "CustomResourceDefinition": Resource(
        "apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition"
    ),
    "ServiceAccount": Resource("", "v1", "serviceaccounts", "ServiceAccount", namespaced=True),
    "Role": Resource(RBAC, "v1", "roles", "Role", namespaced=True),
    "RoleBinding": Resource(RBAC, "v1", "rolebindings", "RoleBinding", namespaced=True),
    "ClusterRole": Resource(RBAC, "v1", "clusterroles", "ClusterRole"),
    "ClusterRoleBinding": Resource(RBAC, "v1", "clusterrolebindings", "ClusterRoleBinding"),
    "ValidatingAdmissionPolicy": Resource(ADMISSION, "v1", "validatingadmissionpolicies", "ValidatingAdmissionPolicy"),
    "ValidatingAdmissionPolicyBinding": Resource(
        ADMISSION, "v1", "validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding"
    ),
}
OBSERVER: Final = "observer"
SETTINGS: Final = {
    "FORESLICE_BATCH_IDLE": "0s",
    "FORESLICE_LOOP_RESYNC": "2s",
    "FORESLICE_LEASE_ELECT": "false",
    **{f"FORESLICE_SERVE_{what}_ADDRESS": "127.0.0.1:0" for what in ("HEALTH", "METRICS", "PAGE")},
}
WORKLOAD: Final = """
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: gpu, namespace: default}
spec: {spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.nvidia.com, count: 2}}]}}}
---
apiVersion: v1
kind: Pod
metadata: {name: work, namespace: default}
spec:
  terminationGracePeriodSeconds: 1
  resourceClaims: [{name: gpu, resourceClaimTemplateName: gpu}]
  containers: [{name: main, image: pause, resources: {claims: [{name: gpu}], requests: {cpu: "1"}}}]
"""
POOL: Final = pool(limits={"nodes": 2}, disruption={"after": "2s"})


def apply(api: KubernetesClient, text: str) -> None:
    """Create all objects of a text."""
    for document in yaml.safe_load_all(text):
        api.create(KINDS[document["kind"]], document)


@pytest.fixture(scope="module")
def running() -> Iterator[ControlPlane]:
    """A control plane of its own: what a controller sees must be its test's alone."""
    with ControlPlane() as control_plane:
        yield control_plane


@pytest.fixture(scope="module")
def api(running: ControlPlane) -> KubernetesClient:
    """An administrator in a cluster where Foreslice is installed, with an observer who may only observe."""
    clock = SystemClock()
    client = KubernetesClient(connect(clock, kubeconfig=str(running.identity("admin-client", "system:masters"))), clock)
    for path in sorted((ROOT / "deploy/crds").glob("*.yaml")):
        apply(client, path.read_text(encoding="utf-8"))
    apply(client, (ROOT / "deploy/manifests/rbac.yaml").read_text(encoding="utf-8"))
    binding: Object = {
        "metadata": {"name": "observer"},
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": "foreslice-observe"},
        "subjects": [{"apiGroup": RBAC, "kind": "User", "name": OBSERVER}],
    }
    client.create(KINDS["ClusterRoleBinding"], binding)
    facts = next(facts for facts in builtin_device_classes(REFERENCE) if facts.name == "gpu.nvidia.com")
    selectors = [{"cel": {"expression": text}} for text in facts.selectors]
    client.create(KINDS["DeviceClass"], {"metadata": {"name": facts.name}, "spec": {"selectors": selectors}})

    def served() -> bool:
        with suppress(NotFoundError):
            return all(client.list(kind).items == () for kind in (CAPACITY_POOLS, KINDS["KwokNodeTemplate"]))
        return False

    running.wait_until(served, "the custom resources")
    apply(client, POOL)
    return client


@contextmanager
def controller(running: ControlPlane, user: str, log: Path) -> Iterator[Controller]:
    """The controller with the rights of a user."""
    command = ["autoscaler.cli", "run", "--kubeconfig", str(running.identity(user))]
    started = Controller(command, log, SETTINGS, root=ROOT)
    try:
        yield started
    finally:
        started.stop(signal.SIGKILL)


class Kubelets:
    """Nodes become ready, bound pods run, and deleted ones end."""

    def __init__(self, api: KubernetesClient) -> None:
        self._api = api

    def step(self) -> None:
        """Let everything take the step that is due."""
        for node in self._api.list(NODES).items:
            if not any(found["status"] == "True" for found in node["status"].get("conditions", ()) if _is_ready(found)):
                self._report(NODES, node, {"conditions": [{"type": "Ready", "status": "True"}]})
        for pod in self._api.list(PODS).items:
            if "deletionTimestamp" in pod["metadata"]:
                with suppress(NotFoundError):
                    self._api.delete(PODS, pod["metadata"]["name"], namespace="default", grace_seconds=0)
            elif "nodeName" in pod["spec"] and pod["status"]["phase"] == "Pending":
                self._report(PODS, pod, {"phase": "Running"})

    def _report(self, resource: Resource, found: Object, status: Object) -> None:
        metadata = found["metadata"]
        with suppress(NotFoundError, ConflictError):
            namespace = metadata.get("namespace", "")
            patch = {"status": status}
            self._api.patch(resource, metadata["name"], patch, namespace=namespace, subresource="status")


def _is_ready(condition: Object) -> bool:
    return bool(condition["type"] == "Ready")


def names(api: KubernetesClient, *resources: Resource) -> list[str]:
    """The names of all objects."""
    return [item["metadata"]["name"] for resource in resources for item in api.list(resource).items]


@pytest.fixture
def pending(api: KubernetesClient) -> Iterator[None]:
    """A pod with a claim for two GPUs, and no node anywhere."""
    apply(api, WORKLOAD)
    yield
    with suppress(NotFoundError):
        api.delete(PODS, "work", namespace="default", grace_seconds=0)
    api.delete(KINDS["ResourceClaimTemplate"], "gpu", namespace="default")


@pytest.mark.usefixtures("pending")
def test_observing_proposes_and_touches_nothing(running: ControlPlane, api: KubernetesClient, tmp_path: Path) -> None:
    api.patch(CAPACITY_POOLS, "gpu", {"spec": {"mode": "Observe"}})
    with controller(running, OBSERVER, tmp_path / "log") as observing:

        def proposed() -> bool:
            return bool(api.get(CAPACITY_POOLS, "gpu").get("status", {}).get("proposedLaunches"))

        running.wait_until(proposed, f"a proposal\n{observing.log}")
        running.wait_until(lambda: observing.answer("probes", "/readyz").status_code == 200, "a round")
        assert observing.answer("probes", "/healthz").text == "ok"
        metrics = observing.answer("metrics", "/metrics").text
        (price,) = re.findall(r'^foreslice_proposed_usd_per_hour\{pool="gpu"\} (\S+)$', metrics, re.MULTILINE)
        assert float(price) > 0
        assert 'foreslice_pending_pods{reason="NewNode"} 1.0' in metrics
        assert observing.answer("page", "/").status_code == 401
        assert observing.stop() == 0
        log = observing.log
    (proposal,) = api.get(CAPACITY_POOLS, "gpu")["status"]["proposedLaunches"]
    assert (proposal["count"], proposal["pods"], proposal["zone"]) == (1, 1, "us-east-1a")
    assert '"event": "would_launch"' in log
    # It may do nothing else, so anything else it tried would be in the log.
    assert '"level": "warning"' not in log
    assert names(api, NODES, RESOURCE_SLICES, PROVISIONED_NODES, LAUNCH_BATCHES) == []
    told = [found for found in api.list(EVENTS).items if found.get("source", {}).get("component") == "foreslice"]
    assert {(found["involvedObject"]["name"], found["reason"]) for found in told} == {("work", "ProposedScaleUp")}
    assert "nominatedNodeName" not in api.get(PODS, "work", namespace="default")["status"]


@pytest.mark.usefixtures("pending")
def test_acting_brings_a_node_and_takes_it_away_again(
    running: ControlPlane, api: KubernetesClient, tmp_path: Path
) -> None:
    kubelets = Kubelets(api)
    api.patch(CAPACITY_POOLS, "gpu", {"spec": {"mode": "Act"}})
    with controller(running, ACCOUNT, tmp_path / "log") as acting:

        def runs() -> bool:
            kubelets.step()
            return bool(api.get(PODS, "work", namespace="default")["status"]["phase"] == "Running")

        running.wait_until(runs, "a running pod")
        (node,) = api.list(NODES).items
        assert api.get(PODS, "work", namespace="default")["spec"]["nodeName"] == node["metadata"]["name"]
        assert node["metadata"]["annotations"][labels.KWOK_NODE] == "fake"
        (claim,) = api.list(RESOURCE_CLAIMS, namespace="default").items
        results = claim["status"]["allocation"]["devices"]["results"]
        assert {(result["driver"], result["pool"]) for result in results} == {
            ("gpu.nvidia.com", node["metadata"]["name"])
        }
        assert len(results) == 2

        def ready() -> bool:
            (provisioned,) = api.list(PROVISIONED_NODES).items
            return bool(provisioned["status"]["phase"] == "Ready")

        running.wait_until(ready, "the node's last step up")
        api.delete(PODS, "work", namespace="default")

        def empty() -> bool:
            kubelets.step()
            return names(api, NODES, PODS, RESOURCE_SLICES, PROVISIONED_NODES, LAUNCH_BATCHES) == []

        running.wait_until(empty, "an empty cluster")
        assert acting.stop() == 0
        assert "Forbidden" not in acting.log
        assert "forbidden" not in acting.log


@pytest.mark.usefixtures("pending")
def test_a_killed_controller_leaves_nothing_double(
    running: ControlPlane, api: KubernetesClient, tmp_path: Path
) -> None:
    kubelets = Kubelets(api)
    api.patch(CAPACITY_POOLS, "gpu", {"spec": {"mode": "Act"}})
    with controller(running, ACCOUNT, tmp_path / "first") as first:
        running.wait_until(lambda: names(api, LAUNCH_BATCHES) != [], "an intent")
        first.stop(signal.SIGKILL)
    with controller(running, ACCOUNT, tmp_path / "second"):

        def runs() -> bool:
            kubelets.step()
            return bool(api.get(PODS, "work", namespace="default")["status"]["phase"] == "Running")

        running.wait_until(runs, "a running pod")
        assert len(names(api, NODES)) == len(names(api, PROVISIONED_NODES)) == len(names(api, LAUNCH_BATCHES)) == 1
        api.delete(PODS, "work", namespace="default")

        def empty() -> bool:
            kubelets.step()
            return names(api, NODES, PODS, RESOURCE_SLICES, PROVISIONED_NODES, LAUNCH_BATCHES) == []

        running.wait_until(empty, "an empty cluster")
