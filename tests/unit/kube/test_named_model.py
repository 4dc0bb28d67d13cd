"""Sizes of models that a container names."""

from __future__ import annotations

from typing import Any

import pytest

from autoscaler.kube.containers import parse_container
from autoscaler.kube.fields import Fields


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"command": ["sh", "-c", "vllm serve Qwen/Qwen3-32B --port 80"]}, 32),
        ({"args": ["--model", "/models/Qwen2.5-1.5B-Instruct", "--draft=a-0.5b"]}, 1.5),
        ({"env": [{"name": "MODEL_ID", "value": "org/llama-3.1-8b"}, {"name": "X"}]}, 8),
        ({"args": ["--model=org/Mixtral-8x7B"]}, None),
        ({"args": ["--model=org/Llama-3.1-70B-GPTQ"]}, None),
        ({"args": ["--model=org/Llama-3.1-70B", "--quantization", "awq"]}, None),
        ({"args": ["-b", "8b", "-e", "32G"]}, None),
        ({"args": ["--model=org/Kimi-K2.6-1000B"]}, None),  # published in INT4
        ({"args": ["--model=org/Kimi-K3-1000B"]}, None),  # published in MXFP4
        ({"args": ["--model=deepseek-ai/DeepSeek-R1-Distill-Qwen-32B"]}, 32),
        ({"args": ["--model=org/Llama-3.1-70B", "--pipeline-parallel-size=2"]}, 70),
        ({"args": ["--model=org/Llama-3.1-70B", "--cpu-offload-gb", "80"]}, None),
        ({}, None),
    ],
)
def test_the_model_whose_name_says_how_large_it_is(given: dict[str, Any], expected: float | None) -> None:
    found, _ = parse_container(Fields({"name": "c", **given}), init=False, host_network=False)
    assert found.model_billions == expected


@pytest.mark.parametrize(
    ("model", "billions", "bits"),
    [("openai/gpt-oss-120b", 120, 4), ("openai/gpt-oss-20b-GGUF", None, 16), ("Qwen/Qwen3-32B", 32, 16)],
)
def test_a_model_that_is_published_with_four_bits(model: str, billions: float | None, bits: int) -> None:
    found, _ = parse_container(Fields({"name": "c", "args": [f"--model={model}"]}), init=False, host_network=False)
    assert (found.model_billions, found.model_bits) == (billions, bits)


