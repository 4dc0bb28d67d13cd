"""`foreslice plan` with NodePools of Karpenter: pods that select what they define get what Karpenter would launch."""

from __future__ import annotations

from pathlib import Path

from click.testing import CliRunner, Result

from autoscaler.cli.plan import plan

NODE_POOL = """
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: NAME}
spec:
  limits: {nvidia.com/gpu: 8}
  template:
    metadata: {labels: {team: search}}
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: gpu}
      taints: [{key: dedicated, value: search, effect: NoSchedule}]
      requirements: [{key: karpenter.k8s.aws/instance-family, operator: In, values: [FAMILY]}]
---
"""
POD = """
apiVersion: v1
kind: Pod
metadata: {name: p}
spec:
  nodeSelector: {SELECTOR}
  tolerations: [{key: KEY, operator: Exists}]
  containers: [{name: c, image: i, resources: {requests: {cpu: 1}, limits: {RESOURCE: COUNT}}}]
---
"""
POOL = """
apiVersion: foreslice.dev/v1alpha1
kind: CapacityPool
metadata: {name: ours}
spec:
  mode: Observe
  nodeTemplateRef: {kind: SimulatedNodeTemplate, name: any}
  limits: {nodes: 1}
---
"""


def run(tmp_path: Path, *texts: str, args: tuple[str, ...] = ()) -> Result:
    file = tmp_path / "all.yaml"
    file.write_text("".join(texts))
    return CliRunner().invoke(plan, ["-f", str(file), *args])


def pod(selector: str = "", key: str = "dedicated", resource: str = "nvidia.com/gpu", count: int = 1) -> str:
    asked = POD.replace("SELECTOR", selector).replace("KEY", key)
    return asked.replace("RESOURCE", resource).replace("COUNT", str(count))


def pool(family: str = "g6", name: str = "gpu") -> str:
    return NODE_POOL.replace("FAMILY", family).replace("NAME", name)


def test_a_pod_gets_a_machine_of_the_node_pool_that_it_selects(tmp_path: Path) -> None:
    for selector in ("karpenter.sh/nodepool: gpu, team: search", ""):
        found = run(tmp_path, pool(), pod(selector))
        assert found.exit_code == 0
        assert "1 × g6.xlarge" in found.stdout
        assert "Karpenter launches by it" in found.stderr
    refused = run(tmp_path, pool(), pod(key="other"))
    assert refused.exit_code == 3
    assert "had untolerated taint {dedicated: search}" in refused.stdout


def test_what_device_plugins_hand_out_is_planned_too(tmp_path: Path) -> None:
    found = run(tmp_path, pool("inf2"), pod("team: search", resource="aws.amazon.com/neuron"))
    assert "1 × inf2.xlarge" in found.stdout
    ordinary = run(tmp_path, pool("inf2"), pod(resource="memory"))
    assert "1 pod ignored: default/p (needs no accelerator" in ordinary.stdout


def test_a_change_names_the_node_pool(tmp_path: Path) -> None:
    found = run(tmp_path, pool(), pod(), pod(count=8).replace("name: p", "name: q"))
    assert 'NodePool gpu: raise spec.limits["nvidia.com/gpu"] from 8 to 9' in found.stdout


def test_what_nodes_without_machines_are_made_of_is_no_mistake(tmp_path: Path) -> None:
    node_class = "apiVersion: karpenter.kwok.sh/v1alpha1\nkind: KWOKNodeClass\nmetadata: {name: default}\n---\n"
    found = run(tmp_path, node_class, pool(), pod(), args=("--strict",))
    assert "1 × g6.xlarge" in found.stdout
    assert "a plan launches none of them" in found.stderr


def test_a_node_pool_of_ordinary_machines_is_no_reason_to_refuse(tmp_path: Path) -> None:
    assert run(tmp_path, pool("m5"), pod()).exit_code == 0
    assert run(tmp_path, pool("m5"), pool("g6", "gpus"), pod()).stdout.count("1 × g6.xlarge") == 1
    assert run(tmp_path, pool("m5"), pod("karpenter.sh/nodepool: gpu")).exit_code == 3


def test_pools_of_foreslice_come_first(tmp_path: Path) -> None:
    found = run(tmp_path, pool(), POOL, pod())
    assert "ignored: it belongs to Karpenter" in found.stderr
    assert "1 × g6.xlarge" not in found.stdout
