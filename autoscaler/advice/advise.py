"""advise: the smallest changes that place a pod, each of them planned again before it is shown.

The work is bounded by a number of plans, not by time, so the same question gets the same answer everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from decimal import Decimal
from itertools import chain, combinations
from typing import TypeAlias

from autoscaler.advice.amounts import (
    as_requested,
    depth_of_cut,
    is_small_cut,
    larger_disks,
    lower_requests,
    short_resources,
    shortages,
    without_requests,
)
from autoscaler.advice.change import Change, ChangeKind
from autoscaler.advice.claim_changes import (
    assumed_claims,
    claims_apart,
    constraints,
    counts,
    device_tolerations,
    dropped_conditions,
    refused_configs,
    renamed_capacities,
)
from autoscaler.advice.named_models import nearest_models, renamed_models, renamed_products
from autoscaler.advice.nearest_values import rewritten_selectors
from autoscaler.advice.pod_changes import (
    foreign_resources,
    gives_up_accelerator,
    keys_dropped,
    labels_of_auto_mode,
    node_selectors,
    other_topologies,
    renamed_types,
    tolerations,
    unconsumed_requests,
    whole_gpus,
    zone_names,
)
from autoscaler.advice.pool_changes import (
    allowed_types,
    capacity_types,
    driver_profiles,
    elsewhere,
    exceeded_limits,
    feature_discovery,
    gives_up_label,
    keys_allowed,
    keys_served,
    overflows,
    parts_of_cards,
    raise_limit,
    requirements,
    staying_in_cloud,
    undone,
)
from autoscaler.advice.pool_opening import (
    claimed_parts,
    listing_described,
    node_labels,
    openings,
    plugins,
    where_tried,
    with_drivers,
)
from autoscaler.advice.prices import capacity_blocks, prices, prices_after
from autoscaler.advice.situation import Situation
from autoscaler.advice.trial import Advice, Budget, Replanner, in_use, refined
from autoscaler.advice.volumes import missing_volumes, volume_claims
from autoscaler.model.capacity import CapacityPool
from autoscaler.model.plan import ConsideredOutcome, Plan
from autoscaler.model.pod import Pod
from autoscaler.model.reason import Code
from autoscaler.model.snapshot import Snapshot
from autoscaler.planning.policy import Policy
from instance_catalog.dataclass import replace
from instance_catalog.kubernetes import labels
from instance_catalog.types.catalog import Catalog
from instance_catalog.types.clouds import made_by_cloud, queue_labels
from instance_catalog.types.instance_type import Accelerator

_BESIDE_VOLUMES = 12  # plans for changes beside volume claims: as many as without these
_PAIRS = 10  # tried at most, of the smallest changes
_PREPARING = frozenset(
    {
        *(ChangeKind.ADD_LABELS, ChangeKind.ADD_REQUIREMENT, ChangeKind.ADD_SCHEDULER, ChangeKind.WIDEN_SCOPE),
        *(ChangeKind.RUN_PLUGIN, ChangeKind.REWRITE_LABEL, ChangeKind.REWRITE_TYPE, ChangeKind.DROP_ANNOTATION),
        *(ChangeKind.ADD_VOLUME_CLAIMS, ChangeKind.ADD_STORAGE_CLASSES, ChangeKind.TOLERATE, ChangeKind.SET_DRIVERS),
        *(ChangeKind.RENAME_LABELS, ChangeKind.WHOLE_GPUS, ChangeKind.DROP_RESOURCES, ChangeKind.WAIT_FOR_POD),
        *(ChangeKind.CLAIM_PARTS, ChangeKind.LIST_GROUP, ChangeKind.REQUIRE_MEMORY, ChangeKind.DESCRIBE_DRIVER),
        *(ChangeKind.GIVE_PODS, ChangeKind.NAME_ZONE),
    }
)
# Before these no node was tried.
_OPENING = frozenset({ChangeKind.DROP_ANNOTATION, ChangeKind.CLAIM_PARTS, ChangeKind.DESCRIBE_DRIVER})
# What people tell the plan about the machine that they want: its price, or that they have bought it …
_TO_FIND_OUT = frozenset({ChangeKind.SET_PRICE, ChangeKind.ADD_BLOCK})
# … which is what reasons say of machines that fit …
_HOW_SOLD = frozenset({Code.NO_PRICE, Code.NEEDS_RESERVATION, Code.OVERFLOW_NEVER})
# … beside which nobody wants another machine.
_GIVE_UP = frozenset({ChangeKind.DROP_CONDITION, ChangeKind.DROP_CONSTRAINT})
# Nothing about a node changes these: the object is wrong or not there, somebody else has the pod, it waits by itself,
# or the plan has no work left for it, which a plan for this pod alone would hide.
_NOT_ABOUT_NODES = frozenset(
    {
        *(Code.CLASS_NOT_FOUND, Code.CLAIM_NOT_FOUND, Code.CLAIM_NOT_CREATED, Code.SELECTOR_INVALID),
        *(Code.SCHEDULING_GATED, Code.WAITS_FOR_BLOCK, Code.MALFORMED_REQUEST, Code.WORK_BUDGET),
    }
)


def advise(
    pod: Pod,
    snapshot: Snapshot,
    catalog: Catalog,
    plan: Plan,
    policy: Policy,
    now: datetime,
    *,
    most: int = 3,
    budget: Budget | None = None,
) -> tuple[Advice, ...]:
    """Up to `most` changes, smallest first. Each was planned again, and places the pod and those left out like it."""
    asked = Situation.of(pod, snapshot, catalog, plan, policy.where)
    return () if asked is None or most < 1 else advise_for(asked, policy, now, most=most, budget=budget or Budget())


def advise_for(asked: Situation, policy: Policy, now: datetime, *, most: int, budget: Budget) -> tuple[Advice, ...]:
    """The same for pods that share one fate."""
    if asked.of_others or (asked.codes and asked.codes <= _NOT_ABOUT_NODES):
        return ()
    trials = Replanner(asked, policy, now)
    if assumed := assumed_claims(asked):
        return tuple(_described(one, asked) for one in _after(assumed, trials, budget, deeper=True))
    found: list[Advice] = []
    tried: list[Change] = []
    pursued: list[Change] = []
    for change in dict.fromkeys(_changes(asked, trials, budget)):
        if not trials.tries(change) or _no_news(change, found):
            continue
        if change.kind in _GIVE_UP and any(entry.change.kind in _TO_FIND_OUT for entry in found):
            break  # all that follows gives up more
        if kept := _kept(change, [one for one in tried if one not in pursued], trials, budget, pursued):
            found += kept
            continue
        if not budget.take():
            break
        result = trials.tried(change)
        tried.append(change)
        found += [Advice(change, result)] if result is not None else _with_drivers(change, trials, budget)
        if len(found) >= most:
            break
    left = [change for change in tried if change not in pursued]
    found = found or list(_onward(left, trials, budget) or _several(tried, trials, budget))
    found = found or list(_with_volumes(trials))
    return tuple(complete(one, trials, budget) for one in found)


def _with_volumes(trials: Replanner) -> Iterator[Advice]:
    """The changes beside the volume claims that files lack. These say nothing about machines, so they take nothing from
    the number of changes that are tried together."""
    budget = Budget(_BESIDE_VOLUMES)
    volumes = tuple(missing_volumes(trials.asked))
    after = trials.after(volumes[0]) if volumes and budget.take() else None
    for one in advise_for(after.asked, after.policy, after.now, most=1, budget=budget) if after else ():
        change = Change.together(*volumes, one.change)
        if (result := trials.tried(change)) is not None:
            yield Advice(change, result)


def _described(found: Advice, asked: Situation) -> Advice:
    complete = where_tried(found.change, found.result.taints, found.result.launches, asked)
    return replace(found, change=listing_described(complete, found.result.drivers, asked))


def complete(found: Advice, trials: Replanner, budget: Budget) -> Advice:
    """The advice with what follows from its result: other GPUs, and what the pool or the pods then need."""
    best = refined(found, trials, budget)
    return replace(best, change=where_tried(best.change, best.result.taints, best.result.launches, trials.asked))


def _no_news(change: Change, found: Sequence[Advice]) -> bool:
    """True if what was found makes the change needless."""
    if found and (change.kind in _TO_FIND_OUT or gives_up_accelerator(change)):
        return True
    return any(_answered(change, entry.change) or gives_up_label(change, entry.change) for entry in found)


def _kept(
    dropping: Change, tried: Sequence[Change], trials: Replanner, budget: Budget, pursued: list[Change]
) -> tuple[Advice, ...]:
    """The changes that give nodes the label which the pod would no longer select after a change, with the changes that
    the plan then needs: users do not want to give up a flex-start node or an H200 because a price is missing. Adds what
    it examined to `pursued`."""
    keys = keys_dropped(dropping)
    for first in (change for change in tried if keys & keys_served(change, trials.asked)):
        pursued.append(first)
        if found := _after(first, trials, budget, deeper=True):
            return found
    return ()


def _onward(
    tried: Sequence[Change], trials: Replanner, budget: Budget, *, dropping: bool = False
) -> tuple[Advice, ...]:
    """The changes of a pool, together with those that the plan needs afterwards: the next obstacle appears only when
    the first is removed."""
    for first in (one for one in tried if dropping or _prepares(one) or keys_allowed(one, trials.asked)):
        found = _after(first, trials, budget, deeper=True)
        if found or budget.spent >= budget.plans:
            return found
    return ()


def _after(first: Change, trials: Replanner, budget: Budget, *, deeper: bool) -> tuple[Advice, ...]:
    """The change with one more that the plan with it lacks; `deeper`: or two more, if one is not enough."""
    after = trials.after(first) if budget.take() else None
    if after is None:
        return ()
    more: list[Change] = []
    for second in _next_obstacles(after, first, budget):
        change = Change.together(first, second)
        if second.takes_back(first) or first.buys_otherwise(second) or not trials.tries(change):
            continue
        if not budget.take():
            return ()
        result = trials.tried(change)
        if result is not None:
            return (Advice(change, result),)
        if _prepares(second) or is_small_cut(second):
            more.append(change)
    return next(filter(None, (_after(change, trials, budget, deeper=False) for change in more if deeper)), ())


def _prepares(change: Change) -> bool:
    """True if it only makes nodes of a pool what the pod selects, or says that in other words; it gives up nothing. The
    labels of nodes that others size or make, and the name of a node, say nothing about their machines; beside other
    parts a capacity type is that which the name of a group of nodes says."""
    named = _PREPARING | ({ChangeKind.ALLOW_CAPACITY_TYPE} if change.parts else set())
    return all(part.kind in named or _of_others(part) for part in change.steps)


def _of_others(change: Change) -> bool:
    made = made_by_cloud(str(change.detail.get("key", "")), str(change.detail.get("value", "")))
    return bool((queue_labels() | {labels.HOSTNAME}) & keys_dropped(change)) or (bool(keys_dropped(change)) and made)


def _next_obstacles(after: Replanner, first: Change, budget: Budget) -> Iterator[Change]:
    kinds = {part.kind for part in first.steps}
    searches: _Searches = (renamed_products, renamed_models, node_labels) if kinds & _OPENING else ()
    searches += (foreign_resources, node_labels) if ChangeKind.REWRITE_LABEL in kinds else ()
    searches += (tolerations, volume_claims, plugins)
    searches += (driver_profiles,) if after.creates_pool(first) else ()
    searches += (openings, node_labels) if first.kind is ChangeKind.ALLOW_CAPACITY_TYPE else ()
    searches += (prices_after, capacity_blocks, requirements)
    yield from chain.from_iterable(search(after.asked) for search in dict.fromkeys(searches))
    yield from _requests(after.asked, after, budget)


def _several(tried: Sequence[Change], trials: Replanner, budget: Budget) -> tuple[Advice, ...]:
    dropping = [change for change in tried if keys_dropped(change)]
    return _pair(tried, trials, budget) or _onward(dropping, trials, budget, dropping=True)


def _with_drivers(change: Change, trials: Replanner, budget: Budget) -> Iterator[Advice]:
    """A pool that somebody creates, with the drivers that it needs where those that are assumed do not do."""
    if not trials.creates_pool(change) or not budget.take():
        return
    assumed = trials.plan(change, assuming=True)
    complete = with_drivers(trials.asked, change, assumed) if trials.result(assumed) is not None else None
    if complete is None or not trials.tries(complete) or not budget.take():
        return
    if (result := trials.tried(complete)) is not None:
        yield Advice(complete, result)


def _pair(tried: Sequence[Change], trials: Replanner, budget: Budget) -> tuple[Advice, ...]:
    """Two of the changes together, where none places the pod alone: two templates, or a claim and a node selector."""
    gives_up = [gives_up_accelerator(change) for change in tried]
    pairs = sorted(combinations(range(len(tried)), 2), key=lambda p: (sum(gives_up[i] for i in p), sum(p)))
    sensible = [
        (a, b)
        for a, b in pairs
        if not (undone(tried[a], tried[b]) or _leaves_cloud(tried[a]) or _leaves_cloud(tried[b]))
        and not tried[a].buys_otherwise(tried[b])
    ]
    for first, second in sensible[:_PAIRS]:
        change = Change.together(tried[first], tried[second])
        if trials.tries(change) and budget.take() and (result := trials.tried(change)) is not None:
            return (Advice(change, result),)
    return ()


def _leaves_cloud(change: Change) -> bool:
    """True if it gives up the cloud that somebody asked for: alone it is an answer, beside another change none."""
    return change.kind is ChangeKind.ASK_ELSEWHERE and change.detail["option"] == "--cloud"


def _answered(change: Change, found: Change) -> bool:
    """True if a nearer value of the same condition, or another memory of the same GPU, has been found to help."""
    if change.kind is found.kind is ChangeKind.REWRITE_TYPE and change.detail["key"] == labels.NVIDIA_GPU_PRODUCT:
        return True
    same = change.kind is found.kind is ChangeKind.REWRITE_SELECTOR and change.subject == found.subject
    return same and change.detail["condition"] == found.detail["condition"]


def single_changes(asked: Situation) -> Iterator[Change]:
    """The changes that may help and need no plan to be found, smallest first."""
    return chain.from_iterable(search(asked) for search in (*_ALLOWING, *_REWORDING, *_GIVING_UP))


def _changes(asked: Situation, trials: Replanner, budget: Budget) -> Iterator[Change]:
    """The changes that may help, smallest first. Lazy, because some need a plan to find out how much would help."""
    yield from chain.from_iterable(search(asked) for search in _ALLOWING)
    yield from _limits(asked, trials, budget)
    yield from chain.from_iterable(search(asked) for search in _REWORDING)
    yield from _requests(asked, trials, budget)
    yield from chain.from_iterable(search(asked) for search in _GIVING_UP)
    yield from (staying_in_cloud(change, asked) for change in dropped_conditions(asked))
    yield from constraints(asked)


# What they yield allows something, says the same in other words, or gives up something.
_Searches: TypeAlias = tuple[Callable[[Situation], Iterator[Change]], ...]
_ALLOWING: _Searches = (
    *(tolerations, device_tolerations, unconsumed_requests, capacity_types, allowed_types, parts_of_cards),
    *(overflows, volume_claims),
)
_REWORDING: _Searches = (
    *(openings, plugins, claims_apart, rewritten_selectors, renamed_capacities, renamed_types, labels_of_auto_mode),
    *(zone_names, feature_discovery, renamed_products, renamed_models, nearest_models, foreign_resources),
    *(claimed_parts, whole_gpus, refused_configs, other_topologies),
)
_GIVING_UP: _Searches = (
    *(counts, driver_profiles, node_labels, prices, capacity_blocks, node_selectors, requirements),
    elsewhere,
)


def _limits(asked: Situation, trials: Replanner, budget: Budget) -> Iterator[Change]:
    """Each limit, raised to what a plan without it needs."""
    for pool, resource in exceeded_limits(asked):
        if not budget.take():
            return
        found = trials.plan(raise_limit(pool, resource, None))
        if trials.result(found) is not None:
            yield raise_limit(pool, resource, _needed(asked, pool, resource, found))


def _needed(asked: Situation, pool: CapacityPool, resource: str, found: Plan) -> Decimal:
    return in_use(asked, pool, resource, (*asked.plan.launches, *found.launches))


def _requests(asked: Situation, trials: Replanner, budget: Budget) -> Iterator[Change]:
    """A larger root disk, where only that is short; else what is short, down to what the type has free that fits
    otherwise and needs the smallest cut."""
    short = short_resources(asked)
    if not short or not budget.take():
        return
    thorough = trials.plan(without_requests(asked, short), thorough=True)
    found = [entry for entry in asked.considered_in(thorough) if entry.outcome.fits]
    ready = [entry for entry in found if entry.outcome is ConsideredOutcome.CHOSEN or not entry.reasons]
    bought = [entry for entry in found if {reason.code for reason in entry.reasons} == {Code.NEEDS_RESERVATION}]
    fitting = {(entry.pool, entry.drivers, entry.offering) for entry in ready or bought}
    entries = [entry for entry in asked.considered if (entry.pool, entry.drivers, entry.offering) in fitting]
    if len(entries) < len(fitting) and budget.take():  # a plan lists the cheapest offerings only
        every = asked.considered_in(trials.plan(as_requested(asked), thorough=True))
        entries = [entry for entry in every if (entry.pool, entry.drivers, entry.offering) in fitting]
    yield from larger_disks(entries, asked.catalog)
    sold_otherwise = _sold_otherwise(asked)
    cuts = [(lacking, entry.offering) for entry in entries if (lacking := shortages(entry.reasons)) is not None]
    for smallest, offering in sorted(cuts, key=lambda cut: depth_of_cut(cut[0]))[:1]:
        machine = asked.catalog.types[offering.instance_type]
        change = lower_requests(asked, smallest, machine)
        same = not sold_otherwise or machine.accelerator in sold_otherwise
        if change is not None and (same or is_small_cut(change)):
            yield change


def _sold_otherwise(asked: Situation) -> set[Accelerator | None]:
    """The accelerators of machines that run the pods as they are, if somebody buys them: beside these nobody asks for
    less in order to get another accelerator."""
    found = (entry for entry in asked.considered if entry.outcome is ConsideredOutcome.FITS)
    named = (entry.offering.instance_type for entry in found if {r.code for r in entry.reasons} & _HOW_SOLD)
    return {asked.catalog.types[name].accelerator for name in named}
