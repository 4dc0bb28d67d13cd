"""ModelBooster of Kthena (workload.serving.volcano.sh): the ModelServing that its controller makes.

Ported rules: volcano-sh/kthena 3cc0572, pkg/model-booster-controller/convert/model_serving.go with vllm.yaml and
vllm-pd.yaml of its templates; a worker without `replicas` has none. The containers that it adds, a runtime and a
downloader, request nothing.
"""

from __future__ import annotations

from typing import Any, Final

from autoscaler.kube.fields import Fields
from autoscaler.kube.workloads.controllers import expander
from autoscaler.kube.workloads.serving.model_serving import serving_groups
from autoscaler.kube.workloads.stamping import Expansion, Workload
from instance_catalog.dataclass import replace

# Types of backends with the roles of their workers; the role of a server is called leader.
_ROLES: Final = {"vLLM": {"server": "leader"}, "vLLMDisaggregated": {"prefill": "prefill", "decode": "decode"}}
_OF_WORKER: Final = ("resources", "affinity", "tolerations", "image", "config", "type", "replicas", "pods")
_CLAIM, _PATH = "pvc://", "hostpath://"
_PODS: Final = "give the pods that its controller makes (kubectl get pods -o yaml)"


@expander
def expand_model_booster(fields: Fields, workload: Workload) -> Expansion:
    """The pods of the ModelServing <booster>-<backend>."""
    spec = fields.child("spec")
    spec.ignore("name", "owner", "modelMatch")
    backend = spec.child("backend")
    backend.ignore("envFrom", "modelURI")
    kind = backend.required("type")
    roles = _ROLES.get(kind, {})
    if not roles and kind:
        step = f"write {' or '.join(_ROLES)}, or {_PODS}"
        backend.error("type", f"{kind!r} is no type for which Kthena makes pods", step)
    workers = {one.text("type", "server"): one for one in backend.children("workers")}
    for name in [name for name in roles if name not in workers]:
        backend.error("workers", f"has no worker of type {name}, without which Kthena makes no pods", "add it")
    made = [_role(backend, workers[name], role) for name, role in roles.items() if name in workers]
    serving: dict[str, Any] = {"replicas": backend.integer("replicas", 1), "template": {"roles": made}}
    if backend.text("schedulerName"):
        serving["schedulerName"] = backend.text("schedulerName")
    for worker in workers.values():
        worker.ignore(*_OF_WORKER)
        worker.unread()
    name = f"{workload.metadata.name}-{backend.required('name')}".lower()
    backend.ignore("env", "cacheURI", "runtimeClassName", "replicas")
    backend.unread()
    spec.unread()
    named = replace(workload, metadata=replace(workload.metadata, name=name))
    return serving_groups(Fields(serving, backend.problems, backend.path), named)


def _role(backend: Fields, worker: Fields, role: str) -> dict[str, Any]:
    template = {"spec": _pod_spec(backend, worker)}
    replicas = worker.integer("replicas", 0)
    if replicas == 0:
        worker.warn("replicas", "0: it has no pods now", "set replicas to as many as you expect to plan for them")
    several = max(0, worker.integer("pods", 1) - 1) if role == "leader" else 0
    found: dict[str, Any] = {"name": role, "replicas": replicas, "entryTemplate": template}
    return found | {"workerReplicas": several, **({"workerTemplate": template} if several else {})}


def _pod_spec(backend: Fields, worker: Fields) -> dict[str, Any]:
    found = {field: worker.raw(field) for field in ("affinity", "tolerations") if field in worker}
    if "runtimeClassName" in backend:
        found["runtimeClassName"] = backend.raw("runtimeClassName")
    engine: dict[str, Any] = {"name": "engine", "image": worker.text("image"), "resources": worker.raw("resources")}
    engine["args"] = ["--model", backend.text("modelURI").rpartition("://")[2], *_arguments(worker.raw("config"))]
    if "env" in backend:
        engine["env"] = backend.raw("env")
    found["containers"] = [{"name": "runtime"}, {**engine, "command": ["vllm", "serve"]}]
    cache = backend.text("cacheURI")
    if cache.startswith(_CLAIM):
        claim = cache.removeprefix(_CLAIM).strip("/").partition("/")[0]
        found["volumes"] = [{"name": "cache", "persistentVolumeClaim": {"claimName": claim}}]
    elif cache.startswith(_PATH):
        path = "/" + cache.removeprefix(_PATH).strip("/")
        found["volumes"] = [{"name": "cache", "hostPath": {"path": path, "type": "DirectoryOrCreate"}}]
    return found


def _arguments(config: object) -> list[str]:
    """The options of vLLM that the configuration of a worker says."""
    given = config if isinstance(config, dict) else {}
    return [part for name, value in given.items() for part in (f"--{name}", *([str(value)] if value != "" else []))]
