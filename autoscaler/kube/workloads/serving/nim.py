"""NIMService, NIMPipeline and NIMCache of NVIDIA's NIM Operator (apps.nvidia.com).

Ported rules: NVIDIA/k8s-nim-operator f63f74d, api/apps/v1alpha1, internal/controller/platform/standalone/nimservice.go
(addGPUResources), internal/controller/nimcache_controller.go, and manifests/lws.yaml, which sets no affinity. On KServe
(inferencePlatform) the pods have other names and ask for the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from autoscaler.kube.fields import Fields
from autoscaler.kube.storage import volume_claim_from
from autoscaler.kube.workloads.controllers import expander
from autoscaler.kube.workloads.other_projects import spread
from autoscaler.kube.workloads.serving.nim_claims import claims_of
from autoscaler.kube.workloads.stamping import MOST_PODS, Expansion, SpecAsTemplate, Workload, count, stamp
from autoscaler.model.pod import Unread
from autoscaler.model.storage import PersistentVolumeClaim
from instance_catalog.dataclass import replace
from instance_catalog.diagnostic import Path

_GPU: Final = "nvidia.com/gpu"
_IGNORED: Final = (
    *("authSecret", "expose", "livenessProbe", "readinessProbe", "startupProbe", "metrics", "userID", "groupID"),
    *("proxy", "inferencePlatform", "podAffinity", "nodeSelector", "tolerations", "affinity", "schedulerName"),
    *("priorityClassName", "runtimeClassName", "draResources", "replicas"),
)
_OF_CACHE: Final = ("source", "userID", "groupID", "certConfig", "env", "proxy", "initContainers")
_PODS: Final = "give the pods that its controller makes (kubectl get pods -o yaml)"
_PROFILE: Final = f"write {_GPU} into spec.resources.limits, or {_PODS}"


@expander
def expand_nim_service(fields: Fields, workload: Workload) -> Expansion:
    """The pods of a NIMService, <service>-<index>, or with several nodes <service>-lws-<group>-<index>."""
    return _service(fields.child("spec"), workload)


@expander
def expand_nim_pipeline(fields: Fields, workload: Workload) -> Expansion:
    """The pods of those services of a NIMPipeline that are enabled."""
    spec, found = fields.child("spec"), Expansion()
    for entry in spec.children("services"):
        entry.ignore("dependencies", "spec")
        metadata = replace(workload.metadata, name=entry.required("name"))
        if entry.flag("enabled"):
            found += _service(entry.child("spec"), replace(workload, metadata=metadata))
        if len(found.pods) > MOST_PODS:
            spec.error("services", f"more than {MOST_PODS} pods", "plan for fewer pods at a time")
            return Expansion()
        entry.unread()
    spec.unread()
    return found


@expander
def expand_nim_cache(fields: Fields, workload: Workload) -> Expansion:
    """The pod that fetches the models of a NIMCache, <cache>-job-0, and the volume that it fills."""
    spec = fields.child("spec")
    spec.ignore(*_OF_CACHE)
    pod_spec = {name: spec.raw(name) for name in ("tolerations", "nodeSelector", "runtimeClassName") if name in spec}
    asked = {name: value for name, value in Fields(spec.raw("resources")).items() if name in ("cpu", "memory")}
    pod_spec["containers"] = [{"name": "nim-cache-ctr", "resources": {"requests": asked}}]
    volume, claims = _stored(spec.child("storage"), workload)
    pod_spec["volumes"] = volume
    spec.unread()
    if fields.child("status").text("state") == "Ready":
        return Expansion(volume_claims=claims)
    found = stamp(SpecAsTemplate(pod_spec, {}, {}, spec), workload, [f"{workload.metadata.name}-job-0"])
    return replace(found, volume_claims=(*found.volume_claims, *claims))


def claims_named(nim: Fields) -> Iterator[tuple[Path, str]]:
    """The PersistentVolumeClaims with models that a NIMService or NIMPipeline names, with the fields that do."""
    spec = nim.child("spec")
    for one in (spec, *(entry.child("spec") for entry in spec.children("services"))):
        storage = one.child("storage")
        pvc, cache = storage.child("pvc"), storage.child("nimCache")
        if cache.text("name"):
            yield (*cache.path, "name"), pvc.text("name") or f"{cache.text('name')}-pvc"
        elif not pvc.flag("create"):
            yield (*pvc.path, "name"), pvc.text("name")


def _service(spec: Fields, workload: Workload) -> Expansion:
    spec.ignore(*_IGNORED)
    scale, name = spec.child("scale"), workload.metadata.name
    scaled = scale.child("hpa") if scale.flag("enabled") else spec
    groups = count(scaled, "minReplicas" if scaled is not spec else "replicas", 1)
    parallel = spec.child("multiNode").child("parallelism")
    size = max(1, count(parallel, "pipeline", 1))
    if groups == 0:
        spec.warn("replicas", "0: it has no pods now", "set replicas to as many as you expect to plan for them")
    if groups * size > MOST_PODS:
        spec.error("replicas", f"more than {MOST_PODS} pods", "plan for fewer pods at a time")
        groups = 0
    entries, templates = claims_of(spec, workload)
    resources, unread = _resources(spec, bool(entries))
    volumes, claims = _stored(spec.child("storage"), workload)
    pod_spec = {field: spec.raw(field) for field in _passed(spec, several=size > 1)}
    pod_spec |= {"resourceClaims": entries, "volumes": volumes}
    pod_spec["containers"] = [_container(spec, f"{name}-ctr", resources, entries), *_more(spec, "sidecarContainers")]
    pod_spec["initContainers"] = list(_more(spec, "initContainers"))
    leaders = [f"{name}-lws-{group}" if size > 1 else f"{name}-{group}" for group in range(groups)]
    names = [leader if index == 0 else f"{leader}-{index}" for leader in leaders for index in range(size)]
    labels = {"app.kubernetes.io/name": name, "app.kubernetes.io/part-of": "nim-service", **spec.text_map("labels")}
    template = SpecAsTemplate(pod_spec, labels, spec.text_map("annotations"), spec)
    found = stamp(template, workload, names)
    spec.ignore("multiNode", "resources", "storage", "image", "command", "args", "env")
    spec.unread()
    if unread is not None:
        found = replace(found, pods=tuple(replace(pod, unread=unread) for pod in found.pods))
    found = replace(found, volume_claims=(*found.volume_claims, *claims), claim_templates=tuple(templates))
    return spread(found) if size > 1 else found


def _passed(spec: Fields, *, several: bool) -> Iterator[str]:
    for field in ("nodeSelector", "tolerations", "affinity", "schedulerName", "priorityClassName", "runtimeClassName"):
        if field in spec and not (several and field == "affinity"):
            yield field


def _resources(spec: Fields, claiming: bool) -> tuple[dict[str, Any], Unread | None]:  # noqa: FBT001 - its one caller
    """The resources of the main container. Where they name no GPU, a cached model adds those of its profile: on several
    nodes by the tensor parallelism, else by what the cache has found, which is in no file."""
    given = spec.child("resources")
    found = {field: dict(given.child(field).items()) for field in ("requests", "limits") if field in given}
    asked = any(_GPU in amounts for amounts in found.values())
    cache = spec.child("storage").child("nimCache").text("name")
    if asked or claiming or not cache:
        return found, None
    tensor = spec.child("multiNode").child("parallelism").integer("tensor")
    if tensor > 0:
        return {**found, "limits": {**found.get("limits", {}), _GPU: tensor}}, None
    return found, Unread(f"the profile of NIMCache {cache}, by which the operator requests GPUs", _PROFILE)


def _container(spec: Fields, name: str, resources: dict[str, Any], entries: list[dict[str, Any]]) -> dict[str, Any]:
    own = {field: spec.raw(field) for field in ("command", "args", "env") if field in spec}
    claims = [{"name": entry["name"]} for entry in entries]
    return {**own, "name": name, "image": _image(spec), "resources": {**resources, "claims": claims}}


def _more(spec: Fields, field: str) -> Iterator[dict[str, Any]]:
    for one in spec.children(field):
        yield {**{name: one.raw(name) for name in one.names() if name != "image"}, "image": _image(one)}


def _image(holder: Fields) -> str:
    image = holder.child("image")
    tag = image.raw("tag")
    return f"{image.text('repository')}:{tag}" if tag is not None else image.text("repository")


def _stored(storage: Fields, workload: Workload) -> tuple[list[dict[str, Any]], tuple[PersistentVolumeClaim, ...]]:
    """The volume with the model, and its claim where the operator creates it."""
    pvc, cache = storage.child("pvc"), storage.child("nimCache").text("name")
    size = storage.raw("sharedMemorySizeLimit")
    volumes: list[dict[str, Any]] = []
    if workload.kind != "NIMCache":
        memory = {"medium": "Memory", **({"sizeLimit": size} if size is not None else {})}
        volumes.append({"name": "dshm", "emptyDir": memory})
    if storage.text("hostPath"):
        return [*volumes, {"name": "model-store", "hostPath": {"path": storage.text("hostPath")}}], ()
    create = pvc.flag("create") and not cache
    name = pvc.text("name") or (f"{cache or workload.metadata.name}-pvc" if cache or create else "")
    if not name:
        return volumes, ()
    volumes.append({"name": "model-store", "persistentVolumeClaim": {"claimName": name}})
    if not create:
        return volumes, ()
    claimed: dict[str, Any] = {"resources": {"requests": {"storage": pvc.raw("size")}}}
    claimed["accessModes"] = [pvc.text("volumeAccessMode")] if "volumeAccessMode" in pvc else []
    if pvc.text("storageClass"):
        claimed["storageClassName"] = pvc.text("storageClass")
    fields = Fields({"spec": claimed}, pvc.problems, pvc.path)
    namespace = workload.metadata.namespace
    return volumes, (volume_claim_from(fields, namespace=namespace, name=name, origin=workload.pod_origin),)
