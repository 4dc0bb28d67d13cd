"""Objects of OpenShift AI that name a HardwareProfile."""

from __future__ import annotations

import io
from typing import Any

import pytest
import yaml

from autoscaler.manifests.load import load

_GPU = {"name": "main", "image": "r.example/a:1", "resources": {"limits": {"nvidia.com/gpu": 1}}}
_PROFILE = {"opendatahub.io/hardware-profile-name": "h100", "opendatahub.io/hardware-profile-namespace": "apps"}


def _told(kind: str, api: str, spec: dict[str, Any], annotations: dict[str, str], uid: str = "") -> str:
    metadata = {"name": "a", "annotations": annotations, **({"uid": uid} if uid else {})}
    given = {"apiVersion": api, "kind": kind, "metadata": metadata, "spec": spec}
    found = load(["-"], stdin=io.StringIO(yaml.safe_dump(given)))
    assert found.ok
    return "\n".join(map(str, found.problems))


def _model(**more: Any) -> dict[str, Any]:
    return {"model": {"uri": "hf://org/m"}, "template": {"containers": [_GPU], **more}}


def test_the_plan_is_without_what_a_hardware_profile_adds() -> None:
    told = _told("LLMInferenceService", "serving.kserve.io/v1alpha2", _model(), _PROFILE)
    assert "what HardwareProfile h100 says, and nothing of that is read" in told
    assert "kubectl get hardwareprofiles.infrastructure.opendatahub.io h100 -n apps -o yaml" in told


@pytest.mark.parametrize(
    ("spec", "annotations"),
    [
        pytest.param(_model(), {}, id="none named"),
        pytest.param(_model(), {"opendatahub.io/hardware-profile-name": ""}, id="of an empty name"),
    ],
)
def test_nothing_is_said_without_a_profile(spec: dict[str, Any], annotations: dict[str, str]) -> None:
    assert "HardwareProfile" not in _told("LLMInferenceService", "serving.kserve.io/v1alpha2", spec, annotations)


@pytest.mark.parametrize(("uid", "told"), [("", True), ("u-1", False)])
def test_a_node_selector_of_a_file_is_replaced_and_one_of_a_cluster_is_there_already(uid: str, told: bool) -> None:
    spec = _model(nodeSelector={"gpu": "h100"})
    said = _told("LLMInferenceService", "serving.kserve.io/v1alpha2", spec, _PROFILE, uid)
    assert ("nodeSelector and tolerations of the file, which those of the profile, if any, replace" in said) is told
    assert ("to change its nodeSelector, change the profile, or name another one" in said) is told


def test_other_kinds_have_no_profile() -> None:
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}}}}
    spec["template"]["spec"] = {"containers": [_GPU]}  # type: ignore[index]
    assert "HardwareProfile" not in _told("Deployment", "apps/v1", spec, _PROFILE)


def test_a_notebook_has_one() -> None:
    spec = {"template": {"spec": {"containers": [_GPU]}}}
    assert "HardwareProfile h100" in _told("Notebook", "kubeflow.org/v1", spec, _PROFILE)
