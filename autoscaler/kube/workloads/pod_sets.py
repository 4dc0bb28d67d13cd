"""JobSets (jobset.x-k8s.io) and LeaderWorkerSets (leaderworkerset.x-k8s.io): groups of pods created by controllers.

Neither is a gang by default: their pods start one by one. A JobSet becomes one by `gangPolicy`, and both by their
exclusive-topology annotation, which binds a child Job or a leader-worker group to one topology domain that it does not
share. Names and labels of the pods are those of the controllers.
"""

from __future__ import annotations

from collections.abc import Container

from autoscaler.kube.fields import Fields
from autoscaler.kube.workloads.controllers import expander, job_pods, suspended
from autoscaler.kube.workloads.stamping import MOST_PODS, Expansion, Workload, count, stamp
from autoscaler.model.gang import Gang
from autoscaler.model.labels import LabelSelector
from autoscaler.model.pod import GangRef, Pod, PodAffinityTerm
from instance_catalog.dataclass import replace
from instance_catalog.kubernetes import labels as keys
from instance_catalog.kubernetes.node_selector import Requirement

_JOBSET_IGNORED = (
    "network",
    "successPolicy",
    "failurePolicy",
    "startupPolicy",
    "coordinator",
    "managedBy",
    "ttlSecondsAfterFinished",
    "volumeClaimPolicies",
)
_WHOLE, _PER_JOB = "JobSetAsGang", "JobSetGangPerReplicatedJob"
_LWS_IGNORED = ("rolloutStrategy", "startupPolicy", "networkConfig")


@expander
def expand_job_set(fields: Fields, workload: Workload) -> Expansion:
    """The pods of a JobSet: <jobset>-<replicated job>-<job index>-<pod index>."""
    spec = fields.child("spec")
    spec.ignore(*_JOBSET_IGNORED)
    gang_policy = spec.optional_child("gangPolicy")
    policy, unknown = "", tuple[str, ...]()
    if gang_policy is not None:
        policy = gang_policy.choice("policy", (_WHOLE, _PER_JOB), _WHOLE)
        # Of Volcano, where the JobSet is made of a TrainJob.
        unknown = (*gang_policy.unsupported("networkTopology"), *gang_policy.unread())
    name, found, asking = workload.metadata.name, Expansion(), set[str]()
    for entry in spec.children("replicatedJobs"):
        made = _replicated_job(entry, workload, grouped=bool(policy))
        if any(map(_asks_for_devices, made.pods)):
            _warn_of_order(entry, asking)
            asking.add(entry.text("name"))
        found += _as_gang(made, workload, f"{name}-{entry.text('name')}") if policy == _PER_JOB else made
    if policy == _WHOLE:
        found = _as_gang(found, workload, name)
    if unknown:
        found = replace(found, gangs=tuple(replace(gang, unsupported=unknown) for gang in found.gangs))
    if suspended(spec, workload):
        found = Expansion()
    spec.unread()
    return found


def _asks_for_devices(pod: Pod) -> bool:
    return bool(pod.claims) or any("/" in name for container in pod.containers for name in container.requests)


def _warn_of_order(entry: Fields, asking: Container[str]) -> None:
    """Of one whose pods use devices only after those of another have ended; `asking` are the others with devices."""
    for other in entry.children("dependsOn"):
        name = other.text("name")
        if other.text("status") == "Complete" and name in asking:
            entry.warn(
                "dependsOn",
                f"its pods start when those of {name} have ended, and the plan has devices for both at once",
                f"to see what it needs by itself, plan without the replicated job {name}",
            )


def _replicated_job(entry: Fields, workload: Workload, *, grouped: bool) -> Expansion:
    """The pods of all Jobs of one entry. `grouped` Jobs are part of a larger gang, whose domain is not one Job's."""
    entry.ignore("groupName", "dependsOn", "network")
    name, template = entry.required("name"), entry.child("template")
    annotations = workload.metadata.annotations.with_items(template.child("metadata").text_map("annotations"))
    topology = annotations.get(keys.JOBSET_EXCLUSIVE_TOPOLOGY)
    spec, found = template.child("spec"), Expansion()
    for index in range(count(entry, "replicas", 1)):
        job = f"{workload.metadata.name}-{name}-{index}"
        labels = {
            keys.JOBSET_NAME: workload.metadata.name,
            keys.JOBSET_REPLICATED_JOB: name,
            keys.JOBSET_JOB_INDEX: str(index),
            keys.JOBSET_JOB_KEY: job,
        }
        # A mistake in the template is reported for the first Job only.
        made = job_pods(spec if index == 0 else Fields(template.raw("spec")), workload, job, labels=labels)
        if topology:
            made = _exclusive(made, topology, keys.JOBSET_JOB_KEY, job)
            made = made if grouped else _as_gang(made, workload, job, topology)
        if topology and grouped:
            made = _unsupported(made, ("exclusive-topology together with gangPolicy",))
        found += made
        if len(found.pods) > MOST_PODS:
            entry.error("replicas", f"more than {MOST_PODS} pods", "plan for fewer pods at a time")
            break
    template.unread()
    entry.unread()
    return found


