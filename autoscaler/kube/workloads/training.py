"""Kubeflow's training jobs (kubeflow.org): replicas of several types, each with a pod template of its own.

Ported rules: kubeflow/training-operator v1.9.0 (PyTorchJob and similar kinds, MPIJob v1) and kubeflow/mpi-operator
v0.8.0 (MPIJob v2beta1); those of MXJob are of kubeflow/training-operator 93c758c (mxnet_types.go and mxnet_defaults.go
in pkg/apis/kubeflow.org/v1). Their pods start together only with a gang scheduler beside the operator, which is unknown
here.

HyperPodPyTorchJob is of Amazon's training operator, whose code is not public: its fields are those of
aws/sagemaker-hyperpod-cli 011ca92, src/sagemaker/hyperpod/training/config/hyperpod_pytorch_job_unified_config.py, its
label and the names of its pods those that hyperpod_pytorch_job.py and the examples of the same repository look for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from autoscaler.kube.fields import Fields
from autoscaler.kube.workloads.controllers import expander, over, suspended, within
from autoscaler.kube.workloads.stamping import Expansion, Workload, count, stamp
from autoscaler.model.pod import HostPort, Pod
from instance_catalog.dataclass import replace
from instance_catalog.kubernetes import labels as keys

# Kind to the field that holds its replicas by type.
TRAINING_JOBS: Final = {
    "PyTorchJob": "pytorchReplicaSpecs",
    "TFJob": "tfReplicaSpecs",
    "MPIJob": "mpiReplicaSpecs",
    "JAXJob": "jaxReplicaSpecs",
    "XGBoostJob": "xgbReplicaSpecs",
    "PaddleJob": "paddleReplicaSpecs",
    "MXJob": "mxReplicaSpecs",
}


class _Port(NamedTuple):
    """The port that training-operator adds to the container of this name in every replica (the first container, if
    none has the name), unless it has a port of the same name: pkg/apis/kubeflow.org/v1/*_defaults.go and
    defaulting_utils.go."""

    container: str
    name: str
    number: int


_PORTS: Final = {
    "PyTorchJob": _Port("pytorch", "pytorchjob-port", 23456),
    "TFJob": _Port("tensorflow", "tfjob-port", 2222),
    "JAXJob": _Port("jax", "jaxjob-port", 6666),
    "XGBoostJob": _Port("xgboost", "xgboostjob-port", 9999),
    "PaddleJob": _Port("paddle", "master", 36543),
    "MXJob": _Port("mxnet", "mxjob-port", 9091),
}
_V2: Final = "kubeflow.org/v2beta1"  # of mpi-operator, which labels pods by role
_IGNORED = (
    "cleanPodPolicy",
    "enableDynamicWorker",
    "jobMode",
    "launcherCreationPolicy",
    "mainContainer",
    "mpiImplementation",
    "nprocPerNode",
    "runLauncherAsWorker",
    "slotsPerWorker",
    "sshAuthMountPath",
    "successPolicy",
)
_HYPERPOD_POLICY_IGNORED = (
    "cleanPodPolicy",
    "faultDeadlineSeconds",
    "jobMaxRetryCount",
    "logMonitoringConfiguration",
    "restartPolicy",
    "startupDeadlineSeconds",
    "ttlSecondsAfterFinished",
    "workloadMode",
)
_POLICY_IGNORED = ("backoffLimit", "cleanPodPolicy", "managedBy", "ttlSecondsAfterFinished")


@expander
def expand_training_job(fields: Fields, workload: Workload) -> Expansion:
    """The pods of a training job: <job>-<replica type>-<index>."""
    spec = fields.child("spec")
    spec.ignore(*_IGNORED)
    if workload.kind == "MXJob":  # kubeflow/trainer issue 1996
        step = "see that the cluster has an operator for it (`kubectl get crd mxjobs.kubeflow.org`)"
        fields.warn("kind", "training-operator makes no pods of an MXJob since v1.9", step)
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
    by_type = {name: _replicas(replicas.child(name), workload, name.lower(), kind_label) for name in replicas.names()}
    if workload.kind == "PyTorchJob":
        _master_without_device(replicas, by_type)
    found = sum(by_type.values(), Expansion())
    found = within(found, policy.optional_integer("activeDeadlineSeconds"))
    if suspended(policy, workload) or over(fields.child("status")):
        found = Expansion()
    policy.unread()
    spec.unread()
    return found


def _master_without_device(replicas: Fields, by_type: Mapping[str, Expansion]) -> None:
    """Warn of a Master that asks for no device, and workers that do: it has rank 0 of the processes that train
    (pkg/controller.v1/pytorch/envvar.go)."""
    master, workers = (by_type.get(name, Expansion()).pods for name in ("Master", "Worker"))
    if master and any(pod.asks_for_devices for pod in workers) and not any(pod.asks_for_devices for pod in master):
        replicas.child("Master").warn(
            "template",
            "asks for no device, and the workers do: it has rank 0 of the training, which fails there with NCCL, while "
            "the workers hold their devices",
            "let it ask for what the workers ask for, unless its program trains without (gloo) or only waits for them",
        )


@expander
def expand_hyperpod_job(fields: Fields, workload: Workload) -> Expansion:
    """The pods of a HyperPodPyTorchJob: <job>-<replica name>-<index>."""
    spec = fields.child("spec")
    spec.ignore("nprocPerNode")
    policy = spec.child("runPolicy")
    policy.ignore(*_HYPERPOD_POLICY_IGNORED)
    replicas = list(spec.children("replicaSpecs"))
    _elastic_sets(spec, replicas)
    found = Expansion()
    for entry in replicas:
        found += _hyperpod_replicas(entry, workload)
    found = within(found, policy.optional_integer("activeDeadlineSeconds"))
    if suspended(policy, workload) or over(fields.child("status")):
        found = Expansion()
    policy.unread()
    spec.unread()
    return found


def _elastic_sets(spec: Fields, replicas: Sequence[Fields]) -> None:
    """The warning of `_elastic`, for a job whose replicas have names instead of types."""
    if "elasticPolicy" in spec:
        number = sum(value for entry in replicas if isinstance(value := entry.raw("replicas"), int))
        message = f"planned for {number} pod{'s' * (number != 1)} (replicas); the number may change while the job runs"
        spec.warn("elasticPolicy", message, "to plan for more, set replicas to as many as you expect")
    spec.ignore("elasticPolicy")


def _hyperpod_replicas(entry: Fields, workload: Workload) -> Expansion:
    """Spares are what the job asks of Kueue beside its pods; whether they are pods is documented nowhere."""
    entry.ignore("maxReplicas")
    name, job = entry.required("name"), workload.metadata.name
    number, spares = count(entry, "replicas", 0), entry.integer("spares")
    if spares > 0:
        message = f"{spares}: it asks Kueue for as much beside its {number} pods; planned without them"
        entry.warn("spares", message, f"to plan for them too, set replicas to {number + spares} and spares to 0")
    if number == 0:
        entry.warn("replicas", "0: it has no pods now", "set replicas to as many as you expect to plan for them")
    names = [f"{job}-{name}-{index}" for index in range(number)]
    found = stamp(entry.child("template"), workload, names, labels={keys.HYPERPOD_JOB: job})
    entry.unread()
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
    if workload.kind == "MXJob":
        entry.ignore("label")  # a variable of the program (kubeflow/mxnet-operator v1, MXReplicaSpec)
    job = workload.metadata.name
    number = count(entry, "replicas", 0 if (workload.kind, kind) == ("MPIJob", "worker") else 1)
    found = stamp(
        entry.child("template"),
        workload,
        [f"{job}-{kind}-{index}" for index in range(number)],
        labels={keys.TRAINING_JOB: job, kind_label: kind},
        labels_of=lambda index: {keys.TRAINING_REPLICA_INDEX: str(index)},
    )
    if (port := _PORTS.get(workload.kind)) and (index := _without_port(entry, port)) is not None:
        found = replace(found, pods=tuple(_with_port(pod, index, port) for pod in found.pods))
    entry.unread()
    return found


def _without_port(entry: Fields, port: _Port) -> int | None:
    """The index of the container that gets the port of its operator; None if it has it, or there is no container."""
    raw = Fields(Fields(entry.raw("template")).raw("spec")).raw("containers")
    containers = [Fields(one if isinstance(one, dict) else {}) for one in raw] if isinstance(raw, list) else []
    named = (index for index, one in enumerate(containers) if one.raw("name") == port.container)
    index = next(named, 0 if containers else None)
    ports = containers[index].raw("ports") if index is not None else None
    there = isinstance(ports, list) and any(isinstance(one, dict) and one.get("name") == port.name for one in ports)
    return None if there else index


def _with_port(pod: Pod, index: int, port: _Port) -> Pod:
    """In the network of the node, every port of a container is a port of the node."""
    if not pod.host_network or index >= len(pod.containers):
        return pod
    changed = pod.containers[index]
    added = f"{port.name}, which training-operator adds: with hostNetwork it is a port of the node"
    ports = dict.fromkeys((*changed.host_ports, HostPort(port.number, added=added)))
    containers = (*pod.containers[:index], replace(changed, host_ports=tuple(ports)), *pod.containers[index + 1 :])
    return replace(pod, containers=containers)
