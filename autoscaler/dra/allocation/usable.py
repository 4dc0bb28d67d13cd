"""Finds the devices of a node of which a request could get one now.

The search itself answers, with one device requested and all others unavailable: selectors, taints, counters and
capacity count as they do for a claim. Constraints do not count: they are about several devices.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Final, TypeVar

from autoscaler.dra.allocation.context import AllocationContext
from autoscaler.dra.allocation.requests import ClaimPlan, validate
from autoscaler.dra.allocation.search import DEFAULT_BUDGET, BudgetExceededError, Search
from autoscaler.dra.inventory.allocated import AllocatedState
from autoscaler.dra.inventory.devices import ClusterDevices
from autoscaler.dra.outcome import FatalError
from autoscaler.model.node import Node
from autoscaler.model.resource_claim import DeviceRequest, ResourceClaim
from instance_catalog.dataclass import replace
from instance_catalog.kubernetes.resource_slice import DeviceId

K = TypeVar("K")

_ONE_BY_ONE: Final = replace(DEFAULT_BUDGET, prune=False)


def usable_groups(
    request: DeviceRequest,
    groups: Mapping[K, Collection[DeviceId]],
    node: Node,
    *,
    devices: ClusterDevices,
    allocated: AllocatedState,
) -> Iterator[K]:
    """The groups of devices of which the request could get one now. None for a request with administrative access,
    which reserves nothing, and none if kube-scheduler aborts or something unknown decides. Raises BudgetSpentError."""
    if request.admin_access:
        return
    one = replace(request, allocation_mode="ExactCount", count=1)
    try:
        context = AllocationContext.of(node, devices, allocated)
        validation = validate([ResourceClaim("", "one", (one,))], context)
    except FatalError:
        return
    if validation.unknown or context.pools.undecided:
        return
    for key, members in groups.items():
        if _gets_one(validation.plans, context, members):
            yield key


def _gets_one(plans: list[ClaimPlan], context: AllocationContext, members: Collection[DeviceId]) -> bool:
    search = Search(context, plans, unknown_is_yes=False, budget=_ONE_BY_ONE)
    search.busy = [
        held or pooled.id not in members for held, pooled in zip(search.busy, context.pools.devices, strict=True)
    ]
    try:
        return search.run()
    except (FatalError, BudgetExceededError):
        return False
