"""The parts of containers that decide where a pod fits: effective requests, host ports, claims used."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from autoscaler.kube.fields import Fields
from autoscaler.model.pod import Container, HostPort
from autoscaler.model.requests import NOTHING, together
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.quantity import Quantity

_IGNORED = (
    "args",
    "command",
    "env",
    "envFrom",
    "lifecycle",
    "livenessProbe",
    "readinessProbe",
    "resizePolicy",
    "securityContext",
    "startupProbe",
    "stdin",
    "stdinOnce",
    "terminationMessagePath",
    "terminationMessagePolicy",
    "tty",
    "volumeDevices",
    "volumeMounts",
    "workingDir",
)
# Only these resources have a pod-level default from pod-level limits (pkg/apis/core/v1/defaults.go, v1.36.3).
_POD_LEVEL = ("cpu", "memory")
_ZERO = Quantity.of(0)
_WHOLE: Final = 16  # bits of weights that nobody made smaller
# DeepSeek-V3 and its like, whose cache is small, in the bits in which they are published.
_LATENT: Final = 8
_OF_LATENT: Final = re.compile(r"(?i)deepseek-(?:v3|r1)|kimi-k2")
_WORD: Final = re.compile(r"[A-Za-z][\w.-]*")
# Qwen3-32B and llama-3.1-8b-instruct; Mixtral-8x7B and gemma-3n-E4B have another meaning.
_SIZE: Final = re.compile(r"[-_.]([0-9]{1,4}(?:\.[0-9]{1,2})?)[bB](?![A-Za-z0-9])")
# Weights in fewer than 16 bits, or of a model that is published so.
_SMALLER: Final = re.compile(
    r"(?i)awq|gptq|fp8|fp4|int4|int8|[48]-?bit|w[48]a(?:8|16)|gguf|bnb|bitsandbytes|quantiz|-q[48]|ollama"
    # Published so (2026-11), beside those in _PUBLISHED: Kimi-K2.6 in INT4 (llm-compressor 0.11, "Kimi-K2.6 FP8 Block
    # Example"), Kimi-K3 in MXFP4 (card of Radioheading/Kimi-K3-W4AFP8). Of other variants of DeepSeek it is not known.
    r"|deepseek-(?:v3|r1)(?!-distill)|kimi-k[23]"
)
# How many bits the weights have, in a name with the size of a model. 0: that stays open, or they need not be on GPUs;
# the size before a number of experts (Llama-4-Scout-17B-16E) is what is active.
_BITS: Final = (
    (re.compile(r"(?i)gguf|ollama|-q[48]|[-_][0-9]+e(?![a-z0-9])"), 0),
    (re.compile(r"(?i)awq|fp4|int4|w4a(?:8|16)|4-?bit"), 4),
    (re.compile(r"(?i)fp8|int8|w8a(?:8|16)|8-?bit"), 8),
)
# A model in FP8 whose name may say no size; options begin with a dash.
_NAMED_FP8: Final = re.compile(r"(?i)(?<![\w.-])[a-z][\w.]*(?:-[\w.]+)*-fp8(?![a-z0-9])")
_QUANTIZE: Final = re.compile(r"(?i)--quantize[ =]\S+")  # Text Generation Inference's option for the same
_KV_CACHE: Final = re.compile(r"(?i)kv[-_]cache[-_]dtype\W{1,4}\S+")  # nothing about weights
# Published with weights of 4 bits, which no server makes smaller: in MXFP4 (model card of openai/gpt-oss-20b, 2026-11).
_FOUR_BITS: Final = re.compile(r"(?i)gpt-oss")
# Models whose names say no size, or only what is active of it: the billions of parameters and the bits with which they
# are published. Another word or a tag behind the name makes it another model. Sources, read 2026-11: DeepSeek-V3:
# README_WEIGHTS.md and tag fp8 of deepseek-ai/DeepSeek-V3; R1: README.md of deepseek-ai/DeepSeek-R1, which says that
# it is trained from V3; V3.1: "DeepSeek V3/V3.1/R1 Usage" of SGLang, which runs the three alike. Kimi-K2: README.md of
# MoonshotAI/Kimi-K2 ("1T", "block-fp8"). Llama 4: models/llama4/MODEL_CARD.md of meta-llama/llama-models; Maverick is
# published in FP8 as well, and named so. DeepSeek-V4: recipes.vllm.ai (1.6T) and vLLM's API page of deepseek_v4
# (experts in FP4, the rest in FP8: 4 bits are the least), Flash: page of OpenRouter (284B). Kimi-K2-Thinking:
# Kimi-K2-Think.md of vllm-project/recipes (INT4); K2.5 and K2.6: Unsloth's guides (1T in 600 GB). MiniMax-M2:
# Xinference's page (230B) and docs/vllm_deploy_guide.md of MiniMaxAI/MiniMax-M2.5 (220 GB for each of the three).
# GLM-4.5: README.md of zai-org/GLM-4.5; 4.6: collection glm-46 of zai-org. Mistral Large, Phi-4: pages of Ollama's
# library; Phi-4-reasoning: page of OpenRouter; Command R: cards of CohereForAI.
_PUBLISHED: Final = tuple(
    (re.compile(rf"(?i)(?<![\w.-])(?:{name})(?![\w.:-])"), billions, bits)
    for name, billions, bits in (
        (r"deepseek-(?:v3(?:\.1)?|r1)(?:-(?:base|zero|0324|0528|terminus|671b))*", 671, 8),
        (r"deepseek-v4-flash", 284, 4),
        (r"deepseek-v4-pro", 1600, 4),
        (r"kimi-k2(?:-(?:base|instruct|0905))*", 1000, 8),
        (r"kimi-k2(?:-thinking|\.[56])", 1000, 4),
        (r"minimax-m2(?:\.[15])?", 230, 8),
        (r"glm-4\.5(?:-base)?", 355, 16),
        (r"glm-4\.5-air(?:-base)?", 106, 16),
        (r"glm-4\.6", 357, 16),
        (r"mistral-large-instruct-24(?:07|11)", 123, 16),
        (r"c4ai-command-r-plus", 104, 16),
        (r"c4ai-command-r-v01", 35, 16),
        (r"phi-4(?:-reasoning(?:-plus)?)?", 14, 16),
        (r"llama-4-scout-17b-16e(?:-instruct)?", 109, 16),
        (r"llama-4-maverick-17b-128e(?:-instruct)?", 400, 16),
    )
)
# Models with a long context, by their layers and the bytes that each of these keeps of a token: 8 heads of 128 values
# (64 in 3.2-1B) of 16 bits for keys, and as many for values. Sources, read 2026-11: Llama 3.1:
# configs/recipes/llama3_1/README.md of oumi-ai/oumi; 3.2-1B: hf_llama/llama_config.py of
# kevinstephano/thunder_model_blocks, a copy of its config.json. 3.3 is as 3.1, and DeepSeek trained its models of these
# sizes from both (README.md of deepseek-ai/DeepSeek-R1).
_CONTEXTS: Final = tuple(
    (re.compile(rf"(?i)(?:{name})(?![\w.])"), layers * kept)
    for name, layers, kept in (
        (r"llama-3[.-]1-8b|r1-distill-llama-8b", 32, 2 * 8 * 128 * 2),
        (r"llama-3[.-][13]-70b|r1-distill-llama-70b", 80, 2 * 8 * 128 * 2),
        (r"llama-3[.-]2-1b", 16, 2 * 8 * 64 * 2),
    )
)
CONTEXT_TOKENS: Final = 131_072  # of the context of all of them
_SHORTER: Final = re.compile(r"(?i)max[-_]model[-_]len")
_CACHE_OF_8_BITS: Final = re.compile(r"(?i)kv[-_]cache[-_]dtype\W{1,4}(?:fp8|int8)")
# The value is a format of tool calls or of reasoning, which has the name of a model.
_PARSER: Final = re.compile(r"(?i)-parser[ =]\S+")
# Not all of the weights are on GPUs: options of vLLM and of Transformers.
_OFFLOADED: Final = re.compile(r"(?i)cpu[-_]offload|offload_folder")
# One pod has not all of the weights on its GPUs: options of vLLM, SGLang and torchrun.
_SPREAD: Final = re.compile(
    r"(?i)pipeline[-_]parallel|nnodes|node[-_]rank|dist-init-addr|data[-_]parallel[-_](?:address|start[-_]rank)"
)
# An address of a server in the same pod.
_BESIDE: Final = re.compile(r"https?://(?:127\.0\.0\.1|localhost)\b")
# Programs that serve models, and their specific options.
_SERVER: Final = re.compile(
    r"(?i)vllm|ray\.serve\.llm|sglang|lmdeploy|text-generation-inference|\btgis?(?![a-z0-9])"
    r"|--(?:served-model-name|max-model-len|max-num-seqs)\b"
)
# A command with both options serves a model, too.
_MODEL: Final = re.compile(r"--model(?:-id|-path)?[ =]")
_PORT: Final = re.compile(r"--port[ =]")
# Excluded even with such a program: reinforcement learning generates with vLLM.
_TRAINING: Final = re.compile(
    r"(?i)(?<![a-z])train(?:er|ing)?(?![a-z])|fine-?tun(?:e(?!d)|ing)|torchrun|accelerate|deepspeed(?!-)"
    r"|(?<![a-z])(?:verl|trl|grpo|sft)(?![a-z])"
)
# More than the share of memory that vLLM takes by default, or a share that does not show how much memory it has.
_OWN_SHARE: Final = re.compile(
    r"(?i)gpu[-_]memory[-_]utilization\W{1,4}(?:0?\.9[3-9]|1)|kv[-_]cache[-_]memory|mem(?:ory)?[-_]fraction"
)
_SHARE: Final = re.compile(r"(?i)gpu[-_]memory[-_]utilization\W{1,4}(0?\.[0-9]+)")
_VLLM: Final = re.compile(r"(?i)vllm|--max-model-len\b|--max-num-seqs\b")
# Another type than bfloat16, or an image of vLLM since 0.8.5, which falls back to float16 by itself on older GPUs
# (vllm-project/vllm pull request 17265, merged 2025-04, after 0.8.4). NVIDIA's image counts by years (25.09).
# Dynamo's images (vllm-runtime) count by its own versions: since 0.6.0 they have vLLM 0.11.0 or later
# (docs/reference/support-matrix.md of ai-dynamo/dynamo, which lists none before, read 2026-11).
_NO_BFLOAT16: Final = re.compile(
    r"(?i)dtype\W{1,4}(?:half|float)"
    r"|vllm-runtime[\w.-]{0,20}:v?(?:0\.(?:[6-9]|[1-9]\d)|[1-9]\d*\.)"
    r"|vllm(?![\w/.-]*-runtime)[\w/.-]{0,60}:v?(?:0\.8\.(?:[5-9]|[1-9]\d)|0\.(?:9|[1-9]\d)|[1-9]\d*\.|latest|nightly)"
    r"|vllm-openai(?:\s|$)"
)
_QUANTIZATION: Final = re.compile(r"(?i)(?:--quantization|(?<!\S)-q)[ =]([a-z][\w-]*)")
# Images of vLLM whose fp8 runs on GPUs of 7.5 with the weights alone in 8 bits (page "FP8 W8A8" of its documentation
# for 0.32; for 0.15.1 the table on "Quantization" has fp8 on Ampere and later only; both read 2026-11).
# Red Hat's images (vllm-cuda-rhel9) and Dynamo's count by versions of their own.
_FP8_ON_TURING: Final = re.compile(
    r"(?i)vllm(?![\w/.-]*-(?:rhel|runtime))[\w/.-]{0,60}:v?(?:0\.(?:3[2-9]|[4-9]\d)|[1-9]\d?\.|latest|nightly)"
    r"|vllm-openai(?:\s|$)"
)
# Asked for by an option, no version replaces it: the fallback is that of `auto` (the same pull request).
_BFLOAT16: Final = re.compile(r"(?i)--dtype[ =]bfloat16\b")
# Characters of commands, arguments and variables that are searched for a model: this runs for every pod of a cluster.
_MOST_TEXT: Final = 4_000


def parse_container(fields: Fields, *, init: bool, host_network: bool) -> tuple[Container, tuple[str, ...]]:
    """A container and the names of its unknown fields."""
    fields.ignore(*_IGNORED)
    resources = fields.child("resources")
    limits, requests = _amounts(resources)
    model = _model(fields)
    container = Container(
        name=fields.required("name"),
        requests=FrozenMap({**limits, **requests}),  # a limit without a request is one (the API server's default)
        sidecar=init and fields.text("restartPolicy") == "Always",
        host_ports=tuple(_host_ports(fields, host_network=host_network)),
        claims=tuple(entry.text("name") for entry in resources.children("claims")),
        image=fields.text("image"),
        never_pulls=fields.text("imagePullPolicy") == "Never",
        model_billions=model.billions,
        model_bits=model.bits,
        model_spread=model.spread,
        model_beside=model.beside,
        quantized=model.quantized,
        serves_model=model.serves,
        vllm_bfloat16=model.bfloat16,
        quantization=model.quantization,
        model_latent=model.latent,
        memory_share=model.share,
        model_context=model.context,
        restarts_all=any(
            rule.text("action") == "RestartAllContainers" for rule in fields.children("restartPolicyRules")
        ),
        limits=limits,
    )
    fields.ignore("restartPolicy")
    return container, (*resources.unread(), *fields.unread())


def resource_list(fields: Fields, name: str) -> FrozenMap[str, Quantity]:
    """A ResourceList as the API server stores it: rounded up to thousandths (core/v1 defaults.go, v1.36.3)."""
    found = fields.quantities(name)
    return FrozenMap({key: q if q.scale >= -3 else Quantity(q.milli(), -3, q.format) for key, q in found.items()})


class NamedModel(NamedTuple):
    """The facts about a model in a text, as the fields of a Container."""

    billions: float | None = None
    bits: int = 16
    spread: bool = False
    beside: bool = False
    quantized: bool = False
    serves: bool = False
    bfloat16: bool = False
    quantization: str = ""
    latent: bool = False
    share: float = 0
    context: int = 0


def _model(fields: Fields) -> NamedModel:
    """The number of parameters, in billions, of the largest model that the container's command, arguments or variables
    name with its size, such as Qwen3-32B; if other pods may have a part of it; if it asks a server in its own pod for
    it; if they speak of fewer bits; if a model server loads it; and if that is vLLM with bfloat16. None if they name no
    model, or do not say how many bits its weights have if these are fewer, or if they are not all on GPUs."""
    found, left = list[str](), _MOST_TEXT
    for text in _texts(fields):
        found.append(text[:left])
        left -= len(text)
        if left <= 0:
            break
    return named_model(" ".join(found))


@lru_cache(maxsize=256)
def named_model(text: str) -> NamedModel:
    """The same for their text, which pods of one workload share."""
    known = _SERVER.search(text) or (_MODEL.search(text) and _PORT.search(text))
    serves = bool(known) and not _TRAINING.search(text)
    published, rest = _published(_PARSER.sub(" ", text), serves=serves)
    words, four = [word for word in _WORD.findall(rest) if _SIZE.search(word)], bool(_FOUR_BITS.search(text))
    bits = _bits(words, rest)
    asked = bool(_BFLOAT16.search(text)) or not _NO_BFLOAT16.search(text)
    bfloat16 = serves and bool(_VLLM.search(text)) and asked
    sizes = [(float(size[1]), 4 if four else bits) for word in words if (size := _SIZE.search(word))] + published
    method = _method(text) if bits < _WHOLE and serves and _VLLM.search(text) else ""
    found = NamedModel(bfloat16=bfloat16 and bool(method), quantization=method)
    if not sizes or not bits or _OFFLOADED.search(text):
        return found._replace(quantized=not bits or four)
    billions, bits = largest = max(sizes)
    return found._replace(
        billions=billions,
        bits=bits,
        spread=bool(_SPREAD.search(text)),
        beside=bool(_BESIDE.search(text)),
        serves=serves and not _OWN_SHARE.search(text),
        share=min((float(share) for share in _SHARE.findall(text)), default=0),
        latent=largest in published and bits == _LATENT and bool(_OF_LATENT.search(text)),
        context=_context(text) if serves and _VLLM.search(text) else 0,
        bfloat16=found.bfloat16 or (bfloat16 and bits == _WHOLE),
    )


def _context(text: str) -> int:
    """The bytes of vLLM's KV cache for the longest request that the model takes; 0 where that is not known, or an
    option limits it."""
    if _SHORTER.search(text):
        return 0
    largest = max((size for name, size in _CONTEXTS if name.search(text)), default=0)
    return CONTEXT_TOKENS * largest // (2 if _CACHE_OF_8_BITS.search(text) else 1)


def _bits(words: Sequence[str], text: str) -> int:
    """The bits of the weights: 16, or fewer where these names of models in the text say how many; 0 where the text
    speaks of fewer bits and does not say how many."""
    rest = _KV_CACHE.sub(" ", text)
    if not _SMALLER.search(rest):
        return _WHOLE
    smaller = [word for word in words if _SMALLER.search(word)]
    said = [_bits_said(word) for word in smaller]
    rest = _QUANTIZE.sub(" ", _QUANTIZATION.sub(" ", rest))
    for word in smaller:
        rest = rest.replace(word, " ")
    # What repeats a name, such as a variable with the value awq, contradicts nothing.
    agree = all(_bits_said(one[0]) in said for one in _SMALLER.finditer(rest))
    return min(said, default=0) if agree else 0


def _bits_said(word: str) -> int:
    return next((bits for name, bits in _BITS if name.search(word)), 0)


def _published(text: str, *, serves: bool) -> tuple[list[tuple[float, int]], str]:
    """The sizes of the models in _PUBLISHED that the text names, and the text without these names. A name without any
    number counts only of a server, and not beside another size, which may be that of the model: people call the
    distilled ones and their own so, too."""
    found, rest = list[tuple[float, int]](), text
    for name, billions, bits in _PUBLISHED:
        if names := [one[0] for one in name.finditer(text)]:
            without = name.sub(" ", rest)
            sized = any(_SIZE.search(one) for one in names)
            if sized or (serves and not _SIZE.search(without)):
                found.append((billions, bits))
            if found or "distill" in without.lower():
                rest = without
    return found, rest


def _method(text: str) -> str:
    """The method that the option for vLLM names, or fp8 by the name of the model; "" for fp8 where the version needs no
    newer GPU for it than others."""
    found = _QUANTIZATION.search(text)
    method = found[1].lower() if found else "fp8" if _NAMED_FP8.search(_KV_CACHE.sub(" ", text)) else ""
    return "" if method == "fp8" and _FP8_ON_TURING.search(text) else method


def _texts(fields: Fields) -> Iterator[str]:
    yield fields.text("image")
    for name in ("command", "args"):
        given = fields.raw(name)
        yield from (one for one in given if isinstance(one, str)) if isinstance(given, list) else ()
    variables = fields.raw("env")
    for entry in variables if isinstance(variables, list) else ():
        if isinstance(entry, dict) and isinstance(entry.get("value"), str):
            yield entry["value"]


def _amounts(resources: Fields) -> tuple[FrozenMap[str, Quantity], FrozenMap[str, Quantity]]:
    """Limits and requests; those that the API server refuses (validateResourceRequirements, v1.36.3) are errors."""
    limits, requests = resource_list(resources, "limits"), resource_list(resources, "requests")
    for field, amounts in (("limits", limits), ("requests", requests)):
        for name, amount in amounts.items():
            if amount < _ZERO:
                resources.error(field, f"{amount} of {name} is negative", "ask for a positive amount, or leave it out")
            elif _is_extended(name) and amount.milli() % 1000:
                resources.error(field, f"{amount} of {name} is not a whole number", "ask for whole devices")
    for name, wanted in requests.items():
        whole = _is_extended(name) or name.startswith("hugepages-")
        limit = limits.get(name)
        if limit is None and whole:
            message = f"{name} has a request and no limit"
            resources.error("requests", message, "write it under `limits`: the request follows from it")
        elif limit is not None and limit < wanted:
            message = f"request {wanted} of {name} is above its limit {limit}"
            resources.error("requests", message, "raise the limit or lower the request")
        elif limit is not None and whole and limit != wanted:
            message = f"request {wanted} of {name} is not its limit {limit}"
            resources.error("requests", message, "leave the request out: it follows from the limit")
    return limits, requests


def _is_extended(resource: str) -> bool:
    """True for a resource that is counted in whole units, of which a pod gets exactly its request."""
    return "/" in resource and "kubernetes.io/" not in resource


def pod_level_resources(
    resources: Fields | None, containers: Iterable[Container], init_containers: Iterable[Container]
) -> tuple[FrozenMap[str, Quantity] | None, FrozenMap[str, Quantity]]:
    """Pod-level requests (KEP-2837) and limits; None and nothing without any pod-level resources.

    If there is a limit, the sum of the containers' requests replaces a missing request, or else the limit does
    (defaultPodRequests in pkg/apis/core/v1/defaults.go, v1.36.3).
    """
    if resources is None:
        return None, NOTHING
    limits, requests = _amounts(resources)
    if not limits and not requests:
        return None, NOTHING
    resources.unread()
    if not limits:
        return requests, NOTHING
    asked = {name: amount for name, amount in together(containers, init_containers).items() if name in _POD_LEVEL}
    defaults = {name: limit for name, limit in limits.items() if name.startswith("hugepages-") or name in _POD_LEVEL}
    return FrozenMap({**defaults, **asked, **requests}), limits


def _host_ports(fields: Fields, *, host_network: bool) -> Iterable[HostPort]:
    for entry in fields.children("ports"):
        entry.ignore("name")
        container_port = entry.integer("containerPort")
        port = entry.integer("hostPort") or (container_port if host_network else 0)
        found = HostPort(port, entry.text("protocol") or "TCP", entry.text("hostIP"))
        entry.unread()
        if port:
            yield found
