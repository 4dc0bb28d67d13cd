"""Volcano's Job (batch.volcano.sh): tasks of equal pods, started together by Volcano.

Ported rules: volcano-sh/volcano ed72c7c, pkg/controllers/job (names, labels, scheduler of pods) and
pkg/webhooks/admission/jobs/mutate (defaults).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from autoscaler.kube.fields import Fields
from autoscaler.kube.workloads.controllers import expander, suspended
from autoscaler.kube.workloads.stamping import Expansion, Workload, count, stamp
from autoscaler.model.gang import Gang
from autoscaler.model.pod import GangRef, Pod
from instance_catalog.dataclass import replace

_IGNORED: Final = (
    "maxRetry",
    "minSuccess",
    "plugins",
    "policies",
    "priorityClassName",  # of the PodGroup: Volcano's own order of jobs
    "queue",
    "runningEstimate",
    "ttlSecondsAfterFinished",
)
_TASK_IGNORED: Final = ("dependsOn", "maxRetry", "policies", "topologyPolicy")
_CRON_JOB_IGNORED: Final = (
    "concurrencyPolicy",
    "failedJobsHistoryLimit",
    "schedule",
    "startingDeadlineSeconds",
    "successfulJobsHistoryLimit",
    "timeZone",
)
_DEFAULT_SCHEDULER: Final = "volcano"
_OVER: Final = frozenset({"Completed", "Completing", "Failed", "Terminated", "Terminating", "Aborted", "Aborting"})


@expander
def expand_volcano_job(fields: Fields, workload: Workload) -> Expansion:
    """The pods of all tasks: <job>-<task>-<index>; a gang if minAvailable is more than one."""
    found = _job(fields.child("spec"), workload)
    return Expansion() if fields.child("status").child("state").text("phase", "") in _OVER else found


@expander
def expand_volcano_cron_job(fields: Fields, workload: Workload) -> Expansion:
    """The pods of one run of Volcano's CronJob."""
    spec = fields.child("spec")
    spec.ignore(*_CRON_JOB_IGNORED)
    template = spec.child("jobTemplate")
    template.ignore("metadata")
    found = _job(template.child("spec"), workload)
    if suspended(spec):
        found = Expansion()
    template.unread()
    spec.unread()
    return found


def _job(spec: Fields, workload: Workload) -> Expansion:
    spec.ignore(*_IGNORED)
    scheduler = spec.text("schedulerName", "") or _DEFAULT_SCHEDULER
    volumes = tuple(_volumes(spec))
    found, least = Expansion(), 0
    for index, task in enumerate(spec.children("tasks")):
        made, needed = _task(task, workload, index)
        found, least = found + made, least + needed
    minimum = count(spec, "minAvailable", 0) or least
    if "networkTopology" in spec:
        message = "is not considered: the pods are planned without regard to switches"
        spec.warn("networkTopology", message, "give the pool nodes of one block or placement group")
    spec.ignore("networkTopology")
    spec.unread()
    if not found.pods:
        return Expansion()
    namespace, name = workload.metadata.namespace, workload.metadata.name
    gang = Gang(namespace, name, "Job batch.volcano.sh", min(minimum, len(found.pods)), origin=workload.origin)
    together = gang.min_count > 1  # a single pod waits for no other
    reference = GangRef(namespace, name) if together else None
    pods = tuple(_of_job(pod, scheduler, volumes, reference) for pod in found.pods)
    return replace(found, pods=pods, gangs=(*found.gangs, gang) if together else found.gangs)


def _task(task: Fields, workload: Workload, index: int) -> tuple[Expansion, int]:
    """The task's pods, and the number of them that must start together."""
    task.ignore(*_TASK_IGNORED, "partitionPolicy")
    name = task.text("name", "") or f"default{index}"
    number = count(task, "replicas", 0)
    job = workload.metadata.name
    made = stamp(
        task.child("template"),
        workload,
        [f"{job}-{name}-{i}" for i in range(number)],
        labels={"volcano.sh/job-name": job, "volcano.sh/task-spec": name},
        labels_of=lambda i: {"volcano.sh/task-index": str(i)},
    )
    least = count(task, "minAvailable", number)
    task.unread()
    return made, least


def _volumes(spec: Fields) -> Iterator[str]:
    """Claims that every pod mounts. Those that the job creates from `volumeClaim` wait for its pods."""
    for entry in spec.children("volumes"):
        entry.ignore("mountPath")
        name = entry.text("volumeClaimName", "")
        if name and "volumeClaim" not in entry:
            yield name
        entry.ignore("volumeClaim")
        entry.unread()


def _of_job(pod: Pod, scheduler: str, volumes: tuple[str, ...], gang: GangRef | None) -> Pod:
    own = pod.scheduler_name if pod.scheduler_name != "default-scheduler" else scheduler
    mounted = tuple(dict.fromkeys((*pod.volumes, *volumes)))
    return replace(pod, scheduler_name=own, volumes=mounted, gang=pod.gang or gang)
