"""Kubeflow's training jobs become the pods that their operators would make."""

from __future__ import annotations

from typing import Any

import pytest

from autoscaler.kube.problem import Problems
from autoscaler.kube.workloads.stamping import Expansion
from autoscaler.kube.workloads.training import TRAINING_JOBS, expand_hyperpod_job, expand_training_job
from autoscaler.model.pod import HostPort

REPLICA = {"restartPolicy": "Never", "template": {"spec": {"containers": [{"name": "c"}]}}}
MX_JOBS = "kind: training-operator makes no pods of an MXJob since v1.9"


def expanded(kind: str, replicas: object, version: str = "v1", **more: Any) -> tuple[Expansion, list[str]]:
    problems = Problems()
    spec = {TRAINING_JOBS[kind]: replicas, **more.pop("spec", {})}
    raw = {"apiVersion": f"kubeflow.org/{version}", "kind": kind, "metadata": {"name": "t", "namespace": "ns"}}
    found = expand_training_job({**raw, "spec": spec, **more}, problems)
    return found, [f"{problem.field}: {problem.message}" for problem in problems]


@pytest.mark.parametrize("kind", TRAINING_JOBS)
def test_every_kind_has_replicas_by_type(kind: str) -> None:
    found, problems = expanded(kind, {"Chief": REPLICA, "Worker": {**REPLICA, "replicas": 2}})
    assert [pod.name for pod in found.pods] == ["t-chief-0", "t-worker-0", "t-worker-1"]
    assert {pod.owner for pod in found.pods} == {f"{kind}/t"}
    assert problems == [MX_JOBS] * (kind == "MXJob")


@pytest.mark.parametrize(
    ("kind", "expected"),
    [("PyTorchJob", ["t-worker-0"]), ("MPIJob", [])],
)
def test_how_many_workers_without_a_number(kind: str, expected: list[str]) -> None:
    found, _ = expanded(kind, {"Worker": REPLICA})
    assert [pod.name for pod in found.pods] == expected


@pytest.mark.parametrize(
    ("kind", "version", "label"),
    [
        ("TFJob", "v1", "training.kubeflow.org/replica-type"),
        ("MPIJob", "v2beta1", "training.kubeflow.org/job-role"),
    ],
)
def test_labels(kind: str, version: str, label: str) -> None:
    found, _ = expanded(kind, {"Worker": {**REPLICA, "replicas": 2}}, version)
    assert dict(found.pods[1].labels) == {
        "training.kubeflow.org/job-name": "t",
        "training.kubeflow.org/replica-index": "1",
        label: "worker",
    }


def test_an_mx_job_is_read_with_its_mode_and_labels() -> None:
    tuner = {**REPLICA, "label": "2080ti"}
    found, problems = expanded("MXJob", {"TunerServer": tuner}, "v1beta1", spec={"jobMode": "MXTune"})
    assert [pod.name for pod in found.pods] == ["t-tunerserver-0"]
    assert problems == [MX_JOBS]


@pytest.mark.parametrize(
    ("kind", "master", "worker", "warns"),
    [
        ("PyTorchJob", 0, 2, True),
        ("PyTorchJob", 2, 2, False),
        ("PyTorchJob", 0, 0, False),
        ("PyTorchJob", None, 2, False),
        ("XGBoostJob", 0, 2, False),
    ],
)
def test_a_master_of_pytorch_without_gpus_gets_a_warning(
    kind: str, master: int | None, worker: int, warns: bool
) -> None:
    def replica(gpus: int) -> dict[str, object]:
        resources = {"limits": {"nvidia.com/gpu": gpus}} if gpus else {}
        return {"template": {"spec": {"containers": [{"name": "pytorch", "resources": resources}]}}}

    first = {} if master is None else {"Master": replica(master)}
    found, problems = expanded(kind, {**first, "Worker": replica(worker)})
    assert len(found.pods) == len(first) + 1
    assert any("rank 0" in one for one in problems) is warns
    assert len(problems) == warns


def _on_host(*containers: dict[str, Any], **more: object) -> dict[str, object]:
    return {"template": {"spec": {"hostNetwork": True, "containers": list(containers), **more}}}


