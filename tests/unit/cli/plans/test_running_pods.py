"""What a plan says of running pods in pools with `consolidate: Cheaper`: which moves pay, and why other pods stay."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from autoscaler.cli.plan import plan

# A machine of four GPUs where one small pod is left.
CLUSTER = """
apiVersion: foreslice.dev/v1alpha1
kind: PlanContext
metadata: {name: lonely}
spec: {kubernetesVersion: "1.36", now: "2026-11-21T08:00:00Z"}
---
apiVersion: foreslice.dev/v1alpha1
kind: CapacityPool
metadata: {name: gpu}
spec:
  mode: Act
  nodeTemplateRef: {kind: AWSNodeTemplate, name: gpu}
  requirements:
    - {key: foreslice.dev/cloud, operator: In, values: [aws]}
    - {key: topology.kubernetes.io/zone, operator: In, values: [us-east-1a]}
    - {key: foreslice.dev/accelerator, operator: In, values: [L40S]}
  drivers: {profiles: [nvidia]}
  limits: {nodes: 10}
  disruption: {consolidate: Cheaper, saving: {}}
---
apiVersion: foreslice.dev/v1alpha1
kind: ProvisionedNode
metadata: {name: gpu-1, uid: pn-1, creationTimestamp: "2026-11-21T02:00:00Z"}
spec:
  pool: gpu
  nodeName: gpu-1
  offerings: [{instanceType: g6e.12xlarge, zone: us-east-1a, capacityType: on-demand, usdPerHour: "10.49264"}]
  prediction: {instanceType: g6e.12xlarge, drivers: [nvidia]}
status:
  phase: Ready
  phaseSince: "2026-11-21T02:05:00Z"
  providerID: aws:///us-east-1a/i-00000000000000001
---
apiVersion: v1
kind: Node
metadata:
  name: gpu-1
  labels:
    node.kubernetes.io/instance-type: g6e.12xlarge
    topology.kubernetes.io/region: us-east-1
    topology.kubernetes.io/zone: us-east-1a
spec: {providerID: aws:///us-east-1a/i-00000000000000001}
status: {allocatable: {cpu: 47810m, memory: 370Gi, pods: "234"}, conditions: [{type: Ready, status: "True"}]}
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: gpu-1-gpus}
spec:
  driver: gpu.nvidia.com
  nodeName: gpu-1
  pool: {name: gpu-1, generation: 1, resourceSliceCount: 1}
  devices:
    - name: gpu-0
      attributes: &l40s {type: {string: gpu}, productName: {string: NVIDIA L40S}, architecture: {string: Ada Lovelace}}
      capacity: &all {memory: {value: 46068Mi}}
    - {name: gpu-1, attributes: *l40s, capacity: *all}
    - {name: gpu-2, attributes: *l40s, capacity: *all}
    - {name: gpu-3, attributes: *l40s, capacity: *all}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: chat-gpu, namespace: default, uid: claim-chat}
spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.nvidia.com}}]}}
status:
  reservedFor: [{resource: pods, name: chat, uid: pod-chat}]
  allocation:
    devices:
      results: [{request: gpu, driver: gpu.nvidia.com, pool: gpu-1, device: gpu-0}]
---
apiVersion: v1
kind: Pod
metadata:
  name: chat
  namespace: default
  uid: pod-chat
  ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: chat, uid: rs-chat, controller: true}]
spec:
  nodeName: gpu-1
  containers: [{name: main, image: example, resources: {requests: {cpu: "3"}, claims: [{name: gpu}]}}]
  resourceClaims: [{name: gpu, resourceClaimName: chat-gpu}]
status: {phase: Running}
"""
PENDING = """
---
apiVersion: v1
kind: Pod
metadata: {name: train, namespace: default}
spec: {containers: [{name: c, resources: {requests: {cpu: 8}, limits: {nvidia.com/gpu: 4}}}]}
"""


def planned(tmp_path: Path, manifests: str) -> tuple[str, dict[str, Any]]:
    """The text and the document."""
    file = tmp_path / "cluster.yaml"
    file.write_text(manifests, encoding="utf-8")
    text, data = (CliRunner().invoke(plan, ["-f", str(file), "-o", form]) for form in ("wide", "json"))
    assert (text.exception, data.exception) == (None, None)
    return text.stdout, json.loads(data.stdout)


def codes(document: dict[str, Any]) -> list[str]:
    """Of the decision about the only node."""
    (decision,) = document["nodes"]
    assert decision["disposal"] == "keep"
    return [document["reasons"][key]["code"] for key in decision["reasons"]]


@pytest.mark.parametrize("mode", ["Act", "Observe"])
def test_a_move_that_pays_is_told_whether_or_not_the_pool_acts(tmp_path: Path, mode: str) -> None:
    text, document = planned(tmp_path, CLUSTER.replace("mode: Act", f"mode: {mode}"))
    assert codes(document) == ["AlreadyBound", "NodeReplaced"]
    assert "its pods cost 8.63 $/h less on g6e.xlarge" in text
    assert (document["launches"], document["summary"]["usdPerHour"]) == ([], "0.00")


@pytest.mark.parametrize(
    ("before", "after", "found"),
    [
        ("kind: ReplicaSet", "kind: Job", ["AlreadyBound", "PodsStay"]),
        ("saving: {}", "saving: {percent: 90}", ["AlreadyBound", "NotCheaper"]),
        ("consolidate: Cheaper", "consolidate: WhenEmpty", ["AlreadyBound"]),
    ],
)
def test_the_reason_is_told_why_pods_stay(tmp_path: Path, before: str, after: str, found: list[str]) -> None:
    text, document = planned(tmp_path, CLUSTER.replace(before, after))
    assert codes(document) == found
    assert "warning" not in text


def test_nodes_that_foreslice_did_not_launch_are_told(tmp_path: Path) -> None:
    first, own, *others = CLUSTER.partition("---\napiVersion: foreslice.dev/v1alpha1\nkind: ProvisionedNode")
    rest = others[0].partition("---")[2]
    assert own
    text, document = planned(tmp_path, f"{first}---{rest}")
    assert document["nodes"] == []
    assert "warning: pool gpu: consolidate: Cheaper moves pods of nodes that Foreslice launched, and none is of" in text
    assert "`kubectl get provisionednodes -o yaml`" in text


def test_nothing_is_tried_while_a_pod_gets_a_node(tmp_path: Path) -> None:
    text, document = planned(tmp_path, CLUSTER + PENDING)
    assert codes(document) == ["AlreadyBound"]
    assert len(document["launches"]) == 1
    assert "warning: pool gpu: no move of running pods is tried while a pod gets a place" in text
    _, observing = planned(tmp_path, CLUSTER.replace("mode: Act", "mode: Observe") + PENDING)
    assert codes(observing) == ["AlreadyBound", "NodeReplaced"]


def test_a_pool_without_nodes_does_not_keep_others_from_being_tried(tmp_path: Path) -> None:
    pool = CLUSTER.split("---\n")[1].replace("name: gpu}\nspec", "name: spare}\nspec").replace("[L40S]", "[H100]")
    text, document = planned(tmp_path, f"{CLUSTER}---\n{pool}")
    assert codes(document) == ["AlreadyBound", "NodeReplaced"]
    assert "warning: pool spare: consolidate: Cheaper moves pods of nodes that Foreslice launched, and none is" in text