@pytest.mark.parametrize(
    ("image", "args", "method"),
    [
        ("rhaiis/vllm-cuda-rhel9:3.3.0", ("--model=/m/granite-tiny-fp8-dynamic",), "fp8"),
        ("vllm/vllm-openai:v0.10.1", ("--model=org/m-8B-FP8",), "fp8"),
        ("nvcr.io/nvidia/ai-dynamo/vllm-runtime:1.0.0", ("--model=org/m-8B-FP8",), "fp8"),
        ("vllm/vllm-openai:latest", ("--model=org/m-8B-FP8",), ""),
        ("vllm/vllm-openai:v0.10.1", ("--model=org/m-8B", "--kv-cache-dtype=fp8"), ""),
        ("vllm/vllm-openai:v0.10.1", ("--model=org/m-8B", "--disable-some-fp8"), ""),
    ],
)
def test_the_method_that_the_name_of_a_model_says(image: str, args: tuple[str, ...], method: str) -> None:
    given = {"name": "c", "image": image, "args": [*args]}
    found, _ = parse_container(Fields(given), init=False, host_network=False)
    assert found.quantization == method


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("--model org/Llama-3.3-70B-Instruct-FP8-dynamic", (70, 8)),
        ("--model org/Llama-3.3-70B-FP8 --served-model-name llama-70b --quantization compressed-tensors", (70, 8)),
        ("--model org/Qwen3-235B-A22B-NVFP4 --quantization=modelopt_fp4 --kv-cache-dtype fp8", (235, 4)),
        ("--model org/Llama-3.1-70B-quantized.w8a8", (70, 8)),
        ("--model org/Llama-3.1-70B-GPTQ-Int4", (70, 4)),
        ("--model-id=$(MODEL_ID) --quantize=$(QUANTIZE) org/Llama-2-13B-chat-AWQ awq", (13, 4)),
        ("--model-id org/Llama-2-13B-chat --quantize awq", (None, 16)),
        ("--model-id org/Llama-2-13B-chat-AWQ fp8", (None, 16)),
        ("--model org/Llama-3.1-70B-FP8 --draft org/Llama-3.2-1B-AWQ", (70, 4)),  # at the least
        ("--model org/Llama-3.1-70B --kv-cache-dtype fp8_e4m3", (70, 16)),
        ("--model org/Llama-3.1-70B --quantization fp8", (None, 16)),  # of a model that may be published in fewer
        ("--model org/Llama-3.1-70B-FP8 --load-format bitsandbytes", (None, 16)),
        ("--model org/Llama-3.1-70B-4bit-GGUF", (None, 16)),  # llama.cpp may keep a part in the memory of the node
        ("--model org/Llama-4-Scout-17B-16E-Instruct-FP8", (None, 16)),  # what is active
    ],
)
def test_a_name_that_says_how_many_bits_the_weights_have(command: str, expected: tuple[float | None, int]) -> None:
    found, _ = parse_container(Fields({"name": "c", "args": [command]}), init=False, host_network=False)
    assert (found.model_billions, found.model_bits) == expected
    assert not found.model_latent


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("vllm serve deepseek-ai/DeepSeek-R1", (671, 8)),
        ("vllm serve deepseek-ai/DeepSeek-R1-671B", (671, 8)),
        ("run --model=deepseek-ai/deepseek-r1-671b", (671, 8)),
        ("vllm serve /models/DeepSeek-R1 --served-model-name deepseek-r1-671b", (671, 8)),
        ("sglang --model-path deepseek-ai/DeepSeek-V3-0324", (671, 8)),
        ("vllm serve deepseek-ai/DeepSeek-V3.1 --reasoning-parser deepseek-v3", (671, 8)),
        ("vllm serve moonshotai/Kimi-K2-Instruct-0905", (1000, 8)),
        ("vllm serve moonshotai/Kimi-K2-Thinking", (1000, 4)),
        ("vllm serve moonshotai/Kimi-K2.5", (1000, 4)),
        (
            "sglang --model-path deepseek-ai/DeepSeek-V4-Flash --served-model-name deepseek-ai/DeepSeek-V4-Flash",
            (284, 4),
        ),
        ("sglang --model-path deepseek-ai/DeepSeek-V4-Flash-Base", (None, 16)),
        ("vllm serve MiniMaxAI/MiniMax-M2.5", (230, 8)),
        ("vllm serve zai-org/GLM-4.5-Air", (106, 16)),
        ("vllm serve /m/GLM-4.5-Air-AWQ --served-model-name GLM-4.5-Air", (None, 16)),
        ("vllm serve mistralai/Mistral-Large-Instruct-2411", (123, 16)),
        ("vllm serve CohereForAI/c4ai-command-r-plus", (104, 16)),
        ("vllm serve microsoft/phi-4", (14, 16)),
        ("vllm serve microsoft/phi-4-mini-instruct", (None, 16)),
        ("vllm serve meta-llama/Llama-4-Scout-17B-16E-Instruct", (109, 16)),
        ("vllm serve meta-llama/Llama-4-Maverick-17B-128E-Instruct-FP8", (None, 16)),
        ("vllm serve deepseek-ai/DeepSeek-R1-Distill-Llama-8B", (8, 16)),
        ("vllm serve deepseek-ai/DeepSeek-R1-Distill-Llama-8B --served-model-name deepseek-r1", (8, 16)),
        ("vllm serve Qwen/QwQ-32B --reasoning-parser deepseek-r1", (32, 16)),
        ("vllm serve org/QwQ-32B --served-model-name deepseek-r1", (None, 16)),  # either may be the model
        ("vllm serve cognitivecomputations/DeepSeek-R1-AWQ", (None, 16)),
        ("vllm serve org/my-deepseek-r1", (None, 16)),
        ("serve deepseek-r1:7b", (None, 16)),
        ("chat --model deepseek-r1", (None, 16)),  # no server
        ("python train_grpo.py --engine=vllm --teacher deepseek-ai/DeepSeek-R1", (None, 16)),
    ],
)
def test_models_that_are_known_by_their_names(command: str, expected: tuple[float | None, int]) -> None:
    found, _ = parse_container(Fields({"name": "c", "args": [command]}), init=False, host_network=False)
    assert (found.model_billions, found.model_bits) == expected
    assert found.model_latent is (found.model_bits == 8 and "MiniMax" not in command)


@pytest.mark.parametrize(
    ("given", "spread"),
    [
        ({"args": ["--model=org/Llama-3.1-70B", "--pipeline-parallel-size=2"]}, True),
        ({"command": ["sh", "-c", "sglang --model-path /m/Qwen3-32B --dist-init-addr $(A):2 --nnodes 2"]}, True),
        ({"args": ["--model=org/Llama-3.1-70B", "--data-parallel-address=a", "--data-parallel-start-rank=1"]}, True),
        ({"args": ["--model=org/Llama-3.1-70B", "--tensor-parallel-size=2"]}, False),
    ],
)
def test_options_with_which_other_pods_have_the_rest_of_a_model(given: dict[str, Any], spread: bool) -> None:
    found, _ = parse_container(Fields({"name": "c", **given}), init=False, host_network=False)
    assert found.model_spread == spread