@pytest.mark.parametrize(
    ("kind", "container", "number"),
    [
        ("PyTorchJob", "pytorch", 23456),
        ("TFJob", "tensorflow", 2222),
        ("JAXJob", "jax", 6666),
        ("XGBoostJob", "xgboost", 9999),
        ("PaddleJob", "paddle", 36543),
        ("MXJob", "mxnet", 9091),
    ],
)
def test_the_port_that_the_operator_adds_is_a_port_of_the_node(kind: str, container: str, number: int) -> None:
    replica = _on_host({"name": "sidecar"}, {"name": container, "ports": [{"containerPort": 80}]})
    found, problems = expanded(kind, {"Master": replica, "Worker": replica})
    for pod in found.pods:
        assert [one.host_ports for one in pod.containers] == [(), (HostPort(80), HostPort(number))]
        written, added = pod.containers[1].host_ports
        assert (written.added, "which training-operator adds" in added.added) == ("", True)
    assert problems == [MX_JOBS] * (kind == "MXJob")


@pytest.mark.parametrize(
    ("kind", "replica", "expected"),
    [
        ("PyTorchJob", _on_host({"name": "main"}, {"name": "other"}), [[23456], []]),
        ("PyTorchJob", _on_host({"name": "pytorch"}, hostNetwork=False), [[]]),
        (
            "PyTorchJob",
            _on_host({"name": "pytorch", "ports": [{"name": "pytorchjob-port", "containerPort": 5}]}),
            [[5]],
        ),
        ("MPIJob", _on_host({"name": "mpi"}), [[]]),
    ],
    ids=["first container", "network of its own", "has its port", "operator adds none"],
)
def test_which_container_gets_the_port(kind: str, replica: dict[str, object], expected: list[list[int]]) -> None:
    found, _ = expanded(kind, {"Worker": {**replica, "replicas": 1}})
    (pod,) = found.pods
    assert [[port.port for port in one.host_ports] for one in pod.containers] == expected


@pytest.mark.parametrize("condition", ["Succeeded", "Failed"])
def test_a_job_that_has_ended_has_no_pods(condition: str) -> None:
    found, _ = expanded(
        "PyTorchJob", {"Master": REPLICA}, status={"conditions": [{"type": condition, "status": "True"}]}
    )
    assert found.pods == ()


def test_a_suspended_job_has_no_pods_and_says_so() -> None:
    found, problems = expanded("PyTorchJob", {"Master": REPLICA}, spec={"runPolicy": {"suspend": True}})
    assert found.pods == ()
    assert problems == ["spec.runPolicy.suspend: suspended: it has no pods now"]


def test_a_gang_that_only_the_operator_knows_is_said_not_to_count() -> None:
    policy = {"runPolicy": {"schedulingPolicy": {"minAvailable": 2}}}
    found, problems = expanded("PyTorchJob", {"Master": REPLICA}, spec=policy)
    assert [pod.gang for pod in found.pods] == [None]
    assert problems == [
        "spec.runPolicy.schedulingPolicy: counts only where the operator has a gang scheduler; planned as single pods"
    ]


def test_a_mistake_in_a_template_is_told_with_its_place() -> None:
    _, problems = expanded("PyTorchJob", {"Worker": {"replicas": 2, "template": {"spec": {}}}})
    assert problems == ["spec.pytorchReplicaSpecs.Worker.template.spec.containers: a pod needs at least one container"]


def test_the_time_that_a_job_may_take_is_that_of_its_pods() -> None:
    found, _ = expanded("PyTorchJob", {"Master": REPLICA}, spec={"runPolicy": {"activeDeadlineSeconds": 60}})
    assert [pod.active_deadline_seconds for pod in found.pods] == [60]


@pytest.mark.parametrize(
    ("policy", "workers", "planned", "later"),
    [
        pytest.param({"minReplicas": 2, "maxReplicas": 36}, 2, "2 workers", "; it may have 2 to 36 later", id="both"),
        pytest.param({"maxReplicas": 4}, 1, "1 worker", "; it may have 1 to 4 later", id="most"),
        pytest.param({"nProcPerNode": 8}, 3, "3 workers", "", id="neither"),
    ],
)
def test_how_many_workers_of_an_elastic_job_are_planned(
    policy: dict[str, int], workers: int, planned: str, later: str
) -> None:
    replicas = {"Worker": {**REPLICA, "replicas": workers}}
    found, problems = expanded("PyTorchJob", replicas, spec={"elasticPolicy": policy})
    assert len(found.pods) == workers
    said = f"planned for {planned} (replicas of Worker), with which the job starts{later}"
    assert problems == [f"spec.elasticPolicy: {said}"]


