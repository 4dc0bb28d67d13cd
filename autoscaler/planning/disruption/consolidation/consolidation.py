"""Pools with `consolidate: Cheaper`: running pods move to cheaper nodes, one step at a time.

A step is first tried as a plan (moves.py). The next step begins only after it is done: no node starts or ends, and no
pod waits for a place. If pods need another machine, the new node is launched while the old one still runs them. The old
one drains only when the new one is ready, since its pods then fit on existing nodes. So a machine that cannot be
launched, or that differs from its prediction, costs no pod its place.

A drain begins with a taint. Once a watch shows the taint, the move is tried again, and only then pods are evicted.

Each node is tried every few minutes, a few nodes at a time, starting with the one that was tried longest ago. While
its pods have no more room than before, a refusal stays the same (refused_moves.py), so it is computed only every six
hours. The history of tries is only in memory: after a restart the nodes are tried again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from functools import partial
from itertools import islice
from math import ceil
from typing import Final

from autoscaler.model.capacity import CapacityPool, ConsolidationPolicy
from autoscaler.model.plan import NodeAction, NodeDecision, Plan
from autoscaler.model.provisioned_node import ProvisionedNode
from autoscaler.model.reason import Reason
from autoscaler.model.resource_claim import ResourceClaim
from autoscaler.model.snapshot import Snapshot
from autoscaler.planning.disruption.budgets import Budgets
from autoscaler.planning.disruption.consolidation.candidates import (
    TRIES,
    Candidates,
    is_new,
    keeps_for_pods,
)
from autoscaler.planning.disruption.consolidation.merging import worth_a_try
from autoscaler.planning.disruption.consolidation.moves import (
    Move,
    MoveContext,
    RefusedTry,
    by_acting_pools,
    is_quiet,
    text_of,
    try_move,
)
from autoscaler.planning.disruption.consolidation.refused_moves import (
    outline_of,
    still_refused,
    with_refusals,
    without_refusals,
)
from autoscaler.planning.disruption.consolidation.tried_moves import NO_SECOND, NOTHING_TRIED, PAUSE, MovesTried
from autoscaler.planning.disruption.node_actions import REPLACING
from autoscaler.planning.placement.replay import pod_without_place
from autoscaler.planning.policy import Policy
from instance_catalog.dataclass import dataclass, replace
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.types.catalog import Catalog

# No window of a budget that is closed for longer is missed.
_EVERY: Final = timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class Consolidated:
    """The plan with a step, or with the reasons why pods stay. `next_at`: when more nodes are tried."""

    plan: Plan
    tried: MovesTried
    next_at: datetime | None = None


def consolidated(
    plan: Plan,
    snapshot: Snapshot,
    make: Callable[[Snapshot], Plan],
    now: datetime,
    tried: MovesTried,
    *,
    attempt: Callable[[Snapshot], Plan],
    catalog: Catalog,
    policy: Policy,
) -> Consolidated:
    """The plan with the next step of consolidation, if there is one. `make` and `attempt`: see MoveContext."""
    pools = {pool.name: pool for pool in snapshot.pools if _consolidates(pool)}
    if not pools:
        return Consolidated(plan, NOTHING_TRIED)
    tried = NOTHING_TRIED if tried.is_later_than(now) else tried.among(snapshot.provisioned)
    if not is_quiet(plan, snapshot, now):
        return Consolidated(_explained(plan, tried), replace(tried, going=()))
    if tried.last is not None and now < tried.last + PAUSE and not tried.going:
        return Consolidated(_explained(plan, tried), tried, tried.last + PAUSE)
    found = Candidates(snapshot, plan, pools, now, catalog)
    outline = outline_of(snapshot, plan, found.pods, found.closed, catalog, now, policy)
    refused = still_refused(tried.refused, tried.outline, outline, snapshot.claims, now)
    tried = replace(tried, refused=refused, outline=outline)
    batch, stay = found.due(tried)
    seen = replace(
        tried,
        answers=tried.answers.with_items(stay),
        refused=without_refusals(tried.refused, stay),
        tried=tried.tried.with_items(dict.fromkeys(stay, now)),
    )
    together = found.together(tried)
    after = replace(seen, going=())
    if batch or together is not None:
        stuck = partial(pod_without_place, catalog=catalog, work=policy.work, now=now)
        # A shorter search may launch others for the pods of pools in mode Observe.
        present = (*plan.launches, *(attempt(snapshot).launches if plan.launches else ()))
        known = frozenset(launch.name for launch in present)
        context = replace(found.move_context(make, attempt), stuck=stuck, known=known)
        plan, after = _tried(batch, together, found, context, seen)
    return Consolidated(_explained(plan, after), after, found.next_at(after))


def _consolidates(pool: CapacityPool) -> bool:
    return pool.disruption.consolidate is ConsolidationPolicy.CHEAPER and not (
        pool.ordered or pool.deleting or pool.implicit
    )


def _tried(
    batch: Sequence[ProvisionedNode],
    together: Sequence[ProvisionedNode] | None,
    found: Candidates,
    context: MoveContext,
    tried: MovesTried,
) -> tuple[Plan, MovesTried]:
    """Try the nodes one by one and, if none can be removed alone, several of those `together`; first all that are
    tainted. Return the plan with the best move."""
    answers, moves, again = dict(tried.answers), list[Move](), dict[str, datetime]()
    pools = {pool.name: pool for pool in context.snapshot.pools}
    for nodes in _sets(batch, together, found, context, moves, again=bool(tried.going)):
        result = try_move(nodes, context)
        if isinstance(result, RefusedTry):
            if len(nodes) == 1:
                answers[nodes[0].name] = result.reason
                again.update({} if result.again is None else {nodes[0].name: found.now + result.again})
            continue
        answers.update(dict.fromkeys((node.name for node in nodes), text_of(result)))
        counts = by_acting_pools(result, pools) or not found.acts
        if counts and _may_take(result, context.snapshot, tried, found.now):
            moves.append(result)
    after = _seen(tried, batch, together, answers, again, found, context.snapshot.claims)
    best = _best(moves, found) if found.acts else None
    return (context.plan, after) if best is None else _taken(best, context, after)


def _seen(
    tried: MovesTried,
    batch: Sequence[ProvisionedNode],
    together: Sequence[ProvisionedNode] | None,
    answers: Mapping[str, Reason],
    again: Mapping[str, datetime],
    found: Candidates,
    claims: Mapping[str, ResourceClaim],
) -> MovesTried:
    """The state after these tries. `again`: when a refused move is tried again although nothing has changed."""
    return replace(
        tried,
        last=found.now,
        going=(),
        together=tried.together if together is None else found.now,
        tried=tried.tried.with_items(dict.fromkeys((node.name for node in batch), found.now)),
        answers=FrozenMap(answers),
        refused=with_refusals(
            tried.refused,
            batch,
            answers,
            found.pods,
            claims,
            outline=tried.outline,
            again=again,
            now=found.now,
        ),
    )


def _best(moves: Iterable[Move], found: Candidates) -> Move | None:
    """The move that saves most; what a node was launched for is completed first."""

    def worth(move: Move) -> tuple[bool, Decimal]:
        awaited = found.replaced.issuperset(node.name for node in move.nodes)
        return awaited and not move.launches, move.saved

    return max(moves, key=worth, default=None)


def _taken(move: Move, context: MoveContext, tried: MovesTried) -> tuple[Plan, MovesTried]:
    """The plan with the first step of the move: its launches, or otherwise the end of its nodes. Then every node
    whose answer may differ is tried again."""
    plan, now = context.plan, context.now
    names = sorted(node.name for node in move.nodes)
    refused = without_refusals(tried.refused, names)  # of nodes that could not go alone, but can together
    still = FrozenMap({name: at for name, at in tried.tried.items() if name in refused})
    tried = replace(tried, refused=refused, tried=still, together=None)
    if move.launches:
        replaced = {name: (now, 1 + tried.replaced.get(name, (now, 0))[1]) for name in names}
        plan = replace(plan, launches=(*plan.launches, *move.launches))
        return plan, replace(tried, replaced=tried.replaced.with_items(replaced))
    goes = {name: NodeDecision(name, NodeAction.DRAIN, (text_of(move),)) for name in names}
    nodes = tuple(goes.get(decision.provisioned_node, decision) for decision in plan.nodes)
    return replace(plan, nodes=nodes), replace(tried, going=tuple(names))


def _sets(
    batch: Sequence[ProvisionedNode],
    together: Sequence[ProvisionedNode] | None,
    found: Candidates,
    context: MoveContext,
    moves: Sequence[Move],
    *,
    again: bool,
) -> Iterator[Sequence[ProvisionedNode]]:
    """Each node alone; then, while no move was found, several, at most as many times as nodes are tried alone. `again`:
    the nodes of the batch are tainted to go together, so all of them come first."""
    if again and len(batch) > 1:
        yield batch
        if moves:
            return
    for node in batch:
        yield (node,)
    several = islice(_several(batch, together or (), found, context), found.most)
    while not moves and (nodes := next(several, None)) is not None:
        yield nodes


def _several(
    batch: Sequence[ProvisionedNode], together: Sequence[ProvisionedNode], found: Candidates, context: MoveContext
) -> Iterator[Sequence[ProvisionedNode]]:
    """Those of which a plan without all the nodes `together` shows that one machine could replace them, and at last the
    first nodes, fewer each time.

    Nodes whose move costs much come second: with one of them a set may save too little, and their tenants choose that.
    """
    every = [*found.to_act_on(batch), *(node for node in together if node not in batch)]
    dear = {node.name for node in every if not found.may_pay(node)}
    for skipped in (dear, set[str]()) if dear else (dear,):
        many = [node for node in together if node.name not in skipped]
        if len(many) > 1:
            yield from worth_a_try(many, context)
        nodes = [node for node in every if node.name not in skipped]
        count = min(TRIES, len(nodes))
        while count > 1:
            yield nodes[:count]
            count //= 2


def _may_take(move: Move, snapshot: Snapshot, tried: MovesTried, now: datetime) -> bool:
    """True if budgets allow the move, and no other replacement is new or was launched shortly before.

    The nodes of a replacement drain one after the other, so each needs the budget alone, and all the time until the
    last of them may have drained, or other moves come before these drains.
    """
    budgets = Budgets(snapshot, now)
    if not move.launches:
        return all(budgets.take(node) for node in move.nodes)
    restart = {pool.name: pool.disruption.saving.restart for pool in snapshot.pools}
    until = min(REPLACING + sum((restart[node.pool] for node in move.nodes[1:]), timedelta(0)), NO_SECOND)
    moments = (now + _EVERY * step for step in range(1 + ceil(until / _EVERY)))
    replaced = {name for node in snapshot.provisioned if is_new(node, now) for name in node.replaces}
    if any(node.name in replaced or not tried.may_replace(node.name, now) for node in move.nodes):
        return False
    return all(all(map(Budgets(snapshot, at).allow, move.nodes)) for at in moments)


def _explained(plan: Plan, tried: MovesTried) -> Plan:
    """The plan with the result of trying each node."""
    nodes = tuple(
        replace(decision, reasons=(*decision.reasons, tried.answers[decision.provisioned_node]))
        if keeps_for_pods(decision) and decision.provisioned_node in tried.answers
        else decision
        for decision in plan.nodes
    )
    return replace(plan, nodes=nodes)
