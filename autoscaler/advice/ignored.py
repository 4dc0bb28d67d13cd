"""Ignored pods: kube-scheduler binds them to existing nodes where they fit, whatever pools serve.

For the others this finds all other obstacles by one plan as if every pool served them. The first obstacle of such a pod
is a pool's scope; users should not discover the next one only after they removed it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Set
from datetime import datetime
from typing import Final

from autoscaler.lint.pods.gpu_shares import whole_instead
from autoscaler.model.capacity import KNOWN_SCHEDULERS, CapacityPool, PodScope
from autoscaler.model.plan import LeftOut, Placement, Plan, Target
from autoscaler.model.pod import Pod
from autoscaler.model.reason import Code, Reason, Subject
from autoscaler.model.snapshot import Snapshot
from autoscaler.model.verdict import DoesNotFit
from autoscaler.planning.demand.scope import pools_of, requested_resources
from autoscaler.planning.placement.existing import present_nodes
from autoscaler.planning.placement.replay import as_planned
from autoscaler.planning.planner import plan_for
from autoscaler.planning.policy import Policy
from autoscaler.scheduling.fit import fit_one
from autoscaler.scheduling.schedule import first, schedule
from autoscaler.scheduling.world import World
from instance_catalog.dataclass import dataclass, replace
from instance_catalog.prediction.device_plugins import is_plugin_resource
from instance_catalog.types.catalog import Catalog

_SELECTING: Final = frozenset({Code.NODE_SELECTOR_MISMATCH, Code.NODE_AFFINITY_MISMATCH})
_NEVER_BOUGHT: Final = frozenset({Code.NOT_RUNNABLE, Code.FRACTION_UNASKED, Code.NOT_IN_GROUPS})
_MOST_CHECKS: Final = 20_000  # pods times nodes; more would take longer than the plan itself


def on_existing_nodes(plan: Plan, snapshot: Snapshot, catalog: Catalog) -> Plan:
    """The plan in which ignored pods have a place on the existing node to which kube-scheduler would bind them. Those
    that ask for devices of such nodes and fit on none have the reasons of the nearest one, too.

    The pods that pools serve keep their places. Other schedulers may have rules beside those of kube-scheduler: only
    their pods that ask for devices of existing nodes, with which somebody asks whether they fit, have a place.
    """
    ignored = {entry.pod for entry in plan.outside}
    had = {name for node in snapshot.nodes for name in node.allocatable}
    pods = [pod for pod in snapshot.pods if pod.key in ignored and _is_bindable(pod, had)]
    if not pods or not snapshot.nodes or len(pods) * len(snapshot.nodes) > _MOST_CHECKS:
        return plan
    present = present_nodes(snapshot, catalog, World.of(snapshot, catalog.drivers.values()))
    found = schedule(sorted(pods, key=lambda pod: pod.turn), as_planned(plan, present), first)
    why = {pod.key: tuple(_nearest(pod, found.world)) for pod in found.left}
    bound = {entry.pod.key: entry for entry in found.bound}
    placements = (
        Placement(
            pod=entry.pod.key,
            target=Target.EXISTING,
            node=entry.node,
            allocations=entry.verdict.allocations,
            preference=entry.verdict.preference,
            reasons=(Reason.of(Code.EXISTING_NODE),),
        )
        for entry in found.bound
    )
    staying = (entry for entry in plan.outside if entry.pod not in bound)
    sold = {name for one in catalog for name in (*one.allocatable, *one.extended_resources)}
    here = {name for name in had - sold if not is_plugin_resource(name)}
    outside = tuple(replace(entry, reasons=(*_but_nodes(entry, here), *why.get(entry.pod, ()))) for entry in staying)
    return replace(plan, placements=(*plan.placements, *placements), outside=outside)


def _but_nodes(entry: LeftOut, here: Set[str]) -> Iterator[Reason]:
    """The reasons of an ignored pod; where it asks for devices that only given nodes have, no scope of a pool and no
    further node in the files is a step."""
    for reason in entry.reasons:
        names = reason.detail.get("resources")
        if reason.code is Code.OUT_OF_SCOPE and isinstance(names, tuple) and {*map(str, names)} <= here:
            yield Reason.of(reason.code, reason.subject, resources=names, held="the nodes that are given")
            return
    yield from entry.reasons


def _is_bindable(pod: Pod, had: Set[str]) -> bool:
    known = pod.scheduler_name in KNOWN_SCHEDULERS
    asks = any("/" in name and name in had for name in requested_resources(pod))
    return (known or asks) and not pod.scheduling_gates


def _nearest(pod: Pod, world: World) -> Iterator[Reason]:
    """The reasons of the node that has most of the devices which the pod asks for."""
    asked = [name for name in requested_resources(pod) if "/" in name]
    having = {
        name: sum(state.free(resource) for resource in asked)
        for name, state in sorted(world.nodes.items())
        if any(state.allocatable.get(resource, 0) > 0 for resource in asked)
    }
    if having:
        name = max(having, key=lambda node: having[node])
        verdict = fit_one(pod, name, world)
        if isinstance(verdict, DoesNotFit):
            yield from (replace(reason, subject=Subject("existing node", name)) for reason in verdict.reasons)


def refusing_nodes(plan: Plan, snapshot: Snapshot, catalog: Catalog) -> Plan:
    """The plan in which pods without a place that select labels of given nodes, and of no machine that could be bought,
    have the reason of one of these nodes as well."""
    selecting = {entry.pod for entry in plan.left_out if _of_no_new_node(entry)}
    pods = [pod for pod in snapshot.pods if pod.key in selecting and pod.selected_labels]
    if not pods or not snapshot.nodes or len(pods) * len(snapshot.nodes) > _MOST_CHECKS:
        return plan
    present = present_nodes(snapshot, catalog, World.of(snapshot, catalog.drivers.values()))
    world = as_planned(plan, present)
    why = {pod.key: _of_selected(pod, world) for pod in pods}
    entries = (replace(entry, reasons=(*entry.reasons, *why.get(entry.pod, ()))) for entry in plan.left_out)
    return replace(plan, left_out=tuple(entries))


def _of_no_new_node(entry: LeftOut) -> bool:
    codes = {miss.reason.code for miss in entry.near_misses} - _NEVER_BOUGHT
    return bool(codes) and codes <= _SELECTING


def _of_selected(pod: Pod, world: World) -> tuple[Reason, ...]:
    """The reasons of the first node whose labels the pod selects."""
    for name in sorted(world.nodes):
        verdict = fit_one(pod, name, world)
        if isinstance(verdict, DoesNotFit) and not {reason.code for reason in verdict.reasons} & _SELECTING:
            return tuple(_on_node(reason, name, world) for reason in verdict.reasons)
    return ()


def _on_node(reason: Reason, name: str, world: World) -> Reason:
    """The reason as one of this node; where it has no ResourceSlices at all, they may just not be given."""
    published = any(one.reach.node_name in (name, None) for one in world.snapshot.slices)
    facts = {} if published or reason.code is not Code.NO_DEVICE_OF_CLASS else {"unpublished": name}
    return replace(reason, subject=Subject("existing node", name), detail=reason.detail.with_items(facts))


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
    Those that ask for parts of GPUs are planned with whole ones.
    """
    asked = {entry.pod for entry in plan.outside if entry.pod not in beside and _has_more_to_it(entry)}
    if not asked:
        return None
    ignored = {entry.pod for entry in plan.outside}
    pods = tuple(whole_instead(pod)[0] for pod in snapshot.pods if pod.bound or pod.key in ignored)
    schedulers = frozenset(pod.scheduler_name for pod in pods)
    pools = tuple(_serving(pool, schedulers) for pool in pools_of(snapshot))
    served = replace(snapshot, pods=pods, pools=pools)
    found = plan_for(served, catalog, policy, now)
    staying = tuple(entry for entry in found.left_out if entry.pod in asked)
    return Served(served, found, staying) if staying else None


def _has_more_to_it(entry: LeftOut) -> bool:
    """True if the next obstacle is worth a plan. A resource that nobody hands out lacks a DeviceClass, one that no
    machine has lacks a machine, and nothing is bought for a network card alone: that was said. What asks for no device
    needs none of these nodes."""
    codes = {reason.code: reason for reason in entry.reasons}
    if Code.OUT_OF_SCOPE not in codes:
        return Code.OTHER_SCHEDULER in codes
    detail = codes[Code.OUT_OF_SCOPE].detail
    asked = () if {"clouds", "alone"} & detail.keys() else detail.get("resources", ())
    served = not detail.keys().isdisjoint(("by", "shares"))
    return isinstance(asked, tuple) and bool(asked) and (served or all(map(is_plugin_resource, asked)))


def _serving(pool: CapacityPool, schedulers: frozenset[str]) -> CapacityPool:
    named = (*pool.scope.schedulers, *sorted(schedulers - set(pool.scope.schedulers)))
    return replace(pool, scope=replace(pool.scope, pods=PodScope.ALL, schedulers=named))
