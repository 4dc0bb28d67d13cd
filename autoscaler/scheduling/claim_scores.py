"""DynamicResources as a score: a node where claims get their first choices is better (dynamicresources.go, v1.36.3)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from autoscaler.model.pod import Pod
from autoscaler.model.resource_claim import Allocation, FirstAvailable, ResourceClaim
from autoscaler.scheduling.feasible import Feasible, normalized
from autoscaler.scheduling.resources import pod_requests
from autoscaler.scheduling.world import World

_MOST_ALTERNATIVES = 8  # FirstAvailableDeviceRequestMaxSize


def dynamic_resources(pod: Pod, feasible: Sequence[Feasible], world: World) -> Sequence[int]:
    """The rank of every subrequest that has or gets devices; nothing if nothing was left to allocate.

    Before 1.35 the plugin does not score.

    Claims of extended resources have no alternatives, but count as something to allocate, even on nodes that have the
    resource without DRA.
    """
    if not world.profile.scheduler.claims_scored:
        return ()
    claims = list(_claims(pod, world))
    extended = any(amount and world.served_by_dra(resource) for resource, amount in pod_requests(pod).items())
    if not extended and all(claim.allocation is not None for claim in claims):
        return [0] * len(feasible)
    return normalized([sum(_rank(claim, node) for claim in claims) for node in feasible])


def _claims(pod: Pod, world: World) -> Iterator[ResourceClaim]:
    for name in dict.fromkeys(entry.claim for entry in pod.claims if entry.claim):
        claim = world.claims.get(f"{pod.namespace}/{name}")
        if claim is not None:
            yield claim


def _rank(claim: ResourceClaim, node: Feasible) -> int:
    allocation: Allocation | None = claim.allocation or node.verdict.allocations.get(claim.key)
    given = {device.request for device in allocation.devices} if allocation is not None else set()
    return sum(
        _MOST_ALTERNATIVES - position
        for request in claim.requests
        if isinstance(request, FirstAvailable)
        for position, alternative in enumerate(request.subrequests)
        if f"{request.name}/{alternative.name}" in given
    )
