"""Checks that a node's own amounts suffice for a pod whose claims take of them as well (KEP-5517).

Upstream: getPodNodeAllocatableResourceFootprint, validatePodLevelResourcesCoverDRA and nodeFitsResources of
kube-scheduler's plugin dynamicresources, v1.37.2.
"""

from __future__ import annotations

from collections.abc import Iterator

from autoscaler.dra.claims.node_allocatable import ClaimShare, amounts_of
from autoscaler.model.pod import Pod
from autoscaler.model.reason import Code, Reason, Subject
from autoscaler.model.requests import add, together
from autoscaler.scheduling.node_state import NodeState
from autoscaler.scheduling.resources import is_hugepages, pod_level, pod_requests, units
from instance_catalog.dataclass import replace
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.quantity import Quantity

_COUNTED = ("cpu", "memory", "ephemeral-storage")  # and hugepages-*


def too_little(pod: Pod, state: NodeState, shares: tuple[ClaimShare, ...]) -> tuple[Reason, ...]:
    """One reason for each resource of which the node, or the pod's own limit, has too little with these shares."""
    amounts = FrozenMap(amounts_of(shares))
    whole = replace(pod, claim_amounts=amounts)
    exceeded = next(_pod_level_exceeded(whole, shares), None)
    if exceeded is not None:
        return (exceeded,)
    return tuple(
        Reason.of(
            Code.INSUFFICIENT_WITH_CLAIMS,
            Subject("pod", pod.key),
            resource=resource,
            wanted=wanted,
            of_claims=units(resource, amounts.get(resource, Quantity.of(0))),
            free=max(state.free(resource), 0),
        )
        for resource, wanted in pod_requests(whole).items()
        if (resource in _COUNTED and wanted > 0) or is_hugepages(resource)
        if wanted > state.free(resource)
    )


def _pod_level_exceeded(pod: Pod, shares: tuple[ClaimShare, ...]) -> Iterator[Reason]:
    """Pod-level requests that do not cover containers and claims together, or limits that do not cover a container.

    The limit of hugepages is not checked: it equals the request, as for containers.
    """
    aggregated = together(pod.containers, pod.init_containers)
    add(aggregated, pod.claim_amounts)
    for resource, bound in sorted(pod_level(pod).items()):
        if resource in aggregated and aggregated[resource] > bound:
            yield Reason.of(Code.POD_LEVEL_EXCEEDED, Subject("pod", pod.key), resource=resource)
    for container in pod.containers:
        claimed: dict[str, Quantity] = {}
        for share in shares:
            if container.name in share.containers:
                add(claimed, share.of_container())
        for resource, limit in container.limits.items():
            if is_hugepages(resource) or resource not in pod.pod_limits:
                continue
            total = limit + claimed[resource] if resource in claimed else limit
            if total > pod.pod_limits[resource]:
                yield Reason.of(
                    Code.POD_LEVEL_EXCEEDED, Subject("pod", pod.key), resource=resource, container=container.name
                )
