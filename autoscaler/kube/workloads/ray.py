"""Ray clusters (ray.io): a head, and groups of workers, alone or created for a RayJob or a RayService.

Ported rules: ray-project/kuberay v1.7.0, ray-operator/controllers/ray, common/pod.go and utils/util.go. Containers that
the operator adds to a template and a scheduler counts are added here too: an init container of every worker, and beside
the head the autoscaler, if it is on. Generated name suffixes are replaced by indexes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from autoscaler.kube.fields import Fields
from autoscaler.kube.workloads.controllers import expander, suspended, within
from autoscaler.kube.workloads.ray_serve import serve_config
from autoscaler.kube.workloads.stamping import MOST_PODS, Expansion, Workload, count, stamp
from autoscaler.model.gang import Gang
from autoscaler.model.pod import GangRef, Pod
from instance_catalog.dataclass import replace
from instance_catalog.kubernetes import labels as keys

_CLUSTER_IGNORED = (
    "authOptions",
    "gcsFaultToleranceOptions",
    "headServiceAnnotations",
    "historyServerOptions",
    "managedBy",
    "networkPolicy",
    "rayVersion",
    "tlsOptions",
    "upgradeStrategy",
)
_OF_FLEETS = (
    *("selector", "strategy", "minReadySeconds", "revisionHistoryLimit", "paused", "progressDeadlineSeconds"),
)
_HEAD_IGNORED = ("enableIngress", "headService", "ingressOptions", "rayStartParams", "resources", "serviceType")
_WORKERS_IGNORED = ("idleTimeoutSeconds", "priority", "rayStartParams", "resources", "scaleStrategy")
_JOB_IGNORED = (
    "backoffLimit",
    "deletionStrategy",
    "entrypoint",
    "entrypointNumCpus",
    "entrypointNumGpus",
    "entrypointResources",
    "jobId",
    "managedBy",
    "metadata",
    "preRunningDeadlineSeconds",
    "runtimeEnvYAML",
    "shutdownAfterJobFinishes",
    "submissionMode",
    "submitterConfig",
    "ttlSecondsAfterFinished",
)
_SERVICE_IGNORED = (
    "deploymentUnhealthySecondThreshold",
    "excludeHeadPodFromServeSvc",
    "managedBy",
    "rayClusterDeletionDelaySeconds",
    "serveConfigV2",
    "serveService",
    "serviceUnhealthySecondThreshold",
    "upgradeStrategy",
)
_CRON_JOB_IGNORED = (
    "concurrencyPolicy",
    "failedJobsHistoryLimit",
    "schedule",
    "startingDeadlineSeconds",
    "successfulJobsHistoryLimit",
    "timeZone",
)
# Batch schedulers by the value of the label ray.io/scheduler-name, and the schedulerName that KubeRay writes into pods.
# It read the label up to v1.2; since v1.3 the operator's option --batch-scheduler decides for all clusters.
_SCHEDULERS: Final = {
    "kai": "kai-scheduler",
    "scheduler-plugins": "scheduler-plugins-scheduler",
}
_OVER = ("Complete", "Failed")
_WAIT = {"name": "wait-gcs-ready", "resources": {"requests": {"cpu": "200m", "memory": "256Mi"}}}
_AUTOSCALER = {"requests": {"cpu": "500m", "memory": "512Mi"}}


@expander
def expand_ray_cluster(fields: Fields, workload: Workload) -> Expansion:
    """The pods of a RayCluster: <cluster>-head and <cluster>-<group>-worker-<index>."""
    _batch_scheduler(fields, workload)
    return _cluster(fields.child("spec"), workload)


@expander
def expand_ray_cluster_fleet(fields: Fields, workload: Workload) -> Expansion:
    """The pods of the RayClusters of a RayClusterFleet or RayClusterReplicaSet of AIBrix, named <fleet>-<index>.
    Ported rules: vllm-project/aibrix e3e10f9, api/orchestration/v1alpha1."""
    spec, found = fields.child("spec"), Expansion()
    spec.ignore(*_OF_FLEETS)
    template = spec.child("template")
    template.ignore("metadata", "spec")
    for index in range(count(spec, "replicas", 1)):
        metadata = replace(workload.metadata, name=f"{workload.metadata.name}-{index}")
        # A mistake is reported for the first cluster only.
        cluster = template.child("spec") if index == 0 else Fields(template.raw("spec"))
        found += _cluster(cluster, replace(workload, metadata=metadata))
        if len(found.pods) > MOST_PODS:
            spec.error("replicas", f"more than {MOST_PODS} pods", "plan for fewer pods at a time")
            return Expansion()
    template.unread()
    spec.unread()
    return found


@expander
def expand_ray_job(fields: Fields, workload: Workload) -> Expansion:
    """The pods of a RayJob: those of its cluster, and the one that submits it if the job has a template for it.

    Without a template the submitter requests half a CPU and no device.
    """
    _batch_scheduler(fields, workload)
    found = _job(fields.child("spec"), workload)
    if fields.child("status").text("jobDeploymentStatus") in _OVER:
        found = Expansion()
    return found


@expander
def expand_ray_cron_job(fields: Fields, workload: Workload) -> Expansion:
    """The pods of one run of a RayCronJob."""
    spec = fields.child("spec")
    spec.ignore(*_CRON_JOB_IGNORED)
    found = _job(spec.child("jobTemplate"), workload)
    if suspended(spec):
        found = Expansion()
    spec.unread()
    return found


def _job(spec: Fields, workload: Workload) -> Expansion:
    spec.ignore(*_JOB_IGNORED)
    found = Expansion()
    if "rayClusterSpec" in spec:
        found += _cluster(spec.child("rayClusterSpec"), workload)
    if "submitterPodTemplate" in spec:
        submitter = stamp(spec.child("submitterPodTemplate"), workload, [f"{workload.metadata.name}-submitter"])
        found += _scheduled(submitter, workload)
    found = within(found, spec.optional_integer("activeDeadlineSeconds"))
    spec.ignore("clusterSelector")  # manifests/ names a cluster that the files lack
    if suspended(spec, workload):
        found = Expansion()
    spec.unread()
    return found


@expander
def expand_ray_service(fields: Fields, workload: Workload) -> Expansion:
    """The pods of the one cluster that a RayService has while it is not being upgraded."""
    _batch_scheduler(fields, workload)
    spec = fields.child("spec")
    spec.ignore(*_SERVICE_IGNORED)
    found = _cluster(spec.child("rayClusterConfig"), workload)
    found = serve_config(spec, found)
    if suspended(spec, workload):
        found = Expansion()
    spec.unread()
    return found


def _batch_scheduler(fields: Fields, workload: Workload) -> None:
    """Add a warning if the label names one: users of a later KubeRay may not know that the label has no effect."""
    label = workload.metadata.labels.get(keys.RAY_SCHEDULER)
    if label:
        fields.child("metadata").child("labels").warn(
            keys.RAY_SCHEDULER,
            f"planned as pods of scheduler {_SCHEDULERS.get(label, label)}: KubeRay writes that into them up to v1.2; "
            "since v1.3 its option --batch-scheduler does, for all clusters",
            "remove the label if your operator runs without a batch scheduler",
        )


def _scheduled(found: Expansion, workload: Workload, *, together: int = 0) -> Expansion:
    """The pods with the batch scheduler that the label names, which starts `together` of the workers together.

    Volcano always does (ray-operator batchscheduler/volcano handleRayCluster), others if a label requires it. There the
    head is in the same group. Here it is not, because the pool of a gang serves all of its pods, and the head of most
    clusters needs no machine like those of the workers.
    """
    label, metadata = workload.metadata.labels.get(keys.RAY_SCHEDULER), workload.metadata
    if not label:
        return found
    pods = tuple(replace(pod, scheduler_name=_SCHEDULERS.get(label, label)) for pod in found.pods)
    if together < 2 or not (label == "volcano" or keys.RAY_GANG_SCHEDULING in metadata.labels):
        return replace(found, pods=pods)
    name = f"ray-{metadata.name}-pg"
    gang = Gang(metadata.namespace, name, f"{workload.kind} ray.io", together, origin=workload.origin)
    return replace(found, pods=tuple(_member(pod, gang) for pod in pods), gangs=(*found.gangs, gang))


def _member(pod: Pod, gang: Gang) -> Pod:
    worker = pod.labels.get(keys.RAY_NODE_TYPE) == "worker"
    return replace(pod, gang=pod.gang or GangRef(gang.namespace, gang.name)) if worker else pod


def _cluster(spec: Fields, workload: Workload) -> Expansion:
    spec.ignore(*_CLUSTER_IGNORED)
    head, name = spec.child("headGroupSpec"), workload.metadata.name
    head.ignore(*_HEAD_IGNORED)
    options = spec.child("autoscalerOptions")
    if spec.flag("enableInTreeAutoscaling"):
        message = "Ray will change the number of workers: planned for replicas"
        spec.warn("enableInTreeAutoscaling", message, "to plan for more, set replicas to as many as you expect")
        resources = options.raw("resources") or _AUTOSCALER
        template = _with(head, "containers", {"name": "autoscaler", "resources": resources})
    else:
        template = head.child("template")
    found = stamp(template, workload, [f"{name}-head"], labels=_labels(head, name, "head", "headgroup"))
    least = 0
    for group in spec.children("workerGroupSpecs"):
        found += _workers(group, workload)
        least += count(group, "minReplicas", 0) * count(group, "numOfHosts", 1)
    if suspended(spec, workload):
        found = Expansion()
    head.unread()
    spec.unread()
    return _scheduled(found, workload, together=least if spec.flag("enableInTreeAutoscaling") else len(found.pods) - 1)


def _workers(group: Fields, workload: Workload) -> Expansion:
    """One group: as many replicas as its bounds allow, each of `numOfHosts` pods."""
    group.ignore(*_WORKERS_IGNORED)
    name, cluster = group.required("groupName"), workload.metadata.name
    replicas, least = count(group, "replicas", 0), count(group, "minReplicas", 0)
    replicas = min(max(replicas, least), max(0, group.integer("maxReplicas", MOST_PODS)))
    hosts = count(group, "numOfHosts", 1)
    if replicas * hosts > MOST_PODS:
        group.error("replicas", f"more than {MOST_PODS} pods", "plan for fewer pods at a time")
        replicas = 0
    if suspended(group):
        replicas = 0
    found = stamp(
        _with(group, "initContainers", _WAIT),
        workload,
        [f"{cluster}-{name}-worker-{index}" for index in range(replicas * hosts)],
        labels=_labels(group, cluster, "worker", name),
    )
    group.unread()
    return found


def _labels(group: Fields, cluster: str, node_type: str, name: str) -> dict[str, str]:
    """The operator's labels; those of the group and the template override some of them."""
    own = Fields(Fields(group.raw("template")).raw("metadata")).text_map("labels")
    weak = {keys.RAY_NODE: "yes", keys.RAY_IDENTIFIER: f"{cluster}-{node_type}"}
    fixed = {keys.RAY_CLUSTER: cluster, keys.RAY_NODE_TYPE: node_type, keys.RAY_GROUP: name}
    return {**weak, **own, **group.text_map("labels"), **fixed}


def _with(group: Fields, part: str, container: Mapping[str, object]) -> Fields:
    """The group's pod template with one more container, after the existing ones, so that fields keep their paths."""
    template = group.raw("template")
    spec = template.get("spec") if isinstance(template, dict) else None
    if isinstance(template, dict) and isinstance(spec, dict) and isinstance(spec.get(part) or [], list):
        template = {**template, "spec": {**spec, part: [*(spec.get(part) or []), container]}}
    return Fields(template, group.problems, (*group.path, "template"))
