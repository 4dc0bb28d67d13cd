"""KServe (serving.kserve.io): the pods of an InferenceService and of an LLMInferenceService.

Ported rules: kserve/kserve v0.20, pkg/apis/serving/v1beta1 and v1alpha2, components/predictor.go of the controller of
InferenceServices, config/configmap/inferenceservice.yaml, and of the webhook that mounts a model's
PersistentVolumeClaim, pkg/webhook/admission/pod/storage_initializer_injector.go. The ServingRuntime that a service
names, and the LLMInferenceServiceConfigs of `baseRefs`, are merged before (`manifests.merged`) as far as they are in
the files. Of others nothing is read: a warning says so, and where they may ask for the devices, pods have it as
`unread`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from autoscaler.kube.containers import named_model
from autoscaler.kube.fields import Fields
from autoscaler.kube.workloads.controllers import expander
from autoscaler.kube.workloads.stamping import MOST_PODS, Expansion, SpecAsTemplate, Workload, count, stamp
from autoscaler.model.pod import Unread
from instance_catalog.dataclass import replace
from instance_catalog.diagnostic import Path
from instance_catalog.kubernetes import labels as keys

_COMPONENTS: Final = ("predictor", "transformer", "explainer")
# Fields of a component that hold the container of a model server.
_SERVERS: Final = (
    *("model", "sklearn", "xgboost", "tensorflow", "pytorch", "triton", "onnx", "huggingface", "pmml", "lightgbm"),
    *("paddle", "art"),
)
# Fields of a model server that are no fields of a container.
OF_MODELS: Final = frozenset(
    {
        *("modelFormat", "runtime", "storageUri", "runtimeVersion", "protocolVersion", "storage", "confidential"),
        *("config", "type"),
    }
)
# Fields of a component that are no fields of a pod.
_OF_COMPONENTS: Final = (
    *("annotations", "autoScaling", "batcher", "canaryTrafficPercent", "containerConcurrency", "deploymentStrategy"),
    *("labels", "logger", "maxReplicas", "minReplicas", "name", "scaleMetric", "scaleMetricType", "scaleTarget"),
    *("storageContainerName", "storageUris", "timeout", "workerSpec"),
)
_OF_WORKERS: Final = ("pipelineParallelSize", "tensorParallelSize")
# A marker for `model_billions` of a container: no pod has all of the weights.
_SPREAD: Final = ("pipeline-parallel",)
# What serves the model of an LLMInferenceService: KServe's own configs have images of llm-d
# (config/llmisvc/config-llm-template.yaml, read 2026-11), which began in 2025-05, so with a vLLM after 0.8.5.
_VLLM: Final = "vllm:0.9"
# The resources that KServe gives to the container of a model server without any (inferenceService.resource of its
# ConfigMap).
_DEFAULTS: Final = {"cpu": "1", "memory": "2Gi"}
_LLM_IGNORED: Final = ("baseRefs", "model", "router", "storageInitializer", "tracing")
_PODS: Final = "give the pods that KServe makes instead (kubectl get pods -o yaml)"
_GPU: Final = "nvidia.com/gpu"
_RUNTIMES: Final = "kubectl get servingruntimes,clusterservingruntimes -A -o yaml"
_CONFIGS: Final = "kubectl get llminferenceserviceconfigs -A -o yaml"
STORAGE: Final = "STORAGE_URI"  # the variable by which a container of one's own names its model
_CLAIM: Final = "pvc://"


@expander
def expand_inference_service(fields: Fields, workload: Workload) -> Expansion:
    """The pods of an InferenceService: <service>-predictor-<index>, and those of its transformer and explainer."""
    spec, found = fields.child("spec"), Expansion()
    for part in _COMPONENTS:
        if part in spec:
            found += _component(spec.child(part), workload, part)
    spec.unread()
    return found


@expander
def expand_llm_inference_service(fields: Fields, workload: Workload) -> Expansion:
    """The pods of an LLMInferenceService: <service>-kserve-<group>, workers <service>-kserve-<group>-<1 … size-1>, and
    the same of its prefill. The router's scheduler requests no device."""
    spec = fields.child("spec")
    spec.ignore(*_LLM_IGNORED)
    claims = sorted(name for name in workload.metadata.annotations if name.startswith(keys.KSERVE_CLAIM_PREFIX))
    if claims:
        message = "KServe makes a ResourceClaimTemplate of it, which the files lack"
        fields.child("metadata").child("annotations").error(claims[0], message, f"{_PODS}, with their claims")
    model = spec.child("model")
    found = _llm_workload(spec, workload, "kserve", model)
    if "prefill" in spec:
        prefill = spec.child("prefill")
        found += _llm_workload(prefill, workload, "kserve-prefill", model)
        prefill.unread()
    names = _missing(spec)
    if names:
        given = f"give it with -f (`{_CONFIGS}`), or {_PODS}"
        found = _adding(found, Unread(f"LLMInferenceServiceConfig {names}", given), spec, "template")
    else:
        _warn_of(Unread("KServe's own configs", f"if there are any, {_PODS}"), spec, "template")
    spec.unread()
    return found


