"""Ray objects become the pods that KubeRay would make, with what it adds to them."""

from __future__ import annotations

from typing import Any

import pytest

from autoscaler.kube.problem import Problems
from autoscaler.kube.workloads.ray import (
    expand_ray_cluster,
    expand_ray_cron_job,
    expand_ray_job,
    expand_ray_service,
)
from autoscaler.kube.workloads.stamping import Expansion

TEMPLATE = {
    "metadata": {"labels": {"app": "a", "ray.io/is-ray-node": "no", "ray.io/group": "mine"}},
    "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "2"}}}]},
}


def group(**more: Any) -> dict[str, Any]:
    return {"groupName": "gpu", "rayStartParams": {}, "template": TEMPLATE, **more}


def cluster(*groups: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"headGroupSpec": {"rayStartParams": {}, "template": TEMPLATE}, "workerGroupSpecs": list(groups), **more}


def expanded(expand: Any, spec: dict[str, Any], **more: Any) -> tuple[Expansion, list[str]]:
    problems = Problems()
    found = expand({"kind": "Ray", "metadata": {"name": "r", "namespace": "ns"}, "spec": spec, **more}, problems)
    return found, [f"{problem.field}: {problem.message}" for problem in problems]


def workers(*groups: dict[str, Any]) -> list[str]:
    found, problems = expanded(expand_ray_cluster, cluster(*groups))
    assert problems == []
    return [pod.name for pod in found.pods[1:]]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param({"replicas": 2}, 2, id="replicas"),
        pytest.param({}, 0, id="nothing said"),
        pytest.param({"minReplicas": 3}, 3, id="at least"),
        pytest.param({"replicas": 9, "maxReplicas": 4}, 4, id="at most"),
        pytest.param({"minReplicas": 5, "maxReplicas": 4}, 4, id="contradiction: the maximum counts"),
        pytest.param({"replicas": 2, "numOfHosts": 4, "maxReplicas": 2**31 - 1}, 8, id="several hosts a replica"),
    ],
)
def test_how_many_workers(given: dict[str, Any], expected: int) -> None:
    assert workers(group(**given)) == [f"r-gpu-worker-{index}" for index in range(expected)]


def test_pods_of_a_cluster_have_the_labels_of_the_operator() -> None:
    found, problems = expanded(expand_ray_cluster, cluster(group(replicas=1, labels={"tier": "b"})))
    assert problems == []
    head, worker = found.pods
    assert [head.name, worker.name] == ["r-head", "r-gpu-worker-0"]
    assert head.labels["ray.io/group"] == "headgroup"
    assert dict(worker.labels) == {
        "app": "a",
        "tier": "b",
        "ray.io/is-ray-node": "no",
        "ray.io/identifier": "r-worker",
        "ray.io/cluster": "r",
        "ray.io/node-type": "worker",
        "ray.io/group": "gpu",
    }
    assert worker.owner == "Ray/r"


def test_what_the_operator_adds_is_counted() -> None:
    found, problems = expanded(expand_ray_cluster, cluster(group(replicas=1), enableInTreeAutoscaling=True))
    head, worker = found.pods
    assert [str(container.requests["cpu"]) for container in head.containers] == ["2", "500m"]
    assert [str(container.requests["memory"]) for container in worker.init_containers] == ["256Mi"]
    assert problems == ["spec.enableInTreeAutoscaling: Ray will change the number of workers: planned for replicas"]


def test_the_size_of_the_autoscaler_may_be_given() -> None:
    options = {"resources": {"requests": {"cpu": "3"}}}
    found, _ = expanded(expand_ray_cluster, cluster(enableInTreeAutoscaling=True, autoscalerOptions=options))
    assert str(found.pods[0].containers[1].requests["cpu"]) == "3"


