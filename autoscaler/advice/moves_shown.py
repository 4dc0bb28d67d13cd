"""The answers of `consolidate: Cheaper` for a plan that users read: what would be moved now, and why other pods stay.

The controller tries a few nodes at a time and remembers them; a command has no such memory and tries the first ones, in
rounds, until a move pays. Nothing is launched or drained: only the decisions about nodes get the reasons.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from functools import partial
from typing import Final

from autoscaler.model.capacity import CapacityPool, ConsolidationPolicy
from autoscaler.model.plan import Plan
from autoscaler.model.reason import Code, Reason, Subject
from autoscaler.model.snapshot import Snapshot
from autoscaler.planning.disruption.consolidation.consolidation import consolidated
from autoscaler.planning.disruption.consolidation.moves import is_quiet
from autoscaler.planning.disruption.consolidation.tried_moves import NOTHING_TRIED, PAUSE
from autoscaler.planning.planner import plan_for
from autoscaler.planning.policy import Policy
from instance_catalog.dataclass import replace
from instance_catalog.types.catalog import Catalog

# Each round tries up to eight nodes, and each try is a plan or two of the whole cluster.
_ROUNDS: Final = 2


def with_moves_shown(plan: Plan, snapshot: Snapshot, catalog: Catalog, policy: Policy, now: datetime) -> Plan:
    """The plan with these answers, and with a warning for each pool of which no move is tried."""
    pools = [pool for pool in snapshot.pools if _moves_pods(pool)]
    untried = tuple(_untried(pools, plan, snapshot, now))
    plan = replace(plan, warnings=(*plan.warnings, *untried))
    if len(untried) == len(pools):
        return plan
    make = partial(plan_for, catalog=catalog, policy=policy, now=now)
    attempt = partial(make, policy=policy.for_moves())
    tried, shown = NOTHING_TRIED, plan
    for turn in range(_ROUNDS):
        at = now + turn * PAUSE
        found = consolidated(plan, snapshot, make, at, tried, attempt=attempt, catalog=catalog, policy=policy)
        before, tried, shown = tried, found.tried, found.plan
        if shown.launches != plan.launches or tried.going or tried.answers == before.answers:
            break
    return replace(plan, nodes=shown.nodes)


def _moves_pods(pool: CapacityPool) -> bool:
    return pool.disruption.consolidate is ConsolidationPolicy.CHEAPER and not pool.implicit


def _untried(pools: list[CapacityPool], plan: Plan, snapshot: Snapshot, now: datetime) -> Iterator[Reason]:
    owned = {node.pool for node in snapshot.provisioned}
    quiet = is_quiet(plan, snapshot, now)
    for pool in pools if snapshot.nodes else ():
        if pool.name not in owned:
            problem = "consolidate: Cheaper moves pods of nodes that Foreslice launched, and none is of this pool"
            step = "if there are some, give their ProvisionedNodes as well: `kubectl get provisionednodes -o yaml`"
            yield Reason.of(Code.ADVICE, Subject("pool", pool.name), problem=problem, next_step=step)
        elif not quiet:
            problem = "no move of running pods is tried while a pod gets a place, or a node starts or ends"
            step = "plan again after that, or without the pending pods"
            yield Reason.of(Code.ADVICE, Subject("pool", pool.name), problem=problem, next_step=step)
