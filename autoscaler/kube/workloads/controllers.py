"""Deployments, ReplicaSets, StatefulSets, Jobs and CronJobs: the pods that their controllers would create.

Ported rules: k8s.io/kubernetes pkg/controller, v1.36.3. Generated name suffixes are replaced by indexes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Protocol

from autoscaler.kube.fields import Fields
from autoscaler.kube.metadata import parse_metadata
from autoscaler.kube.pod import NO_PRIORITIES
from autoscaler.kube.priority import PriorityClass
from autoscaler.kube.problem import Problems
from autoscaler.kube.storage import volume_claim_from
from autoscaler.kube.workloads.stamping import Expansion, Workload, count, stamp, too_many_volumes
from autoscaler.model.origin import CLUSTER, Origin
from instance_catalog.dataclass import replace
from instance_catalog.kubernetes import labels as keys

_DEPLOYMENT_IGNORED = (
    "selector",
    "strategy",
    "minReadySeconds",
    "revisionHistoryLimit",
    "paused",
    "progressDeadlineSeconds",
)
_STATEFUL_SET_IGNORED = (
    "selector",
    "serviceName",
    "podManagementPolicy",
    "updateStrategy",
    "revisionHistoryLimit",
    "minReadySeconds",
    "persistentVolumeClaimRetentionPolicy",
)
_JOB_IGNORED = (
    "backoffLimit",
    "backoffLimitPerIndex",
    "maxFailedIndexes",
    "ttlSecondsAfterFinished",
    "manualSelector",
    "selector",
    "podFailurePolicy",
    "successPolicy",
    "podReplacementPolicy",
    "managedBy",
)
_CRON_JOB_IGNORED = (
    "schedule",
    "timeZone",
    "concurrencyPolicy",
    "startingDeadlineSeconds",
    "successfulJobsHistoryLimit",
    "failedJobsHistoryLimit",
)


def opened(
    raw: object, problems: Problems | None, origin: Origin, priorities: Mapping[str, PriorityClass]
) -> tuple[Fields, Workload]:
    """The fields of a workload object, and the input of `stamp`."""
    fields = Fields(raw, problems)
    metadata = parse_metadata(fields)
    fields.ignore("apiVersion", "status")
    return fields, Workload(fields.text("kind"), metadata, origin, priorities)


class Expand(Protocol):
    """A function that creates the pods of a workload object."""

    def __call__(
        self,
        raw: object,
        problems: Problems | None = None,
        *,
        origin: Origin = CLUSTER,
        priorities: Mapping[str, PriorityClass] = NO_PRIORITIES,
    ) -> Expansion: ...


def expander(expand: Callable[[Fields, Workload], Expansion]) -> Expand:
    """A function for whole objects: it opens the object and reports its unknown fields."""

    @wraps(expand)
    def expanded(
        raw: object,
        problems: Problems | None = None,
        *,
        origin: Origin = CLUSTER,
        priorities: Mapping[str, PriorityClass] = NO_PRIORITIES,
    ) -> Expansion:
        fields, workload = opened(raw, problems, origin, priorities)
        found = expand(fields, workload)
        fields.unread()
        return found

    return expanded


@expander
def expand_replicas(fields: Fields, workload: Workload) -> Expansion:
    """The pods of a Deployment, ReplicaSet or ReplicationController: <name>-<index>."""
    spec = fields.child("spec")
    spec.ignore(*_DEPLOYMENT_IGNORED)
    name = workload.metadata.name
    names = [f"{name}-{index}" for index in range(_replicas(spec, workload))]
    # All pods of one revision share the hash, and selectors on it depend on nothing else.
    labels = {} if workload.kind == "ReplicationController" else {keys.POD_TEMPLATE_HASH: name}
    found = stamp(spec.child("template"), workload, names, labels=labels)
    spec.unread()
    return found


@expander
def expand_stateful_set(fields: Fields, workload: Workload) -> Expansion:
    """The pods of a StatefulSet, <name>-<ordinal>, with a claim <template>-<pod> per volumeClaimTemplate."""
    spec = fields.child("spec")
    spec.ignore(*_STATEFUL_SET_IGNORED)
    metadata, first = workload.metadata, spec.child("ordinals").integer("start")
    names = [f"{metadata.name}-{first + index}" for index in range(_replicas(spec, workload))]

    def labels_of(index: int) -> Mapping[str, str]:
        return {keys.STATEFUL_SET_POD_NAME: names[index], keys.POD_INDEX: str(first + index)}

    found = stamp(spec.child("template"), workload, names, labels_of=labels_of)
    templates = [(entry.child("metadata").required("name"), entry) for entry in spec.children("volumeClaimTemplates")]
    if too_many_volumes(spec, "volumeClaimTemplates", len(names), len(templates)):
        return Expansion()
    claims = tuple(
        volume_claim_from(entry, namespace=metadata.namespace, name=f"{volume}-{pod}", origin=workload.pod_origin)
        for pod in names
        for volume, entry in templates
    )
    volumes = tuple(volume for volume, _ in templates)
    pods = tuple(
        replace(pod, volumes=(*pod.volumes, *(f"{volume}-{pod.name}" for volume in volumes))) for pod in found.pods
    )
    spec.unread()
    return replace(found, pods=pods, volume_claims=(*found.volume_claims, *claims))


@expander
def expand_job(fields: Fields, workload: Workload) -> Expansion:
    """The pods that a Job still has to run at the same time: <name>-<index>."""
    status = fields.child("status")
    done = None if over(status) else status.integer("succeeded")
    return job_pods(fields.child("spec"), workload, workload.metadata.name, done=done)


def job_pods(
    spec: Fields,
    workload: Workload,
    job_name: str,
    *,
    labels: Mapping[str, str] | None = None,
    done: int | None = 0,
) -> Expansion:
    """The pods of the Job `job_name` with the spec `spec`, `done` of which have succeeded (None: the Job has ended).

    At most `parallelism` pods run at once, and no more than completions are missing. `labels` are added to the Job's.
    """
    spec.ignore(*_JOB_IGNORED)
    parallelism, wanted = count(spec, "parallelism", 1), spec.optional_integer("completions")
    running = parallelism if wanted is None else min(parallelism, max(0, wanted - (done or 0)))
    indexed = spec.text("completionMode") == "Indexed"
    if done is None or suspended(spec, workload):
        running = 0
    deadline = spec.optional_integer("activeDeadlineSeconds")
    own = {keys.JOB_NAME: job_name, keys.JOB_NAME_LEGACY: job_name, **(labels or {})}
    names = [f"{job_name}-{index}" for index in range(running)]

    def labels_of(index: int) -> Mapping[str, str]:
        return {keys.JOB_COMPLETION_INDEX: str(index)} if indexed else {}

    found = stamp(
        spec.child("template"),
        replace(workload, owner=f"Job/{job_name}"),
        names,
        labels=own,
        labels_of=labels_of,
    )
    spec.unread()
    return within(found, deadline)


def within(found: Expansion, deadline: int | None) -> Expansion:
    """The pods, which end after `deadline` seconds if that is set."""
    if deadline is None:
        return found
    limits = (min(deadline, pod.active_deadline_seconds or deadline) for pod in found.pods)
    pods = tuple(replace(pod, active_deadline_seconds=limit) for pod, limit in zip(found.pods, limits, strict=True))
    return replace(found, pods=pods)


def over(status: Fields) -> bool:
    """True if the conditions of a Job, or of a similar object, show that it has ended."""
    ended = ("Complete", "Succeeded", "Failed")
    return any(
        entry.text("type") in ended and entry.text("status") == "True" for entry in status.children("conditions")
    )


def suspended(spec: Fields, workload: Workload | None = None) -> bool:
    """True if the workload creates no pods now. Adds a warning, because users may want to plan for it nevertheless.

    `workload` if Kueue may have suspended it: one with a queue is planned as admitted, like the rest of its queue.
    """
    found = spec.flag("suspend") and not (workload and keys.KUEUE_QUEUE in workload.metadata.labels)
    if found:
        spec.warn("suspend", "suspended: it has no pods now", "set suspend to false to plan for its pods")
    return found


def _replicas(spec: Fields, workload: Workload) -> int:
    """The number of pods that the workload creates now. Adds a warning for 0, unless a controller owns the workload."""
    found = count(spec, "replicas", 1)
    if spec.integer("replicas", 1) == 0 and workload.metadata.controller is None:
        spec.warn("replicas", "0: it has no pods now", "set replicas to as many as you expect to plan for them")
    return found


@expander
def expand_cron_job(fields: Fields, workload: Workload) -> Expansion:
    """The pods of one run of a CronJob."""
    spec = fields.child("spec")
    spec.ignore(*_CRON_JOB_IGNORED)
    template = spec.child("jobTemplate")
    template.ignore("metadata")
    found = job_pods(template.child("spec"), workload, workload.metadata.name)
    if suspended(spec):
        found = Expansion()
    template.unread()
    spec.unread()
    return found
