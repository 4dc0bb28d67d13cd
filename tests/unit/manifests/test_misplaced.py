"""Requests for devices that stand on a workload itself, where nothing that looks at its pods reads them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from autoscaler.planning.demand.handed_out import names_device
from tests.unit.manifests.texts import loaded, messages


def workload(kind: str, metadata: dict[str, Any], own: dict[str, Any], **container: Any) -> str:
    pods = {
        "metadata": {**own, "labels": {"a": "b"}},
        "spec": {"containers": [{"name": "c", "image": "i", **container}]},
    }
    spec: dict[str, Any] = {"template": pods}
    if kind == "Deployment":
        spec["selector"] = {"matchLabels": {"a": "b"}}
    version = {"Deployment": "apps/v1", "Notebook": "kubeflow.org/v1"}.get(kind, "batch/v1")
    if kind == "Job":
        pods["spec"]["restartPolicy"] = "Never"
    return json.dumps({"apiVersion": version, "kind": kind, "metadata": {"name": "w", **metadata}, "spec": spec})


def told(text: str) -> list[str]:
    return [one for one in messages(loaded(text)) if "pod template alone" in one]


@pytest.mark.parametrize(
    ("field", "key"),
    [
        ("annotations", "alibabacloud.com/gpu-mem"),
        ("annotations", "gpu-fraction"),
        ("labels", "tensor-fusion.ai/gpu-pool"),
    ],
)
@pytest.mark.parametrize("kind", ["Deployment", "Job"])
def test_a_request_on_the_workload_is_told_with_its_place(kind: str, field: str, key: str) -> None:
    (text,) = told(workload(kind, {field: {key: "1"}}, {}))
    assert f"{kind} w: metadata.{field}" in text
    assert f"{key} asks for a device by its name, and the {kind}'s pods do not have it: they get {field}" in text
    assert f"move it to metadata.{field} of the pod template" in text


def test_several_requests_are_one_warning() -> None:
    asked = {"alibabacloud.com/gpu-mem": "1", "alibabacloud.com/gpu-count": "1", "note": "x"}
    (text,) = told(workload("Deployment", {"annotations": asked}, {}))
    assert "alibabacloud.com/gpu-mem and alibabacloud.com/gpu-count ask for a device by their names" in text


ASKED = {"annotations": {"alibabacloud.com/gpu-mem": "1"}}


@pytest.mark.parametrize(
    "text",
    [
        workload("Deployment", ASKED, ASKED),  # the pods have it as well
        workload("Deployment", ASKED, {}, resources={"limits": {"nvidia.com/gpu": 1}}),
        workload("Deployment", {"annotations": {"note": "x"}, "labels": {"team/gpu": "x"}}, {}),
        workload("Job", {"annotations": {"example.com/gpu-preemption.policy": "OnPressure"}}, {}),
        workload("Job", {"annotations": {"example.com/gpu.enabled": "true"}}, {}),
        workload("Notebook", ASKED, {}),  # whose controller copies what it likes
    ],
)
def test_nothing_is_told_where_the_pods_have_it_or_a_device_or_may_get_it(text: str) -> None:
    assert told(text) == []


@pytest.mark.parametrize(
    ("key", "asks"),
    [("example.com/gpu-share", True), ("example.com/gpu-preemption.grace-period", False), ("x/gpu-monitoring", False)],
)
def test_what_an_annotation_about_gpus_asks_for(key: str, asks: bool) -> None:
    assert names_device(key) is asks
