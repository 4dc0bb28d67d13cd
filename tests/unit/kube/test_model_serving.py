"""ModelServing of Kthena becomes the pods that its controller would make."""

from __future__ import annotations

from typing import Any

import pytest

from autoscaler.kube.problem import Problems
from autoscaler.kube.workloads.serving.model_serving import expand_model_serving
from autoscaler.kube.workloads.stamping import Expansion

TEMPLATE = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c"}]}}


def role(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "entryTemplate": TEMPLATE, "workerReplicas": 0, **more}


def expanded(
    *roles: dict[str, Any], template: dict[str, Any] | None = None, **spec: Any
) -> tuple[Expansion, list[str]]:
    problems = Problems()
    raw = {
        "apiVersion": "workload.serving.volcano.sh/v1alpha1",
        "kind": "ModelServing",
        "metadata": {"name": "m", "namespace": "ns"},
        "spec": {"recoveryPolicy": "None", "template": {"roles": list(roles), **(template or {})}, **spec},
    }
    found = expand_model_serving(raw, problems)
    return found, [f"{problem.field}: {problem.message}" for problem in problems]


def test_each_role_has_an_entry_pod_and_workers() -> None:
    found, problems = expanded(role("p", replicas=2, workerReplicas=1, workerTemplate=TEMPLATE), role("d"), replicas=2)
    assert problems == []
    assert [pod.name for pod in found.pods] == [
        f"m-{group}-{rest}" for group in (0, 1) for rest in ("p-0-0", "p-1-0", "p-0-1", "p-1-1", "d-0-0")
    ]
    labels = dict(found.pods[2].labels)
    assert labels["modelserving.volcano.sh/role-id"] == "p-0"
    assert "modelserving.volcano.sh/entry" not in labels
    assert dict(found.pods[0].labels)["modelserving.volcano.sh/entry"] == "true"
    assert {pod.scheduler_name for pod in found.pods} == {"volcano"}


@pytest.mark.parametrize(
    ("template", "scheduler", "expected"),
    [
        ({}, "volcano", [3]),
        ({"gangPolicy": {"minRoleReplicas": {"p": 1}}}, "volcano", [2]),
        ({"gangPolicy": {"minRoleReplicas": {"p": 9}}}, "volcano", [3]),
        ({}, "default-scheduler", []),
    ],
)
def test_the_pods_of_a_group_start_together_with_volcano(
    template: dict[str, Any], scheduler: str, expected: list[int]
) -> None:
    found, _ = expanded(role("p", replicas=2), role("d"), template=template, schedulerName=scheduler)
    assert [gang.min_count for gang in found.gangs] == expected
    assert {pod.gang is not None for pod in found.pods} == {bool(expected)}
    assert {pod.scheduler_name for pod in found.pods} == {scheduler}


def test_a_mistake_in_a_role_is_reported_once() -> None:
    _, problems = expanded(role("p", other=1), replicas=3)
    assert problems == ["spec.template.roles[0].other: unknown field 'other'"]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"replicas": 0}, "spec.replicas: 0: it has no pods now"),
        ({"plugins": [{"name": "x"}]}, "spec.plugins: changes pods by rules that are not known here"),
        ({"template": {"networkTopology": {}}}, "spec.template.networkTopology: is not considered"),
    ],
)
def test_what_a_plan_does_not_follow_is_said(given: dict[str, Any], expected: str) -> None:
    _, problems = expanded(role("p"), **given)
    assert [problem.startswith(expected) for problem in problems] == [True]


def test_workers_need_a_template() -> None:
    _, problems = expanded(role("p", workerReplicas=2))
    assert problems == ["spec.template.roles[0].workerTemplate: is required for 2 workers"]


@pytest.mark.parametrize("replicas", [1, 5])
def test_too_many_pods_are_refused_before_any_is_made(replicas: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def made(*_: Any, **__: Any) -> Expansion:
        raise AssertionError("a pod is made")

    monkeypatch.setattr("autoscaler.kube.workloads.serving.model_serving.stamp", made)
    roles = [role(f"r{index}", workerReplicas=1, workerTemplate=TEMPLATE) for index in range(6000 // replicas)]
    found, problems = expanded(*roles, replicas=replicas)
    assert found.pods == ()
    assert "spec.template.roles: more than 10000 pods" in problems
