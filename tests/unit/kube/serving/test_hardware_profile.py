"""Objects of OpenShift AI that name a HardwareProfile."""

from __future__ import annotations

import io
from typing import Any

import pytest
import yaml

from autoscaler.manifests.load import load

_GPU = {"name": "main", "image": "r.example/a:1", "resources": {"limits": {"nvidia.com/gpu": 1}}}
_PROFILE = {"opendatahub.io/hardware-profile-name": "h100", "opendatahub.io/hardware-profile-namespace": "apps"}


def _told(kind: str, api: str, spec: dict[str, Any], annotations: dict[str, str]) -> str:
    given = {"apiVersion": api, "kind": kind, "metadata": {"name": "a", "annotations": annotations}, "spec": spec}
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
        pytest.param(_model(nodeSelector={"gpu": "h100"}), _PROFILE, id="already added"),
        pytest.param(_model(), {}, id="none named"),
        pytest.param(_model(), {"opendatahub.io/hardware-profile-name": ""}, id="of an empty name"),
    ],
)
def test_nothing_is_said_without_a_profile(spec: dict[str, Any], annotations: dict[str, str]) -> None:
    assert "HardwareProfile" not in _told("LLMInferenceService", "serving.kserve.io/v1alpha2", spec, annotations)


def test_other_kinds_have_no_profile() -> None:
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}}}}
    spec["template"]["spec"] = {"containers": [_GPU]}  # type: ignore[index]
    assert "HardwareProfile" not in _told("Deployment", "apps/v1", spec, _PROFILE)


def test_a_notebook_has_one() -> None:
    spec = {"template": {"spec": {"containers": [_GPU]}}}
    assert "HardwareProfile h100" in _told("Notebook", "kubeflow.org/v1", spec, _PROFILE)
