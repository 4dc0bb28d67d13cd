"""The pods of Workflows, CronWorkflows, WorkflowTemplates and ClusterWorkflowTemplates of Argo.

Ported rules: argoproj/argo-workflows f016ad8, workflow/controller/workflowpod.go (build, addSchedulingConstraints) and
operator.go (mergedTemplateDefaultsInto, createPVCs). The containers that Argo adds request nothing by default. Of
templates of types that make no pod of their own, or one of Argo's program alone (resource, data, http, plugin,
suspend), nothing is planned here.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from autoscaler.kube.fields import Fields
from autoscaler.kube.problem import in_shell
from autoscaler.kube.storage import volume_claim_from
from autoscaler.kube.workloads.controllers import expander, suspended, within
from autoscaler.kube.workloads.stamping import MOST_PODS, Expansion, SpecAsTemplate, Workload, stamp
from autoscaler.manifests.document import UnreadableError
from autoscaler.manifests.merged import over
from autoscaler.manifests.workflows.graph import SCHEDULING, UNKNOWN_VALUE, Flow
from autoscaler.manifests.yaml_documents import read_yaml

_LABEL: Final = "workflows.argoproj.io/workflow"
_TYPES: Final = ("container", "script", "containerSet", "steps", "dag", "resource", "data", "http", "plugin", "suspend")
_RUNS: Final = ("container", "script", "containerSet")
_ENDED: Final = ("Succeeded", "Failed", "Error")
_OF_SPEC: Final = (
    *("templates", "entrypoint", "arguments", "serviceAccountName", "automountServiceAccountToken", "executor"),
    *("artifactRepositoryRef", "imagePullSecrets", "dnsPolicy", "dnsConfig", "onExit", "ttlStrategy", "priority"),
    *("podGC", "hostAliases", "securityContext", "podDisruptionBudget", "metrics", "shutdown", "synchronization"),
    *("volumeClaimGC", "retryStrategy", "archiveLogs", "hooks", "workflowMetadata", "artifactGC", "executorPlugins"),
    *("ttlSecondsAfterFinished", "templateDefaults"),
)
_OF_TEMPLATE: Final = (
    *("name", "inputs", "outputs", "daemon", "archiveLocation", "retryStrategy", "failFast", "serviceAccountName"),
    *("automountServiceAccountToken", "executor", "hostAliases", "securityContext", "metrics", "synchronization"),
    *("memoize", "timeout", "annotations", "pendingTimeout", *_TYPES),
)
_OF_CRON: Final = (
    *("schedule", "schedules", "timezone", "concurrencyPolicy", "startingDeadlineSeconds", "workflowMetadata", "when"),
    *("successfulJobsHistoryLimit", "failedJobsHistoryLimit", "stopStrategy"),
)
# Fields of a pod's spec, and of its containers, that decide where it runs.
_DECIDING: Final = (
    *("nodeSelector", "affinity", "tolerations", "schedulerName", "priorityClassName", "resources", "resourceClaims"),
    "topologySpreadConstraints",
)
_OF_RUN: Final = "to plan for what runs together, give the pods of a run (kubectl get pods -o yaml)"


@expander
def expand_workflow(fields: Fields, workload: Workload) -> Expansion:
    """The pods of the templates that run, <workflow>-<template>-<index>: of each as many as certainly start together,
    and the templates beside each other, since which of them run at once only the run knows."""
    spec = fields.child("spec")
    found = _pods(spec, workload)
    return Expansion() if fields.child("status").text("phase") in _ENDED else found


@expander
def expand_cron_workflow(fields: Fields, workload: Workload) -> Expansion:
    """The pods of one run of a CronWorkflow."""
    spec = fields.child("spec")
    spec.ignore(*_OF_CRON)
    found = _pods(spec.child("workflowSpec"), workload)
    if suspended(spec):
        found = Expansion()
    spec.unread()
    return found


def _pods(spec: Fields, workload: Workload) -> Expansion:
    spec.ignore(*_OF_SPEC)
    if "workflowTemplateRef" in spec:
        reference = spec.child("workflowTemplateRef")
        kind = "ClusterWorkflowTemplate" if reference.flag("clusterScope") else "WorkflowTemplate"
        name = reference.text("name")
        get = f"add it to the files (`kubectl get {kind.lower()} {in_shell(name)} -o yaml`)"
        spec.error("workflowTemplateRef", f"its templates are of {kind} {name}, which the files lack", get)
        return Expansion()
    if suspended(spec, workload):
        spec.ignore(*spec.names())
        return Expansion()
    if "templates" not in spec:
        spec.error(
            "templates", "is required", "add the templates that it runs, or the workflowTemplateRef that has them"
        )
    claims = [(one.child("metadata").text("name"), one) for one in spec.children("volumeClaimTemplates")]
    found = _of_templates(spec, workload, [volume for volume, _ in claims])
    used = {volume for pod in found.pods for volume in pod.volumes}
    of_run = ((f"{workload.metadata.name}-{volume}", one) for volume, one in claims)
    created = tuple(
        volume_claim_from(one, namespace=workload.metadata.namespace, name=name, origin=workload.pod_origin)
        for name, one in of_run
        if name in used
    )
    spec.ignore("parallelism", "activeDeadlineSeconds")
    spec.unread()
    return found + Expansion(volume_claims=created)


def _of_templates(spec: Fields, workload: Workload, volumes: list[str]) -> Expansion:
    """The pods of the templates that run; `volumes` are those that the Workflow creates claims for."""
    flow, found = Flow(spec, workload.metadata.name), Expansion()
    defaults = spec.child("templateDefaults")
    numbers: dict[str, int] = {}  # by template, of pods so far
    asking: list[str] = []  # the template of each pod that asks for devices
    for (name, boundary), times in flow.numbers.items():
        template = with_defaults(flow.templates[name], defaults)
        number = min(times, flow.limit(spec))
        if number + len(found.pods) > MOST_PODS:
            spec.error("templates", f"more than {MOST_PODS} pods", "plan for fewer pods at a time")
            return Expansion()
        if any(kind in template for kind in _RUNS):
            first = numbers.get(name, 0)
            numbers[name] = first + number
            names = [f"{workload.metadata.name}-{_called(name)}-{index}" for index in range(first, first + number)]
            made = _Made(flow, name, flow.templates.get(boundary), volumes).stamped(template, workload, names)
            asking += [name] * sum(pod.asks_for_devices for pod in made.pods)
            found += made
    _note(spec, asking)
    return found


def _called(template: str) -> str:
    """The name of a template as a part of a pod's name."""
    return template.rpartition("/")[2].lower().replace("_", "-").replace(".", "-").strip("-") or "main"


