"""`foreslice plan --replay`: does the plan hold whatever kube-scheduler picks among equal nodes?"""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from autoscaler.cli.plan import plan

NODE = """
apiVersion: v1
kind: Node
metadata: {{name: {name}, labels: {{kubernetes.io/hostname: {name}, fast: "{fast}"}}}}
status: {{allocatable: {{cpu: "4", memory: 8Gi, pods: "10"}}}}
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {{name: {name}}}
spec:
  driver: d.example.com
  nodeName: {name}
  pool: {{name: {name}, generation: 1, resourceSliceCount: 1}}
  devices: [{{name: d}}]
---"""
POD = """
apiVersion: v1
kind: Pod
metadata: {{name: {name}}}
spec:
  nodeSelector: {{{selector}}}
  resourceClaims: [{{name: d, resourceClaimName: {name}}}]
  containers: [{{name: c, image: i, resources: {{requests: {{cpu: "1", memory: 1Gi}}}}}}]
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {{name: {name}}}
spec: {{devices: {{requests: [{{name: d, exactly: {{deviceClassName: d}}}}]}}}}
---"""
DEVICE_CLASS = """
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: d}
---"""
# The plan puts greedy onto the first node, which leaves the device of the fast one to picky.
NODES = NODE.format(name="a", fast="no") + NODE.format(name="b", fast="yes")
PODS = POD.format(name="greedy", selector="") + POD.format(name="picky", selector='fast: "yes"')


def replayed(tmp_path: Path, ties: str) -> Result:
    path = tmp_path / "cluster.yaml"
    path.write_text(DEVICE_CLASS + NODES + PODS)
    return CliRunner().invoke(plan, ["-f", str(path), "--replay", ties])


@pytest.mark.parametrize("ties", ["first", "adversarial"])
def test_a_plan_is_replayed_with_ties_broken_for_or_against_it(tmp_path: Path, ties: str) -> None:
    result = replayed(tmp_path, ties)
    assert result.exit_code == 0, result.output
    stuck = (
        "warning: pod default/picky: may find no node, depending on which of equally good nodes kube-scheduler picks"
    )
    assert (stuck in result.output) == (ties == "adversarial")
    assert ("every pod of the plan finds a place" in result.output) == (ties == "first")


def test_a_number_draws_and_draws_the_same_again(tmp_path: Path) -> None:
    outputs = {seed: replayed(tmp_path, seed).output for seed in ("1", "2", "3", "4", "5", "6")}
    assert outputs["1"] == replayed(tmp_path, "1").output
    assert len(set(outputs.values())) == 2


def test_other_words_are_refused(tmp_path: Path) -> None:
    result = replayed(tmp_path, "lucky")
    assert result.exit_code == 2
    assert "'lucky' is neither first nor adversarial nor a number" in result.output