@pytest.mark.parametrize(
    ("given", "serves"),
    [
        ({"image": "vllm/vllm-openai:v0.6.3", "args": ["--model=org/m-7b"]}, True),
        ({"image": "ghcr.io/huggingface/text-generation-inference:2", "args": ["--model-id", "org/m-7b"]}, True),
        ({"command": ["python3", "-m", "sglang.launch_server", "--model-path", "org/m-7b"]}, True),
        ({"image": "engine", "args": ["--model", "/models/m-6.7b-instruct", "--port", "8000"]}, True),
        ({"image": "engine", "args": ["--port=80", "--model=m-7b"]}, True),
        ({"args": ["--max-model-len=2048"], "env": [{"name": "MODEL", "value": "s3://b/mpt-7b-instruct2"}]}, True),
        ({"env": [{"name": "F", "value": "tgis_native"}, {"name": "M", "value": "b/flan-7b"}]}, True),
        ({"image": "vllm", "args": ["serve", "org/pretrained-m-7b", "--gpu-memory-utilization=0.9"]}, True),
        ({"image": "vllm", "args": ["serve", "org/m-7b", "--gpu-memory-utilization", "0.95"]}, False),
        ({"image": "sglang", "args": ["--model-path", "org/m-7b", "--mem-fraction-static", "0.9"]}, False),
        ({"image": "vllm", "command": ["python", "train_grpo.py", "--model", "org/m-7b"]}, False),
        ({"image": "pytorch", "command": ["python", "run.py", "--model=org/m-7b"]}, False),
        ({"image": "vllm", "args": ["serve", "org/m-7b-gptq"]}, False),
    ],
)
def test_what_is_a_model_server(given: dict[str, Any], serves: bool) -> None:
    found, _ = parse_container(Fields({"name": "c", **given}), init=False, host_network=False)
    assert found.serves_model is serves


@pytest.mark.parametrize(
    ("image", "args", "expected"),
    [
        ("vllm/vllm-openai:v0.6.3", (), True),
        ("vllm/vllm-openai:v0.8.4", ("--dtype=bfloat16",), True),
        ("vllm/vllm-openai:v0.8.5.post1", (), False),
        ("vllm/vllm-openai:v0.10.0", (), False),
        ("vllm/vllm-openai:v0.10.0", ("--dtype", "bfloat16"), True),
        ("vllm/vllm-openai:v0.10.0", ("--kv-cache-dtype", "bfloat16"), False),
        ("vllm/vllm-openai", (), False),
        ("vllm/vllm-openai:latest", (), False),
        ("nvcr.io/nvidia/vllm:25.09-py3", (), False),
        ("nvcr.io/nvidia/ai-dynamo/vllm-runtime:0.8.1", (), False),
        ("nvcr.io/nvidia/ai-dynamo/vllm-runtime-cu13:1.0.0", (), False),
        ("nvcr.io/nvidia/ai-dynamo/vllm-runtime:0.5.0", (), True),
        ("registry.example/vllm/vllm-runtime:0.5.0", ("--dtype=half",), False),
        ("registry.example/vllm/vllm-runtime:latest", (), True),
        ("quay.io/modh/vllm@sha256:0", (), True),
        ("vllm/vllm-openai:v0.6.3", ("--dtype", "half"), False),
        ("vllm/vllm-openai:v0.6.3", ("--dtype=float16",), False),
        ("runtime", ("--max-model-len=2048",), True),
        ("lmsysorg/sglang:v0.4", (), False),
        ("vllm/vllm-openai:v0.6.3", ("--gpu-memory-utilization=0.95",), True),
        ("vllm/vllm-openai:v0.6.3", ("train.py",), False),
    ],
)
def test_which_vllm_needs_bfloat16(image: str, args: tuple[str, ...], expected: bool) -> None:
    given = {"name": "c", "image": image, "args": ["--model=org/granite-3b", *args]}
    found, _ = parse_container(Fields(given), init=False, host_network=False)
    assert found.vllm_bfloat16 is expected


@pytest.mark.parametrize(
    ("image", "args", "method", "bfloat16"),
    [
        ("vllm/vllm-openai:v0.8.2", ("--quantization", "fp8"), "fp8", True),
        ("vllm/vllm-openai:v0.10.1", ("--quantization=AWQ",), "awq", False),
        ("vllm/vllm-openai:v0.10.1", ("-q", "gptq_marlin"), "gptq_marlin", False),
        ("vllm/vllm-openai:v0.15.1", ("--quantization=fp8",), "fp8", False),
        ("vllm/vllm-openai:v0.32.0", ("--quantization=fp8",), "", False),
        ("vllm/vllm-openai:latest", ("--quantization=fp8",), "", False),
        ("lmsysorg/sglang:v0.4", ("--quantization", "fp8"), "", False),
        ("vllm/vllm-openai:v0.8.2", (), "", True),
    ],
)
def test_the_method_of_quantisation_that_an_option_names(
    image: str, args: tuple[str, ...], method: str, bfloat16: bool
) -> None:
    given = {"name": "c", "image": image, "args": ["--model=org/granite-3b", *args]}
    found, _ = parse_container(Fields(given), init=False, host_network=False)
    assert (found.quantization, found.vllm_bfloat16) == (method, bfloat16)
    assert (found.model_billions is None) is any(word.startswith(("--q", "-q")) for word in args)


