"""The claims of a pod (kube-scheduler's plugin dynamicresources, PreEnqueue and PreFilter, v1.36).

A pod whose claims are missing, being deleted or made for another pod cannot be scheduled on any node; this is reported
once, before any node is checked.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from autoscaler.dra.claims.extended_resources import extended_resource_claim, extended_resource_classes
from autoscaler.dra.claims.pod_groups import made_for, reserved_for
from autoscaler.model.device_class import DeviceClass
from autoscaler.model.node import Node
from autoscaler.model.pod import Pod, PodClaim
from autoscaler.model.reason import Code, Reason, Subject
from autoscaler.model.resource_claim import FirstAvailable, ResourceClaim
from autoscaler.model.verdict import DoesNotFit, Fatal
from instance_catalog.kubernetes.node_selector import BadSelectorError, matches
from instance_catalog.kubernetes.profile import KubernetesProfile

__all__ = [
    "ClaimsOrVerdict",
    "claims_of",
    "extended_resource_claim",
    "extended_resource_classes",
    "full",
    "unavailable",
]

MAX_CONSUMERS = 256  # status.reservedFor

ClaimsOrVerdict: TypeAlias = tuple[ResourceClaim, ...] | DoesNotFit | Fatal


def claims_of(
    pod: Pod, claims: Mapping[str, ResourceClaim], profile: KubernetesProfile, classes: Mapping[str, DeviceClass]
) -> ClaimsOrVerdict:
    """The pod's claims in pod order, allocated ones included; or the reason why no node can run the pod.

    `claims` is keyed by namespace/name, `classes` by name. Entries that intentionally have no claim are left out.
    """
    found: dict[str, ResourceClaim] = {}
    for entry in pod.claims:
        if entry.claim == "":
            continue
        claim = claims.get(f"{pod.namespace}/{entry.claim}") if entry.claim is not None else None
        problem = _problem(pod, entry, claim, profile)
        if problem is not None:
            return problem
        if claim is None:
            continue
        if claim.key in found and claim.allocation is None:
            # The allocator would allocate it twice, and writing the second allocation would fail.
            return DoesNotFit(
                (Reason.of(Code.MALFORMED_REQUEST, Subject.claim(claim.key), problem="named twice by the pod"),)
            )
        found[claim.key] = claim
    for claim in found.values():
        verdict = _check_classes(claim, profile, classes) if claim.allocation is None else None
        if verdict is not None:
            return verdict
    return tuple(found.values())


def unavailable(claim: ResourceClaim, node: Node) -> Reason | None:
    """The reason why an allocated claim cannot be used on a node.

    Devices whose binding conditions are not yet true do not prevent it: kube-scheduler waits for them, and clears the
    allocation itself after its binding timeout. Raises BadSelectorError for a node selector that cannot be parsed.
    """
    allocation = claim.allocation
    assert allocation is not None
    selector = allocation.node_selector
    if selector is not None and not matches(selector, name=node.name, labels=node.labels):
        return Reason.of(Code.CLAIM_ALLOCATED_ELSEWHERE, Subject.claim(claim.key), node=node.name)
    for device in allocation.devices:
        if not device.binding_conditions:
            continue
        key = f"{device.driver}/{device.pool}/{device.device}"
        true = claim.device_conditions.get(key, ())
        failed = [condition for condition in device.binding_failure_conditions if condition in true]
        if failed:
            return Reason.of(Code.BINDING_FAILED, Subject.claim(claim.key), device=key, conditions=tuple(failed))
        if not all(condition in true for condition in device.binding_conditions):
            break  # the devices after it do not matter
    return None


def _problem(pod: Pod, entry: PodClaim, claim: ResourceClaim | None, profile: KubernetesProfile) -> DoesNotFit | None:
    if entry.claim is None:
        subject = Subject("pod", pod.key, Subject("claim", entry.name))
        return DoesNotFit((Reason.of(Code.CLAIM_NOT_CREATED, subject, template=entry.template or ""),))
    if claim is None:
        return DoesNotFit((Reason.of(Code.CLAIM_NOT_FOUND, Subject("claim", f"{pod.namespace}/{entry.claim}")),))
    if claim.deleting:
        return DoesNotFit((Reason.of(Code.CLAIM_DELETING, Subject.claim(claim.key)),))
    if entry.template is not None and not made_for(claim, pod, profile):
        return DoesNotFit((Reason.of(Code.CLAIM_NOT_OWNED, Subject.claim(claim.key), pod=pod.key),))
    return None


def full(claim: ResourceClaim, pod: Pod, profile: KubernetesProfile) -> Reason | None:
    """The reason why the pod cannot use an allocated claim: the API server would refuse its binding."""
    if len(claim.reserved_for) < MAX_CONSUMERS or reserved_for(claim, pod, profile):
        return None
    return Reason.of(Code.CLAIM_RESERVED_FULL, Subject.claim(claim.key), limit=MAX_CONSUMERS)


def _check_classes(
    claim: ResourceClaim, profile: KubernetesProfile, classes: Mapping[str, DeviceClass]
) -> DoesNotFit | Fatal | None:
    """The result of PreFilter, which checks the classes of unallocated claims before the allocator does."""
    for request in claim.requests:
        if isinstance(request, FirstAvailable) and not profile.gates.prioritized_list:
            subject = Subject.claim(claim.key, request.name)
            return DoesNotFit((Reason.of(Code.FEATURE_DISABLED, subject, gate="DRAPrioritizedList"),))
        for alternative in request.alternatives:
            subject = Subject.claim(claim.key, alternative.name)
            if not alternative.device_class:
                return Fatal((Reason.of(Code.MALFORMED_REQUEST, subject, problem="deviceClassName is missing"),))
            if alternative.device_class not in classes:
                reason = Reason.of(Code.CLASS_NOT_FOUND, subject, device_class=alternative.device_class)
                return DoesNotFit((reason,))
    return None


def check_selectors(claims: Iterable[ResourceClaim]) -> Fatal | None:
    """Fatal if the node selector of an allocated claim cannot be parsed: kube-scheduler aborts the attempt."""
    for claim in claims:
        selector = claim.allocation.node_selector if claim.allocation is not None else None
        if selector is None:
            continue
        try:
            matches(selector, name="", labels={})
        except BadSelectorError as error:
            return Fatal((Reason.of(Code.BAD_NODE_SELECTOR, Subject.claim(claim.key), problem=str(error)),))
    return None
