"""Services of KServe become the pods that its controllers would make, with what they add to them."""

from __future__ import annotations

from typing import Any

import pytest

from autoscaler.kube.fields import Fields
from autoscaler.kube.problem import Problems
from autoscaler.kube.workloads.serving.kserve import (
    expand_inference_service,
    expand_llm_inference_service,
    model_claims,
)
from autoscaler.kube.workloads.stamping import Expansion
from instance_catalog.diagnostic import path_text
from instance_catalog.kubernetes.quantity import Quantity

GPU = "nvidia.com/gpu"
MODEL = {"modelFormat": {"name": "huggingface"}, "resources": {"limits": {GPU: 1}}, "args": ["--model_id=org/m"]}


def expanded(expand: Any, spec: dict[str, Any], **metadata: Any) -> tuple[Expansion, list[str]]:
    problems = Problems()
    value = {"kind": "Service", "metadata": {"name": "s", "namespace": "ns", **metadata}, "spec": spec}
    found = expand(value, problems)
    return found, [f"{problem.field}: {problem.message}" for problem in problems]


def gpus(found: Expansion) -> dict[str, int]:
    amounts = {pod.name: pod.containers[0].requests.get(GPU) for pod in found.pods}
    return {name: amount.ceil() if amount else 0 for name, amount in amounts.items()}


def with_gpus(number: int) -> dict[str, Any]:
    return {"containers": [{"name": "main", "resources": {"limits": {GPU: number}}}]}


def test_the_container_of_a_model_server_has_its_resources_and_those_of_kserve() -> None:
    predictor = {"model": MODEL, "minReplicas": 2, "nodeSelector": {"a": "b"}, "labels": {"tier": "x"}, "timeout": 9}
    found, problems = expanded(expand_inference_service, {"predictor": predictor})
    assert gpus(found) == {"s-predictor-0": 1, "s-predictor-1": 1}
    (pod, _) = found.pods
    assert pod.containers[0].name == "kserve-container"
    assert pod.containers[0].requests["cpu"] == Quantity.of(1)
    assert pod.containers[0].requests["memory"] == Quantity.parse("2Gi")
    assert pod.node_selector == {"a": "b"}
    assert pod.labels == {"tier": "x", "component": "predictor", "serving.kserve.io/inferenceservice": "s"}
    assert [text.partition(": ")[0] for text in problems] == ["spec.predictor.model"]
    runtime = "nothing of the ServingRuntime that KServe chooses for models of format huggingface is read"
    assert f"{runtime}, neither cpu, memory and GPUs nor node selectors" in problems[0]


@pytest.mark.parametrize(
    ("predictor", "what", "step"),
    [
        ({"model": {"runtime": "r"}}, "ServingRuntime r", "give it with -f (`kubectl get servingruntimes,cluster"),
        (
            {"model": {"modelFormat": {"name": "vLLM"}}},
            "the ServingRuntime that KServe chooses for models of format vLLM",
            "name it in spec.predictor.model.runtime, and give it",
        ),
        ({"triton": {}}, "the ServingRuntime that KServe chooses for models of format triton", "name it in"),
    ],
)
def test_a_pod_that_only_its_runtime_may_give_a_device_says_what_was_not_read(
    predictor: dict[str, Any], what: str, step: str
) -> None:
    found, problems = expanded(expand_inference_service, {"predictor": predictor})
    (unread,) = [pod.unread for pod in found.pods]
    assert unread is not None
    assert (unread.what, unread.step[: len(step)]) == (what, step)
    assert problems == []


def test_so_does_one_whose_base_config_is_missing() -> None:
    service = {"template": {"containers": [{"name": "main"}]}, "baseRefs": [{"name": "c"}]}
    found, problems = expanded(expand_llm_inference_service, service)
    (unread,) = [pod.unread for pod in found.pods]
    assert unread is not None
    assert unread.what == "LLMInferenceServiceConfig c"
    assert problems == []


@pytest.mark.parametrize(
    ("expand", "spec", "field"),
    [
        (expand_inference_service, {"predictor": {"model": {**MODEL, "storageUri": "pvc://m/a"}}}, "model.storageUri"),
        (expand_inference_service, {"predictor": {"model": MODEL, "storageUris": [{"uri": "pvc://m/b"}]}}, "uri"),
        (
            expand_inference_service,
            {
                "predictor": {
                    "containers": [
                        {
                            "name": "c",
                            "env": [{"name": "A", "value": "pvc://no"}, {"name": "STORAGE_URI", "value": "pvc://m"}],
                        }
                    ]
                }
            },
            "env[1].value",
        ),
        (expand_llm_inference_service, {"model": {"uri": "pvc://m/a"}, "template": with_gpus(1)}, "spec.model.uri"),
    ],
)
def test_the_volume_from_which_a_model_is_loaded_is_one_of_the_pod(
    expand: Any, spec: dict[str, Any], field: str
) -> None:
    found, _ = expanded(expand, spec)
    assert [pod.volumes for pod in found.pods] == [("m",)]
    service = Fields({"spec": spec})
    ((path, name),) = model_claims(service)
    assert name == "m"
    assert path_text(path).endswith(field)


