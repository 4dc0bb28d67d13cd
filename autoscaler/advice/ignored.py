"""What else keeps ignored pods from a place: one plan as if every pool served them.

The first obstacle of such a pod is a pool's scope; to remove that one and meet the next is what this saves people.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from datetime import datetime

from autoscaler.model.capacity import CapacityPool, PodScope
from autoscaler.model.plan import LeftOut, Plan
from autoscaler.model.reason import Code
from autoscaler.model.snapshot import Snapshot
from autoscaler.planning.demand.scope import pools_of
from autoscaler.planning.planner import plan_for
from autoscaler.planning.policy import Policy
from instance_catalog.types.catalog import Catalog


def would_stay(
    plan: Plan, snapshot: Snapshot, catalog: Catalog, policy: Policy, now: datetime, *, beside: Collection[str] = ()
) -> tuple[LeftOut, ...]:
    """The ignored pods that no pool could place if it served them, with why; `beside` are keys of pods left alone.

    Only pods of another scheduler, and those that ask for what device plugins hand out: for others the scope is all.
    """
    asked = {entry.pod for entry in plan.outside if entry.pod not in beside and _has_more_to_it(entry)}
    if not asked:
        return ()
    ignored = {entry.pod for entry in plan.outside}
    pods = tuple(pod for pod in snapshot.pods if pod.bound or pod.key in ignored)
    schedulers = frozenset(pod.scheduler_name for pod in pods)
    pools = tuple(_serving(pool, schedulers) for pool in pools_of(snapshot))
    found = plan_for(replace(snapshot, pods=pods, pools=pools), catalog, policy, now)
    return tuple(entry for entry in found.left_out if entry.pod in asked)


def _has_more_to_it(entry: LeftOut) -> bool:
    return any(
        reason.code is Code.OTHER_SCHEDULER or (reason.code is Code.OUT_OF_SCOPE and "resources" in reason.detail)
        for reason in entry.reasons
    )


def _serving(pool: CapacityPool, schedulers: frozenset[str]) -> CapacityPool:
    named = (*pool.scope.schedulers, *sorted(schedulers - set(pool.scope.schedulers)))
    return replace(pool, scope=replace(pool.scope, pods=PodScope.ALL, schedulers=named))