def _note(spec: Fields, asking: list[str]) -> None:
    """Which pods run at the same time is known for steps of one group only."""
    templates = len(set(asking))
    if templates < 2:
        return
    limit = Flow.limit(spec)
    most = f", and at most {limit} of them run at a time" if limit < len(asking) else ""
    message = (
        f"the pods of its {templates} templates that ask for devices are planned beside each other: which run at once "
        f"is not known{most}"
    )
    spec.warn("templates", message, _OF_RUN)


def with_defaults(template: Fields, defaults: Fields) -> Fields:
    """The template over the defaults of its Workflow, which count for its own type."""
    if not defaults:
        return template
    own = {name: template.raw(name) for name in template.names()}
    given = {name: defaults.raw(name) for name in defaults.names() if name not in _TYPES or name in own}
    merged = over(given, own)
    return Fields(merged, template.problems, template.path)


class _Made:
    """The pods of a template, called by the template `boundary`."""

    def __init__(self, flow: Flow, name: str, boundary: Fields | None, created: list[str]) -> None:
        self._flow = flow
        self._name = name
        self._boundary = boundary
        self._created = created

    def stamped(self, template: Fields, workload: Workload, names: list[str]) -> Expansion:
        flow, spec = self._flow, self._flow.spec
        pod_spec = flow.filled(self._spec(template), self._name)
        for patch in self._patches(template):
            pod_spec = over(pod_spec, patch)
        if left := flow.left(_deciding(pod_spec)):
            message = f"{left} decides where its pods run, and has no value here, or several"
            template.problems.error(template.path, message, UNKNOWN_VALUE)
            return Expansion()
        shared, own = spec.child("podMetadata"), template.child("metadata")
        labels = {**shared.text_map("labels"), **own.text_map("labels"), _LABEL: workload.metadata.name}
        annotations = {**shared.text_map("annotations"), **own.text_map("annotations")}
        template.ignore(*_OF_TEMPLATE, "parallelism", "podSpecPatch", "activeDeadlineSeconds")
        template.unread()
        found = stamp(SpecAsTemplate(pod_spec, labels, annotations, template), workload, names)
        return within(within(found, _seconds(template)), _seconds(spec))

    def _spec(self, template: Fields) -> dict[str, Any]:
        spec = self._flow.spec
        found: dict[str, Any] = {"containers": list(_containers(template))}
        for field in SCHEDULING:
            holders = (template, *((self._boundary,) if self._boundary is not None else ()), spec)
            given = next((value for one in holders if (value := one.raw(field))), None)
            if given is not None:
                found[field] = given
        for field, of_spec in (
            *(("schedulerName", "schedulerName"), ("priorityClassName", "podPriorityClassName")),
            *(("podResources", "podResources"), ("resourceClaims", "resourceClaims")),
        ):
            own, shared = template.raw(field), spec.raw(of_spec)
            if given := own or shared:
                found["resources" if field == "podResources" else field] = given
        if spec.flag("hostNetwork"):
            found["hostNetwork"] = True
        if added := list(_users(template, "initContainers")):
            found["initContainers"] = added
        found["volumes"] = self._volumes(template, [*found["containers"], *added])
        return found

    def _volumes(self, template: Fields, containers: list[Any]) -> list[Any]:
        """Those of the Workflow that a container mounts, and its own."""
        spec, own = self._flow.spec, list(template.children("volumes"))
        mounted = {
            str(mount.get("name"))
            for one in containers
            if isinstance(one, dict)
            for mount in _list(one.get("volumeMounts"))
            if isinstance(mount, dict)
        }
        shared = [one for one in spec.children("volumes") if one.text("name") in mounted]
        claims: list[Any] = [
            {"name": name, "persistentVolumeClaim": {"claimName": f"{self._flow.name}-{name}"}}
            for name in self._created
            if name in mounted
        ]
        return [*claims, *({name: one.raw(name) for name in one.names()} for one in (*shared, *own))]

    def _patches(self, template: Fields) -> Iterator[Any]:
        """What podSpecPatch of the Workflow and of the template changes."""
        for holder, scope in ((self._flow.spec, self._name), (template, self._name)):
            text = self._flow.filled(holder.text("podSpecPatch"), scope)
            if text.startswith("{{"):
                message = f"{self._flow.left(text)} may change where its pods run, and has no value here, or several"
                holder.error("podSpecPatch", message, UNKNOWN_VALUE)
                continue
            try:
                found = [one.value for one in read_yaml(text, "")] if text else []
            except UnreadableError:
                found = [None]
            if len(found) > 1 or not all(isinstance(one, dict) for one in found):
                step = "write it as YAML or JSON of a pod's spec, or give the pods of the run"
                holder.error("podSpecPatch", "is not readable, and may change where its pods run", step)
                continue
            yield from found