@pytest.mark.parametrize(
    ("expand", "spec", "expected"),
    [
        pytest.param(expand_ray_job, {"rayClusterSpec": cluster(group(replicas=1))}, 2, id="job"),
        pytest.param(
            expand_ray_job, {"rayClusterSpec": cluster(), "submitterPodTemplate": TEMPLATE}, 2, id="job, submitter"
        ),
        pytest.param(expand_ray_service, {"rayClusterConfig": cluster(group(replicas=2))}, 3, id="service"),
    ],
)
def test_jobs_and_services_have_a_cluster(expand: Any, spec: dict[str, Any], expected: int) -> None:
    found, problems = expanded(expand, spec)
    assert len({pod.uid for pod in found.pods}) == expected
    assert problems == []


@pytest.mark.parametrize(
    ("expand", "spec", "field"),
    [
        pytest.param(expand_ray_cluster, cluster(group(replicas=1), suspend=True), "spec.suspend", id="cluster"),
        pytest.param(expand_ray_job, {"rayClusterSpec": cluster(), "suspend": True}, "spec.suspend", id="job"),
        pytest.param(
            expand_ray_service, {"rayClusterConfig": cluster(), "suspend": True}, "spec.suspend", id="service"
        ),
    ],
)
def test_what_is_suspended_has_no_pods_and_says_so(expand: Any, spec: dict[str, Any], field: str) -> None:
    found, problems = expanded(expand, spec)
    assert found.pods == ()
    assert problems == [f"{field}: suspended: it has no pods now"]


def test_a_group_is_suspended_by_itself() -> None:
    found, problems = expanded(expand_ray_cluster, cluster(group(replicas=2, suspend=True)))
    assert [pod.name for pod in found.pods] == ["r-head"]
    assert problems == ["spec.workerGroupSpecs[0].suspend: suspended: it has no pods now"]


def test_a_job_that_is_over_has_no_pods() -> None:
    found, _ = expanded(expand_ray_job, {"rayClusterSpec": cluster()}, status={"jobDeploymentStatus": "Complete"})
    assert found.pods == ()


def test_a_job_on_another_cluster_has_no_pods() -> None:
    found, problems = expanded(expand_ray_job, {"clusterSelector": {"ray.io/cluster": "c"}})
    assert found.pods == ()
    assert problems == []


def test_too_many_workers_are_a_mistake() -> None:
    found, problems = expanded(expand_ray_cluster, cluster(group(replicas=5000, numOfHosts=5000)))
    assert len(found.pods) == 1
    assert problems == ["spec.workerGroupSpecs[0].replicas: more than 10000 pods"]


@pytest.mark.parametrize(("suspend", "expected"), [(False, ["r-head", "r-gpu-worker-0"]), (True, [])])
def test_one_run_of_a_cron_job(suspend: bool, expected: list[str]) -> None:
    job = {"entrypoint": "true", "rayClusterSpec": cluster(group(replicas=1))}
    spec = {"schedule": "0 8 * * *", "timeZone": "Etc/UTC", "suspend": suspend, "jobTemplate": job}
    found, problems = expanded(expand_ray_cron_job, spec)
    assert [pod.name for pod in found.pods] == expected
    assert [problem.partition(":")[0] for problem in problems] == (["spec.suspend"] if suspend else [])


@pytest.mark.parametrize(
    ("config", "selector", "models"),
    [
        pytest.param("args:\n  accelerator_type: H100\n", {}, "H100", id="yaml"),
        pytest.param(
            '{"a": [{"accelerator_type": "L40S"}, {"accelerator_type": "L4"}]}\n', {}, "L40S and L4", id="json"
        ),
        pytest.param("- accelerator_type: 'A100'\n- accelerator_type: T4\n", {}, "A100 and T4", id="two"),
        pytest.param("# accelerator_type: H100\naccelerator_types: none\n", {}, "", id="none"),
        pytest.param("accelerator_type: H100\n", {"cloud.google.com/gke-accelerator": "x"}, "", id="the pod says it"),
    ],
)
def test_a_model_that_only_ray_is_asked_for(config: str, selector: dict[str, str], models: str) -> None:
    template = {"spec": {**TEMPLATE["spec"], "nodeSelector": selector}}
    made = cluster({**group(replicas=1), "template": template})
    _, problems = expanded(expand_ray_service, {"serveConfigV2": config, "rayClusterConfig": made})
    assert [problem.partition(",")[0] for problem in problems] == (
        [f"spec.serveConfigV2: asks Ray for accelerator_type {models}"] if models else []
    )


