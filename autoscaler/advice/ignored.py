"""Finds all other obstacles of ignored pods by one plan as if every pool served them. The first obstacle of such a pod
is a pool's scope; users should not discover the next one only after they removed it.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from autoscaler.model.capacity import CapacityPool, PodScope
from autoscaler.model.plan import LeftOut, Plan
from autoscaler.model.reason import Code
from autoscaler.model.snapshot import Snapshot
from autoscaler.planning.demand.scope import pools_of
from autoscaler.planning.planner import plan_for
from autoscaler.planning.policy import Policy
from instance_catalog.dataclass import dataclass, replace
from instance_catalog.prediction.device_plugins import is_plugin_resource
from instance_catalog.types.catalog import Catalog


@dataclass(frozen=True, slots=True)
class Served:
    """The result of a plan in which every pool serves the ignored pods: `staying` are those that it could not place."""

    snapshot: Snapshot
    plan: Plan
    staying: tuple[LeftOut, ...]


def as_if_served(
    plan: Plan, snapshot: Snapshot, catalog: Catalog, policy: Policy, now: datetime, *, beside: Collection[str] = ()
) -> Served | None:
    """None where that would say nothing more; `beside` are keys of pods that are not asked about.

    Only pods of another scheduler, and those that ask for what device plugins hand out: for others the scope is all.
    """
    asked = {entry.pod for entry in plan.outside if entry.pod not in beside and _has_more_to_it(entry)}
    if not asked:
        return None
    ignored = {entry.pod for entry in plan.outside}
    pods = tuple(pod for pod in snapshot.pods if pod.bound or pod.key in ignored)
    schedulers = frozenset(pod.scheduler_name for pod in pods)
    pools = tuple(_serving(pool, schedulers) for pool in pools_of(snapshot))
    served = replace(snapshot, pods=pods, pools=pools)
    found = plan_for(served, catalog, policy, now)
    staying = tuple(entry for entry in found.left_out if entry.pod in asked)
    return Served(served, found, staying) if staying else None


def _has_more_to_it(entry: LeftOut) -> bool:
    """True if the next obstacle is worth a plan. A resource that nobody knows lacks a DeviceClass, and one that no
    machine has lacks a machine: that was said. What asks for no device needs none of these nodes."""
    codes = {reason.code: reason for reason in entry.reasons}
    if Code.OUT_OF_SCOPE not in codes:
        return Code.OTHER_SCHEDULER in codes
    detail = codes[Code.OUT_OF_SCOPE].detail
    asked = () if "clouds" in detail else detail.get("resources", ())
    return isinstance(asked, tuple) and bool(asked) and all(map(is_plugin_resource, asked))


def _serving(pool: CapacityPool, schedulers: frozenset[str]) -> CapacityPool:
    named = (*pool.scope.schedulers, *sorted(schedulers - set(pool.scope.schedulers)))
    return replace(pool, scope=replace(pool.scope, pods=PodScope.ALL, schedulers=named))