def _llm_workload(spec: Fields, workload: Workload, part: str, model: Fields) -> Expansion:
    """A Deployment, or LeaderWorkerSets of a leader (`template`) and its workers (`worker`)."""
    spec.ignore("kvCacheOffloading", "rolloutStrategy")
    scaling, parallel = spec.child("scaling"), spec.child("parallelism")
    groups = count(scaling, "minReplicas", 1) if scaling else count(spec, "replicas", 1)
    data, local = parallel.integer("data", 1), parallel.integer("dataLocal", 1)
    size = max(data // max(local, 1), parallel.integer("pipeline", 1), 1) if "worker" in spec else 1
    if groups * size > MOST_PODS:
        spec.error("replicas", f"more than {MOST_PODS} pods", "plan for fewer pods at a time")
        groups = 0
    if "template" not in spec:
        spec.error(
            "template", "is not here, so LLMInferenceServiceConfigs say what its pods are", _added(_missing(spec))
        )
        groups = 0
    name = f"{workload.metadata.name}-{part}"
    leaders = [f"{name}-{group}" for group in range(groups)]
    workers = [f"{name}-{group}-{index}" for group in range(groups) for index in range(1, size)]
    labels, annotations = spec.text_map("labels"), spec.text_map("annotations")
    found = Expansion()
    for field, pods in (("template", leaders), ("worker", workers)):
        if field in spec:
            given = spec.raw(field)
            if isinstance(given, dict):
                containers = given.get("containers")
                sources = _SPREAD if "worker" in spec else _llm_sources(model, containers)
                given = {**given, "containers": of_model(containers, sources)}
                given = _mounted(given, _named_claim(Fields({"uri": model.raw("uri")}), "uri"))
            template = SpecAsTemplate(given, labels, annotations, spec, field)
            found += stamp(template, workload, pods)
    return found


def _llm_sources(model: Fields, containers: object) -> tuple[object, ...]:
    """The source of the model, with its name where that says no size, such as the path of a volume; and vLLM,
    unless the first container has an image that is not of llm-d."""
    uri, name = model.raw("uri"), model.raw("name")
    first = containers[0] if isinstance(containers, list) and containers else None
    image = Fields(first).raw("image")
    server = (_VLLM,) if not image or "llm-d" in str(image) else ()
    sized = isinstance(uri, str) and named_model(f"{_VLLM} {uri}").billions is not None
    return (uri, *(() if sized else (name,)), *server)


def _component(part: Fields, workload: Workload, kind: str) -> Expansion:
    """The pods of one component, including the head and the workers of a predictor with a workerSpec."""
    given = {name: part.raw(name) for name in part.names()}
    pod_spec = {name: value for name, value in given.items() if name not in (*_OF_COMPONENTS, *_SERVERS)}
    server = next((name for name in _SERVERS if isinstance(given.get(name), dict)), "")
    if server:
        others = pod_spec.get("containers")
        pod_spec["containers"] = [_served(given[server]), *(others if isinstance(others, list) else [])]
    elif isinstance(own := pod_spec.get("containers"), list) and own and isinstance(own[0], dict):
        pod_spec["containers"] = [_named(own[0]), *own[1:]]
    own = sources_of(part, server)
    pod_spec["containers"] = of_model(pod_spec.get("containers"), _SPREAD if "workerSpec" in part else own)
    pod_spec = _mounted(pod_spec, _claims_of(part))
    labels = {**part.text_map("labels"), keys.KSERVE_SERVICE: workload.metadata.name, "component": kind}
    name, pods, workers = f"{workload.metadata.name}-{kind}", _least(part), Expansion()
    if "workerSpec" in part:
        rest, workers = _workers(part.child("workerSpec"), workload, f"{name}-worker", labels)
        pods, pod_spec["containers"] = 1, _with_gpus(pod_spec.get("containers"), rest)
    template = SpecAsTemplate(pod_spec, labels, part.text_map("annotations"), part)
    found = stamp(template, workload, [f"{name}-{index}" for index in range(pods)]) + workers
    if not server:
        return found
    return _adding(found, _runtime_of(part.child(server), server), part, server)


def _adding(found: Expansion, unread: Unread, at: Fields, field: str) -> Expansion:
    """The pods to which something adds that was not read: those that ask for no device by themselves have it as
    `unread`, because it may ask for one."""
    if any(pod.asks_for_devices for pod in found.pods):
        _warn_of(unread, at, field)
    return replace(
        found, pods=tuple(pod if pod.asks_for_devices else replace(pod, unread=unread) for pod in found.pods)
    )


def _runtime_of(model: Fields, server: str) -> Unread:
    name = model.raw("runtime")
    if isinstance(name, str) and name:
        return Unread(f"ServingRuntime {name}", f"give it with -f (`{_RUNTIMES}`), or {_PODS}")
    form = Fields(model.raw("modelFormat")).raw("name")
    of = form if isinstance(form, str) and form else server
    step = f"name it in spec.predictor.model.runtime, and give it with -f (`{_RUNTIMES}`), or {_PODS}"
    return Unread(f"the ServingRuntime that KServe chooses for models of format {of}", step)


def _workers(spec: Fields, workload: Workload, name: str, labels: Mapping[str, str]) -> tuple[int, Expansion]:
    """The GPUs of the head, and the workers: as many nodes as the GPUs of all need if each has those of one worker, and
    the head has the rest (computeRayNodeAndGPUs)."""
    total = count(spec, "tensorParallelSize", 1) * count(spec, "pipelineParallelSize", 1)
    each = _gpus(spec.raw("containers"))
    if not each:
        message = "does not say how many GPUs a worker has: KServe takes that from the ServingRuntime"
        spec.error("containers", message, f"write {_GPU} into the resources of its container, or {_PODS}")
        return 0, Expansion()
    nodes = -(-total // each)
    if nodes > MOST_PODS:
        spec.error("pipelineParallelSize", f"more than {MOST_PODS} pods", "plan for fewer pods at a time")
        nodes = 1
    pod_spec = {field: spec.raw(field) for field in spec.names() if field not in _OF_WORKERS}
    pod_spec["containers"] = of_model(pod_spec.get("containers"), _SPREAD)
    template = SpecAsTemplate(pod_spec, {**labels, "component": "worker"}, {}, spec)
    workers = stamp(template, workload, [f"{name}-{index}" for index in range(nodes - 1)])
    return max(total - each * (nodes - 1), 1), workers


def _least(part: Fields) -> int:
    """The least number of pods of the component; for one that scales to zero, the pod of its first request."""
    least = part.optional_integer("minReplicas")
    if least == 0:
        step = "set minReplicas to as many as you expect to plan for them"
        part.warn("minReplicas", "0: planned for the one pod that the first request starts", step)
    return count(part, "minReplicas", 1) if least else 1


def _served(server: object) -> dict[str, object]:
    """The container of a model server, with KServe's resources if it has none."""
    given = server if isinstance(server, dict) else {}
    container = _named({key: value for key, value in given.items() if key not in OF_MODELS})
    resources = container.get("resources", {})
    if isinstance(resources, dict):
        asked = resources.get("requests", {})
        named = {*(asked or {}), *(resources.get("limits") or {})}
        missing = {name: amount for name, amount in _DEFAULTS.items() if name not in named}
        requests = {**missing, **asked} if isinstance(asked, dict) else asked
        container["resources"] = {**resources, "requests": requests}
    return container


def _named(container: Mapping[str, object]) -> dict[str, object]:
    """The container with KServe's name if it has none, or the empty one that dashboards write."""
    return {**container, "name": container.get("name") or "kserve-container"}


def sources_of(part: Fields, server: str) -> tuple[object, ...]:
    """The sources of a component's model, and the names of its server: runtimes and formats are named after servers."""
    model = part.child(server) if server else Fields({})
    several = part.raw("storageUris")
    uris = [one.get("uri") for one in several if isinstance(one, dict)] if isinstance(several, list) else []
    serving = Fields(model.raw("modelFormat")).raw("name"), model.raw("runtime")
    return model.raw("storageUri"), Fields(model.raw("storage")).raw("path"), *uris, *serving


def model_claims(service: Fields) -> Iterator[tuple[Path, str]]:
    """The PersistentVolumeClaims from which a service loads its models, with the fields that name them."""
    spec = service.child("spec")
    yield from _named_claim(spec.child("model"), "uri")
    for part in _COMPONENTS:
        yield from _claims_of(spec.child(part))


def _claims_of(part: Fields) -> Iterator[tuple[Path, str]]:
    for server in _SERVERS:
        yield from _named_claim(part.child(server), "storageUri")
    for entry in part.children("storageUris"):
        yield from _named_claim(entry, "uri")
    for container in part.children("containers"):
        for variable in container.children("env"):
            if variable.text("name") == STORAGE:
                yield from _named_claim(variable, "value")


def _named_claim(fields: Fields, field: str) -> Iterator[tuple[Path, str]]:
    """Of pvc://<name>/<path>."""
    uri = fields.raw(field)
    if isinstance(uri, str) and uri.startswith(_CLAIM):
        yield (*fields.path, field), uri.removeprefix(_CLAIM).partition("/")[0]


def _mounted(pod_spec: dict[str, object], claims: Iterable[tuple[Path, str]]) -> dict[str, object]:
    """The pod's spec with the volumes of these claims, as the webhook of KServe mounts them."""
    volumes, names = pod_spec.get("volumes") or [], dict.fromkeys(name for _, name in claims if name)
    if not names or not isinstance(volumes, list):
        return pod_spec
    added = [{"name": f"model-{name}", "persistentVolumeClaim": {"claimName": name}} for name in names]
    return {**pod_spec, "volumes": [*volumes, *added]}


def of_model(containers: object, sources: tuple[object, ...]) -> object:
    """The containers, with the sources of the model as variables of the first one, where other workloads name them.
    Only the number of parameters is read from them (`Container.model_billions`)."""
    if not isinstance(containers, list) or not containers or not isinstance(containers[0], dict):
        return containers
    env = containers[0].get("env") or []
    named = [{"name": "MODEL", "value": one} for one in sources if isinstance(one, str)]
    return [{**containers[0], "env": [*named, *env]}, *containers[1:]] if isinstance(env, list) else containers


def _gpus(containers: object) -> int:
    """The number of GPUs that the first container requests."""
    first = containers[0] if isinstance(containers, list) and containers else None
    resources = Fields(first).child("resources")
    amounts = [Fields(resources.raw(name)).quantity(_GPU) for name in ("requests", "limits")]
    return next((amount.ceil() for amount in amounts if amount is not None), 0)


def _with_gpus(containers: object, number: int) -> object:
    """The containers, with that many GPUs in the first one if it requests none."""
    if not isinstance(containers, list) or not containers or not isinstance(containers[0], dict) or _gpus(containers):
        return containers
    resources = containers[0].get("resources") or {}
    limits = {**(resources.get("limits") or {}), _GPU: number}
    return [{**containers[0], "resources": {**resources, "limits": limits}}, *containers[1:]]


def _missing(spec: Fields) -> str:
    """The configs that baseRefs name and the files lack."""
    return ", ".join(one.text("name") for one in spec.children("baseRefs"))


def _added(configs: str) -> str:
    return f"add LLMInferenceServiceConfig {configs} to the files, or {_PODS}" if configs else _PODS


def _warn_of(unread: Unread, at: Fields, field: str) -> None:
    message = (
        f"planned with what is written here: nothing of {unread.what} is read, neither cpu, memory and GPUs nor node "
        "selectors, tolerations and replicas"
    )
    at.warn(field, message, unread.step)
