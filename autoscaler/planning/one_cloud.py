"""Plans without CapacityPools in one cloud: they offer all machines, but a cluster is in one cloud. Compares plans."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from decimal import Decimal
from typing import Final

from autoscaler.model.plan import Plan
from autoscaler.model.snapshot import Snapshot
from autoscaler.planning.demand.scope import IMPLICIT, pools_of
from autoscaler.planning.planner import plan_for
from autoscaler.planning.policy import Policy
from autoscaler.planning.supply.candidates import admits_type
from instance_catalog.dataclass import replace
from instance_catalog.types.catalog import Catalog
from instance_catalog.types.clouds import cloud_of_name

_MOST_PODS: Final = 300  # the plan is made again for each cloud


def clouds_of(plan: Plan, catalog: Catalog) -> tuple[str, ...]:
    """The clouds of the machines that the plan launches, by name."""
    return tuple(sorted({catalog.types[node.offering.instance_type].cloud for node in plan.launches}))


def clouds_of_pools(snapshot: Snapshot, catalog: Catalog) -> frozenset[str]:
    """The clouds of the machines that the pools of the snapshot admit."""
    return frozenset(one.cloud for pool in pools_of(snapshot) for one in catalog if admits_type(pool, one))


def cloud_meant(snapshot: Snapshot) -> tuple[str, str]:
    """The one cloud that pending pods name, and the name by which they do.

    The name is an extended resource, also with the amount 0, or a registry. ("", "") if pods name no cloud or several.
    """
    found: dict[str, str] = {}
    for pod in (pod for pod in snapshot.pods if not pod.bound):
        for container in (*pod.containers, *pod.init_containers):
            for name in (*container.requests, container.image):
                if cloud := cloud_of_name(name):
                    found.setdefault(cloud, name)
    return next(iter(found.items())) if len(found) == 1 else ("", "")


def plan_in_one_cloud(snapshot: Snapshot, catalog: Catalog, policy: Policy, now: datetime) -> tuple[Plan, Policy]:
    """The plan and its policy: in the cloud that the pods name, otherwise in the cheapest cloud that serves every
    pod which all clouds together serve. With CapacityPools, these decide."""
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
    """The price of the plan's launches in dollars per hour; None if one price is not known."""
    prices = [node.usd_per_hour for node in plan.launches]
    return None if None in prices else sum((price for price in prices if price is not None), Decimal(0))


def cheaper(
    plan: Plan, snapshot: Snapshot, catalog: Catalog, policy: Policy, now: datetime
) -> tuple[Decimal, Counter[str]] | None:
    """The price of another plan, and its nodes by instance type; None unless it costs less than the plan and leaves out
    no more pods."""
    before = cost_of(plan)
    after = plan_for(snapshot, catalog, policy.only_answers(), now)
    cost = cost_of(after)
    if before is None or cost is None or cost >= before or len(after.left_out) > len(plan.left_out):
        return None
    return cost, Counter(node.offering.instance_type for node in after.launches)
