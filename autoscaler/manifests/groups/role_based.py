"""RoleBasedGroup and RoleBasedGroupSet (workloads.x-k8s.io): roles of single pods, leaders with workers, or components.

Ported rules: sgl-project/rbg 993491f, api/workloads/v1alpha1 and v1alpha2 (a role of v1alpha1 has its template, and
with `leaderWorkerSet` patches of it, in itself), and constants for labels and gangs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from autoscaler.kube.fields import Fields
from autoscaler.kube.workloads.controllers import expander
from autoscaler.kube.workloads.other_projects import spread
from autoscaler.kube.workloads.stamping import MOST_PODS, Expansion, Workload, count, stamp
from autoscaler.manifests.merged import over
from autoscaler.model.gang import Gang
from autoscaler.model.pod import GangRef
from instance_catalog.dataclass import replace

_GANG: Final = "rbg.workloads.x-k8s.io/group-gang-scheduling"
_EXCLUSIVE: Final = "exclusive-topology"
_OF_ROLE: Final = (
    *("labels", "annotations", "rolloutStrategy", "restartPolicy", "dependencies", "servicePorts", "scalingAdapter"),
    *("minReadySeconds", "podManagementPolicy", "workload", "template", "templateRef", "templatePatch"),
)
_OF_PATTERN: Final = (
    *("restartPolicy", "restartPolicyConfig", "sharedServiceSelection", "template", "templateRef"),
    *("leaderTemplatePatch", "workerTemplatePatch", "patchLeaderTemplate", "patchWorkerTemplate"),
)
_COMPONENT: Final = ("serviceName", "labels", "annotations")
_PODS: Final = "give the pods that its controller makes (kubectl get pods -o yaml)"


@expander
def expand_role_based_group(fields: Fields, workload: Workload) -> Expansion:
    """The pods of all roles: <group>-<role>-<replica>, of a role with several pods to a replica with their place."""
    return _group(fields.child("spec"), workload, workload.metadata.annotations)


@expander
def expand_role_based_group_set(fields: Fields, workload: Workload) -> Expansion:
    """The pods of all groups, which are called <set>-<index>."""
    spec, found = fields.child("spec"), Expansion()
    template = spec.child("groupTemplate") if "groupTemplate" in spec else spec
    field = "spec" if "groupTemplate" in spec else "template"
    annotations = {**workload.metadata.annotations, **template.text_map("annotations")}
    for index in range(count(spec, "replicas", 1)):
        metadata = replace(workload.metadata, name=f"{workload.metadata.name}-{index}")
        # A mistake is reported for the first group only.
        group = template.child(field) if index == 0 else Fields(template.raw(field))
        found += _group(group, replace(workload, metadata=metadata), annotations)
        if len(found.pods) > MOST_PODS:
            spec.error("replicas", f"more than {MOST_PODS} pods", "plan for fewer pods at a time")
            return Expansion()
    template.ignore("labels", field)
    template.unread()
    spec.unread()
    return found


def _group(spec: Fields, workload: Workload, annotations: Mapping[str, str]) -> Expansion:
    spec.ignore("coordination", "roleTemplates")
    templates = {one.text("name"): one.child("template") for one in spec.children("roleTemplates")}
    found = Expansion()
    if "roles" not in spec:
        spec.error("roles", "is required", "add the roles of the group")
    for role in spec.children("roles"):
        found += _role(role, templates, workload)
        if len(found.pods) > MOST_PODS:
            spec.error("roles", f"more than {MOST_PODS} pods", "plan for fewer pods at a time")
            return Expansion()
    policy = spec.child("podGroupPolicy")
    gang = annotations.get(_GANG) == "true" or any(name in policy for name in ("kubeScheduling", "volcanoScheduling"))
    if gang and found.pods:
        found = _together(found, workload)
    if any(name.endswith(f"/{_EXCLUSIVE}") for name in annotations):
        pods = tuple(replace(pod, unsupported=(*pod.unsupported, _EXCLUSIVE)) for pod in found.pods)
        found = replace(found, pods=pods)
    spec.unread()
    return found


def _together(made: Expansion, workload: Workload) -> Expansion:
    """All pods of a group as a gang."""
    namespace, name = workload.metadata.namespace, workload.metadata.name
    gang = Gang(namespace, name, f"PodGroup of {workload.kind}", len(made.pods), origin=workload.origin)
    pods = tuple(replace(pod, gang=pod.gang or GangRef(namespace, name)) for pod in made.pods)
    return replace(made, pods=pods, gangs=(gang,))


def _role(role: Fields, templates: Mapping[str, Fields], workload: Workload) -> Expansion:
    role.ignore(*_OF_ROLE)
    if "engineRuntimes" in role:
        message = "adds containers of a ClusterEngineRuntimeProfile, whose requests are not counted"
        role.warn("engineRuntimes", message, f"to have them counted, {_PODS}")
    role.ignore("engineRuntimes")
    name, replicas, found = role.required("name"), count(role, "replicas", 1), Expansion()
    if replicas == 0:
        role.warn("replicas", "0: it has no pods now", "set replicas to as many as you expect to plan for them")
    labels = {"rbg.workloads.x-k8s.io/group-name": workload.metadata.name, "rbg.workloads.x-k8s.io/role-name": name}
    replica_names = [f"{workload.metadata.name}-{name}-{index}" for index in range(replicas)]
    parts = list(_parts(role, templates))
    if sum(size for _, _, size in parts) * replicas > MOST_PODS:
        role.error("replicas", f"more than {MOST_PODS} pods", "plan for fewer pods at a time")
        parts = []
    for template, suffix, size in parts:
        several = size > 1 or len(parts) > 1
        names = [
            f"{one}{suffix}-{index}" if several else f"{one}{suffix}" for one in replica_names for index in range(size)
        ]
        found += stamp(template, workload, names, labels=labels)
    role.unread()
    return spread(found) if sum(size for _, _, size in parts) > 1 else found


def _parts(role: Fields, templates: Mapping[str, Fields]) -> Iterator[tuple[Fields, str, int]]:
    """The pod templates of a replica of a role, each with a part of the pods' names and their number."""
    custom = role.child("customComponentsPattern")
    custom.ignore("restartPolicy", "restartPolicyConfig")
    components = [*role.children("components"), *custom.children("components")]
    custom.unread()
    for component in components:
        component.ignore(*_COMPONENT)
        yield component.child("template"), f"-{component.required('name')}", max(1, count(component, "size", 1))
        component.unread()
    pattern = next((name for name in ("leaderWorkerPattern", "leaderWorkerSet") if name in role), "")
    if pattern:
        several = role.child(pattern)
        several.ignore(*_OF_PATTERN)
        holder = several if pattern == "leaderWorkerPattern" else role
        size = max(1, count(several, "size", 1))
        several.unread()
        leader = several.raw("leaderTemplatePatch") or several.raw("patchLeaderTemplate")
        worker = several.raw("workerTemplatePatch") or several.raw("patchWorkerTemplate")
        yield _template(holder, templates, leader), "-leader" if size > 1 else "", 1
        if size > 1:
            yield _template(holder, templates, worker), "-worker", size - 1
    elif not components:
        holder = role.child("standalonePattern") if "standalonePattern" in role else role
        yield _template(holder, templates, None), "", 1
        holder.ignore("template", "templateRef")
        if holder is not role:
            holder.unread()


def _template(holder: Fields, templates: Mapping[str, Fields], patch: object) -> Fields:
    """The template of the holder, its own or one of the object's with the patches of the holder over it."""
    reference = holder.child("templateRef")
    template = holder.child("template")
    if "templateRef" in holder:
        name = reference.required("name")
        if name not in templates:
            step = "add it to spec.roleTemplates, or correct the name"
            reference.error("name", f"there is no role template {name!r}", step)
        template = templates.get(name, template)
    patches = [one for one in (reference.raw("patch"), holder.raw("templatePatch"), patch) if isinstance(one, dict)]
    if not patches:
        return template
    found: object = {name: template.raw(name) for name in template.names()}
    for one in patches:
        found = over(found, one)
    return Fields(found, template.problems, template.path)