def test_other_places_of_models_are_no_volumes() -> None:
    found, _ = expanded(expand_inference_service, {"predictor": {"model": {**MODEL, "storageUri": "s3://m/a"}}})
    assert [pod.volumes for pod in found.pods] == [()]


@pytest.mark.parametrize(
    "predictor", [{"model": {**MODEL, "name": ""}}, {"containers": [{"image": "i"}, {"name": "b"}]}]
)
def test_kserve_names_the_first_container_where_the_service_does_not(predictor: dict[str, Any]) -> None:
    found, problems = expanded(expand_inference_service, {"predictor": predictor})
    assert found.pods[0].containers[0].name == "kserve-container"
    assert not any("name" in text.partition(": ")[0] for text in problems)


def test_what_a_server_asks_for_wins_over_what_kserve_gives() -> None:
    resources = {"limits": {"cpu": "4"}, "requests": {"memory": "8Gi"}}
    found, _ = expanded(expand_inference_service, {"predictor": {"triton": {"resources": resources}}})
    assert found.pods[0].containers[0].requests == {"cpu": Quantity.of(4), "memory": Quantity.parse("8Gi")}


def test_a_custom_predictor_is_a_pod_and_a_transformer_is_another() -> None:
    given = {"predictor": with_gpus(2), "transformer": {"containers": [{"name": "t"}]}}
    found, problems = expanded(expand_inference_service, given)
    assert gpus(found) == {"s-predictor-0": 2, "s-transformer-0": 0}
    assert problems == []


URI = "s3://bucket/Llama-2-13b-chat-hf/Llama-2-13b-chat-hf"
SERVED: dict[str, Any] = {"modelFormat": {"name": "vLLM"}, "resources": {"limits": {GPU: 1}}}


@pytest.mark.parametrize(
    ("predictor", "expected"),
    [
        ({"model": {**SERVED, "storageUri": URI}}, 13),
        ({"model": {**SERVED, "storage": {"key": "s3", "path": "models/Qwen3-32B"}}}, 32),
        ({"huggingface": {"storageUri": "hf://org/falcon-7b", "env": [{"name": "A", "value": "b"}]}}, 7),
        ({"model": SERVED, "storageUris": [{"uri": "pvc://claim/Qwen3-8B"}]}, 8),
        ({"model": {**SERVED, "storageUri": 7, "storage": {"path": 1}}, "storageUris": [3]}, None),
        ({"model": {**SERVED, "storageUri": URI}, "workerSpec": {**with_gpus(1), "pipelineParallelSize": 2}}, None),
    ],
)
def test_the_size_of_the_model_is_read_from_where_it_is_stored(
    predictor: dict[str, Any], expected: float | None
) -> None:
    found, _ = expanded(expand_inference_service, {"predictor": predictor})
    assert {pod.containers[0].model_billions for pod in found.pods} == {expected}
    assert "Llama" not in repr(found.pods)


@pytest.mark.parametrize(
    ("given", "serves"),
    [({"modelFormat": {"name": "vLLM"}}, True), ({"runtime": "my-vllm"}, True), ({"runtime": "other"}, False)],
)
def test_a_format_or_runtime_names_the_server(given: dict[str, Any], serves: bool) -> None:
    model = {"modelFormat": {"name": "m"}, "storageUri": URI, **given}
    found, _ = expanded(expand_inference_service, {"predictor": {"model": model}})
    assert found.pods[0].containers[0].serves_model is serves


@pytest.mark.parametrize(("worker", "expected"), [({}, 7), ({"worker": with_gpus(1)}, None)])
def test_so_is_that_of_an_llm_inference_service(worker: dict[str, Any], expected: float | None) -> None:
    spec = {"model": {"uri": "hf://Qwen/Qwen2.5-7B-Instruct"}, "template": with_gpus(1), **worker}
    found, _ = expanded(expand_llm_inference_service, {**spec, "prefill": {"template": with_gpus(1)}})
    prefill = {"s-kserve-prefill-0": 7}
    assert {pod.name: pod.containers[0].model_billions for pod in found.pods} == {"s-kserve-0": expected, **prefill}


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ({"uri": "pvc://claim/gpt-oss-120", "name": "openai/gpt-oss-120b"}, (120, 4)),
        ({"uri": "hf://Qwen/Qwen2.5-7B-Instruct", "name": "like-70b"}, (7, 16)),
        ({"uri": "pvc://claim/model", "name": "mine"}, (None, 16)),
        ({"uri": "pvc://claim/model", "name": 7}, (None, 16)),
    ],
)
def test_the_name_of_an_llm_says_its_size_where_the_uri_does_not(
    model: dict[str, Any], expected: tuple[float | None, int]
) -> None:
    found, _ = expanded(expand_llm_inference_service, {"model": model, "template": with_gpus(1)})
    (container,) = found.pods[0].containers
    assert (container.model_billions, container.model_bits) == expected


