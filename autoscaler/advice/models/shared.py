"""Which pods may divide one model among themselves."""

from __future__ import annotations

from typing import Final

from autoscaler.model.pod import Pod
from instance_catalog.kubernetes.labels import LWS_GROUP_KEY

# Each of whose pods has the whole model; services of KServe and graphs of Dynamo with several nodes for one are read as
# spread over them.
_ALONE: Final = (
    *("Deployment", "ReplicaSet", "ReplicationController", ""),
    *("InferenceService", "LLMInferenceService", "DynamoGraphDeployment"),
)
# AIBrix: the replicas of a role, which may start together as a gang, have the whole model each; those of several pods
# (podGroupSize) are read as spread over them. Pods in a cluster have a PodSet as their owner then.
_OF_ROLES: Final = ("StormService", "RoleSet")


def sharing_group(pod: Pod) -> object:
    """The pods that may divide one model among themselves: those of a group of a LeaderWorkerSet, of a gang, or of a
    workload that is no set of replicas."""
    if LWS_GROUP_KEY in pod.labels:
        return pod.namespace, pod.labels[LWS_GROUP_KEY]
    kind = pod.owner.partition("/")[0]
    if kind in _OF_ROLES and not any(one.model_spread for one in pod.containers):
        return pod.key
    if pod.gang is not None:
        return pod.gang
    return pod.key if kind in _ALONE else (pod.namespace, pod.owner)
