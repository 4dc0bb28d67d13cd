"""Claims for AWS's own networking driver: bought where it was measured, undecided where it was only told."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from autoscaler.cli.plan import plan

PODS = """
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: nics, namespace: default}
spec: {spec: {devices: {requests: [{name: nic, exactly: {deviceClassName: roce.networking.k8s.aws, count: 4}}]}}}
---
apiVersion: v1
kind: Pod
metadata: {name: train, namespace: default}
spec:
  resourceClaims: [{name: nics, resourceClaimTemplateName: nics}]
  containers: [{name: main, image: pause, resources: {claims: [{name: nics}], requests: {cpu: "1"}}}]
---
apiVersion: foreslice.dev/v1alpha1
kind: CapacityPool
metadata: {name: gpu}
spec:
  mode: Act
  requirements:
  - {key: node.kubernetes.io/instance-type, operator: In, values: [TYPE]}
  - {key: topology.kubernetes.io/zone, operator: In, values: [us-east-1a]}
  nodeTemplateRef: {kind: AWSNodeTemplate, name: gpu}
  drivers: {profiles: [PROFILES]}
  limits: {nodes: 4}
"""
# As `catalog learn` writes it, with a price.
ROCE = """
cloud: aws
types:
- name: p6e-gb300r.36xlarge
  architecture: amd64
  vcpu: 144
  memory: 960Gi
  accelerator: {model: nvidia-gb300, count: 4}
  networkCards: [{kind: ena, primary: true}, {kind: rdma, count: 8}]
  capacityTypes: [on-demand]
  prices: {on-demand: {usdPerHour: 100, region: us-east-1, date: 2026-11-20}}
"""


@pytest.mark.parametrize(
    ("type_name", "profiles", "launched", "outcome"),
    [
        ("p6e-gb300r.36xlarge", "nvidia, aws-net", 1, None),
        ("p6e-gb300r.36xlarge", "nvidia, dranet", 0, "does-not-fit"),
        ("p5.48xlarge", "nvidia, aws-net", 0, "unknown"),
    ],
    ids=["measured", "another driver", "told"],
)
def test_a_claim_for_roce_cards(
    tmp_path: Path, type_name: str, profiles: str, launched: int, outcome: str | None
) -> None:
    (tmp_path / "catalog").mkdir()
    (tmp_path / "catalog" / "roce.yaml").write_text(ROCE, encoding="utf-8")
    pods = tmp_path / "pods.yaml"
    pods.write_text(PODS.replace("TYPE", type_name).replace("PROFILES", profiles), encoding="utf-8")
    result = CliRunner().invoke(plan, ["--catalog", str(tmp_path / "catalog"), "-f", str(pods), "-o", "json"])
    found = json.loads(result.stdout)
    assert len(found["launches"]) == launched
    assert [entry["verdict"] for entry in found["leftOut"]] == ([outcome] if outcome else [])
    if outcome == "unknown":
        assert "dra.vpc.amazonaws.com/deviceType" in result.stdout
