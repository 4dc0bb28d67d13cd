"""`explain -f`: pods, claims and nodes of manifests, by the same code as those of a cluster."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from autoscaler.cli.explain import explain
from autoscaler.errors import BadInputError

MANIFESTS = """
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: gpu, namespace: team}
spec:
  spec:
    devices:
      requests:
        - name: gpu
          exactly:
            deviceClassName: gpu.nvidia.com
            selectors:
              - cel: {expression: 'device.capacity["gpu.nvidia.com"].memory.compareTo(quantity("SIZE")) >= 0'}
---
apiVersion: batch/v1
kind: Job
metadata: {name: train, namespace: team}
spec:
  parallelism: 2
  template:
    spec:
      restartPolicy: Never
      resourceClaims: [{name: gpu, resourceClaimTemplateName: gpu}]
      containers: [{name: main, image: train, resources: {requests: {cpu: "1"}, claims: [{name: gpu}]}}]
"""


@pytest.fixture
def fitting(tmp_path: Path) -> Path:
    file = tmp_path / "fitting.yaml"
    file.write_text(MANIFESTS.replace("SIZE", "20Gi"))
    return file


@pytest.fixture
def too_large(tmp_path: Path) -> Path:
    file = tmp_path / "too-large.yaml"
    file.write_text(MANIFESTS.replace("SIZE", "500Gi"))
    return file


def run(file: Path, *arguments: str) -> Result:
    return CliRunner().invoke(explain, ["-f", str(file), *arguments])


def data(file: Path, *arguments: str) -> Any:
    return json.loads(run(file, *arguments, "-o", "json").stdout)


@pytest.mark.parametrize("name", ["team/train-0", "job/train", "train"])
def test_a_pod_by_its_name_or_that_of_its_workload(fitting: Path, name: str) -> None:
    found = data(fitting, "-n", "team", name)
    assert found["pod"] == "team/train-0"
    assert found["decision"]["outcome"] == "new"
    assert found["wouldHelp"] == []


def test_kube_scheduler_has_not_been_asked_about_files(fitting: Path) -> None:
    assert data(fitting, "team/train-0")["waitsFor"] == []


@pytest.mark.slow
def test_what_would_help_was_tried(too_large: Path) -> None:
    found = data(too_large, "team/train-0")
    (first, *_) = found["wouldHelp"]
    assert first["kind"] == "RewriteSelector"
    assert first["subject"] == "claim team/train-0-gpu, request gpu"
    assert "500Gi" in first["detail"]["condition"]
    assert first["result"]["launches"]
    assert first["result"]["text"] in run(too_large, "team/train-0").output


def test_without_a_name_each_workload_without_a_place_is_explained_once(too_large: Path, fitting: Path) -> None:
    assert [entry["pod"] for entry in data(too_large)] == ["team/train-0"]
    result = run(fitting)
    assert (result.exit_code, result.stdout) == (0, "")
    assert "every pod has a place" in result.stderr


def test_a_claim_and_the_node_it_would_be_on(fitting: Path) -> None:
    found = data(fitting, "claim/team/train-0-gpu")
    assert found["pods"] == ["team/train-0"]
    assert len(found["devices"]) == 1
    node = data(fitting, f"node/{found['node']}")
    assert node["state"] == "would be launched"
    assert "team/train-0" in node["podsPlanned"]
    assert f"Node {found['node']} would be launched" in run(fitting, found["node"]).output


@pytest.mark.slow
def test_a_claim_without_devices_says_why(too_large: Path) -> None:
    found = data(too_large, "claim/team/train-1-gpu")
    assert found["state"] == "pending"
    assert found["leftOut"] == ["team/train-1"]
    assert found["pod"]["wouldHelp"]
    assert "Smallest changes that place it:" in run(too_large, "claim/team/train-1-gpu").output


def test_a_name_that_is_not_there(fitting: Path) -> None:
    error = run(fitting, "team/trian-0").exception
    assert isinstance(error, BadInputError)
    assert "team/train-0" in str(error)


def test_neither_a_name_nor_files() -> None:
    assert CliRunner().invoke(explain, []).exit_code == 2


@pytest.mark.slow
def test_an_ignored_pod_is_told_what_else_it_lacks(tmp_path: Path) -> None:
    file = tmp_path / "other.yaml"
    file.write_text(
        "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n  schedulerName: volcano\n"
        "  nodeSelector: {topology.kubernetes.io/region: mars-1}\n"
        '  containers: [{name: c, image: i, resources: {limits: {aws.amazon.com/neuron: "1"}}}]\n'
    )
    told = data(file, "p")["ifServed"]
    assert "node selector wants topology.kubernetes.io/region=mars-1" in told[0]
    assert told[1] == "smallest change then:"
    assert any("drop nodeSelector topology.kubernetes.io/region=mars-1" in line for line in told[2:])
    assert any(line.startswith("  → ") for line in told[2:])
    assert "In a pool that serves it:" in run(file, "p").output


@pytest.mark.parametrize("option", [[], ["--why", "g6.xlarge"]], ids=["pod", "type"])
def test_a_line_break_in_a_pod_makes_no_line(option: list[str], tmp_path: Path) -> None:
    """An API server takes any text as a value of node affinity and as an annotation."""
    (tmp_path / "pod.yaml").write_text(
        """
apiVersion: v1
kind: Pod
metadata: {name: forger}
spec:
  affinity:
    nodeAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
        nodeSelectorTerms: [{matchExpressions: [{key: k, operator: In, values: ["x\\nerror: FORGED"]}]}]
  containers: [{name: main, image: i, resources: {requests: {cpu: "1"}, limits: {nvidia.com/gpu: 1}}}]
"""
    )
    result = CliRunner().invoke(explain, ["-f", str(tmp_path / "pod.yaml"), "forger", *option])
    assert "FORGED" in result.stdout
    assert not [line for line in result.stdout.splitlines() if line.startswith("error")]


def test_what_an_image_needs_is_told() -> None:
    """The plan is narrowed by what the manifest does not select."""
    result = CliRunner().invoke(
        explain, ["-f", "docs/examples/warnings/gpudirect.yaml", "bandwidth-0"], catch_exceptions=False
    )
    assert "bandwidth-0 and 1 more: planned on a3-megagpu-8g, as its image works nowhere else" in result.output
    assert "would launch a3-megagpu-8g" in result.output
