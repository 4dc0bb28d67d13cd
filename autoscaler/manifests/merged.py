"""Objects that say only in part what pods they make, completed by templates in the same files that they name.

Ported rules: kubeflow/trainer 8c0f505, pkg/runtime/core/trainingruntime.go and pkg/runtime/framework/plugins (jobset,
plainml, torch, mpi), and 03b37bb, plugins/coscheduling and plugins/volcano (the PodGroup counts all pods of the job),
of a TrainJob and its runtime; kserve/kserve aaac4e2, pkg/controller/v1alpha2/llmisvc/config_merge.go, of an
LLMInferenceService and its `baseRefs`; 00bd5d0, pkg/controller/v1beta1/inferenceservice/utils/utils.go, of an
InferenceService and the ServingRuntime that it names. All merge as `kubectl apply` does for pods: maps by key,
containers, volumes and variables by name, and other lists as a whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from autoscaler.cel.common.evaluation import Account, BudgetSpentError, Purse, on_account, pay
from autoscaler.kube.fields import Fields
from autoscaler.kube.metadata import header
from autoscaler.kube.workloads.serving.kserve import OF_MODELS, STORAGE, of_model, sources_of
from autoscaler.manifests.document import Document
from autoscaler.manifests.documents import EmptyList
from instance_catalog.dataclass import replace
from instance_catalog.diagnostic import Diagnostic, Severity

_Key: TypeAlias = tuple[str, str, str]  # kind, namespace or "", name

TRAINER: Final = "trainer.kubeflow.org"
_RUNTIMES: Final = ("ClusterTrainingRuntime", "TrainingRuntime")
_KSERVE: Final = "serving.kserve.io"
_NIM: Final = "apps.nvidia.com"
_CACHED: Final = "MODEL_OF_NIM_CACHE"  # the variable by which the check of memory sees it; no pod has it
_CONFIG: Final = "LLMInferenceServiceConfig"
_SERVING: Final = ("ServingRuntime", "ClusterServingRuntime")  # in the order in which KServe looks for a name
_CLUSTER_WIDE: Final = ("ClusterTrainingRuntime", "ClusterServingRuntime")
_SERVER: Final = "kserve-container"  # the container of a runtime that serves the model
# Fields of a ServingRuntime that its pods get, besides containers.
_OF_PODS: Final = (
    *("affinity", "annotations", "imagePullSecrets", "labels", "nodeSelector", "resourceClaims", "schedulerName"),
    *("tolerations", "volumes"),
)
_OF_KSERVE: Final = "kserve"  # the namespace of configs that all services may use
_NODE: Final = "node"  # the container, and with MPI the job, that trains
_GPUS: Final = ("nvidia.com/gpu", "amd.com/gpu")
_ANCESTOR: Final = f"{TRAINER}/trainjob-ancestor-step"
# Fields and list entries that are looked at for all objects together: some seconds. A file of 100 kB whose objects
# name one template thousands of times would take minutes, and one of a megabyte hours.
MOST_MERGED: Final = 3_000_000


class _Templates:
    """The objects by key, and which of them completed another one."""

    def __init__(self, found: Mapping[_Key, Fields]) -> None:
        self.found = found
        self.used = set[_Key]()

    def get(self, key: _Key) -> Fields | None:
        if key in self.found:
            self.used.add(key)
        return self.found.get(key)


def merged(read: Sequence[Document | EmptyList | Diagnostic]) -> list[Document | EmptyList | Diagnostic]:
    """The documents, with each TrainJob whose runtime is among them as the JobSet that its controller makes, each
    LLMInferenceService with those of its base configs that are among them, and each InferenceService with the runtime
    that it names: without the runtimes and configs that are in others now. Of too much to merge nothing but that."""
    documents = [one for one in read if isinstance(one, Document)]
    templates = _Templates(dict(_templates(documents)))
    if not templates.found:
        return list(read)
    found: list[Document | EmptyList | Diagnostic] = []
    with on_account(Account(own=0, shared=Purse(MOST_MERGED), most=MOST_MERGED)):
        for one in read:
            if not isinstance(one, Document):
                found.append(one)
                continue
            try:
                made = _completed(one, templates)
                found.append(made)
                if made is not one:
                    found += map(one.located, _too_few_devices(Fields(one.value).child("spec").child("trainer")))
            except BudgetSpentError:
                return [one.located(_too_much())]
    return [one for one in found if not (isinstance(one, Document) and _is_part(one, templates))]


def _is_part(one: Document, templates: _Templates) -> bool:
    """True for a template that is planned with another object; a NIMCache makes pods as well."""
    key = _key(one)
    return key in templates.used and key[0] != "NIMCache"


def _too_much() -> Diagnostic:
    step = "plan for fewer at a time, or give what the controller makes of them: JobSets, Deployments or pods"
    return Diagnostic(f"more than {MOST_MERGED:,} fields to merge with the templates that it and others name", step)


def _too_few_devices(trainer: Fields) -> Iterator[Diagnostic]:
    """A warning for more processes on a node than it has GPUs: NCCL refuses two ranks on one GPU ("Duplicate GPU
    detected", NCCL's init.cc). Words such as "auto" follow what the node has."""
    processes = trainer.raw("numProcPerNode")
    limits = trainer.child("resourcesPerNode").child("limits")
    for name in _GPUS:
        try:
            devices = int(str(limits.raw(name)))
        except ValueError:
            continue
        if type(processes) is int and processes > devices > 0:
            said = (
                f"starts {processes} processes on each node, and a node asks for {devices} {name}: those of NCCL fail"
            )
            step = f"NCCL refuses two on one GPU: set {name} of resourcesPerNode to {processes}, or this to {devices}"
            yield Diagnostic(said, step, ("spec", "trainer", "numProcPerNode"), severity=Severity.WARNING)


def runtime_named(job: Fields) -> tuple[str, str]:
    """Kind and name of the runtime that a TrainJob names."""
    reference = job.child("spec").child("runtimeRef")
    return reference.text("kind", _RUNTIMES[0]), reference.text("name")


def _templates(documents: Iterable[Document]) -> Iterator[tuple[_Key, Fields]]:
    for one in documents:
        if (key := _key(one))[0]:
            yield key, Fields(one.value)


def _key(one: Document) -> _Key:
    """The key of a template; without a kind for other objects."""
    version, kind = header(one.value)
    group = version.partition("/")[0]
    known = {TRAINER: _RUNTIMES, _KSERVE: (_CONFIG, *_SERVING), _NIM: ("NIMCache",)}
    if kind not in known.get(group, ()):
        return "", "", ""
    return kind, "" if kind in _CLUSTER_WIDE else one.metadata.namespace, one.metadata.name


def _completed(one: Document, templates: _Templates) -> Document:
    version, kind = header(one.value)
    group, fields = version.partition("/")[0], Fields(one.value)
    if (group, kind) == (TRAINER, "TrainJob"):
        of, name = runtime_named(fields)
        runtime = templates.get((of, "" if of in _CLUSTER_WIDE else one.metadata.namespace, name))
        return replace(one, value=_job_set(fields, runtime), written=one.value) if runtime is not None else one
    if group == _NIM and kind in ("NIMService", "NIMPipeline"):
        return replace(one, value=_with_caches(fields, one.metadata.namespace, templates))
    if (group, kind) == (_KSERVE, "LLMInferenceService"):
        return replace(one, value=_with_configs(fields, one.metadata.namespace, templates))
    if (group, kind) == (_KSERVE, "InferenceService"):
        predictor = fields.child("spec").child("predictor")
        named = predictor.child("model").raw("runtime")
        keys = ((of, "" if of in _CLUSTER_WIDE else one.metadata.namespace, str(named)) for of in _SERVING)
        key = next((key for key in keys if key in templates.found), None)
        made = _with_runtime(predictor, templates.found[key].child("spec")) if key is not None else None
        if key is not None and made is not None:
            templates.used.add(key)
            return replace(one, value={**_raw(fields), "spec": {**_raw(fields.child("spec")), "predictor": made}})
    return one


def _with_caches(nim: Fields, namespace: str, templates: _Templates) -> dict[str, object]:
    """The NIMService or NIMPipeline, with what it takes from the NIMCaches that it names: the names of claims that they
    have themselves (GetPVCName of NVIDIA/k8s-nim-operator f63f74d, api/apps/v1alpha1/nimcache_types.go), and the model,
    as a variable."""

    def stored(spec: Fields) -> object:
        cache = spec.child("storage").child("nimCache").text("name")
        found = templates.get(("NIMCache", namespace, cache))
        if found is None:
            return _raw(spec)
        name, model = found.child("spec").child("storage").child("pvc").text("name"), _cached_model(found)
        made: object = over(_raw(spec), {"storage": {"pvc": {"name": name}}}) if name else _raw(spec)
        env = spec.raw("env") or []
        named = model and isinstance(env, list)
        return over(made, {"env": [*_list(env), {"name": _CACHED, "value": model}]}) if named else made

    spec = nim.child("spec")
    if "services" not in spec:
        return {**_raw(nim), "spec": stored(spec)}
    services = [{**_raw(one), "spec": stored(one.child("spec"))} for one in spec.children("services")]
    return {**_raw(nim), "spec": {**_raw(spec), "services": services}}


def _cached_model(cache: Fields) -> str:
    """The name of the model of a NIMCache, with the precision that it asks for; "" if it says none."""
    source = cache.child("spec").child("source")
    named = next((name for of in ("hf", "dataStore") if (name := source.child(of).text("modelName"))), "")
    image = source.child("ngc").text("modelPuller").rpartition("/")[2].partition(":")[0]
    precision = source.child("ngc").child("model").text("precision")
    return named or (f"{image}-{precision}" if image and precision else image)


def _with_runtime(predictor: Fields, runtime: Fields) -> dict[str, object] | None:
    """The predictor as one of containers: its model server over that of the runtime, whose arguments come first. None
    for a runtime without one, and for those that KServe refuses here: disabled ones, and those of ModelMesh."""
    servers = [one for one in runtime.children("containers") if one.text("name") == _SERVER]
    if not servers or any(runtime.raw(name) is True for name in ("disabled", "multiModel")):
        return None
    model = predictor.child("model")
    own = {name: model.raw(name) for name in model.names() if name not in OF_MODELS}
    server = _dict(over(_raw(servers[0]), {**own, "name": _SERVER}))
    if args := [*_list(servers[0].raw("args")), *_list(own.get("args"))]:
        server["args"] = args
    others = [_raw(one) for one in runtime.children("containers") if one.text("name") != _SERVER]
    sources = sources_of(predictor, "model")
    env = _list(server.get("env"))
    stored = [{"name": STORAGE, "value": model.raw("storageUri")}] if "storageUri" in model else []
    containers = of_model([{**server, "env": [*stored, *env]}, *others], sources)
    fields = {name: runtime.raw(name) for name in _OF_PODS if name in runtime}
    given = {name: predictor.raw(name) for name in predictor.names() if name != "model"}
    if "workerSpec" in given and "workerSpec" in runtime:
        fields["workerSpec"] = runtime.raw("workerSpec")
    return _dict(over({**fields, "containers": containers}, given))


def _with_configs(service: Fields, namespace: str, templates: _Templates) -> dict[str, object]:
    """The service's spec over those of its configs, the later over the earlier; configs that are not here stay
    named."""
    spec = service.child("spec")
    found: object = {}
    missing: list[object] = []
    for reference in spec.children("baseRefs"):
        name = reference.text("name")
        spaces = (namespace, _OF_KSERVE)
        config = next((one for space in spaces if (one := templates.get((_CONFIG, space, name))) is not None), None)
        if config is None:
            missing.append({"name": name})
        else:
            found = over(found, config.raw("spec"))
    own = {name: spec.raw(name) for name in spec.names() if name != "baseRefs"}
    named = {"baseRefs": missing} if missing else {}
    return {**_raw(service), "spec": {**_dict(over(found, own)), **named}}


def _job_set(job: Fields, runtime: Fields) -> dict[str, object]:
    """The JobSet that the controller makes of a TrainJob."""
    spec, of = job.child("spec"), runtime.child("spec")
    template = of.child("template")
    patches = list(_patches(spec))
    entries = _list(template.child("spec").raw("replicatedJobs"))
    pay(len(entries) * (1 + len(patches)))
    jobs = [_patched(_dict(entry), patches) for entry in entries]
    jobs = [_trained(entry, spec.child("trainer"), of.child("mlPolicy")) for entry in jobs]
    metadata = _dict(over(template.raw("metadata") or {}, job.raw("metadata")))
    suspend = {"suspend": spec.raw("suspend")} if "suspend" in spec else {}
    made = {**_dict(template.raw("spec")), "replicatedJobs": jobs, **suspend, **_gang(of.child("podGroupPolicy"))}
    status = {"status": job.raw("status")} if "status" in job else {}
    return {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": metadata, "spec": made, **status}


def _gang(policy: Fields) -> dict[str, object]:
    """The gang of all pods for which the controller creates a PodGroup, as a JobSet says it. A topology of Volcano is
    left to the reader of the JobSet, which does not know it; "soft" is a wish and no condition."""
    if "coscheduling" not in policy and "volcano" not in policy:
        return {}
    topology = policy.child("volcano").child("networkTopology")
    hard = {"networkTopology": _raw(topology)} if topology and topology.text("mode") != "soft" else {}
    return {"gangPolicy": {"policy": "JobSetAsGang", **hard}}


def _patches(spec: Fields) -> Iterator[tuple[str, object]]:
    """Names of replicated jobs with what is put over their templates: `runtimePatches`, and `podTemplateOverrides` of
    v2.1."""
    for patch in spec.children("runtimePatches"):
        for entry in patch.child("trainingRuntimeSpec").child("template").child("spec").children("replicatedJobs"):
            yield entry.text("name"), entry.raw("template")
    for patch in spec.children("podTemplateOverrides"):
        pod = {name: patch.raw(name) for name in ("metadata", "spec") if name in patch}
        for target in patch.children("targetJobs"):
            yield target.text("name"), {"spec": {"template": pod}}


def _patched(entry: dict[str, object], patches: Iterable[tuple[str, object]]) -> dict[str, object]:
    for name, patch in patches:
        if name == entry.get("name") and isinstance(patch, dict):
            entry = {**entry, "template": over(entry.get("template", {}), patch)}
    return entry


def _trained(entry: dict[str, object], trainer: Fields, policy: Fields) -> dict[str, object]:
    """A replicated job with the number of nodes, the resources and the image of the TrainJob."""
    fields = Fields(entry)
    trains = fields.child("template").child("metadata").child("labels").text(_ANCESTOR) == "trainer"
    beside = "mpi" in policy and fields.text("name") == _NODE  # of the launcher, which is the trainer then
    if beside and not policy.child("mpi").flag("runLauncherAsNode"):
        return _sized(entry, trainer.raw("numNodes"))
    if beside:
        nodes = trainer.raw("numNodes")
        return _sized(_equipped(entry, trainer), max(nodes - 1, 1) if isinstance(nodes, int) else nodes)
    if not trains:
        return entry
    own = trainer.raw("numNodes") if "mpi" not in policy else None
    nodes = policy.raw("numNodes") if own is None else own
    return {**_sized(_equipped(entry, trainer), 1 if nodes is None else nodes), "replicas": 1}


def _sized(entry: dict[str, object], nodes: object) -> dict[str, object]:
    """With as many pods; what is no number is for the reader of the JobSet to tell."""
    if nodes is None:
        return entry
    return _dict(over(entry, {"template": {"spec": {"parallelism": nodes, "completions": nodes}}}))


def _equipped(entry: dict[str, object], trainer: Fields) -> dict[str, object]:
    """With the trainer's image, program and resources, which replace those of the runtime."""
    pod = Fields(entry).child("template").child("spec").child("template").child("spec")
    given = {name: trainer.raw(name) for name in ("image", "command", "args", "env") if name in trainer}
    given |= {"resources": trainer.raw("resourcesPerNode")} if "resourcesPerNode" in trainer else {}
    if not given or all(one.text("name") != _NODE for one in pod.children("containers")):
        return entry
    cleared = over(entry, _of_container({"resources": None})) if "resources" in given else entry
    return _dict(over(cleared, _of_container(given)))


def _of_container(fields: Mapping[str, object]) -> dict[str, object]:
    """These fields of the container that trains, within a replicated job."""
    pod = {"containers": [{"name": _NODE, **fields}]}
    return {"template": {"spec": {"template": {"spec": pod}}}}


def over(base: object, patch: object) -> object:
    """`patch` over `base`; a field that is null there is removed."""
    if isinstance(base, (dict, list)) and isinstance(patch, (dict, list)):
        pay(len(base) + len(patch))
    if isinstance(base, dict) and isinstance(patch, dict):
        kept = {name: value for name, value in base.items() if name not in patch or patch[name] is not None}
        given = {name: value for name, value in patch.items() if value is not None}
        return kept | {name: over(base[name], value) if name in kept else value for name, value in given.items()}
    if isinstance(base, list) and isinstance(patch, list) and _named(base) and _named(patch):
        new = {one["name"]: one for one in patch}
        had = {one["name"] for one in base}
        return [over(one, new.get(one["name"], {})) for one in base] + [one for one in patch if one["name"] not in had]
    return patch


def _named(entries: list[object]) -> bool:
    return all(isinstance(one, dict) and isinstance(one.get("name"), str) for one in entries)


def _raw(fields: Fields) -> dict[str, object]:
    return {name: fields.raw(name) for name in fields.names()}


def _dict(value: object) -> dict[str, object]:
    return dict(value) if isinstance(value, dict) else {}


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []
