"""StormService, RoleSet, PodSet and RayClusterFleet of AIBrix become their pods."""

from __future__ import annotations

import json
from typing import Any

import pytest

from autoscaler.manifests.load import Loaded
from tests.unit.manifests.texts import loaded, messages

TEMPLATE = {"spec": {"containers": [{"name": "c", "image": "i", "resources": {"limits": {"nvidia.com/gpu": 1}}}]}}


def text(kind: str, **spec: Any) -> str:
    value = {"apiVersion": "orchestration.aibrix.ai/v1alpha1", "kind": kind, "metadata": {"name": "s"}, "spec": spec}
    return json.dumps(value)


def role(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "template": TEMPLATE, "stateful": True, **more}


def names(found: Loaded) -> list[str]:
    assert found.ok, messages(found)
    return sorted(pod.name for pod in found.snapshot.pods)


def test_a_storm_service_is_sets_of_roles() -> None:
    roles = [role("prefill", replicas=2), role("decode", podGroupSize=2)]
    found = loaded(text("StormService", replicas=2, selector={}, template={"metadata": {}, "spec": {"roles": roles}}))
    assert names(found) == [
        f"s-roleset-{index}-{rest}"
        for index in (0, 1)
        for rest in ("decode-0-0", "decode-0-1", "prefill-0", "prefill-1")
    ]
    labels = found.snapshot.pods[2].labels
    assert (labels["storm-service-name"], labels["roleset-name"], labels["role-name"]) == (
        "s",
        "s-roleset-0",
        "prefill",
    )
    assert [pod.containers[0].model_spread for pod in found.snapshot.pods[:4]] == [True, True, False, False]
    assert messages(found) == []


def test_a_mistake_of_a_role_is_told_once() -> None:
    spec = {"roles": [role("a", other=1)]}
    assert len(messages(loaded(text("StormService", replicas=3, template={"spec": spec})))) == 1


@pytest.mark.parametrize("strategy", ["volcanoSchedulingStrategy", "coschedulingSchedulingStrategy"])
def test_a_scheduling_strategy_makes_gangs(strategy: str) -> None:
    policy = {"schedulingStrategy": {strategy: {"minMember": 2}}}
    found = loaded(text("RoleSet", roles=[role("a", replicas=3)], **policy))
    assert [(gang.name, gang.min_count) for gang in found.snapshot.gangs.values()] == [("s", 2)]
    found = loaded(text("RoleSet", roles=[role("a", replicas=2, podGroupSize=2, **policy)]))
    assert [(gang.name, gang.min_count) for gang in found.snapshot.gangs.values()] == [("s-a-0", 2), ("s-a-1", 2)]
    assert {pod.name: pod.gang.name for pod in found.snapshot.pods if pod.gang}["s-a-1-0"] == "s-a-1"


def test_what_is_not_followed_is_said() -> None:
    found = loaded(text("RoleSet", roles=[role("a")], schedulingStrategy={"godelSchedulingStrategy": {"minMember": 1}}))
    assert found.snapshot.pods[0].unsupported == ("schedulingStrategy",)
    (problem,) = messages(loaded(text("RoleSet", roles=[role("a")], topologyPolicy={"topologyKey": "x"})))
    assert "is not considered" in problem
    assert any(
        "0: it has no pods now" in one for one in messages(loaded(text("RoleSet", roles=[role("a", replicas=0)])))
    )


def test_roles_are_required() -> None:
    assert "spec.roles: is required" in messages(loaded(text("RoleSet")))[0]


def test_roles_together_have_a_limit() -> None:
    roles = [role(name, replicas=6000) for name in ("a", "b")]
    assert any("spec.roles: more than 10000 pods" in one for one in messages(loaded(text("RoleSet", roles=roles))))


def test_a_pod_set_is_its_pods() -> None:
    assert names(loaded(text("PodSet", podGroupSize=2, template=TEMPLATE))) == ["s-0", "s-1"]


@pytest.mark.parametrize("kind", ["RayClusterFleet", "RayClusterReplicaSet"])
def test_a_fleet_is_its_ray_clusters(kind: str) -> None:
    group = {"groupName": "g", "replicas": 2, "minReplicas": 1, "maxReplicas": 2, "template": TEMPLATE}
    cluster = {"headGroupSpec": {"template": TEMPLATE}, "workerGroupSpecs": [group]}
    found = loaded(text(kind, replicas=2, selector={}, template={"metadata": {}, "spec": cluster}))
    assert sorted(names(found)) == [
        f"s-{index}-{rest}" for index in (0, 1) for rest in ("g-worker-0", "g-worker-1", "head")
    ]