@pytest.mark.parametrize(("version", "expected"), [("v2beta1", ["spec.cleanPodPolicy"]), ("v1", [])])
def test_where_the_policy_about_pods_of_an_mpi_job_is(version: str, expected: list[str]) -> None:
    replicas = {"Launcher": REPLICA, "Worker": {**REPLICA, "replicas": 1}}
    found, problems = expanded("MPIJob", replicas, version, spec={"cleanPodPolicy": "Running"})
    assert len(found.pods) == 2
    assert [problem.partition(":")[0] for problem in problems] == expected


def test_a_field_of_a_container_keeps_the_pod_from_nothing() -> None:
    """The API server refuses or drops it in the spec of a pod."""
    template = {"spec": {"containers": [{"name": "c"}], "imagePullPolicy": "IfNotPresent"}}
    found, problems = expanded("MPIJob", {"Launcher": {"template": template}}, "v2beta1")
    assert [pod.unsupported for pod in found.pods] == [()]
    assert ["imagePullPolicy: is a field of containers, not of a pod" in problem for problem in problems] == [True]


def hyperpod(replicas: object, **spec: object) -> tuple[Expansion, list[str]]:
    problems = Problems()
    raw = {
        "apiVersion": "sagemaker.amazonaws.com/v1",
        "kind": "HyperPodPyTorchJob",
        "metadata": {"name": "t", "namespace": "ns"},
        "spec": {"nprocPerNode": "8", "replicaSpecs": replicas, **spec},
    }
    found = expand_hyperpod_job(raw, problems)
    return found, [f"{problem.field}: {problem.message}; {problem.next_step}" for problem in problems]


TEMPLATE = {"spec": {"containers": [{"name": "c"}]}}


def test_a_job_of_hyperpod_has_its_replicas() -> None:
    policy = {"cleanPodPolicy": "All", "restartPolicy": {"maxFullJobRestarts": 1}, "activeDeadlineSeconds": 60}
    replicas = [
        {"name": "pod", "replicas": 2, "template": TEMPLATE},
        {"name": "b", "replicas": 1, "template": TEMPLATE},
    ]
    found, problems = hyperpod(replicas, runPolicy=policy)
    assert [pod.name for pod in found.pods] == ["t-pod-0", "t-pod-1", "t-b-0"]
    assert dict(found.pods[0].labels) == {"HPJob": "t"}
    assert {pod.active_deadline_seconds for pod in found.pods} == {60}
    assert problems == []


def test_what_a_job_of_hyperpod_may_have_beside_its_pods_is_said() -> None:
    replicas = [{"name": "pod", "replicas": 4, "maxReplicas": 8, "spares": 2, "template": TEMPLATE}]
    found, problems = hyperpod(replicas, elasticPolicy={"minReplicas": 2, "maxReplicas": 8})
    assert len(found.pods) == 4
    assert problems == [
        "spec.elasticPolicy: planned for 4 pods (replicas); the number may change while the job runs; "
        "to plan for more, set replicas to as many as you expect",
        "spec.replicaSpecs[0].spares: 2: it asks Kueue for as much beside its 4 pods; planned without them; "
        "to plan for them too, set replicas to 6 and spares to 0",
    ]


def test_a_job_of_hyperpod_without_a_number_has_no_pods() -> None:
    found, problems = hyperpod([{"name": "pod", "template": TEMPLATE}])
    assert found.pods == ()
    assert ["0: it has no pods now" in problem for problem in problems] == [True]


def test_a_suspended_job_of_hyperpod_has_no_pods() -> None:
    found, problems = hyperpod([{"name": "pod", "replicas": 1, "template": TEMPLATE}], runPolicy={"suspend": True})
    assert found.pods == ()
    assert ["suspended" in problem for problem in problems] == [True]
