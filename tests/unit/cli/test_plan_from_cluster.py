"""What `kubectl get -A -o json` prints: one tenant's dangling name stops nobody else's plan."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from autoscaler.cli.plan import plan
from autoscaler.errors import ConfigurationError


def template(name: str, namespace: str, device_class: str) -> dict[str, Any]:
    requests = [{"name": "gpu", "exactly": {"deviceClassName": device_class}}]
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": name, "namespace": namespace, "uid": f"{namespace}-{name}"},
        "spec": {"spec": {"devices": {"requests": requests}}},
    }


def pod(name: str, namespace: str, **claim: str) -> dict[str, Any]:
    resources = {"requests": {"cpu": "1", "memory": "1Gi"}, "claims": [{"name": "g"}]}
    spec = {
        "resourceClaims": [{"name": "g", **claim}],
        "containers": [{"name": "c", "image": "x", "resources": resources}],
    }
    metadata = {"name": name, "namespace": namespace, "uid": f"{namespace}-{name}"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": {"phase": "Pending"}}


def planned(*objects: dict[str, Any]) -> Result:
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
    return CliRunner().invoke(plan, ["-f", "-", "-o", "json"], input=text)


GOOD = (template("one", "good", "gpu.nvidia.com"), pod("small", "good", resourceClaimTemplateName="one"))
DANGLING = [
    pytest.param((pod("p", "evil", resourceClaimTemplateName="nope"),), "nope", id="template"),
    pytest.param((pod("p", "evil", resourceClaimName="nope"),), "nope", id="claim"),
    pytest.param(
        (template("c", "evil", "no-such-class"), pod("p", "evil", resourceClaimTemplateName="c")),
        "no-such-class",
        id="class",
    ),
]


@pytest.mark.parametrize(("evil", "name"), DANGLING)
def test_only_the_pod_with_the_dangling_name_stays_out(evil: tuple[dict[str, Any], ...], name: str) -> None:
    found = planned(*GOOD, *evil)
    answer = json.loads(found.stdout)
    (launch,) = answer["launches"]
    assert launch["pods"] == ["good/small"]
    (left,) = answer["leftOut"]
    assert left["pod"] == "evil/p"
    assert name in found.stdout
    assert f"'{name}'" in found.stderr


# A DeviceClass that resembles no known one may well exist in the cluster.
@pytest.mark.parametrize(("evil", "name"), DANGLING[:2])
def test_a_manifest_that_no_server_has_is_an_error(evil: tuple[dict[str, Any], ...], name: str) -> None:
    written = [{**found, "metadata": {**found["metadata"], "uid": ""}} for found in evil]
    result = planned(*GOOD, *written)
    assert result.exit_code == 1
    assert f"'{name}'" in str(result.exception)


@pytest.mark.parametrize("arguments", [[], ["--live", "-f", "pods.yaml"]], ids=["neither", "both"])
def test_manifests_or_a_cluster(arguments: list[str]) -> None:
    result = CliRunner().invoke(plan, arguments)
    assert result.exit_code == 2
    assert "Give either -f with manifests, or --live" in result.output


def test_no_cluster_says_what_to_give(tmp_path: Path) -> None:
    result = CliRunner().invoke(plan, ["--live", "--kubeconfig", str(tmp_path / "missing")])
    assert isinstance(result.exception, ConfigurationError)
    assert "there is no kubeconfig" in str(result.exception)
    assert "--kubeconfig" in str(result.exception)