@pytest.mark.parametrize(
    ("command", "gibibytes"),
    [
        ("vllm serve meta-llama/Llama-3.1-8B-Instruct", 16),
        ("vllm serve meta-llama/Meta-Llama-3.1-8B", 16),
        ("vllm serve RedHatAI/Llama-3.3-70B-Instruct-FP8-dynamic", 40),
        ("vllm serve deepseek-ai/DeepSeek-R1-Distill-Llama-70B", 40),
        ("vllm serve meta-llama/Llama-3.2-1B-Instruct", 4),
        ("vllm serve meta-llama/Llama-3.1-8B-Instruct --kv-cache-dtype=fp8", 8),
        ("vllm serve meta-llama/Llama-3.1-8B-Instruct --max-model-len=8192", 0),
        ("vllm serve meta-llama/Llama-3.1-8B-Instruct --max_model_len 8192", 0),
        ("vllm serve meta-llama/Meta-Llama-3-8B-Instruct", 0),
        ("python -m sglang.launch_server --model-path meta-llama/Llama-3.1-8B-Instruct", 0),
        ("python train.py --engine=vllm --model meta-llama/Llama-3.1-8B-Instruct", 0),
        ("vllm serve Qwen/Qwen3-8B", 0),
    ],
)
def test_the_kv_cache_for_the_context_that_vllm_takes_from_a_model(command: str, gibibytes: int) -> None:
    found, _ = parse_container(Fields({"name": "c", "args": [command]}), init=False, host_network=False)
    assert found.model_context == gibibytes * 2**30


@pytest.mark.parametrize("field", ["args", "command", "env"])
def test_nothing_of_arguments_and_variables_is_kept(field: str) -> None:
    """Words that look like the name of a model may be a secret: it would stand in the advice of `plan` and `lint`."""
    secret = "sk-ant-api03-XyZ_9b-abcdef"
    given = [{"name": "TOKEN", "value": secret}] if field == "env" else [f"--token={secret}"]
    found, _ = parse_container(Fields({"name": "c", field: given}), init=False, host_network=False)
    assert "sk-ant" not in repr(found)


def test_a_model_is_looked_for_in_the_first_4000_characters() -> None:
    """Every pod of a cluster is read so: a script of a megabyte costs no more than a short one."""
    for before, expected in ((3_000, 32), (5_000, None)):
        script = f"{'echo hello; ' * (before // 12)}vllm serve Qwen/Qwen3-32B; {'echo hello; ' * 1_000}"
        given = {"name": "c", "command": ["sh", "-c", script]}
        found, _ = parse_container(Fields(given), init=False, host_network=False)
        assert found.model_billions == expected


@pytest.mark.parametrize(
    ("arguments", "beside", "quantized"),
    [
        (["--url", "http://127.0.0.1:8000/v1", "--model", "Qwen3-8B"], True, False),
        (["--url=http://localhost:8000/v1", "--model=Qwen3-8B"], True, False),
        (["--url=http://vllm:8000/v1", "--model=Qwen3-8B"], False, False),
        (["--model=Qwen3-8B-GPTQ"], False, True),
        (["--model=Qwen3-8B-AWQ"], False, False),
        (["--quantization=fp8"], False, True),
        (["--model=gpt-oss"], False, True),
    ],
)
def test_clients_of_a_server_in_the_pod_and_fewer_bits(arguments: list[str], beside: bool, quantized: bool) -> None:
    found, _ = parse_container(Fields({"name": "c", "args": arguments}), init=False, host_network=False)
    assert (found.model_beside, found.quantized) == (beside, quantized)


@pytest.mark.parametrize(
    ("text", "share"),
    [
        ("vllm serve org/m-7b --gpu-memory-utilization=0.35", 0.35),
        ("vllm serve org/m-7b --gpu_memory_utilization .5", 0.5),
        ("vllm serve org/m-7b", 0),
    ],
)
def test_the_share_of_the_memory_that_vllm_takes(text: str, share: float) -> None:
    found, _ = parse_container(Fields({"name": "c", "args": [text]}), init=False, host_network=False)
    assert found.memory_share == share