def _containers(template: Fields) -> Iterator[Any]:
    """The main containers of a template and its sidecars."""
    for kind in ("container", "script"):
        if kind in template:
            main = template.child(kind)
            yield {**{name: main.raw(name) for name in main.names() if name != "source"}, "name": "main"}
    several = template.child("containerSet")
    several.ignore("retryStrategy")
    mounts = _list(several.raw("volumeMounts"))
    for one in several.children("containers"):
        kept = {name: one.raw(name) for name in one.names() if name != "dependencies"}
        yield {**kept, "volumeMounts": [*_list(kept.get("volumeMounts")), *mounts]} if mounts else kept
    yield from _users(template, "sidecars")


def _users(template: Fields, field: str) -> Iterator[Any]:
    for one in template.children(field):
        yield {name: one.raw(name) for name in one.names() if name != "mirrorVolumeMounts"}


def _deciding(pod_spec: Any) -> list[Any]:
    """The parts of a pod's spec that decide where it runs."""
    claims = [one.get("persistentVolumeClaim") for one in _list(pod_spec.get("volumes")) if isinstance(one, dict)]
    containers = [*_list(pod_spec.get("containers")), *_list(pod_spec.get("initContainers"))]
    asked = [one.get("resources") for one in containers if isinstance(one, dict)]
    return [*(pod_spec.get(field) for field in _DECIDING), *claims, *asked]


def _seconds(holder: Fields) -> int | None:
    """activeDeadlineSeconds, a number or its text; None for a variable."""
    value = holder.raw("activeDeadlineSeconds")
    if isinstance(value, str) and value.isdecimal():
        return int(value)
    return value if type(value) is int else None


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []
