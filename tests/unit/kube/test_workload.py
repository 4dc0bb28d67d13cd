"""Workloads become the pods that their controllers would make, under names that never change."""

from __future__ import annotations

from typing import Any

import pytest

from autoscaler.kube.problem import Problems
from autoscaler.kube.workloads.compute_domain import parse_compute_domain
from autoscaler.kube.workloads.controllers import expand_cron_job, expand_job, expand_replicas, expand_stateful_set
from autoscaler.kube.workloads.daemon_set import parse_daemon_set
from autoscaler.kube.workloads.pod_sets import expand_job_set, expand_leader_worker_set
from autoscaler.kube.workloads.stamping import Expansion
from autoscaler.model.gang import Gang
from autoscaler.model.origin import Origin

TEMPLATE = {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "c"}]}}


def workload(kind: str, spec: object, **more: Any) -> dict[str, Any]:
    return {
        "kind": kind,
        "metadata": {"name": "w", "namespace": "ns", **more.pop("metadata", {})},
        "spec": spec,
        **more,
    }


def names(found: Expansion) -> list[str]:
    return [pod.name for pod in found.pods]


def expanded(expand: Any, raw: object) -> tuple[Expansion, list[str]]:
    problems = Problems()
    found = expand(raw, problems)
    return found, [f"{problem.field}: {problem.message}" for problem in problems]


@pytest.mark.parametrize(
    ("expand", "kind", "spec", "expected"),
    [
        (expand_replicas, "Deployment", {"replicas": 2}, ["w-0", "w-1"]),
        (expand_replicas, "ReplicaSet", {}, ["w-0"]),
        (expand_stateful_set, "StatefulSet", {"replicas": 2, "ordinals": {"start": 5}}, ["w-5", "w-6"]),
        (expand_job, "Job", {"parallelism": 2, "completions": 2}, ["w-0", "w-1"]),
        (expand_job, "Job", {"parallelism": 4, "completions": 3}, ["w-0", "w-1", "w-2"]),
        (expand_job, "Job", {"completions": 3}, ["w-0"]),
        (expand_job, "Job", {"parallelism": 2}, ["w-0", "w-1"]),
    ],
)
def test_how_many_pods(expand: Any, kind: str, spec: dict[str, Any], expected: list[str]) -> None:
    found, problems = expanded(expand, workload(kind, {**spec, "template": TEMPLATE}))
    assert names(found) == expected
    assert problems == []
    assert len({pod.uid for pod in found.pods}) == len(expected)


def test_pods_know_where_they_come_from() -> None:
    raw = workload("Job", {"template": TEMPLATE, "activeDeadlineSeconds": 60})
    (pod,) = expand_job(raw, origin=Origin("job.yaml", 3)).pods
    assert (pod.origin.line, pod.origin.owner, pod.owner) == (3, "Job ns/w", "Job/w")
    assert pod.labels["batch.kubernetes.io/job-name"] == "w"
    assert pod.labels["app"] == "a"
    assert pod.active_deadline_seconds == 60


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ({"succeeded": 2}, 1),
        ({"conditions": [{"type": "Complete", "status": "True"}]}, 0),
        ({"conditions": [{"type": "Failed", "status": "False"}]}, 3),
    ],
    ids=["partly done", "complete", "running"],
)
def test_jobs_that_already_ran(status: object, expected: int) -> None:
    raw = workload("Job", {"parallelism": 3, "completions": 3, "template": TEMPLATE}, status=status)
    assert len(expand_job(raw).pods) == expected


@pytest.mark.parametrize(
    ("expand", "spec"),
    [
        (expand_job, {"suspend": True, "template": TEMPLATE}),
        (expand_cron_job, {"suspend": True, "jobTemplate": {"spec": {"template": TEMPLATE}}}),
        (
            expand_job_set,
            {"suspend": True, "replicatedJobs": [{"name": "a", "template": {"spec": {"template": TEMPLATE}}}]},
        ),
    ],
    ids=["Job", "CronJob", "JobSet"],
)
def test_suspended_workloads_have_no_pods_and_say_so(expand: Any, spec: object) -> None:
    found, problems = expanded(expand, workload("x", spec))
    assert found.pods == ()
    assert problems == ["spec.suspend: suspended: it has no pods now"]


