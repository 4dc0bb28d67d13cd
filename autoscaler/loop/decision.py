"""The decisions of a reconcile. Pure: the same input gives the same decisions, and nothing is written or requested.

`decide` plans, compares the plan with the results of earlier ones, plans again with these results, and decides which
pools must not act. Recording the decisions shows which cannot be written; `without_pairs` and `forbid` apply that.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from datetime import datetime
from functools import partial
from typing import Final

from autoscaler.checks.check import forbidden, held_back, pool_conditions
from autoscaler.checks.pool_condition import ConditionType, PoolCondition
from autoscaler.lifecycle.quarantine import Drift, Misprediction, Pair, mispredicted, pair_of, quarantined
from autoscaler.lifecycle.spending import moved_on, price_of
from autoscaler.model.capacity import Mode
from autoscaler.model.capacity_answers import BufferAnswer, RequestAnswer
from autoscaler.model.plan import LeftOut, LeftOutVerdict, Plan, PlannedNode
from autoscaler.model.pod import Pod
from autoscaler.model.reason import Code, Reason, Subject
from autoscaler.model.snapshot import Quarantine, Snapshot
from autoscaler.model.spending import Spending
from autoscaler.planning.answers import next_answer, request_answers
from autoscaler.planning.buffer_answers import buffer_answers
from autoscaler.planning.demand.demand import claim_keys
from autoscaler.planning.demand.virtual_pods import with_virtual_pods
from autoscaler.planning.disruption.closing import reopened, with_closing, without_closed_pools
from autoscaler.planning.disruption.consolidation.consolidation import consolidated
from autoscaler.planning.disruption.consolidation.tried_moves import AGAIN, NOTHING_TRIED, MovesTried
from autoscaler.planning.disruption.slice_drift import slice_drifts
from autoscaler.planning.failing_objects import (
    FailingObject,
    Searched,
    plan_without_failing,
    searched_after,
    searched_out,
)
from autoscaler.planning.memory import PlanMemory
from autoscaler.planning.misprediction_check import confirmed_mispredictions
from autoscaler.planning.planner import plan_for
from autoscaler.planning.policy import Policy
from autoscaler.planning.request_state import NO_REQUEST_STATE, RequestState, due_checks, request_state_after
from autoscaler.planning.supply.limits import binding_guards
from autoscaler.settings.settings import OFF, Settings
from instance_catalog.dataclass import dataclass, replace
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.types.catalog import Catalog

_NONE_FAILING: Final[Mapping[str, FailingObject]] = FrozenMap()
_NOTHING_SEARCHED: Final[Searched] = FrozenMap()


@dataclass(frozen=True, slots=True)
class Decisions:
    """The decisions of one reconcile: to record, to carry out and to publish.

    `snapshot` has the quarantines that were learned, and every pool marked that must not act. `launches` are the nodes
    of the plan that may be recorded: those of pools that only propose are among them. `failing` are the objects on
    which planning fails, by key, and `searched` is when pods among them were found. `requests` and `buffers` are what
    ProvisioningRequests and CapacityBuffers are answered; nothing, as long as no pool acts. The snapshot has their pods
    among its own. `searched` and `seen` are for the next call, which is due at `answer_at` although nothing changes in
    the cluster; `moves` is, too, at `move_at`. `unmoved` is what broke while moves of running pods were tried.
    """

    now: datetime
    snapshot: Snapshot
    plan: Plan
    launches: tuple[PlannedNode, ...]
    conditions: tuple[PoolCondition, ...]
    drifts: tuple[Drift, ...] = ()
    mispredictions: tuple[Misprediction, ...] = ()
    failing: Mapping[str, FailingObject] = _NONE_FAILING
    searched: Searched = _NOTHING_SEARCHED
    requests: tuple[RequestAnswer, ...] = ()
    buffers: tuple[BufferAnswer, ...] = ()
    seen: RequestState = NO_REQUEST_STATE
    answer_at: datetime | None = None
    moves: MovesTried = NOTHING_TRIED
    move_at: datetime | None = None
    unmoved: Exception | None = None


def decide(
    snapshot: Snapshot,
    catalog: Catalog,
    settings: Settings,
    now: datetime,
    *,
    serving: Mapping[str, Reason | None] | None = None,
    failing: Mapping[str, FailingObject] = _NONE_FAILING,
    searched: Searched = _NOTHING_SEARCHED,
    seen: RequestState = NO_REQUEST_STATE,
    moves: MovesTried = NOTHING_TRIED,
    memory: PlanMemory | None = None,
    closes: bool = False,
    explains: bool = True,
) -> Decisions:
    """`serving`: the kinds of node templates, each with the reason if its provider refuses to answer. `failing`: the
    objects on which planning failed last time; unchanged ones are left out at once. `searched`, `seen` and `moves`: of
    the previous decisions. `memory`: values that plans keep from one to the next; it changes no decision. `closes`:
    pools with `consolidate: Close` close nodes. `explains`: somebody reads the reasons in the plan."""
    snapshot, policy = with_virtual_pods(snapshot), settings.policy if explains else settings.policy.only_answers()
    make = partial(plan_for, catalog=catalog, policy=policy, now=now, memory=memory)
    decide_all = partial(
        _decided, make=make, catalog=catalog, settings=settings, policy=policy, now=now, serving=serving, closes=closes
    )
    decisions, found = plan_without_failing(decide_all, snapshot, failing, unsearched=searched_out(searched, now))
    attempt = partial(make, policy=policy.for_moves())
    whole = (
        _completed(decisions, snapshot, found) if found else _moved(decisions, make, attempt, catalog, moves, policy)
    )
    return _answered(replace(whole, searched=searched_after(searched, failing, found, now)), make, seen)


def _decided(
    snapshot: Snapshot,
    *,
    make: Callable[[Snapshot], Plan],
    catalog: Catalog,
    settings: Settings,
    policy: Policy,
    now: datetime,
    serving: Mapping[str, Reason | None] | None,
    closes: bool,
) -> Decisions:
    snapshot, broken = _closed(snapshot, catalog, now, closes=closes)
    snapshot, plan = reopened(make(snapshot), snapshot, make, now)
    drifts = slice_drifts(snapshot, catalog, settings.drift.policy, now)
    mispredictions = confirmed_mispredictions(mispredicted(snapshot, plan, now), snapshot, make)
    quarantines = quarantined(snapshot, mispredictions, now, drifts=drifts)
    learned = snapshot
    if quarantines != snapshot.quarantines:
        # Nothing is launched again on an assumption that has just proved wrong.
        learned = replace(snapshot, quarantines=quarantines)
        plan = make(learned)
    orders = settings.serve.external_grpc != OFF
    conditions = pool_conditions(learned, plan, catalog, policy=policy, now=now, serving=serving, orders=orders)
    held = held_back(learned, conditions)
    if learned.closing and _some_stopped(learned, held):
        # The nodes that would be bought instead are not: pending pods need the existing room.
        learned, held = without_closed_pools(learned), without_closed_pools(held)
        plan = make(learned)
    return Decisions(
        now=now,
        snapshot=held,
        plan=plan,
        launches=plan.launches,
        conditions=conditions,
        drifts=tuple(drifts),
        mispredictions=mispredictions,
        unmoved=broken,
    )


def _closed(snapshot: Snapshot, catalog: Catalog, now: datetime, *, closes: bool) -> tuple[Snapshot, Exception | None]:
    """The snapshot with the nodes that close, and an exception of that search: it saves money only."""
    try:
        return with_closing(snapshot, now, catalog=catalog, closes=closes), None
    except Exception as error:  # noqa: BLE001 a bug, which the loop logs
        return snapshot, error


def _some_stopped(before: Snapshot, held: Snapshot) -> bool:
    """True if a pool that acted must not launch now."""
    acting = {pool.name for pool in held.pools if pool.acts}
    return any(pool.acts and pool.name not in acting for pool in before.pools)


def _moved(
    decisions: Decisions,
    make: Callable[[Snapshot], Plan],
    attempt: Callable[[Snapshot], Plan],
    catalog: Catalog,
    moves: MovesTried,
    policy: Policy,
) -> Decisions:
    """The decisions with the next step of moving running pods to where they cost less. It saves money only: an error in
    it must not keep pending pods waiting."""
    try:
        found = consolidated(
            decisions.plan,
            decisions.snapshot,
            make,
            decisions.now,
            moves,
            attempt=attempt,
            catalog=catalog,
            policy=policy,
        )
    except Exception as error:  # noqa: BLE001 a bug, which the loop logs
        # What is known of earlier replacements stays known: otherwise they are launched again.
        later = replace(moves, going=(), last=decisions.now)
        return replace(decisions, unmoved=error, moves=later, move_at=decisions.now + AGAIN)
    return replace(decisions, plan=found.plan, launches=found.plan.launches, moves=found.tried, move_at=found.next_at)


def _completed(decisions: Decisions, snapshot: Snapshot, failing: Mapping[str, FailingObject]) -> Decisions:
    """The decisions for everything, where some objects were left out: their pods have the verdict unknown, their pools
    launch nothing, and nothing becomes of the nodes of these pools and blocks."""
    pools = {found.pool for found in failing.values()} & {pool.name for pool in snapshot.pools}
    untouched = {
        n.name for n in snapshot.provisioned if n.pool in pools or f"CapacityBlock {n.offering.block}" in failing
    }
    left = tuple(
        LeftOut(
            pod.key,
            LeftOutVerdict.UNKNOWN,
            (Reason.of(Code.PLANNING_FAILED, Subject("pod", pod.key)),),
            claims=claim_keys(pod),
        )
        for pod in (found.subject for found in failing.values())
        if isinstance(pod, Pod)
    )
    failed = tuple(
        PoolCondition(pool, ConditionType.READY, (Reason.of(Code.PLANNING_FAILED, Subject("pool", pool)),))
        for pool in sorted(pools)
    )
    plan = decisions.plan
    conditions = (*(found for found in decisions.conditions if found.pool not in pools), *failed)
    learned = replace(snapshot, quarantines=decisions.snapshot.quarantines)
    return replace(
        decisions,
        snapshot=held_back(learned, conditions),
        plan=replace(
            plan,
            left_out=(*plan.left_out, *left),
            nodes=tuple(node for node in plan.nodes if node.provisioned_node not in untouched),
        ),
        conditions=conditions,
        failing=failing,
    )


def _answered(decisions: Decisions, make: Callable[[Snapshot], Plan], seen: RequestState) -> Decisions:
    """The decisions with the answers to ProvisioningRequests and CapacityBuffers. A request that only checks for room
    is planned alone."""
    decided, plan, now = decisions.snapshot, decisions.plan, decisions.now
    if not any(pool.mode is Mode.ACT for pool in decided.pools):
        return decisions
    looked = due_checks(decided, now, seen)
    alone = {request.key: with_virtual_pods(decided, (request,)) for request in looked}
    checked: dict[str, Plan] = {}
    searched = decisions.searched
    for key, state in alone.items():
        out = searched_out(searched, now)
        checked[key], found = plan_without_failing(make, state, decisions.failing, unsearched=out)
        searched = searched_after(searched, decisions.failing, found, now)
    requests = request_answers(decided, plan, now, checked, seen)
    after = request_state_after(seen, decided, requests, looked, now)
    return replace(
        decisions,
        searched=searched,
        requests=requests,
        buffers=buffer_answers(decided, plan),
        seen=after,
        answer_at=next_answer(decided, now, after),
    )


def changed_pairs(before: Collection[Quarantine], after: Collection[Quarantine]) -> frozenset[Pair]:
    """The pairs of a pool of which more, or less, is known than before."""
    return frozenset(pair_of(quarantine) for quarantine in {*before} ^ {*after})


def without_pairs(decisions: Decisions, pairs: Collection[Pair]) -> Decisions:
    """The decisions without launches of these pairs of pool, instance type and drivers."""
    kept = tuple(launch for launch in decisions.launches if not _pairs_of(launch).intersection(pairs))
    return replace(decisions, launches=kept)


def forbid(decisions: Decisions, why: str) -> Decisions:
    """The decisions if no object may be written: every pool that acts reports it, and no longer acts."""
    conditions = forbidden(decisions.conditions, decisions.snapshot, why)
    return replace(decisions, snapshot=held_back(decisions.snapshot, conditions), conditions=conditions)


def _pairs_of(launch: PlannedNode) -> frozenset[Pair]:
    """The pair of each offering that the launch may get."""
    drivers = launch.prediction.drivers
    return frozenset((launch.pool, offering.instance_type, drivers) for offering in launch.offerings)


def charged(decisions: Decisions, policy: Policy, *, ordered: int = 0) -> Spending:
    """The account with the cost of the launches, and of `ordered` nodes that are not in the plan.

    Saved before launching, it counts too much after a crash in between, never too little. Raises an error if the stored
    account has numbers that cannot be added.
    """
    snapshot = decisions.snapshot
    acting = {pool.name for pool in snapshot.pools if pool.acts}
    return moved_on(
        snapshot.spending,
        decisions.now,
        usd_per_hour=price_of(snapshot.provisioned),
        launched=ordered + sum(launch.pool in acting for launch in decisions.launches),
        launches_per_hour=policy.max_launches_per_hour,
        binding=binding_guards(decisions.plan),
    )
