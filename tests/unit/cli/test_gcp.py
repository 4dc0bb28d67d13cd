"""`gcp check` looks at what a launch needs, and says what is missing and which command corrects it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from click.testing import CliRunner

from autoscaler.cli.gcp.group import gcp as command
from autoscaler.clock import VirtualClock
from autoscaler.cluster.resources import GCP_NODE_TEMPLATES, NAMESPACES
from autoscaler.simulation.api_server import ApiServer
from tests.gcp import Rig, gcp

SPEC = {"cluster": {"name": "c1", "location": "us-central1"}, "nodePools": ["h100"]}


@pytest.fixture
def rig(monkeypatch: pytest.MonkeyPatch) -> Rig:
    monkeypatch.setattr("autoscaler.composition.gcp.Gcp", lambda *_: gcp())
    return Rig()


def checked(monkeypatch: pytest.MonkeyPatch, output: str = "json") -> tuple[int, Any]:
    """The exit code and the findings."""
    api = ApiServer(VirtualClock())
    if not any(item["metadata"]["name"] == "kube-system" for item in api.list(NAMESPACES).items):
        api.create(NAMESPACES, {"metadata": {"name": "kube-system"}})
    api.create(GCP_NODE_TEMPLATES, {"metadata": {"name": "gpu"}, "spec": SPEC})
    monkeypatch.setattr("autoscaler.cli.common.preflight.connected", lambda *_: api)
    result = CliRunner().invoke(command, ["check", "-o", output], catch_exceptions=False)
    return result.exit_code, json.loads(result.output) if output == "json" else result.output


def test_a_project_that_is_ready(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    code, found = checked(monkeypatch)
    assert code == 0
    assert [one["subject"] for one in found if one["passed"]] == ["project", "GCPNodeTemplate gpu"]
    assert rig.fake.project.machines == {}


def test_a_pool_that_gke_sizes(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    rig.fake.clusters.pools["h100"].autoscaling = True
    code, found = checked(monkeypatch, "table")
    assert code == 3
    assert "MISSING" in found
    assert "--no-enable-autoscaling" in found