@pytest.mark.parametrize(
    ("labels", "autoscaling", "scheduler", "together"),
    [
        pytest.param({"ray.io/scheduler-name": "volcano"}, False, "volcano", 3, id="Volcano starts them together"),
        pytest.param({"ray.io/scheduler-name": "volcano"}, True, "volcano", 2, id="as many as there always are"),
        pytest.param({"ray.io/scheduler-name": "yunikorn"}, False, "yunikorn", 0, id="no gang without a label"),
        pytest.param(
            {"ray.io/scheduler-name": "yunikorn", "ray.io/gang-scheduling-enabled": "true"},
            False,
            "yunikorn",
            3,
            id="gang",
        ),
        pytest.param({"ray.io/scheduler-name": "kai"}, False, "kai-scheduler", 0, id="its short name"),
        pytest.param(
            {"ray.io/gang-scheduling-enabled": "true"}, False, "default-scheduler", 0, id="no batch scheduler"
        ),
    ],
)
def test_the_batch_scheduler_that_a_label_names(
    labels: dict[str, str], autoscaling: bool, scheduler: str, together: int
) -> None:
    found, problems = expanded(
        expand_ray_cluster,
        cluster(group(replicas=3, minReplicas=2), enableInTreeAutoscaling=autoscaling),
        metadata={"name": "r", "namespace": "ns", "labels": labels},
    )
    assert {pod.scheduler_name for pod in found.pods} == {scheduler}
    assert [gang.min_count for gang in found.gangs] == ([together] if together else [])
    assert [pod.name for pod in found.pods if pod.gang] == [f"r-gpu-worker-{i}" for i in range(3 if together else 0)]
    assert any("scheduler-name" in problem for problem in problems) == ("ray.io/scheduler-name" in labels)


def test_what_submits_a_job_has_the_scheduler_and_is_in_no_gang() -> None:
    job = {"rayClusterSpec": cluster(group(replicas=2)), "submitterPodTemplate": TEMPLATE}
    labels = {"ray.io/scheduler-name": "volcano"}
    found, _ = expanded(expand_ray_job, job, metadata={"name": "r", "namespace": "ns", "labels": labels})
    (submitter,) = (pod for pod in found.pods if pod.name == "r-submitter")
    assert (submitter.scheduler_name, submitter.gang) == ("volcano", None)


def gpu_workers(replicas: int) -> dict[str, Any]:
    container = {"name": "c", "resources": {"limits": {"nvidia.com/gpu": 1}, "requests": {"nvidia.com/gpu": 1}}}
    return group(replicas=replicas, template={"spec": {"containers": [container]}})


@pytest.mark.parametrize(
    ("config", "replicas", "expected"),
    [
        pytest.param("max_replicas: 4\nnum_gpus: 1", 1, "up to 4 replicas with num_gpus 1, and the planned", id="more"),
        pytest.param("max_replicas: 4\nnum_gpus: 0.5", 2, "", id="enough"),
        pytest.param("max_replicas: 4 # num_gpus: 1", 1, "", id="in a comment"),
        pytest.param("num_gpus: 2", 1, "up to 1 replica with num_gpus 2, and the planned pods have 1 GPU:", id="one"),
        pytest.param("max_replicas: 4", 1, "", id="no GPUs"),
        pytest.param("- name: a\n  num_replicas: 9\n- name: b\n  num_gpus: 1", 1, "", id="each deployment by itself"),
        pytest.param(
            '{"name": "a", "num_gpus": 1}, {"name": "b", "max_replicas": 2, "num_gpus": 1}',
            2,
            "up to 1 replica with num_gpus 1 and 2 replicas with num_gpus 1, and the planned pods have 2 GPUs",
            id="together",
        ),
        pytest.param(
            "resources: {TPU: 4}", 1, "up to 1 replica with TPU 4, and the planned pods have 0 TPU", id="TPUs"
        ),
        pytest.param("neuron_cores: 2", 1, "with neuron_cores 2, and the planned pods have 0", id="Neuron"),
        pytest.param('resources: {"google.com/tpu": 4}', 1, "Ray calls that resource TPU", id="a name of Kubernetes"),
    ],
)
def test_what_serve_asks_ray_for_beyond_the_planned_pods(config: str, replicas: int, expected: str) -> None:
    spec = {"serveConfigV2": config, "rayClusterConfig": cluster(gpu_workers(replicas))}
    _, problems = expanded(expand_ray_service, spec)
    assert len(problems) == bool(expected)
    assert all(expected in problem for problem in problems)


