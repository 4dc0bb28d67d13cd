"""Pods that request no device and get one of another system are not told that an ordinary node runs them."""

from __future__ import annotations

from typing import Any

import pytest

from autoscaler.kube.pod import parse_pod
from autoscaler.report.tables.plan_summary import summary_of
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes import labels
from instance_catalog.kubernetes.node_selector import NodeSelector, NodeSelectorTerm, Requirement
from tests.builders import plan, pod, snapshot

OTHER = "asks another system for one by"


def told(**fields: Any) -> str:
    (line,) = [line.text for line in summary_of(plan(snapshot([pod("p", **fields)])))[1:]]
    return line


def selecting(key: str) -> NodeSelector:
    return NodeSelector((NodeSelectorTerm((Requirement(key, "In", ("a",)),)),))


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"scheduler_name": "hami-scheduler"}, "schedulerName hami-scheduler"),
        ({"runtime_class": "nvidia"}, "runtimeClassName nvidia"),
        ({"annotations": FrozenMap({"x.example/vgpu-count": "1"})}, "annotation x.example/vgpu-count"),
        ({"annotations": FrozenMap({"tensor-fusion.ai/gpu-count": "1"})}, "annotation tensor-fusion.ai/gpu-count"),
        ({"labels": FrozenMap({"tensor-fusion.ai/gpupool": "shared"})}, "label tensor-fusion.ai/gpupool"),
        ({"runtime_class": "nvidia", "node_selector": FrozenMap({"team": "a"})}, "runtimeClassName nvidia"),
    ],
)
def test_the_field_that_asks_another_system_is_named(fields: dict[str, Any], field: str) -> None:
    assert f"requests no device that kube-scheduler counts, and {OTHER} {field}: no node of a plan" in told(**fields)


@pytest.mark.parametrize(
    "fields",
    [
        {"runtime_class": "gvisor"},
        {"labels": FrozenMap({"gpu": "none"})},
        {"annotations": FrozenMap({"example.com/gpunit": "a"})},
        {"affinity": selecting(labels.CLOUD)},  # implied: only machines there mount its volume
        {"affinity": selecting(labels.ZONE)},
    ],
)
def test_other_pods_run_on_an_ordinary_node(fields: dict[str, Any]) -> None:
    assert "needs no accelerator: an ordinary node runs it" in told(**fields)


def test_a_pod_that_selects_special_nodes_needs_these() -> None:
    assert "it needs a node that it selects" in told(affinity=selecting("team"))


@pytest.mark.parametrize(
    "fields",
    [
        {"runtime_class": "ascend"},
        {"annotations": FrozenMap({"tensor-fusion.ai/gpu-model": "Ascend 310P3"})},
    ],
)
def test_a_vendor_without_machines_in_the_catalog_is_named(fields: dict[str, Any]) -> None:
    assert "no machine of the catalog has its kind of device (NPU of Huawei)" in told(**fields)


def test_the_runtime_class_of_a_pod_is_read() -> None:
    raw = {
        "metadata": {"name": "p"},
        "spec": {"runtimeClassName": "nvidia", "containers": [{"name": "c", "image": "i"}]},
    }
    assert parse_pod(raw).runtime_class == "nvidia"
