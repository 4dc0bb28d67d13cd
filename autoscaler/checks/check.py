"""All checks before buying, for every pool: what a pool's conditions say, and which pools are held back.

Pure functions of the snapshot and the plan. The controller asks them in every tick, `foreslice doctor` asks them once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from autoscaler.checks.coexistence import competitors
from autoscaler.checks.drivers import conflicting_plugins, missing_drivers
from autoscaler.checks.finding import Condition, Finding
from autoscaler.checks.nodes import NodeToBe, planned_nodes, possible_nodes
from autoscaler.checks.usable import obstacles
from autoscaler.model.capacity import CapacityPool
from autoscaler.model.plan import Plan
from autoscaler.model.reason import Code, Reason
from autoscaler.model.snapshot import Snapshot
from autoscaler.planning.policy import Policy
from autoscaler.planning.supply.candidates import candidates_of
from autoscaler.planning.supply.drivers import PUBLISHING_TEMPLATES
from instance_catalog.types.catalog import Catalog


def findings(
    snapshot: Snapshot,
    plan: Plan,
    catalog: Catalog,
    *,
    policy: Policy,
    now: datetime,
    serving: Mapping[str, Reason | None] | None = None,
) -> tuple[Finding, ...]:
    """One finding for each pool and condition. `serving`: see usable.py.

    Drivers and device plugins are judged on the nodes that the plan launches: one on which they fail is enough. A pool
    for which nothing is planned is judged on what it may launch, and fails if nothing of that would work.
    """
    if not snapshot.pools:
        return ()
    found: list[Finding] = []
    candidates = candidates_of(replace(snapshot, backoffs=(), quarantines=()), catalog, policy, now=now)
    for pool in snapshot.pools:
        wrong = obstacles(pool, objections=plan.warnings, backoffs=snapshot.backoffs, serving=serving, now=now)
        found.append(Finding(pool.name, Condition.READY, tuple(wrong)))
        found.append(Finding(pool.name, Condition.COEXISTENCE, tuple(competitors(pool, snapshot))))
        planned = planned_nodes(pool, plan, catalog)
        nodes = planned or tuple(possible_nodes(pool, candidates))
        if pool.node_template[0] in PUBLISHING_TEMPLATES:
            nodes = ()
        missing = [tuple(missing_drivers(pool, node, snapshot)) for node in nodes]
        plugins = [tuple(conflicting_plugins(node, snapshot)) for node in nodes]
        one_is_enough = bool(planned)
        found.append(Finding(pool.name, Condition.DRIVERS_WILL_RUN, _judged(nodes, missing, one_is_enough)))
        found.append(Finding(pool.name, Condition.DEVICE_PLUGIN_CONFLICT, _judged(nodes, plugins, one_is_enough)))
    return tuple(found)


def _judged(nodes: Sequence[NodeToBe], wrong: Sequence[tuple[Reason, ...]], one_is_enough: bool) -> tuple[Reason, ...]:
    """What is wrong over all nodes, each reason once with a type that it concerns; nothing if that is no obstacle."""
    if not any(wrong) or (not one_is_enough and not all(wrong)):
        return ()
    merged: dict[Reason, str] = {}
    for node, reasons in zip(nodes, wrong, strict=True):
        for reason in reasons:
            merged.setdefault(reason, node.instance_type)
    return tuple(
        replace(reason, detail=reason.detail.with_items({"example": example})) for reason, example in merged.items()
    )


def forbidden(found: Iterable[Finding], snapshot: Snapshot, why: str) -> tuple[Finding, ...]:
    """The findings when writing down what to launch was refused: no pool that acts may go on."""
    acting = {pool.name for pool in snapshot.pools if pool.acts}
    refused = Reason.of(Code.MAY_NOT_ACT, problem=why)
    return tuple(
        replace(finding, reasons=(*finding.reasons, refused))
        if finding.condition is Condition.READY and finding.pool in acting
        else finding
        for finding in found
    )


def held_back(snapshot: Snapshot, found: Iterable[Finding]) -> Snapshot:
    """The snapshot with the pools that must not act marked as such."""
    stopped = {finding.pool for finding in found if finding.stops}
    return replace(snapshot, pools=tuple(_marked(pool, pool.name in stopped) for pool in snapshot.pools))


def _marked(pool: CapacityPool, stopped: bool) -> CapacityPool:
    return pool if pool.held_back == stopped else replace(pool, held_back=stopped)
