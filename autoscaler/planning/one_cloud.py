"""Plans without CapacityPools: all machines are on offer, and yet a cluster is in one cloud."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from typing import Final

from autoscaler.model.plan import Plan
from autoscaler.model.snapshot import Snapshot
from autoscaler.planning.demand.scope import IMPLICIT
from autoscaler.planning.planner import plan_for
from autoscaler.planning.policy import Policy
from instance_catalog.types.catalog import Catalog
from instance_catalog.types.clouds import cloud_of_name

_MOST_PODS: Final = 300  # the plan is made again for each cloud


def clouds_of(plan: Plan, catalog: Catalog) -> tuple[str, ...]:
    """The clouds of the machines that the plan launches, by name."""
    return tuple(sorted({catalog.types[node.offering.instance_type].cloud for node in plan.launches}))


def cloud_meant(snapshot: Snapshot) -> tuple[str, str]:
    """The one cloud that pending pods name, and the first name by which they do so: an extended resource, also one of
    which they want none, or a registry. ("", "") where they name none or several."""
    found: dict[str, str] = {}
    for pod in (pod for pod in snapshot.pods if not pod.bound):
        for container in (*pod.containers, *pod.init_containers):
            for name in (*container.requests, container.image):
                if cloud := cloud_of_name(name):
                    found.setdefault(cloud, name)
    return next(iter(found.items())) if len(found) == 1 else ("", "")


def plan_in_one_cloud(snapshot: Snapshot, catalog: Catalog, policy: Policy, now: datetime) -> tuple[Plan, Policy]:
    """The plan, and the policy that gives it: of the one cloud that the pods mean, else of the one that costs least,
    where nobody says which it is and one cloud serves every pod that several serve together. CapacityPools say by
    themselves where they are."""
    plan = plan_for(snapshot, catalog, policy, now)
    clouds = clouds_of(plan, catalog)
    theirs = any(pool.name != IMPLICIT.name for pool in snapshot.pools)
    if theirs or policy.where.clouds or not clouds or len(plan.placements) > _MOST_PODS:
        return plan, policy
    meant, _ = cloud_meant(snapshot)
    if meant and clouds != (meant,):
        clouds = (meant,)
    elif len(clouds) < 2:
        return plan, policy
    placed = {placement.pod for placement in plan.placements}
    found: list[tuple[Decimal, str, Plan, Policy]] = []
    for cloud in clouds:
        there = replace(policy, where=replace(policy.where, clouds=(cloud,)))
        alone = plan_for(snapshot, catalog, there, now)
        cost = cost_of(alone)
        if cost is not None and placed <= {placement.pod for placement in alone.placements}:
            found.append((cost, cloud, alone, there))
    _, _, best, chosen = min(found, key=lambda entry: entry[:2], default=(None, None, plan, policy))
    return best, chosen


def cost_of(plan: Plan) -> Decimal | None:
    """Dollars an hour of what the plan launches; None where a price is not known."""
    prices = [node.usd_per_hour for node in plan.launches]
    return None if None in prices else sum((price for price in prices if price is not None), Decimal(0))