@pytest.mark.parametrize("expand", [expand_replicas, expand_stateful_set])
def test_no_replicas_are_no_pods_and_say_so(expand: Any) -> None:
    found, problems = expanded(expand, workload("x", {"replicas": 0, "template": TEMPLATE}))
    assert found.pods == ()
    assert problems == ["spec.replicas: 0: it has no pods now"]


def test_replica_sets_that_a_deployment_has_replaced_are_no_surprise() -> None:
    raw = workload("ReplicaSet", {"replicas": 0, "template": TEMPLATE})
    raw["metadata"]["ownerReferences"] = [
        {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d", "uid": "u", "controller": True}
    ]
    assert expanded(expand_replicas, raw)[1] == []


def test_a_cron_job_stands_for_one_run() -> None:
    spec = {"schedule": "@daily", "jobTemplate": {"spec": {"parallelism": 2, "template": TEMPLATE}}}
    found, problems = expanded(expand_cron_job, workload("CronJob", spec))
    assert (names(found), problems) == (["w-0", "w-1"], [])


def test_volume_claims_of_a_stateful_set() -> None:
    claim = {"metadata": {"name": "data"}, "spec": {"storageClassName": "fast"}}
    raw = workload("StatefulSet", {"replicas": 2, "template": TEMPLATE, "volumeClaimTemplates": [claim]})
    found, problems = expanded(expand_stateful_set, raw)
    assert problems == []
    assert [claim.key for claim in found.volume_claims] == ["ns/data-w-0", "ns/data-w-1"]
    assert [pod.volumes for pod in found.pods] == [("data-w-0",), ("data-w-1",)]


def test_ephemeral_volumes_are_named_after_the_pod() -> None:
    spec = {"containers": [{"name": "c"}], "volumes": [{"name": "v", "ephemeral": {"volumeClaimTemplate": {}}}]}
    found, problems = expanded(expand_replicas, workload("Deployment", {"replicas": 2, "template": {"spec": spec}}))
    assert problems == []
    assert [pod.volumes for pod in found.pods] == [("w-0-v",), ("w-1-v",)]
    assert [claim.name for claim in found.volume_claims] == ["w-0-v", "w-1-v"]


def test_a_mistake_in_a_template_is_reported_once() -> None:
    template = {"spec": {"containers": [{"name": "c"}], "nodeSelectr": {}}}
    found, problems = expanded(expand_replicas, workload("Deployment", {"replicas": 3, "template": template}))
    assert problems == ["spec.template.spec.nodeSelectr: unknown field 'nodeSelectr'"]
    assert all(pod.unsupported == ("nodeSelectr",) for pod in found.pods)


@pytest.mark.parametrize("replicas", [-1, 10_001])
def test_absurd_numbers_of_pods(replicas: int) -> None:
    found, problems = expanded(expand_replicas, workload("Deployment", {"replicas": replicas, "template": TEMPLATE}))
    assert found.pods == ()
    assert problems == [f"spec.replicas: {replicas} is outside 0 … 10000"]


def job_set(**spec: Any) -> dict[str, Any]:
    jobs = [
        {"name": "lead", "template": {"spec": {"template": TEMPLATE}}},
        {"name": "work", "replicas": 2, "template": {"spec": {"parallelism": 2, "template": TEMPLATE}}},
    ]
    return workload("JobSet", {"replicatedJobs": jobs, **spec}, metadata=spec.pop("metadata", {}))


def test_job_sets() -> None:
    found, problems = expanded(expand_job_set, job_set())
    assert problems == []
    assert names(found) == ["w-lead-0-0", "w-work-0-0", "w-work-0-1", "w-work-1-0", "w-work-1-1"]
    assert found.gangs == ()
    assert found.pods[-1].labels["jobset.sigs.k8s.io/job-index"] == "1"


@pytest.mark.parametrize(
    ("policy", "gangs"),
    [("JobSetAsGang", {"w": 5}), ("JobSetGangPerReplicatedJob", {"w-lead": 1, "w-work": 4})],
)
def test_job_sets_that_say_they_are_gangs(policy: str, gangs: dict[str, int]) -> None:
    found, problems = expanded(expand_job_set, job_set(gangPolicy={"policy": policy}))
    assert problems == []
    assert {gang.name: gang.min_count for gang in found.gangs} == gangs
    assert all(pod.gang is not None for pod in found.pods)


def test_exclusive_topology_of_a_job_set() -> None:
    raw = job_set()
    raw["metadata"]["annotations"] = {"alpha.jobset.sigs.k8s.io/exclusive-topology": "rack"}
    found, _ = expanded(expand_job_set, raw)
    assert [(gang.name, gang.min_count, gang.topology_key) for gang in found.gangs] == [
        ("w-lead-0", 1, "rack"),
        ("w-work-0", 2, "rack"),
        ("w-work-1", 2, "rack"),
    ]
    assert found.pods[0].pod_anti_affinity[0].topology_key == "rack"


def test_exclusive_topology_inside_a_larger_gang_is_not_supported() -> None:
    raw = job_set(gangPolicy={"policy": "JobSetAsGang"})
    raw["metadata"]["annotations"] = {"alpha.jobset.sigs.k8s.io/exclusive-topology": "rack"}
    found = expand_job_set(raw)
    assert [gang.topology_key for gang in found.gangs] == [None]
    assert all(pod.unsupported for pod in found.pods)


def test_an_unknown_field_of_a_gang_policy_is_not_ignored() -> None:
    found, problems = expanded(expand_job_set, job_set(gangPolicy={"policy": "JobSetAsGang", "minimum": 2}))
    assert problems == ["spec.gangPolicy.minimum: unknown field 'minimum'"]
    assert [gang.unsupported for gang in found.gangs] == [("minimum",)]


@pytest.mark.parametrize(
    ("status", "gpus", "told"), [("Complete", (1, 1), True), ("Ready", (1, 1), False), ("Complete", (0, 1), False)]
)
def test_replicated_jobs_with_devices_one_after_the_other_are_told(
    status: str, gpus: tuple[int, int], told: bool
) -> None:
    raw = job_set()
    for entry, number in zip(raw["spec"]["replicatedJobs"], gpus, strict=True):
        limits = {"resources": {"limits": {"nvidia.com/gpu": number}}} if number else {}
        entry["template"]["spec"]["template"] = {"spec": {"containers": [{"name": "c", "image": "i", **limits}]}}
    raw["spec"]["replicatedJobs"][1]["dependsOn"] = [{"name": "lead", "status": status}]
    found, problems = expanded(expand_job_set, raw)
    assert len(found.pods) == 5
    message = "its pods start when those of lead have ended, and the plan has devices for both at once"
    assert problems == [f"spec.replicatedJobs[1].dependsOn: {message}"] * told


def test_an_unknown_gang_policy() -> None:
    _, problems = expanded(expand_job_set, job_set(gangPolicy={"policy": "Some"}))
    assert problems == ["spec.gangPolicy.policy: 'Some' is not one of JobSetAsGang, JobSetGangPerReplicatedJob"]


def leader_worker_set(**spec: Any) -> dict[str, Any]:
    group = {"size": 3, "workerTemplate": TEMPLATE, **spec.pop("group", {})}
    return workload("LeaderWorkerSet", {"replicas": 2, "leaderWorkerTemplate": group, **spec})


def test_leader_worker_sets() -> None:
    found, problems = expanded(expand_leader_worker_set, leader_worker_set())
    assert problems == []
    assert names(found) == ["w-0", "w-0-1", "w-0-2", "w-1", "w-1-1", "w-1-2"]
    assert [pod.labels["leaderworkerset.sigs.k8s.io/worker-index"] for pod in found.pods] == list("012012")
    assert found.gangs == ()


def test_exclusive_topology_makes_a_group_a_gang() -> None:
    raw = leader_worker_set()
    raw["metadata"]["annotations"] = {"leaderworkerset.sigs.k8s.io/exclusive-topology": "rack"}
    found, _ = expanded(expand_leader_worker_set, raw)
    assert found.gangs[1] == Gang("ns", "w-1", "LeaderWorkerSet", 3, "rack")
    assert found.pods[-1].gang is not None
    assert found.pods[-1].gang.name == "w-1"


SUBGROUPS = "leaderworkerset.sigs.k8s.io/subgroup-exclusive-topology"


@pytest.mark.parametrize(
    ("size", "policy", "expected"),
    [
        (4, {"subGroupSize": 2}, {"w-0-0": ["w-0", "w-0-1"], "w-0-1": ["w-0-2", "w-0-3"]}),
        # The leader is one too many, so it joins the first workers.
        (5, {"subGroupSize": 2}, {"w-0-0": ["w-0", "w-0-1", "w-0-2"], "w-0-1": ["w-0-3", "w-0-4"]}),
        (
            5,
            {"subGroupSize": 2, "type": "LeaderExcluded"},
            {None: ["w-0"], "w-0-0": ["w-0-1", "w-0-2"], "w-0-1": ["w-0-3", "w-0-4"]},
        ),
        (2, {}, {None: ["w-0", "w-0-1"]}),
    ],
)
def test_exclusive_topology_makes_subgroups_gangs(
    size: int, policy: dict[str, Any], expected: dict[str | None, list[str]]
) -> None:
    raw = leader_worker_set(replicas=1, group={"size": size, "subGroupPolicy": policy})
    raw["metadata"]["annotations"] = {SUBGROUPS: "rack"}
    found, problems = expanded(expand_leader_worker_set, raw)
    assert problems == []
    members: dict[str | None, list[str]] = {}
    for each in found.pods:
        members.setdefault(each.gang.name if each.gang else None, []).append(each.name)
        assert each.labels.get("leaderworkerset.sigs.k8s.io/subgroup-key") == (each.gang.name if each.gang else None)
        assert [term.topology_key for term in each.pod_anti_affinity] == (["rack"] if each.gang else [])
    assert members == expected
    assert {(one.name, one.min_count, one.topology_key) for one in found.gangs} == {
        (name, len(pods), "rack") for name, pods in expected.items() if name
    }


def test_features_of_leader_worker_sets_that_are_not_supported() -> None:
    raw = leader_worker_set(group={"subGroupPolicy": {"subGroupSize": 2}, "volumeClaimTemplates": [{}]})
    subgroups = SUBGROUPS
    raw["metadata"]["annotations"] = {subgroups: "rack", "leaderworkerset.sigs.k8s.io/exclusive-topology": "room"}
    found, problems = expanded(expand_leader_worker_set, raw)
    assert len(problems) == 2
    assert all("is not supported" in problem for problem in problems)
    assert found.pods[0].unsupported == ("volumeClaimTemplates", subgroups)


def test_daemon_sets() -> None:
    template = {"spec": {"containers": [{"name": "c", "image": "registry.example/driver:v1"}]}}
    problems = Problems()
    found = parse_daemon_set(workload("DaemonSet", {"template": template}), problems)
    assert list(problems) == []
    assert (found.name, found.image, found.pod.node_name) == ("w", "registry.example/driver:v1", None)
    assert found.pod.owner == "DaemonSet/w"


def test_a_compute_domain_makes_its_channel_template() -> None:
    problems = Problems()
    channel = {"resourceClaimTemplate": {"name": "chan"}}
    found = parse_compute_domain(workload("ComputeDomain", {"numNodes": 2, "channel": channel}), problems)
    assert list(problems) == []
    assert found is not None
    assert (found.namespace, found.name) == ("ns", "chan")
    assert found.spec.requests[0].device_class == "compute-domain-default-channel.nvidia.com"  # type: ignore[union-attr]
    assert "ComputeDomainChannelConfig" in found.spec.config[0].parameters


def test_a_compute_domain_without_a_template_name() -> None:
    problems = Problems()
    assert parse_compute_domain(workload("ComputeDomain", {}), problems) is None
    assert [problem.field for problem in problems] == ["spec.channel.resourceClaimTemplate.name"]