@expander
def expand_leader_worker_set(fields: Fields, workload: Workload) -> Expansion:
    """The pods of a LeaderWorkerSet: leader <name>-<group>, workers <name>-<group>-<1 … size-1>."""
    spec = fields.child("spec")
    spec.ignore(*_LWS_IGNORED)
    unsupported = spec.unsupported("scheduling", "groupIdentity")
    template = spec.child("leaderWorkerTemplate")
    template.ignore("restartPolicy", "resizePolicy", "persistentVolumeClaimRetentionPolicy", "subGroupPolicy")
    unsupported += template.unsupported("volumeClaimTemplates")
    annotations = fields.child("metadata").child("annotations")
    if keys.LWS_EXCLUSIVE_TOPOLOGY in annotations:  # one domain within another
        unsupported += annotations.unsupported(keys.LWS_SUBGROUP_EXCLUSIVE_TOPOLOGY)
    groups, size = count(spec, "replicas", 1), count(template, "size", 1)
    if groups * size > MOST_PODS:
        spec.error("replicas", f"{groups} groups of {size} are more than {MOST_PODS} pods", "plan for fewer at a time")
        groups = 0
    found = Expansion()
    for index in range(groups):
        found += _group(template, workload, index, size)
    template.ignore("leaderTemplate", "workerTemplate")
    template.unread()
    spec.unread()
    return _unsupported(found, unsupported)


def _group(template: Fields, workload: Workload, index: int, size: int) -> Expansion:
    """One leader and its workers. Defects of a template are reported only for its first use."""
    metadata = workload.metadata
    leader = f"{metadata.name}-{index}"
    labels = {keys.LWS_NAME: metadata.name, keys.LWS_GROUP_INDEX: str(index), keys.LWS_GROUP_KEY: leader}
    own, first = "leaderTemplate" in template, index == 0
    leaders = stamp(
        _template(template, "leaderTemplate" if own else "workerTemplate", report=first),
        workload,
        [leader] if size else [],
        labels={**labels, keys.LWS_WORKER_INDEX: "0"},
    )
    workers = stamp(
        _template(template, "workerTemplate", report=first and own),
        workload,
        [f"{leader}-{worker}" for worker in range(1, size)],
        labels=labels,
        labels_of=lambda worker: {keys.LWS_WORKER_INDEX: str(worker + 1)},
    )
    topology = metadata.annotations.get(keys.LWS_EXCLUSIVE_TOPOLOGY)
    if not topology:
        return _in_subgroups(template, workload, leader, leaders + workers)
    made = _exclusive(leaders + workers, topology, keys.LWS_GROUP_KEY, leader)
    return _as_gang(made, workload, leader, topology)


def _in_subgroups(template: Fields, workload: Workload, leader: str, made: Expansion) -> Expansion:
    """The group; with the annotation, each subgroup has a topology domain of its own. Ported rules: kubernetes-sigs/lws
    060ab4d, pkg/webhooks/pod_webhook.go, Default and getSubGroupIndex."""
    policy = template.child("subGroupPolicy")
    size, excluded = policy.integer("subGroupSize"), policy.text("type") == "LeaderExcluded"
    topology = workload.metadata.annotations.get(keys.LWS_SUBGROUP_EXCLUSIVE_TOPOLOGY)
    if not topology or size < 1:
        return made
    first = 1 if (len(made.pods) - 1) % size == 0 else 0  # an extra leader belongs to subgroup 0
    parts: dict[int | None, list[Pod]] = {}
    for index, pod in enumerate(made.pods):
        part = None if index == 0 and excluded else max(0, index - first) // size
        parts.setdefault(part, []).append(pod)
    found = replace(made, pods=tuple(parts.pop(None, ())))
    for part, pods in parts.items():
        key = f"{leader}-{part}"
        labelled = tuple(replace(p, labels=p.labels.with_items({keys.LWS_SUBGROUP_KEY: key})) for p in pods)
        apart = _exclusive(Expansion(labelled), topology, keys.LWS_SUBGROUP_KEY, key)
        found += _as_gang(apart, workload, key, topology)
    return found


def _template(holder: Fields, name: str, *, report: bool) -> Fields:
    return holder.child(name) if report else Fields(holder.raw(name))


def _unsupported(made: Expansion, features: tuple[str, ...]) -> Expansion:
    """The pods of `made`, marked as dependent on unsupported features."""
    if not features:
        return made
    return replace(made, pods=tuple(replace(pod, unsupported=(*pod.unsupported, *features)) for pod in made.pods))


def _as_gang(made: Expansion, workload: Workload, name: str, topology: str | None = None) -> Expansion:
    """The pods of `made`, those without a gang as one gang."""
    namespace = workload.metadata.namespace
    gang = Gang(namespace, name, workload.kind, len(made.pods), topology, origin=workload.origin)
    pods = tuple(pod if pod.gang else replace(pod, gang=GangRef(namespace, name)) for pod in made.pods)
    return replace(made, pods=pods, gangs=(*made.gangs, gang))


def _exclusive(made: Expansion, topology: str, label: str, group: str) -> Expansion:
    """The pods with the anti-affinity that the controllers add, which keeps other groups out of the topology domain."""
    others = LabelSelector((Requirement(label, "Exists"), Requirement(label, "NotIn", (group,))))

    def apart(pod: Pod) -> Pod:
        term = PodAffinityTerm(others, topology, (pod.namespace,))
        return replace(pod, pod_anti_affinity=(*pod.pod_anti_affinity, term))

    return replace(made, pods=tuple(apart(pod) for pod in made.pods))
