"""Machines that fit and cost less, and that are sold only in ways a plan has to be asked for: Spot, flex-start."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from decimal import Decimal
from typing import Final

from autoscaler.model.plan import Plan
from autoscaler.model.snapshot import Snapshot
from autoscaler.planning.one_cloud import cost_of
from autoscaler.planning.planner import plan_for
from autoscaler.planning.policy import Policy
from instance_catalog.dataclass import dataclass, replace
from instance_catalog.types.catalog import Catalog
from instance_catalog.types.instance_type import CapacityType

_MOST_PODS: Final = 100  # a plan for more takes seconds, and this one is made beside it
_ALLOWED: Final = (CapacityType.SPOT, CapacityType.ON_DEMAND)


@dataclass(frozen=True, slots=True)
class SoldOtherwise:
    """The cost and launches of the plan if `allowed` are requested; `types` are sold in no other way."""

    types: tuple[str, ...]
    allowed: tuple[CapacityType, ...]
    usd_per_hour: Decimal
    launches: tuple[tuple[str, int], ...]  # instance types with the number of nodes


def cheaper_if_asked_for(
    plan: Plan, snapshot: Snapshot, catalog: Catalog, policy: Policy, now: datetime
) -> SoldOtherwise | None:
    """The plan with Spot, where nobody said how to buy and smaller machines with the same accelerators are never sold
    on demand; None where that changes nothing. What is cheaper only for being Spot is no news."""
    before = cost_of(plan)
    if snapshot.pools or policy.where.capacity_types or before is None or len(plan.placements) > _MOST_PODS:
        return None
    if not _smaller(plan, catalog):
        return None
    asked = replace(policy, considered=0, shown_fits=0, explains=False)
    after = plan_for(snapshot, catalog, replace(asked, where=replace(asked.where, capacity_types=_ALLOWED)), now)
    counts = Counter(node.offering.instance_type for node in after.launches)
    types = tuple(sorted(name for name in counts if not catalog.types[name].sold_on_demand))
    cost = cost_of(after)
    if cost is None or cost >= before or len(after.left_out) > len(plan.left_out) or not types:
        return None
    return SoldOtherwise(types, _ALLOWED, cost, tuple(sorted(counts.items())))


def _smaller(plan: Plan, catalog: Catalog) -> bool:
    """True if a launched machine has more of its accelerators than one that is never sold on demand."""
    most = Counter[tuple[str, str]]()
    for one in (catalog.types[node.offering.instance_type] for node in plan.launches):
        if one.accelerator is not None:
            key = (one.cloud, one.accelerator.key)
            most[key] = max(most[key], one.device_count)
    rare = (one for one in catalog if one.accelerator is not None and not one.sold_on_demand)
    return any(one.device_count < most[one.cloud, one.accelerator.key] for one in rare if one.accelerator)
