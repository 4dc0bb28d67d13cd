"""plan_for: computes a plan from a snapshot. Pure and deterministic; CLI, controller and simulation all call it.

The steps: find the pods that need a node (demand/), group those that belong together or are equal (bundles), place pods
on existing and starting nodes (placement/existing), list the offerings (supply/), choose the cheapest nodes (packing/),
schedule the complete plan (placement/launches), keep nodes without pods (disruption/baseline), decide about existing
nodes (disruption/node_actions), explain pods without a node (unplaced), let pods wait for a block that begins soon
(awaiting_blocks), and remove nodes of CapacityBuffers for a pod (buffer_preemption).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from functools import partial
from itertools import chain
from typing import Final

from autoscaler.cel.common.evaluation import Account, Purse
from autoscaler.lifecycle.boot_times import boot_times
from autoscaler.lifecycle.provisioned_node import places_made
from autoscaler.model.plan import Demand, LeftOut, LeftOutVerdict, Placement, Plan, PlannedNode, Target
from autoscaler.model.reason import Code, Reason, Subject
from autoscaler.model.snapshot import Snapshot
from autoscaler.model.verdict import Verdict
from autoscaler.planning.awaiting_blocks import await_blocks
from autoscaler.planning.buffer_preemption import release_buffer_nodes
from autoscaler.planning.demand.bundles import Bundle, BundleClass, bundles_of, classes_of
from autoscaler.planning.demand.demand import claim_keys, pending, pending_pods
from autoscaler.planning.demand.scope import Scopes
from autoscaler.planning.demand.ties import ties_of
from autoscaler.planning.disruption.baseline import holds, may_hold
from autoscaler.planning.disruption.node_actions import decide, needed_nodes
from autoscaler.planning.memory import PlanMemory
from autoscaler.planning.outside_pools import OutsidePools, without_machines
from autoscaler.planning.placement.considered import Explanations, undecided_cheaper
from autoscaler.planning.placement.existing import (
    Assigned,
    Placed,
    Present,
    assign,
    joined,
    present_nodes,
    with_room,
)
from autoscaler.planning.placement.launches import Launches, Purchase, launch
from autoscaler.planning.placement.nothing_has import PassedOver, no_type_has
from autoscaler.planning.placement.packing_input import PackingInput, build_packing_input, started_members
from autoscaler.planning.placement.purchases import Buying, buy_for_all, combined, each_alone, packed_again
from autoscaler.planning.placement.topology import PlacedGang, gangs_of_a_domain, place_gang
from autoscaler.planning.policy import Policy
from autoscaler.planning.split_bundles import with_domain_reasons, with_split_bundles
from autoscaler.planning.unplaced import Outcome, unplaced
from autoscaler.planning.unusable_fields import guessed_prices, unusable_fields
from autoscaler.planning.work import Ledger
from autoscaler.scheduling.world import World
from instance_catalog.dataclass import dataclass, replace
from instance_catalog.types.catalog import Catalog


def plan_for(
    snapshot: Snapshot, catalog: Catalog, policy: Policy, now: datetime, *, memory: PlanMemory | None = None
) -> Plan:
    """The nodes to launch, the node of each pending pod or the reason why it has none, an action for each own node.

    `memory`: the caches of earlier plans of the same cluster. The plan is the same without it.
    """
    make = partial(_planned, catalog=catalog, policy=policy, now=now, memory=memory or PlanMemory())

    def whole(state: Snapshot) -> Plan:
        return with_split_bundles(make(state), state, make)

    plan = await_blocks(whole(snapshot), snapshot, whole, now)
    return with_domain_reasons(release_buffer_nodes(plan, snapshot, make, now, custom=catalog.drivers), snapshot)


def _planned(snapshot: Snapshot, *, catalog: Catalog, policy: Policy, now: datetime, memory: PlanMemory) -> Plan:
    unbound = pending_pods(snapshot)
    if not unbound and not may_hold(snapshot):
        return _without_pods(snapshot, catalog=catalog, policy=policy, now=now)
    world = World.of(snapshot, catalog.drivers.values(), kept=memory.world)
    scopes = Scopes.of(snapshot, unbound, world.extended_resources)
    pods = pending(snapshot, scopes)
    present = replace(present_nodes(snapshot, catalog, world, kept=memory.world.added), kept=memory.verdicts)
    sorts = (
        classes_of(bundles_of(found, snapshot.claims, ties_of(found, present.world)), snapshot)
        for found in (pods.wanted, pods.bindable)
    )
    classes = tuple(sorted(chain.from_iterable(sorts), key=lambda found: found.sample.pods[0].turn))
    ledger, hints = _ledger(classes, present, snapshot, policy=policy, now=now), Ledger.for_hints(classes, policy)
    packing = build_packing_input(
        classes, present.world, snapshot, catalog, scopes=scopes, policy=policy, now=now, ledger=ledger
    )
    packing = packing if policy.explains else replace(packing, solutions=memory.solutions)
    decided = _decide(packing, present, policy, catalog)
    kept = holds(packing, decided.launches.nodes, decided.assigned, catalog.digest)
    launches = _with_boot_times((*decided.launches.nodes, *kept), snapshot)
    implicit = replace(snapshot, pools=(), blocks=())
    everyone = replace(scopes, snapshot=implicit)
    whole = partial(
        build_packing_input,
        classes,
        present.world,
        implicit,
        catalog,
        scopes=everyone,
        policy=policy,
        now=now,
        ledger=hints,
    )
    # Placements of pods that the plan does not serve are not reported; purchases for them are.
    unreported = frozenset(pod.key for pod in pods.bindable) - decided.bought
    reported = [entry for entry in decided.assigned.placed if entry.bundle.key not in unreported]
    left_out = (
        *_left_out(packing, decided, unreported, whole, policy, catalog),
        *_postponed(packing, decided, unreported),
    )
    planned = {entry.node for entry in reported}
    return Plan(
        launches=launches,
        placements=tuple(_placements((*reported, *decided.launches.placed), packing, decided, policy)),
        left_out=(*left_out, *(left for left in pods.waiting if left.pod not in decided.bought)),
        demands=_demands(packing, decided, policy) if policy.considered else (),
        nodes=decide(snapshot, needed_nodes(snapshot, planned, now), now, custom=catalog.drivers),
        outside=without_machines(pods.outside, catalog, snapshot),
        warnings=(
            *unusable_fields(snapshot, catalog, buy_unpriced=policy.buy_unpriced),
            *guessed_prices(launches, catalog),
            *_undecided(packing, decided, policy),
            *([] if decided.buying.optimal else [Reason.of(Code.PLAN_BUDGET)]),
        ),
        usd_per_hour=_cost(launches),
        at_least_usd_per_hour=None if (least := decided.at_least) is None else least + _cost(kept),
        profile=snapshot.profile.name,
        catalog_digest=catalog.digest,
        work=ledger.spent + hints.spent,
    )


def _without_pods(snapshot: Snapshot, *, catalog: Catalog, policy: Policy, now: datetime) -> Plan:
    """The plan if no pod is pending and no node is held without one, as in most reconciles: it launches nothing, so
    only existing nodes and the fields of pools are left to judge."""
    return Plan(
        nodes=decide(snapshot, needed_nodes(snapshot, (), now), now, custom=catalog.drivers),
        warnings=unusable_fields(snapshot, catalog, buy_unpriced=policy.buy_unpriced),
        at_least_usd_per_hour=Decimal(0),
        profile=snapshot.profile.name,
        catalog_digest=catalog.digest,
    )


def _with_boot_times(nodes: Sequence[PlannedNode], snapshot: Snapshot) -> tuple[PlannedNode, ...]:
    kinds = {(node.offering.instance_type, node.prediction.drivers) for node in nodes}
    known = boot_times(snapshot.provisioned, kinds)
    return tuple(
        replace(node, ready_in=known.get((node.offering.instance_type, node.prediction.drivers))) if known else node
        for node in nodes
    )


def _cost(nodes: Iterable[PlannedNode]) -> Decimal:
    return sum((node.usd_per_hour or Decimal(0) for node in nodes), Decimal(0))


def _undecided(packing: PackingInput, decided: _Decided, policy: Policy) -> Iterator[Reason]:
    """The offerings that might have been enough at a lower price, once for equal types."""
    seen: set[object] = set()
    for item in range(len(packing.classes)) if policy.explains else ():
        reason = undecided_cheaper(packing, item, decided.buying.chosen_for(item))
        if reason is not None and reason.detail not in seen:
            seen.add(reason.detail)
            yield reason


def _ledger(
    classes: tuple[BundleClass, ...], present: Present, snapshot: Snapshot, *, policy: Policy, now: datetime
) -> Ledger:
    """The accounts of classes, by the nodes that each one has to check. Classes whose nodes are starting already
    wait first."""
    made = places_made(snapshot.provisioned).keys()
    return Ledger.of(
        classes,
        policy,
        nodes=len(present.targets),
        looks=[len(with_room(c.sample, present.targets, present.world)) for c in classes],
        served=frozenset(i for i, c in enumerate(classes) if all(bundle.key in made for bundle in c.members)),
        now=now,
    )


@dataclass(frozen=True, slots=True)
class _Decided:
    """One attempt: pods on existing nodes, purchases, and the gangs that stay out, with their progress."""

    assigned: Assigned
    buying: Buying
    launches: Launches
    dropped: Mapping[str, int]
    refused: Mapping[str, Verdict]  # by key of the bundle, from the replay

    @property
    def bought(self) -> frozenset[str]:
        """The pods on new nodes."""
        return frozenset(pod.key for entry in self.launches.placed for pod in entry.bundle.pods)

    @property
    def at_least(self) -> Decimal | None:
        """The lower bound of the purchases; None if the replay refused some: fewer, or others, may be cheaper."""
        return None if self.refused else self.buying.at_least


def _decide(packing: PackingInput, present: Present, policy: Policy, catalog: Catalog) -> _Decided:
    """Repeat until no gang is placed in part: each pass leaves out the gangs that turned out to be impossible."""
    dropped: dict[str, int] = {}
    while True:
        tried = _attempt(packing, present, policy, catalog, dropped)
        halves = {
            key: count
            for key, count in _members((*tried.assigned.placed, *tried.launches.placed)).items()
            if packing.running.get(key, 0) + count < packing.snapshot.gangs[key].min_count
        }
        if not halves:
            return tried
        dropped |= halves


def _attempt(
    packing: PackingInput, present: Present, policy: Policy, catalog: Catalog, dropped: Mapping[str, int]
) -> _Decided:
    dropped = dict(dropped)
    offered, settled = packing.everything(), list[PlacedGang]()
    for gang in gangs_of_a_domain(packing, dropped):
        found = place_gang(gang, packing, present, offered, policy, settled)
        if found is None:
            dropped[gang.key] = 0
            continue
        settled.append(found)
        present = replace(present, world=found.assigned.world)
        offered = replace(offered, bought=(*offered.bought, *(p.candidate for p in found.buying.purchases)))
    wanted = {i: c for i, c in enumerate(packing.classes) if _is_free(c, packing.snapshot, dropped)}
    assigned = assign(wanted, present, packing.snapshot, now=packing.now, ledger=packing.trials.ledger)
    rest = {i: bundles for i, bundles in assigned.rest.items() if i not in assigned.stuck}
    started = started_members(packing, _members(assigned.placed))
    buying = buy_for_all(packing, rest, assigned.postponed, started, offered, policy)
    buying = combined(packing, [buying, *(s.buying for s in settled)])
    assigned = joined([assigned, *(s.assigned for s in settled)])
    replay = partial(
        launch,
        world=assigned.world,
        snapshot=packing.snapshot,
        catalog_digest=catalog.digest,
        together=packing.pods_relate,
        trials=packing.trials,
    )
    launches, refused = _replayed(packing, buying.purchases, assigned, replay, policy)
    return _Decided(assigned, buying, launches, dropped, refused)


def _replayed(
    packing: PackingInput,
    purchases: Sequence[Purchase],
    assigned: Assigned,
    replay: Callable[[Sequence[Purchase]], Launches],
    policy: Policy,
) -> tuple[Launches, dict[str, Verdict]]:
    """The result of the purchases after the replay, and the refusals of bundles that lost their place in it, by key.

    Pods with terms about other pods (spreading, anti-affinity) may refuse the pods that the packing put beside them.
    They are packed once more. Those that fail again get nodes of their own.
    """
    launches = replay(purchases)
    failed = _by_key(launches.failed)
    if failed:
        started = started_members(packing, _members((*assigned.placed, *launches.placed)))
        purchases = packed_again(packing, purchases, launches, started, policy)
        launches = replay(purchases)
        failed |= _by_key(launches.failed)
    refused = {key: verdict for key, (_, verdict) in failed.items()}
    placed = {entry.bundle.key for entry in launches.placed}
    if left := [bundle for key, (bundle, _) in failed.items() if key not in placed]:
        launches = replay(each_alone(packing, purchases, left, launches.world))
    return launches, refused


def _by_key(failed: Iterable[tuple[Bundle, Verdict]]) -> dict[str, tuple[Bundle, Verdict]]:
    return {bundle.key: (bundle, verdict) for bundle, verdict in failed}


def _is_free(bundle_class: BundleClass, snapshot: Snapshot, dropped: Mapping[str, int]) -> bool:
    """True if the class may be placed anywhere: it is in no gang that stays out or needs a domain of its own."""
    gang = bundle_class.sample.gang
    return gang is None or (gang not in dropped and not snapshot.gangs[gang].topology_key)


def _members(placed: Iterable[Placed]) -> dict[str, int]:
    """Placed pods, by gang."""
    counts: dict[str, int] = {}
    for entry in placed:
        for pod in entry.bundle.pods:
            if pod.gang:
                counts[pod.gang.key] = counts.get(pod.gang.key, 0) + 1
    return counts


_WHY = {Target.EXISTING: Code.EXISTING_NODE, Target.COMING: Code.COMING_NODE}


def _placements(
    placed: Iterable[Placed], packing: PackingInput, decided: _Decided, policy: Policy
) -> Iterable[Placement]:
    snapshot, hints = packing.snapshot, policy.work.hints_per_round
    passed_over = PassedOver(packing, Account(own=0, shared=Purse(hints), most=hints))
    waiting = snapshot.waiting
    since = {node.node_name: waiting[node.name].isoformat() for node in snapshot.provisioned if node.name in waiting}
    for entry in placed:
        shared = entry.bundle.shared_claims
        for pod in entry.bundle.pods:
            named = set(claim_keys(pod))
            reasons = list(_why(entry, since.get(entry.node, "")))
            reasons += [Reason.of(Code.SHARES_CLAIM, claim=key) for key in shared if key in named]
            allocations = entry.allocations_of(pod)
            if entry.target is Target.NEW and entry.bundle.key in decided.assigned.postponed:
                reasons.append(Reason.of(Code.COMES_FIRST, Subject("pod", pod.key)))
            if policy.explains and entry.verdict.preference and entry.target is Target.NEW:
                reasons += passed_over.reasons(allocations)
            yield Placement(
                pod=pod.key,
                target=entry.target,
                node=entry.node,
                allocations=allocations,
                preference=entry.verdict.preference,
                reasons=tuple(reasons),
            )


def _why(entry: Placed, waiting_since: str) -> Iterator[Reason]:
    if entry.target is Target.COMING and waiting_since:
        yield Reason.of(Code.COMING_NODE, since=waiting_since)
    elif entry.target in _WHY:
        yield Reason.of(_WHY[entry.target])


def _left_out(
    packing: PackingInput,
    decided: _Decided,
    unreported: frozenset[str],
    whole: Callable[[], PackingInput],
    policy: Policy,
    catalog: Catalog,
) -> Iterator[LeftOut]:
    """The pods without a place, except for `unreported` bundles, and the postponed pods."""
    outcome = Outcome(
        placed=frozenset(p.bundle.key for p in (*decided.assigned.placed, *decided.launches.placed))
        | decided.assigned.postponed.keys()
        | unreported,
        stuck=decided.assigned.stuck,
        dropped=decided.dropped,
        bought=decided.buying.bought,
        refused=decided.refused,
        undecided=decided.assigned.undecided,
    )
    outside = OutsidePools(whole, packing, decided.assigned.world)

    def elsewhere(item: int) -> Iterable[Reason]:
        return () if no_type_has(packing, catalog, item) else outside.reasons(item)

    return unplaced(packing, outcome, policy, elsewhere)


def _postponed(packing: PackingInput, decided: _Decided, unreported: frozenset[str]) -> Iterator[LeftOut]:
    """The pods that fit on no existing node and for which nothing is bought yet."""
    done = unreported | decided.bought
    begun = {entry.bundle.key for entry in decided.assigned.placed}  # of tied bundles, each pod is placed alone
    for bundle in (bundle for found in packing.classes for bundle in found.members):
        reason = None if bundle.key in done else decided.assigned.postponed.get(bundle.key)
        for pod in bundle.pods if reason else ():
            if reason and pod.key not in begun:
                yield LeftOut(pod.key, LeftOutVerdict.DOES_NOT_FIT, (reason,), claims=claim_keys(pod))


# The most offerings in the list for all demands of a plan, and the least for each demand.
_CONSIDERED: Final = 20_000
_LEAST_CONSIDERED: Final = 20


def _demands(packing: PackingInput, decided: _Decided, policy: Policy) -> tuple[Demand, ...]:
    """The considered offerings for all pods that existing nodes do not take, including gangs that stay out."""
    rest = {i: c.members for i, c in enumerate(packing.classes) if c.sample.gang in decided.dropped}
    rest |= decided.assigned.rest
    each = max(_LEAST_CONSIDERED, _CONSIDERED // max(1, len(rest)))
    policy = replace(policy, considered=min(policy.considered, each))
    explanations = Explanations(packing, decided.buying.bought, policy)
    return tuple(
        Demand(
            pods=tuple(pod.key for bundle in bundles for pod in bundle.pods),
            considered=explanations.considered(item, decided.buying.chosen_for(item)),
        )
        for item, bundles in sorted(rest.items())
        if bundles and item not in decided.assigned.stuck
    )
