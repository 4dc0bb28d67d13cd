"""Workloads of other projects with pod templates: Argo Rollouts, OpenKruise, Kubeflow's Notebooks, Agones, Knative,
Grove and NVIDIA Dynamo.

Ported rules: argoproj/argo-rollouts 009ba6b, pkg/apis/rollouts/v1alpha1/types.go; openkruise/kruise 02e91ae,
apis/apps/v1alpha1/cloneset_types.go; kubeflow/kubeflow 0708d13, notebook-controller/api/v1/notebook_types.go;
googleforgames/agones 05738e6, pkg/apis/agones/v1/fleet.go (no replicas are none); and those that the functions name.
Generated name suffixes are replaced by indexes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Final

from autoscaler.kube.fields import Fields
from autoscaler.kube.workloads.controllers import Expand, expander
from autoscaler.kube.workloads.stamping import MOST_PODS, Expansion, SpecAsTemplate, Workload, count, stamp
from instance_catalog.dataclass import replace

_PODS: Final = "give the pods that its controller makes (kubectl get pods -o yaml)"
_MOVING: Final = (
    *("selector", "strategy", "updateStrategy", "scaleStrategy", "minReadySeconds", "revisionHistoryLimit", "paused"),
    *("progressDeadlineSeconds", "progressDeadlineAbort", "restartAt", "rollbackWindow", "analysis", "lifecycle"),
    *("scheduling", "allocationOverflow", "priorities", "counters", "lists"),
)
_OF_KNATIVE: Final = (*("containerConcurrency", "timeoutSeconds", "responseStartTimeoutSeconds", "idleTimeoutSeconds"),)
_SCALES: Final = ("min-scale", "minScale", "initial-scale", "initialScale")
_OF_DYNAMO: Final = (
    *("annotations", "autoscaling", "compilationCache", "componentType", "dynamoNamespace", "envFromSecret", "envs"),
    *("eppConfig", "frontendSidecar", "globalDynamoNamespace", "ingress", "labels", "livenessProbe", "modelRef"),
    *("name", "readinessProbe", "runtimeVersion", "runtimeVersionOverride", "scalingAdapter", "serviceName"),
    *("sharedMemory", "sharedMemorySize", "subComponentType", "type", "volumeMounts"),
)


def templates_at(*path: str, least: int = 1, sidecar: Mapping[str, str] | None = None) -> Expand:
    """A function for the pods of the template at `path` of the spec: `replicas` of them, by default `least`. Their
    controller adds a `sidecar`, a container by its name with the cpu that it requests."""

    @expander
    def expand(fields: Fields, workload: Workload) -> Expansion:
        spec = fields.child("spec")
        spec.ignore(*_MOVING)
        number = count(spec, "replicas", least)
        holder = spec
        for name in path[:-1]:
            holder = holder.child(name)
        if path[-1] not in holder:
            holder.error(path[-1], "is not here, so another object says what the pods are", _PODS)
            number = 0
        elif number == 0:
            spec.warn("replicas", "0: it has no pods now", "set replicas to as many as you expect to plan for them")
        names = [f"{workload.metadata.name}-{index}" for index in range(number)]
        found = stamp(_with_sidecars(holder, path[-1], sidecar or {}), workload, names)
        spec.unread()
        return found

    return expand


@expander
def expand_knative_service(fields: Fields, workload: Workload) -> Expansion:
    """The pods of a Service's latest revision: as many as it keeps (`min-scale`) or starts with (`initial-scale`), and
    at least the one of its first request. Rules: "Configuring scale bounds" (knative.dev, 2026-11), and the ConfigMap
    config-deployment for the request of queue-proxy (queue-sidecar-cpu-request, by default 25m)."""
    spec = fields.child("spec")
    spec.ignore("traffic")
    template = spec.child("template")
    metadata = template.child("metadata")
    annotations = metadata.text_map("annotations")
    kept = (annotations.get(f"autoscaling.knative.dev/{name}", "") for name in _SCALES)
    number = max(1, *(int(text) if text.isdecimal() else 1 for text in kept))
    if number > MOST_PODS:
        metadata.error("annotations", f"more than {MOST_PODS} pods", "plan for fewer pods at a time")
        number = 0
    given = template.child("spec")
    pod_spec = {name: given.raw(name) for name in given.names() if name not in _OF_KNATIVE}
    pod_spec["containers"] = [*_named(pod_spec.get("containers")), _container("queue-proxy", "25m")]
    labels = {**metadata.text_map("labels"), "serving.knative.dev/service": workload.metadata.name}
    names = [f"{workload.metadata.name}-{index}" for index in range(number)]
    found = stamp(SpecAsTemplate(pod_spec, labels, annotations, template, "spec"), workload, names)
    spec.unread()
    return found


@expander
def expand_pod_clique_set(fields: Fields, workload: Workload) -> Expansion:
    """The pods of each clique, <set>-<replica>-<clique>-<index>, of those in scaling groups for each replica of the
    group. Ported rules: ai-dynamo/grove fcc3b3b, operator/api/core/v1alpha1, podcliqueset.go (no replicas are none) and
    podclique.go."""
    spec = fields.child("spec")
    spec.ignore("updateStrategy")
    template = spec.child("template")
    template.ignore("cliqueStartupType", "headlessServiceConfig", "priorityClassName", "terminationDelay")
    _refuse(template, "resourceClaimTemplates", "resourceSharing")
    _topology(template)
    sets, groups = count(spec, "replicas", 0), dict(_groups(template))
    if sets == 0:
        spec.warn("replicas", "0: it has no pods now", "set replicas to as many as you expect to plan for them")
    found = Expansion()
    for clique in template.children("cliques"):
        name, own = clique.required("name"), clique.child("spec")
        _refuse(clique, "resourceSharing")
        _topology(clique)
        own.ignore("roleName", "minAvailable", "startsAfter", "autoScalingConfig")
        places = list(product(range(sets), range(groups.get(name, 1)), range(count(own, "replicas", 1) or 1)))
        if len(places) > MOST_PODS:
            own.error("replicas", f"more than {MOST_PODS} pods", "plan for fewer pods at a time")
            places = []
        pods = [f"{workload.metadata.name}-{one}-{name}-{group}-{index}" for one, group, index in places]
        labels, annotations = clique.text_map("labels"), clique.text_map("annotations")
        found += stamp(SpecAsTemplate(own.raw("podSpec"), labels, annotations, own, "podSpec"), workload, pods)
        own.unread()
        clique.unread()
    template.unread()
    spec.unread()
    return found


def _groups(template: Fields) -> Iterator[tuple[str, int]]:
    """The number of replicas of each clique in a scaling group."""
    for group in template.children("podCliqueScalingGroups"):
        group.ignore("name", "annotations", "minAvailable", "scaleConfig")
        _refuse(group, "resourceSharing")
        _topology(group)
        number = count(group, "replicas", 1)
        yield from ((name, number) for name in group.texts("cliqueNames"))
        group.unread()


def _refuse(fields: Fields, *names: str) -> None:
    """Report fields that change pods or their devices by rules that are not implemented."""
    for name in names:
        if name in fields:
            fields.error(name, "changes the pods or their devices in ways that are not read", _PODS)
        fields.ignore(name)


def _topology(fields: Fields, name: str = "topologyConstraint") -> None:
    if name in fields:
        message = "is not considered: the pods are planned without regard to racks and blocks"
        fields.warn(name, message, "give the pool nodes of one block or placement group")
    fields.ignore(name)


@expander
def expand_dynamo_graph(fields: Fields, workload: Workload) -> Expansion:
    """The pods of each component (v1beta1) or service (v1alpha1), <graph>-<component>-<index>, `nodeCount` of them for
    each replica. Ported rules: ai-dynamo/dynamo 0fddc01, deploy/operator/api, v1beta1/dynamographdeployment_types.go
    and common.go, and v1alpha1."""
    spec = fields.child("spec")
    experimental = spec.child("experimental")
    experimental.ignore("kvTransferPolicy")
    _refuse(experimental, "componentGroups")  # its replicas multiply those of their components
    experimental.unread()
    _topology(spec, "providerOverride")
    spec.ignore("annotations", "backendFramework", "env", "envs", "labels", "priorityClassName", "restart")
    _topology(spec)
    services = spec.child("services")
    claims = frozenset(entry.text("name") for entry in spec.children("pvcs") if entry.raw("create") is not True)
    named = [*((entry.required("name"), entry) for entry in spec.children("components"))]
    named += [(name, services.child(name)) for name in services.names()]
    found = Expansion()
    for name, part in named:
        found += _dynamo(part, workload, f"{workload.metadata.name}-{name.lower()}", claims)
    if found.pods:
        message = "planned with what is written here: what Dynamo's operator adds to the pods is not read"
        spec.warn("services" if services else "components", message, f"to be sure, {_PODS}")
    spec.unread()
    return found


def _dynamo(part: Fields, workload: Workload, name: str, claims: frozenset[str]) -> Expansion:
    part.ignore(*_OF_DYNAMO)
    _topology(part)
    _refuse(part, "checkpoint", "device", "experimental", "failover", "gpuMemoryService")
    multinode = part.child("multinode")
    number = count(part, "replicas", 1) * (count(multinode, "nodeCount", 2) if "multinode" in part else 1)
    if number > MOST_PODS:
        part.error("replicas", f"more than {MOST_PODS} pods", "plan for fewer pods at a time")
        number = 0
    pods = [f"{name}-{index}" for index in range(number)]
    template = part.child("podTemplate") if "podTemplate" in part else _of_service(part, claims)
    found = stamp(template, workload, pods)
    part.unread()
    return spread(found) if "multinode" in part else found


def spread(found: Expansion) -> Expansion:
    """The pods, of which several may have parts of one model."""
    return replace(
        found,
        pods=tuple(
            replace(pod, containers=tuple(replace(one, model_spread=True) for one in pod.containers))
            for pod in found.pods
        ),
    )


def _of_service(part: Fields, claims: frozenset[str]) -> Fields:
    """The template of a service of v1alpha1: its main container has the resources of the service, and mounts those of
    these PersistentVolumeClaims, which exist."""
    extra, metadata = part.child("extraPodSpec"), part.child("extraPodMetadata")
    main, resources = extra.child("mainContainer"), part.child("resources")
    asked: dict[str, object] = {field: resources.raw(field) for field in ("claims",) if field in resources}
    asked |= {field: dict(_amounts(resources.child(field))) for field in ("requests", "limits") if field in resources}
    own = {field: main.raw(field) for field in main.names()}
    given, others = own.get("resources"), extra.raw("containers")
    container = {**own, "name": "main", "resources": {**asked, **(given if isinstance(given, dict) else {})}}
    pod_spec = {field: extra.raw(field) for field in extra.names() if field != "mainContainer"}
    pod_spec["containers"] = [container, *(others if isinstance(others, list) else [])]
    mounted = [name for mount in part.children("volumeMounts") if (name := mount.text("name")) in claims]
    given = pod_spec.get("volumes")
    volumes = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in mounted]
    pod_spec["volumes"] = [*(given if isinstance(given, list) else []), *volumes]
    labels, annotations = metadata.text_map("labels"), metadata.text_map("annotations")
    return SpecAsTemplate(pod_spec, labels, annotations, part, "extraPodSpec")


def _amounts(fields: Fields) -> Iterator[tuple[str, object]]:
    """The resources of a service under Kubernetes' names."""
    kind = fields.text("gpuType", "") or "nvidia.com/gpu"
    for field, name in (("cpu", "cpu"), ("memory", "memory"), ("gpu", kind)):
        if field in fields:
            yield name, fields.raw(field)
    yield from fields.text_map("custom").items()


def _with_sidecars(holder: Fields, field: str, sidecars: Mapping[str, str]) -> Fields:
    """The template in `field` of an object, with these containers after its own."""
    template = holder.child(field)
    spec = template.raw("spec")
    if not sidecars or not isinstance(spec, dict):
        return template
    metadata = template.child("metadata")
    more = [_container(name, cpu) for name, cpu in sidecars.items()]
    with_them = {**spec, "containers": [*_named(spec.get("containers")), *more]}
    labels, annotations = metadata.text_map("labels"), metadata.text_map("annotations")
    return SpecAsTemplate(with_them, labels, annotations, template, "spec")


def _named(containers: object) -> Sequence[object]:
    """Each container with a name: Knative gives one to those without."""
    found = containers if isinstance(containers, list) else []
    return [
        {**one, "name": one.get("name") or f"user-container-{index}"} if isinstance(one, dict) else one
        for index, one in enumerate(found)
    ]


def _container(name: str, cpu: str) -> dict[str, object]:
    return {"name": name, "resources": {"requests": {"cpu": cpu}}}