@pytest.mark.parametrize(
    ("image", "method", "bfloat16"),
    [
        ({}, "fp8", False),
        ({"image": "ghcr.io/llm-d/llm-d-cuda:v0.3.1"}, "fp8", False),
        ({"image": "vllm/vllm-openai:v0.8.2"}, "fp8", True),
        ({"image": "vllm/vllm-openai"}, "", False),
    ],
)
def test_an_llm_is_served_by_vllm(image: dict[str, str], method: str, bfloat16: bool) -> None:
    template = {"containers": [{**with_gpus(1)["containers"][0], **image}]}
    model = {"uri": "oci://registry.example/llama-3-1-8b-instruct-fp8-dynamic:1.5", "name": "llama"}
    found, _ = expanded(expand_llm_inference_service, {"model": model, "template": template})
    (container,) = found.pods[0].containers
    assert (container.serves_model, container.quantization, container.vllm_bfloat16) == (True, method, bfloat16)


def test_mistakes_name_the_field_that_a_person_wrote() -> None:
    _, problems = expanded(expand_inference_service, {"predictor": {**with_gpus(1), "nodeSelektor": {}}})
    assert problems == ["spec.predictor.nodeSelektor: unknown field 'nodeSelektor'"]


def test_a_service_that_scales_to_zero_is_planned_for_its_first_request() -> None:
    found, problems = expanded(expand_inference_service, {"predictor": {**with_gpus(1), "minReplicas": 0}})
    assert len(found.pods) == 1
    assert problems == ["spec.predictor.minReplicas: 0: planned for the one pod that the first request starts"]


@pytest.mark.parametrize(
    ("sizes", "each", "expected"),
    [
        pytest.param({"pipelineParallelSize": 3}, 1, [1, 1, 1], id="one GPU each"),
        pytest.param({"tensorParallelSize": 8, "pipelineParallelSize": 2}, 8, [8, 8], id="whole nodes"),
        pytest.param({"tensorParallelSize": 5}, 4, [1, 4], id="the head has the rest"),
        pytest.param({"tensorParallelSize": 4}, 4, [4], id="one node"),
    ],
)
def test_a_head_and_its_workers(sizes: dict[str, int], each: int, expected: list[int]) -> None:
    model = {key: value for key, value in MODEL.items() if key != "resources"}
    spec = {"predictor": {"model": model, "minReplicas": 1, "workerSpec": {**sizes, **with_gpus(each)}}}
    found, _ = expanded(expand_inference_service, spec)
    assert list(gpus(found).values()) == expected
    assert [pod.name for pod in found.pods[1:]] == [f"s-predictor-worker-{n}" for n in range(len(expected) - 1)]


def test_workers_whose_gpus_only_the_runtime_knows_are_refused() -> None:
    spec = {"predictor": {"model": MODEL, "workerSpec": {"pipelineParallelSize": 2}}}
    _, problems = expanded(expand_inference_service, spec)
    assert any("spec.predictor.workerSpec.containers: does not say how many GPUs" in text for text in problems)


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        pytest.param({}, ["s-kserve-0"], id="one"),
        pytest.param({"replicas": 2}, ["s-kserve-0", "s-kserve-1"], id="replicas"),
        pytest.param({"scaling": {"minReplicas": 2, "maxReplicas": 9}}, ["s-kserve-0", "s-kserve-1"], id="scaling"),
        pytest.param(
            {"worker": with_gpus(8), "parallelism": {"data": 32, "dataLocal": 16, "tensor": 1}},
            ["s-kserve-0", "s-kserve-0-1"],
            id="data parallel",
        ),
        pytest.param(
            {"worker": with_gpus(8), "parallelism": {"pipeline": 3}},
            ["s-kserve-0", "s-kserve-0-1", "s-kserve-0-2"],
            id="pipeline",
        ),
        pytest.param(
            {"prefill": {"replicas": 2, "template": with_gpus(1)}},
            ["s-kserve-0", "s-kserve-prefill-0", "s-kserve-prefill-1"],
            id="prefill",
        ),
    ],
)
def test_pods_of_an_llm_service(more: dict[str, Any], expected: list[str]) -> None:
    spec = {"model": {"uri": "hf://m"}, "router": {}, "template": with_gpus(1), **more}
    found, problems = expanded(expand_llm_inference_service, spec)
    assert [pod.name for pod in found.pods] == expected
    assert [text.partition(": ")[0] for text in problems] == ["spec.template"]


def test_what_an_llm_service_does_not_say_itself_is_refused() -> None:
    _, problems = expanded(expand_llm_inference_service, {"model": {}, "baseRefs": [{"name": "b"}]})
    assert any("spec.template: is not here, so LLMInferenceServiceConfigs say" in text for text in problems)
    annotations = {"serving.kserve.io/exp-dra-device-class": "gpu.nvidia.com"}
    _, problems = expanded(expand_llm_inference_service, {"template": with_gpus(1)}, annotations=annotations)
    assert any("KServe makes a ResourceClaimTemplate of it" in text for text in problems)