_LLM = "import_path: ray.serve.llm:build_openai_app\nllm_configs:\n- model_loading_config: {model_source: %s}"


@pytest.mark.parametrize(
    ("config", "args", "expected"),
    [
        (_LLM % "openai/gpt-oss-120b", [], (120, 4, True)),
        (_LLM % "Qwen/Qwen3-32B", [], (32, 16, True)),
        ("env_vars: {MODEL_ID: org/m-7b}", [], (7, 16, False)),
        ("# model_id: org/m-7b", [], (None, 16, False)),
        (_LLM % "Qwen/Qwen3-32B-AWQ", [], (32, 4, True)),
        (_LLM % "Qwen/Qwen3-32B-GPTQ", [], (None, 16, False)),
        (_LLM % "Qwen/Qwen3-32B", ["--model=org/m-7b"], (7, 16, False)),
        (_LLM % "Qwen/Qwen3-32B", ["--quantization=awq"], (None, 16, False)),
    ],
)
def test_the_workers_serve_the_model_that_the_config_of_serve_names(
    config: str, args: list[str], expected: tuple[float | None, int, bool]
) -> None:
    """Only its size is kept. What a container itself says comes first."""
    worker = {"name": "c", "args": args, "resources": {"limits": {"nvidia.com/gpu": 1}}}
    made = cluster(group(replicas=1, template={"spec": {"containers": [worker]}}))
    found, _ = expanded(expand_ray_service, {"serveConfigV2": config, "rayClusterConfig": made})
    container = found.pods[-1].containers[0]
    assert (container.model_billions, container.model_bits, container.serves_model) == expected
    assert not container.vllm_bfloat16


@pytest.mark.parametrize(
    ("setting", "expected"),
    [
        ("dtype: bfloat16", True),
        ('"dtype": "bfloat16"', True),
        ("dtype: auto", False),
        ("kv_cache_dtype: bfloat16", False),
    ],
)
def test_a_type_that_the_config_of_serve_sets_is_kept(setting: str, expected: bool) -> None:
    worker = {"name": "c", "resources": {"limits": {"nvidia.com/gpu": 1}}}
    made = cluster(group(replicas=1, template={"spec": {"containers": [worker]}}))
    config = f"{_LLM % 'Qwen/Qwen3-8B'}\n{setting}"
    found, _ = expanded(expand_ray_service, {"serveConfigV2": config, "rayClusterConfig": made})
    assert found.pods[-1].containers[0].vllm_bfloat16 is expected


@pytest.mark.parametrize(("resource", "told"), [("aws.amazon.com/neuron", 0), ("aws.amazon.com/neuroncore", 1)])
def test_how_many_cores_a_device_has_is_not_known_here(resource: str, told: int) -> None:
    worker = {"name": "w", "resources": {"limits": {resource: "1"}}}
    made = cluster(group(replicas=1, template={"spec": {"containers": [worker]}}))
    _, problems = expanded(expand_ray_service, {"serveConfigV2": "neuron_cores: 2", "rayClusterConfig": made})
    assert len(problems) == told


def test_the_config_of_serves_first_api() -> None:
    spec = {"serveConfig": {"importPath": "a:b"}, "rayClusterConfig": cluster(group(replicas=1))}
    found, problems = expanded(expand_ray_service, spec)
    assert len(found.pods) == 2
    assert problems == [
        "spec.serveConfig: KubeRay has not had it since v1.1.0, so no application starts; planned are the pods of the "
        "Ray cluster"
    ]
