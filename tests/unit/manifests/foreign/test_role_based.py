"""RoleBasedGroups become the pods of their roles."""

from __future__ import annotations

import json
from typing import Any

import pytest

from autoscaler.manifests.load import Loaded
from tests.unit.manifests.texts import loaded, messages

GPU = "nvidia.com/gpu"


def template(gpus: int = 1) -> dict[str, Any]:
    return {"spec": {"containers": [{"name": "c", "image": "i", "resources": {"limits": {GPU: gpus}}}]}}


def role(name: str = "r", **more: Any) -> dict[str, Any]:
    return {"name": name, "replicas": 1, **more}


def group(*roles: dict[str, Any], annotations: dict[str, str] | None = None, **spec: Any) -> Loaded:
    metadata = {"name": "g", "annotations": annotations or {}}
    value = {"apiVersion": "workloads.x-k8s.io/v1alpha2", "kind": "RoleBasedGroup", "metadata": metadata}
    return loaded(json.dumps({**value, "spec": {"roles": list(roles), **spec}}))


def text(kind: str) -> str:
    value = {"apiVersion": "workloads.x-k8s.io/v1alpha2", "kind": kind, "metadata": {"name": "g"}, "spec": {}}
    return json.dumps(value)


def gpus(found: Loaded) -> dict[str, str]:
    assert found.ok, messages(found)
    return {pod.name: str(pod.containers[0].requests[GPU]) for pod in found.snapshot.pods}


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        pytest.param({"standalonePattern": {"template": template()}}, {"g-r-0": "1", "g-r-1": "1"}, id="single pods"),
        pytest.param({"template": template(), "workload": {}}, {"g-r-0": "1", "g-r-1": "1"}, id="of v1alpha1"),
        pytest.param(
            {"standalonePattern": {"templateRef": {"name": "base"}}}, {"g-r-0": "4", "g-r-1": "4"}, id="a role template"
        ),
        pytest.param(
            {"standalonePattern": {"templateRef": {"name": "base", "patch": template(2)}}},
            {"g-r-0": "2", "g-r-1": "2"},
            id="with a patch",
        ),
        pytest.param(
            {"templateRef": {"name": "base"}, "templatePatch": template(2)},
            {"g-r-0": "2", "g-r-1": "2"},
            id="with a patch of v1alpha1",
        ),
    ],
)
def test_roles_of_single_pods(pattern: dict[str, Any], expected: dict[str, str]) -> None:
    found = group(role(**{**pattern, "replicas": 2}), roleTemplates=[{"name": "base", "template": template(4)}])
    assert gpus(found) == expected
    assert messages(found) == []


@pytest.mark.parametrize(
    "pattern",
    [
        {"leaderWorkerPattern": {"size": 3, "template": template(8), "leaderTemplatePatch": template(1)}},
        {"template": template(8), "leaderWorkerSet": {"size": 3, "patchLeaderTemplate": template(1)}},
    ],
)
def test_a_leader_with_workers_has_parts_of_one_model(pattern: dict[str, Any]) -> None:
    found = group(role(**pattern))
    assert gpus(found) == {"g-r-0-leader-0": "1", "g-r-0-worker-0": "8", "g-r-0-worker-1": "8"}
    assert all(pod.containers[0].model_spread for pod in found.snapshot.pods)
    assert messages(found) == []


def test_components_are_pods() -> None:
    parts = [{"name": "a", "size": 2, "template": template()}, {"name": "b", "template": template(2)}]
    found = group(role(customComponentsPattern={"components": parts}))
    assert gpus(found) == {"g-r-0-a-0": "1", "g-r-0-a-1": "1", "g-r-0-b-0": "2"}


@pytest.mark.parametrize(
    "together",
    [
        {"annotations": {"rbg.workloads.x-k8s.io/group-gang-scheduling": "true"}},
        {"podGroupPolicy": {"volcanoScheduling": {"queue": "q"}}},
    ],
)
def test_a_group_may_be_a_gang(together: dict[str, Any]) -> None:
    found = group(role("a", replicas=2, template=template()), role("b", template=template()), **together)
    assert [gang.min_count for gang in found.snapshot.gangs.values()] == [3]
    assert all(pod.gang for pod in found.snapshot.pods)


def test_a_set_has_groups() -> None:
    value = {"apiVersion": "workloads.x-k8s.io/v1alpha2", "kind": "RoleBasedGroupSet", "metadata": {"name": "g"}}
    spec = {"roles": [role(standalonePattern={"template": template()})]}
    found = loaded(json.dumps({**value, "spec": {"replicas": 2, "groupTemplate": {"labels": {}, "spec": spec}}}))
    assert gpus(found) == {"g-0-r-0": "1", "g-1-r-0": "1"}
    old = {**value, "apiVersion": "workloads.x-k8s.io/v1alpha1", "spec": {"template": spec}}
    assert gpus(loaded(json.dumps(old))) == {"g-0-r-0": "1"}


def test_roles_together_have_a_limit() -> None:
    found = group(*(role(name, replicas=6000, template=template()) for name in ("a", "b")))
    assert "spec.roles: more than 10000 pods" in messages(found)[0]


def test_what_is_not_followed_is_said() -> None:
    found = group(role(template=template(), engineRuntimes=[{"profileName": "p"}]))
    assert "adds containers of a ClusterEngineRuntimeProfile" in messages(found)[0]
    key = "rolebasedgroup.workloads.x-k8s.io/exclusive-topology"
    exclusive = group(role(template=template()), annotations={key: "kubernetes.io/hostname"})
    assert exclusive.snapshot.pods[0].unsupported == ("exclusive-topology",)
    assert "there is no role template 'x'" in "".join(messages(group(role(templateRef={"name": "x"}))))
    assert "0: it has no pods now" in messages(group(role(replicas=0, template=template())))[0]
    assert "spec.roles: is required" in "".join(messages(loaded(text("RoleBasedGroup"))))
