"""Claims that a PodGroup has for all of its pods (gate DRAWorkloadResourceClaims, alpha and off in 1.36, off in 1.37).

Rules of k8s.io/dynamic-resource-allocation resourceclaim (IsForPod, IsReservedForPod, BindTo), v0.36.3. Such a claim is
allocated with the first pod of the group that needs it, reserved for the group, and kept until the group is gone. A pod
refers to its group by name, so uids are not compared. Without the gate the API server drops these fields.
"""

from __future__ import annotations

from collections.abc import Mapping

from autoscaler.model.gang import API_GROUP, Gang
from autoscaler.model.pod import Pod, PodClaim
from autoscaler.model.resource_claim import Consumer, ResourceClaim
from instance_catalog.kubernetes.profile import KubernetesProfile

_RESOURCE = "podgroups"


def group_of(pod: Pod, profile: KubernetesProfile) -> str:
    """The name of the PodGroup whose claims the pod may use; "" for none, or without the gate."""
    return pod.pod_group if profile.gates.workload_resource_claims else ""


def made_for(claim: ResourceClaim, pod: Pod, profile: KubernetesProfile) -> bool:
    """True if a generated claim belongs to the pod or to its group."""
    group = group_of(pod, profile)
    return claim.controller == pod.uid or (group != "" and claim.pod_group == group)


def reserved_for(claim: ResourceClaim, pod: Pod, profile: KubernetesProfile) -> bool:
    """True if the pod is already a consumer of the claim, itself or through its group."""
    group = group_of(pod, profile)
    return any(one.uid == pod.uid or (_is_group(one) and one.name == group != "") for one in claim.reserved_for)


def consumer_of(pod: Pod, entry: PodClaim, groups: Mapping[str, Gang], profile: KubernetesProfile) -> Consumer:
    """The entry for status.reservedFor of the claim that `entry` names. `groups` are by namespace/name."""
    name = group_of(pod, profile)
    group = groups.get(f"{pod.namespace}/{name}") if name else None
    if group is not None and group.shares(entry):
        return Consumer(_RESOURCE, group.name, group.uid, API_GROUP)
    return Consumer("pods", pod.name, pod.uid)


def replaced(consumer: Consumer, namespace: str, groups: Mapping[str, Gang]) -> bool:
    """True if the consumer is a PodGroup that another one of the same name has replaced."""
    group = groups.get(f"{namespace}/{consumer.name}") if _is_group(consumer) else None
    return group is not None and group.uid != consumer.uid


def _is_group(consumer: Consumer) -> bool:
    return consumer.resource == _RESOURCE and consumer.api_group == API_GROUP
