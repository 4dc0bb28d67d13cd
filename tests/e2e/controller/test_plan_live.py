"""`plan --live` on a cluster gives the plan that `plan -f` gives for the same manifests, and needs only to list."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from click.testing import CliRunner

from autoscaler.cli.plan import plan
from autoscaler.clock import SystemClock
from autoscaler.cluster.api import ForbiddenError, Object
from autoscaler.cluster.client.client import KubernetesClient
from autoscaler.cluster.client.transport import connect
from autoscaler.cluster.resources import BY_KIND, PODS
from instance_catalog.kubernetes.profile import REFERENCE
from tests.e2e.harness.cluster import Cluster
from tests.e2e.harness.control_plane import ControlPlane

EXAMPLE: Final = Path(__file__).parents[3] / "docs/examples/first-available.yaml"
READER: Final = "/apis/rbac.authorization.k8s.io/v1"


@pytest.fixture
def pending(control_plane: ControlPlane) -> Iterator[ControlPlane]:
    """The example's pod, with the claim that was made for it, and no node anywhere."""
    clock = SystemClock()
    api = KubernetesClient(connect(clock, kubeconfig=str(control_plane.identity("setup", "system:masters"))), clock)
    cluster = Cluster(control_plane)
    cluster.install_classes(REFERENCE)
    for document in yaml.safe_load_all(EXAMPLE.read_text(encoding="utf-8")):
        if document["kind"] in BY_KIND:
            api.create(BY_KIND[document["kind"]], document)

    def claimed() -> bool:
        found: Object = api.get(PODS, "inference", namespace="default")
        return "resourceClaimStatuses" in found["status"]

    control_plane.wait_until(claimed, "a claim from the template")
    yield control_plane
    cluster.clear()


@pytest.fixture
def reader(pending: ControlPlane) -> Iterator[Path]:
    """A kubeconfig of somebody who may only list."""
    rules = [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["list"]}]
    role = {"kind": "ClusterRole", "metadata": {"name": "lister"}, "rules": rules}
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "lister"}
    subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "lister"}
    binding = {
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "lister"},
        "roleRef": reference,
        "subjects": [subject],
    }
    for plural, manifest in (("clusterroles", role), ("clusterrolebindings", binding)):
        pending.call("POST", f"{READER}/{plural}", {"apiVersion": "rbac.authorization.k8s.io/v1", **manifest})
    kubeconfig = pending.identity("lister")
    clock = SystemClock()
    client = KubernetesClient(connect(clock, kubeconfig=str(kubeconfig)), clock)

    def may_list() -> bool:
        """The authorizer sees a new role a moment after it was written."""
        with suppress(ForbiddenError):
            client.list(PODS)
            return True
        return False

    pending.wait_until(may_list, "the right to list")
    yield kubeconfig
    for plural in ("clusterrolebindings", "clusterroles"):
        pending.call("DELETE", f"{READER}/{plural}/lister")


def planned(*arguments: str) -> Any:
    """The plan as data."""
    result = CliRunner().invoke(plan, [*arguments, "-o", "json"])
    assert result.exception is None, result.output
    return json.loads(result.stdout)


def test_a_live_plan_is_the_plan_of_its_manifests(reader: Path) -> None:
    live, written = planned("--live", "--kubeconfig", str(reader)), planned("-f", str(EXAMPLE))
    assert live["launches"] == written["launches"]
    assert live["launches"][0]["pods"] == ["default/inference"]
    assert live["summary"] == written["summary"]
    assert live["kubernetesProfile"] == written["kubernetesProfile"]
