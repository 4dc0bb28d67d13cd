"""Volcano's Job becomes the pods that its controller would make, as one gang."""

from __future__ import annotations

from typing import Any

import pytest

from autoscaler.kube.problem import Problems
from autoscaler.kube.workloads.stamping import Expansion
from autoscaler.kube.workloads.volcano_job import expand_volcano_cron_job, expand_volcano_job

POD = {"spec": {"containers": [{"name": "c"}]}}
TASKS = [{"name": "ps", "replicas": 1, "template": POD}, {"replicas": 2, "template": POD, "minAvailable": 1}]


def expanded(status: object = None, **spec: Any) -> tuple[Expansion, list[str]]:
    problems = Problems()
    raw = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": "t", "namespace": "ns"}}
    found = expand_volcano_job({**raw, "spec": {"tasks": TASKS, **spec}, "status": status or {}}, problems)
    return found, [f"{problem.field}: {problem.message}" for problem in problems]


def test_pods_of_all_tasks_are_one_gang() -> None:
    found, problems = expanded(queue="default", plugins={"svc": []}, policies=[{"event": "PodEvicted"}])
    assert [pod.name for pod in found.pods] == ["t-ps-0", "t-default1-0", "t-default1-1"]
    assert {pod.scheduler_name for pod in found.pods} == {"volcano"}
    assert found.pods[2].labels["volcano.sh/task-index"] == "1"
    (gang,) = found.gangs
    assert (gang.name, gang.min_count) == ("t", 2)
    assert {pod.gang.key for pod in found.pods if pod.gang} == {"ns/t"}
    assert problems == []


def test_what_the_job_says_for_its_pods() -> None:
    volumes = [
        {"mountPath": "/data", "volumeClaimName": "data"},
        {"mountPath": "/made", "volumeClaim": {"accessModes": ["ReadWriteOnce"]}},
    ]
    found, problems = expanded(minAvailable=3, schedulerName="default-scheduler", volumes=volumes)
    assert found.gangs[0].min_count == 3
    assert {(pod.scheduler_name, pod.volumes) for pod in found.pods} == {("default-scheduler", ("data",))}
    assert problems == []


def test_what_is_not_planned() -> None:
    _, problems = expanded(networkTopology={"mode": "hard"}, surprise=1)
    assert [problem.partition(":")[0] for problem in problems] == ["spec.networkTopology", "spec.surprise"]
    assert expanded({"state": {"phase": "Completed"}})[0].pods == ()


def test_one_pod_at_a_time_is_no_gang() -> None:
    found, _ = expanded(minAvailable=1)
    assert (found.gangs, {pod.gang for pod in found.pods}) == ((), {None})


@pytest.mark.parametrize(("suspend", "count"), [(False, 3), (True, 0)])
def test_one_run_of_a_cron_job(suspend: bool, count: int) -> None:
    problems = Problems()
    raw = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "CronJob", "metadata": {"name": "t", "namespace": "ns"}}
    spec = {"schedule": "* * * * *", "suspend": suspend, "jobTemplate": {"spec": {"tasks": TASKS}}}
    found = expand_volcano_cron_job({**raw, "spec": spec}, problems)
    assert (len(found.pods), len(found.gangs)) == (count, min(count, 1))
    assert all("suspend" in problem.field for problem in problems)
