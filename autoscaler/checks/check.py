"""All checks before buying, for every pool: the conditions of a pool, and the pools that are held back.

Pure functions of the snapshot and the plan. The controller runs them in every reconcile, `foreslice doctor` once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from autoscaler.checks.coexistence import competitors, foreign_nodes
from autoscaler.checks.drivers import conflicting_plugins, missing_drivers
from autoscaler.checks.nodes import NodeToBe, planned_nodes, possible_nodes
from autoscaler.checks.pool_condition import ConditionType, PoolCondition
from autoscaler.checks.usable import obstacles, resting, slices_of_hosts, telling
from autoscaler.lifecycle.provisioned_node import counts_against_limits
from autoscaler.model.capacity import CapacityPool
from autoscaler.model.plan import Plan
from autoscaler.model.reason import Code, Reason
from autoscaler.model.snapshot import Snapshot
from autoscaler.planning.demand.scope import as_if_ours
from autoscaler.planning.policy import Policy
from autoscaler.planning.supply.candidates import candidates_of
from autoscaler.planning.supply.drivers import PUBLISHING_TEMPLATES
from instance_catalog.dataclass import replace
from instance_catalog.types.catalog import Catalog


def pool_conditions(
    snapshot: Snapshot,
    plan: Plan,
    catalog: Catalog,
    *,
    policy: Policy,
    now: datetime,
    serving: Mapping[str, Reason | None] | None = None,
    orders: bool = True,
) -> tuple[PoolCondition, ...]:
    """One finding for each pool and condition. `serving` and `orders`: see usable.py.

    Drivers and device plugins are judged on the nodes that the plan launches: one on which they fail is enough. A pool
    for which nothing is planned is judged on what it may launch, and fails if nothing of that would work.
    """
    if not snapshot.pools:
        return ()
    found: list[PoolCondition] = []
    whole = replace(as_if_ours(snapshot), backoffs=(), quarantines=())
    candidates = candidates_of(whole, catalog, policy, now=now)
    asking = _asking(snapshot, plan)
    for pool in snapshot.pools:
        backoffs = telling(pool, snapshot.backoffs, launches=pool.name in asking, now=now)
        wrong = obstacles(pool, objections=plan.warnings, backoffs=backoffs, serving=serving, orders=orders)
        rests = resting(pool, candidates, backoffs)
        slices = slices_of_hosts(pool, candidates)
        found.append(PoolCondition(pool.name, ConditionType.READY, (*wrong, *rests, *slices)))
        others = (*competitors(pool, snapshot), *foreign_nodes(pool, snapshot, now))
        found.append(PoolCondition(pool.name, ConditionType.COEXISTENCE, others))
        planned = planned_nodes(pool, plan, catalog)
        nodes = planned or possible_nodes(pool, candidates)
        if pool.node_template.kind in PUBLISHING_TEMPLATES:
            nodes = ()
        missing = [tuple(missing_drivers(pool, node, snapshot)) for node in nodes]
        plugins = [tuple(conflicting_plugins(node, snapshot)) for node in nodes]
        combined = _on_any if planned else _on_all
        found.append(PoolCondition(pool.name, ConditionType.DRIVERS_WILL_RUN, combined(nodes, missing)))
        found.append(PoolCondition(pool.name, ConditionType.DEVICE_PLUGIN_CONFLICT, combined(nodes, plugins)))
    return tuple(found)


def _asking(snapshot: Snapshot, plan: Plan) -> frozenset[str]:
    """The pools whose provider is being asked for machines, or is about to be."""
    coming = (node.pool for node in snapshot.provisioned if counts_against_limits(node) and not node.provider_id)
    return frozenset({*coming, *(launch.pool for launch in plan.launches)})


def _on_all(nodes: Sequence[NodeToBe], wrong: Sequence[tuple[Reason, ...]]) -> tuple[Reason, ...]:
    """The faults of the nodes if each of them has one."""
    return _on_any(nodes, wrong) if all(wrong) else ()


def _on_any(nodes: Sequence[NodeToBe], wrong: Sequence[tuple[Reason, ...]]) -> tuple[Reason, ...]:
    """The faults of any of the nodes: each reason once, with an instance type as an example."""
    merged: dict[Reason, str] = {}
    for node, reasons in zip(nodes, wrong, strict=True):
        for reason in reasons:
            merged.setdefault(reason, node.instance_type)
    return tuple(
        replace(reason, detail=reason.detail.with_items({"example": example})) for reason, example in merged.items()
    )


def forbidden(found: Iterable[PoolCondition], snapshot: Snapshot, why: str) -> tuple[PoolCondition, ...]:
    """The findings if a launch could not be recorded: no pool that acts may continue."""
    acting = {pool.name for pool in snapshot.pools if pool.acts}
    refused = Reason.of(Code.MAY_NOT_ACT, problem=why)
    return tuple(
        replace(finding, reasons=(*finding.reasons, refused))
        if finding.type is ConditionType.READY and finding.pool in acting
        else finding
        for finding in found
    )


def held_back(snapshot: Snapshot, found: Iterable[PoolCondition]) -> Snapshot:
    """The snapshot with every pool marked that must not act."""
    stopped = {condition.pool for condition in found if condition.stops}
    return replace(snapshot, pools=tuple(_marked(pool, held_back=pool.name in stopped) for pool in snapshot.pools))


def _marked(pool: CapacityPool, *, held_back: bool) -> CapacityPool:
    return pool if pool.held_back == held_back else replace(pool, held_back=held_back)
