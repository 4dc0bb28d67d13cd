"""What decides about pods is told in the first answer, whatever else is wrong with them."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from autoscaler.cli.plan import plan

POD = """apiVersion: v1
kind: Pod
metadata: {name: p}
spec:
  nodeSelector: {team: mars, nvidia.com/cuda.runtime-version.full: "12.1"}
  containers: [{name: main, image: i, resources: {limits: {RESOURCE: 1}}}]
"""


def planned(tmp_path: Path, text: str, *options: str) -> Result:
    (tmp_path / "a.yaml").write_text(text, encoding="utf-8")
    return CliRunner().invoke(plan, ["-f", str(tmp_path), *options])


def test_a_pod_that_asks_for_a_part_of_a_gpu_learns_what_else_keeps_it_from_nodes(tmp_path: Path) -> None:
    said = " ".join(planned(tmp_path, POD.replace("RESOURCE", "nvidia.com/gpu.shared")).stdout.split())
    assert "default/p (with nvidia.com/gpu 1, for whole GPUs): does-not-fit" in said
    assert "node selector wants team=mars, nvidia.com/cuda.runtime-version.full=12.1" in said
    assert "smallest change then: (1) create a CapacityPool" in said


UNKNOWN = """apiVersion: inference.llmaz.io/v1alpha1
kind: Playground
metadata: {name: m, namespace: dev}
spec: {parts: [{resources: {limits: {RESOURCE: 4}}}, {resources: {limits: {RESOURCE: 4}}}]}
"""
BOOSTER = """apiVersion: workload.serving.volcano.sh/v1alpha1
kind: ModelBooster
metadata: {name: m, namespace: dev}
spec: {backend: {name: b, type: vLLM, replicas: x, workers: [{replicas: 1, resources: {limits: {RESOURCE: 4}}}]}}
"""
OLD = """apiVersion: apps/v1beta1
kind: StatefulSet
metadata: {name: s}
spec:
  template:
    metadata: {labels: {app: s}}
    spec: {containers: [{name: main, image: i, resources: {limits: {RESOURCE: 2}}}]}
"""


@pytest.mark.parametrize(
    ("text", "resource", "told"),
    [
        (
            UNKNOWN,
            "huawei.com/ascend-1980",
            "Playground dev/m: asks for huawei.com/ascend-1980, and no instance type",
        ),
        (UNKNOWN, "vke.volcengine.com/rdma", "Playground dev/m: asks for vke.volcengine.com/rdma, which only nodes"),
        (UNKNOWN, "google.com/tpu", "Playground dev/m: asks for google.com/tpu, which device plugins hand out"),
        (UNKNOWN, "nvidia.com/gpu", ""),
        (BOOSTER, "huawei.com/ascend-1980", "asks for huawei.com/ascend-1980, and no instance type in the catalog has"),
        (OLD, "aliyun.com/gpu-mem", "StatefulSet s: asks for aliyun.com/gpu-mem, with which Alibaba Cloud's gpushare"),
        (OLD, "nvidia.com/gpu", ""),
    ],
)
def test_devices_of_refused_objects_are_told(tmp_path: Path, text: str, resource: str, told: str) -> None:
    error = str(planned(tmp_path, text.replace("RESOURCE", resource)).exception)
    assert ("warning: " in error) is bool(told)
    assert told in error
    assert ("a Deployment whose pods ask for the same" in error) is (text == UNKNOWN and not told)


def test_pods_with_placeholders_learn_that_they_need_a_pool_of_another_scope(tmp_path: Path) -> None:
    text = POD.replace("RESOURCE", "google.com/tpu").replace("spec:", "spec:\n  serviceAccountName: <your-account>")
    error = str(planned(tmp_path, text).exception)
    assert "it looks like a placeholder" in error
    assert "Pod default/p: asks for google.com/tpu, which device plugins hand out" in error
    assert "set spec.scope.pods to All, or to Selected" in error


RUNTIME = """apiVersion: ome.io/v1beta1
kind: ClusterServingRuntime
metadata: {name: r}
spec: {engineConfig: {runner: {resources: {limits: {nvidia.com/gpu: 1}}}}}
"""


@pytest.mark.parametrize(("options", "code"), [((), 0), (("--strict",), 3)])
def test_a_runtime_alone_says_what_it_asks_for(tmp_path: Path, options: tuple[str, ...], code: int) -> None:
    found = planned(tmp_path, RUNTIME, *options)
    assert found.exit_code == code
    assert "it asks for nvidia.com/gpu: 1 (spec.engineConfig.runner.resources)" in found.stderr
    assert "before it runs, give a Deployment whose pods ask for the same" in found.stderr
    assert "nothing here makes those of ClusterServingRuntime r: give the pods" in " ".join(found.stdout.split())


def test_a_runtime_beside_pods_is_none_of_the_plan(tmp_path: Path) -> None:
    pod = "\n".join(line for line in POD.replace("RESOURCE", "nvidia.com/gpu").splitlines() if "Selector" not in line)
    assert planned(tmp_path, f"{RUNTIME}---\n{pod}", "--strict").exit_code == 0
