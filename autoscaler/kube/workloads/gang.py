"""Gangs, pods that start together: one module for all APIs, one value for the planner.

| API | object | a pod names it by |
|---|---|---|
| scheduling.k8s.io v1alpha2 and newer | PodGroup | spec.schedulingGroup.podGroupName |
| scheduling.k8s.io v1alpha1 (1.35) | Workload, one gang per pod group | spec.workloadRef |
| scheduling.x-k8s.io (coscheduling) | PodGroup | label scheduling.x-k8s.io/pod-group |
| scheduling.volcano.sh | PodGroup | annotation scheduling.k8s.io/group-name |
| scheduling.run.ai (KAI) | PodGroup | annotation pod-group-name |

Workloads of newer versions are only templates: their controllers create the PodGroups.
"""

from __future__ import annotations

from autoscaler.kube.fields import Fields
from autoscaler.kube.metadata import header, parse_metadata
from autoscaler.kube.pod import uid_of
from autoscaler.kube.problem import Problems
from autoscaler.model.gang import API_GROUP, Gang
from autoscaler.model.origin import CLUSTER, Origin
from autoscaler.model.pod import PodClaim

# Queueing and accounting: no effect on where the members fit.
_IGNORED = (
    "queue",
    "priorityClassName",
    "minResources",
    "scheduleTimeoutSeconds",
    "markUnschedulable",
    "preemptibility",
    "backoffLimit",
    "schedulingBackoff",
    "stalenessGracePeriod",
    "podGroupTemplateRef",
    "disruptionMode",
    "priority",
    "preemptionPriority",
)
# Unsupported: they would change which members fit where.
_UNSUPPORTED = ("minTaskMember", "networkTopology", "minSubGroup")


def parse_pod_group(raw: object, problems: Problems | None = None, *, origin: Origin = CLUSTER) -> Gang:
    """A PodGroup of any of the APIs. One with the basic policy is a gang of one: it starts nothing together."""
    fields = Fields(raw, problems)
    metadata = parse_metadata(fields)
    fields.ignore("apiVersion", "kind", "status")
    version = header(raw)[0]
    spec = fields.child("spec")
    spec.ignore(*_IGNORED)
    uid, claims = metadata.uid, tuple[PodClaim, ...]()
    if version.startswith(f"{API_GROUP}/"):
        count, topology, unsupported = _policy(spec)
        uid = uid or uid_of("PodGroup", metadata.namespace, metadata.name)
        claims = tuple(_claim(entry) for entry in spec.children("resourceClaims"))
    else:
        if "minMember" not in spec:
            spec.warn("minMember", "is missing: 1 is assumed", "say how many pods must start together")
        count = spec.integer("minMember", 1)
        constraint = spec.child("topologyConstraint")  # KAI; the level is a node label
        constraint.ignore("topology", "preferredTopologyLevel")
        topology = constraint.text("requiredTopologyLevel") or None
        count, sub_groups = _sub_groups(spec, count)
        unsupported = (*constraint.unread(), *spec.unsupported("resourceClaims"), *sub_groups)
    unsupported = (*unsupported, *spec.unsupported(*_UNSUPPORTED), *spec.unread(), *fields.unread())
    return Gang(
        namespace=metadata.namespace,
        name=metadata.name,
        kind=f"PodGroup {version}",
        min_count=count,
        topology_key=topology,
        unsupported=unsupported,
        uid=uid,
        claims=claims,
        origin=origin,
    )


def _sub_groups(spec: Fields, count: int) -> tuple[int, tuple[str, ...]]:
    """(count, unsupported) of KAI's subgroups of plain members, which start together: the members of all of them. KAI
    counts each by itself, so a plan promises the same only if no subgroup has more pods than its minMember."""
    groups = tuple(spec.children("subGroups"))
    members, unknown = 0, list[str]()
    for index, group in enumerate(groups):
        group.ignore("name")
        members += group.integer("minMember", count if len(groups) == 1 else 1)
        unknown += (f"subGroups[{index}].{name}" for name in group.unread())
    if len(groups) > 1 and not unknown:
        message = f"their {members} members are counted together, and KAI counts those of each subgroup"
        spec.warn("subGroups", message, "where a subgroup has more pods than its minMember, see who gets a place")
    return max(count, members), tuple(unknown)


def _claim(entry: Fields) -> PodClaim:
    """The entry that pods must have to share the claim. A generated claim is found through them."""
    found = PodClaim(
        entry.required("name"),
        entry.optional_text("resourceClaimName"),
        template=entry.optional_text("resourceClaimTemplateName"),
    )
    if (found.claim is None) == (found.template is None):
        step = "write either resourceClaimName or resourceClaimTemplateName"
        entry.error("resourceClaimName", "a claim of a PodGroup needs one source", step)
    entry.unread()
    return found


def parse_workload(raw: object, problems: Problems | None = None, *, origin: Origin = CLUSTER) -> tuple[Gang, ...]:
    """The gangs of a v1alpha1 Workload, named workload/podGroup as pods refer to them; newer ones are templates."""
    fields = Fields(raw, problems)
    metadata = parse_metadata(fields)
    fields.ignore("apiVersion", "kind", "status")
    spec = fields.child("spec")
    spec.ignore("controllerRef", "podGroupTemplates")
    found = []
    for group in spec.children("podGroups"):
        name = f"{metadata.name}/{group.required('name')}"
        count = _min_count(group.child("policy"))
        kind = f"Workload {header(raw)[0]}"
        found.append(Gang(metadata.namespace, name, kind, count, unsupported=group.unread(), origin=origin))
    spec.unread()
    fields.unread()
    return tuple(found)


def _policy(spec: Fields) -> tuple[int, str | None, tuple[str, ...]]:
    """(count, topology key, unsupported) of scheduling.k8s.io policies and constraints."""
    count = _min_count(spec.child("schedulingPolicy"))
    constraints = spec.child("schedulingConstraints")
    levels = [entry.required("key") for entry in constraints.children("topology")]
    several = ("schedulingConstraints.topology with several keys",) if len(levels) > 1 else ()
    return count, levels[0] if levels else None, (*several, *constraints.unread())


def _min_count(policy: Fields) -> int:
    gang = policy.optional_child("gang")
    policy.ignore("basic")
    policy.unread()
    if gang is None:
        return 1
    count = gang.integer("minCount")
    if count < 1:
        gang.error("minCount", "must be at least 1", "say how many pods must start together")
    gang.unread()
    return max(count, 1)
