"""Kubeflow's training jobs (kubeflow.org): replicas of several types, each with a pod template of its own.

Ported rules: kubeflow/training-operator v1.9.0 (PyTorchJob and similar kinds, MPIJob v1) and kubeflow/mpi-operator
v0.8.0 (MPIJob v2beta1). Their pods start together only with a gang scheduler beside the operator, which is unknown
here.
"""

from __future__ import annotations

from typing import Final

from autoscaler.kube.fields import Fields
from autoscaler.kube.workloads.controllers import expander, over, suspended, within
from autoscaler.kube.workloads.stamping import Expansion, Workload, count, stamp
from instance_catalog.kubernetes import labels as keys

# Kind to the field that holds its replicas by type.
TRAINING_JOBS: Final = {
    "PyTorchJob": "pytorchReplicaSpecs",
    "TFJob": "tfReplicaSpecs",
    "MPIJob": "mpiReplicaSpecs",
    "JAXJob": "jaxReplicaSpecs",
    "XGBoostJob": "xgbReplicaSpecs",
    "PaddleJob": "paddleReplicaSpecs",
}
_V2: Final = "kubeflow.org/v2beta1"  # of mpi-operator, which labels pods by role
_IGNORED = (
    "cleanPodPolicy",
    "enableDynamicWorker",
    "launcherCreationPolicy",
    "mainContainer",
    "mpiImplementation",
    "nprocPerNode",
    "runLauncherAsWorker",
    "slotsPerWorker",
    "sshAuthMountPath",
    "successPolicy",
)
_POLICY_IGNORED = ("backoffLimit", "cleanPodPolicy", "managedBy", "ttlSecondsAfterFinished")


@expander
def expand_training_job(fields: Fields, workload: Workload) -> Expansion:
    """The pods of a training job: <job>-<replica type>-<index>."""
    spec = fields.child("spec")
    spec.ignore(*_IGNORED)
    if fields.raw("apiVersion") == _V2 and "cleanPodPolicy" in spec:
        message = "is not a field of MPIJob v2beta1, so it has no effect: pods keep running after the job by default"
        spec.warn("cleanPodPolicy", message, "move it into spec.runPolicy")
    policy = spec.child("runPolicy")
    policy.ignore(*_POLICY_IGNORED)
    if "schedulingPolicy" in policy:
        message = "counts only where the operator has a gang scheduler; planned as single pods"
        policy.warn("schedulingPolicy", message, "for a gang, give the PodGroup that its scheduler reads")
    policy.ignore("schedulingPolicy")
    kind_label = keys.TRAINING_ROLE if fields.raw("apiVersion") == _V2 else keys.TRAINING_REPLICA_TYPE
    replicas = spec.child(TRAINING_JOBS.get(workload.kind, ""))
    _elastic(spec, replicas)
    found = Expansion()
    for name in replicas.names():
        found += _replicas(replicas.child(name), workload, name.lower(), kind_label)
    found = within(found, policy.optional_integer("activeDeadlineSeconds"))
    if suspended(policy, workload) or over(fields.child("status")):
        found = Expansion()
    policy.unread()
    spec.unread()
    return found


def _elastic(spec: Fields, replicas: Fields) -> None:
    """Warn that a number of workers is planned for a job whose number of workers may change while it runs."""
    policy = spec.raw("elasticPolicy")
    spec.ignore("elasticPolicy")
    if not isinstance(policy, dict):
        return
    least, most = policy.get("minReplicas"), policy.get("maxReplicas")
    given = Fields(replicas.raw("Worker")).raw("replicas")
    number = given if isinstance(given, int) else 1
    spec.warn(
        "elasticPolicy",
        f"planned for {number} worker{'s' * (number != 1)} (replicas of Worker), with which the job starts"
        + (f"; it may have {least or 1} to {most} later" if most else ""),
        "to plan for more, set replicas of Worker to as many as you expect",
    )


def _replicas(entry: Fields, workload: Workload, kind: str, kind_label: str) -> Expansion:
    entry.ignore("restartPolicy")
    job = workload.metadata.name
    number = count(entry, "replicas", 0 if (workload.kind, kind) == ("MPIJob", "worker") else 1)
    found = stamp(
        entry.child("template"),
        workload,
        [f"{job}-{kind}-{index}" for index in range(number)],
        labels={keys.TRAINING_JOB: job, kind_label: kind},
        labels_of=lambda index: {keys.TRAINING_REPLICA_INDEX: str(index)},
    )
    entry.unread()
    return found
