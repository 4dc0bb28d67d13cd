"""Finds the pods and pod templates inside an object of any kind."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from autoscaler.kube.fields import Fields
from autoscaler.kube.workloads.stamping import SpecAsTemplate
from autoscaler.kube.workloads.training import TRAINING_JOBS

# Workloads whose pods are all of spec.template: those of Kubernetes, OpenKruise, Argo, Kubeflow and Agones.
_OF_ONE_TEMPLATE: Final = frozenset(
    {
        *("Deployment", "ReplicaSet", "ReplicationController", "StatefulSet", "DaemonSet", "Job"),
        *("CloneSet", "GameServer", "Notebook", "Rollout"),
    }
)
FINISHED = ("Succeeded", "Failed")
CONTAINERS: Final = ("initContainers", "containers")


def pods_in(fields: Fields) -> Iterator[Fields]:
    """The pods and pod templates inside an object of any kind, with their paths."""
    spec = fields.child("spec")
    match fields.text("kind"):
        case "Pod" if fields.child("status").raw("phase") not in FINISHED:
            yield fields
        case "PodTemplate":
            yield fields.child("template")
        case "CronJob":
            yield spec.child("jobTemplate").child("spec").child("template")
        case "JobSet":
            for entry in spec.children("replicatedJobs"):
                yield entry.child("template").child("spec").child("template")
        case "LeaderWorkerSet":
            for name in ("leaderTemplate", "workerTemplate"):
                yield spec.child("leaderWorkerTemplate").child(name)
        case "RayCluster":
            yield from _ray_pods(spec)
        case "RayJob":
            yield spec.child("submitterPodTemplate")
            yield from _ray_pods(spec.child("rayClusterSpec"))
        case "RayService":
            yield from _ray_pods(spec.child("rayClusterConfig"))
        case kind if kind in TRAINING_JOBS:
            replicas = spec.child(TRAINING_JOBS[kind])
            for name in replicas.names():
                yield replicas.child(name).child("template")
        case "HyperPodPyTorchJob":
            for entry in spec.children("replicaSpecs"):
                yield entry.child("template")
        case "ModelServing":
            for entry in spec.child("template").children("roles"):
                yield from (entry.child(name) for name in ("entryTemplate", "workerTemplate") if name in entry)
        case "Workflow" | "WorkflowTemplate" | "ClusterWorkflowTemplate":
            yield from _claiming(spec)
        case "CronWorkflow":
            yield from _claiming(spec.child("workflowSpec"))
        case "Fleet":
            yield spec.child("template").child("spec").child("template")
        case kind if kind in _OF_ONE_TEMPLATE or (kind == "Service" and "template" in spec):  # the latter of Knative
            yield spec.child("template")


def _claiming(workflow: Fields) -> Iterator[Fields]:
    """The claims of the pods of Argo's templates; the rest of them may hold variables."""
    for template in workflow.children("templates"):
        holder = template if "resourceClaims" in template else workflow
        if "resourceClaims" in holder and ("container" in template or "script" in template):
            yield SpecAsTemplate(
                {"resourceClaims": holder.raw("resourceClaims"), "containers": [{"name": "main", "image": "main"}]},
                {},
                {},
                holder,
            )


def _ray_pods(spec: Fields) -> Iterator[Fields]:
    for group in (spec.child("headGroupSpec"), *spec.children("workerGroupSpecs")):
        yield group.child("template")
