"""Changes for several workloads: pods that need the same change get it together, in one plan with the result for all of
them; and what one change gives a pool may take from another what it needs of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Final

from autoscaler.advice.advise import advise_for, complete, single_changes
from autoscaler.advice.change import Change, ChangeKind, pool_subject
from autoscaler.advice.pool_opening import ANY_GROUP
from autoscaler.advice.situation import Situation, group_of_its_own, workload_of, worth_serving
from autoscaler.advice.trial import Advice, Budget, Replanner
from autoscaler.advice.volumes import missing_volumes
from autoscaler.model.capacity import CapacityPool
from autoscaler.model.plan import Plan
from autoscaler.model.pod import Container, Pod
from autoscaler.model.reason import Code, Fact
from autoscaler.model.snapshot import Snapshot
from autoscaler.planning.demand.demand import claim_keys
from autoscaler.planning.policy import Policy
from instance_catalog.dataclass import dataclass, replace
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.types.catalog import Catalog

_SEARCHES: Final = 3  # for pods with different needs
_ALIKE: Final = 4  # plans for pods that need what others need
_WORKLOADS: Final = 24  # that are asked whether they need the same as one before
# They follow from a result …
_COMPLETING: Final = frozenset({ChangeKind.SELECT_HOLDING, ChangeKind.TOLERATE_CLOUD})
# … or concern a pool alone, whichever pods need it.
_OF_POOLS: Final = frozenset({ChangeKind.ADD_REQUIREMENT, ChangeKind.SET_DRIVERS})
_VALUES: Final = ("value", "was")  # of a change, by which those of several workloads may differ …
_OBJECTS: Final = ("claims", "classes", "nodes")  # … and the objects that all of them need, or name
_OF_TRIAL: Final = "tried"


@dataclass(frozen=True, slots=True)
class Group:
    """Pods, by key, that one change places together; its result is that of the plan with all of them."""

    pods: tuple[str, ...]
    advice: Advice


@dataclass(frozen=True, slots=True)
class Helping:
    """The changes for the pods without a place; `without`: pods that none of those places that were tried; `untried`:
    pods for which the plans did not suffice."""

    groups: tuple[Group, ...] = ()
    without: tuple[str, ...] = ()
    untried: tuple[str, ...] = ()

    @property
    def by_pod(self) -> dict[str, Advice]:
        """The advice of each group, by the first of its pods."""
        return {group.pods[0]: group.advice for group in self.groups}


@dataclass(frozen=True, slots=True)
class _Waiting:
    """Pods with equal needs, and the workloads that they belong to."""

    asked: Situation
    workloads: tuple[Situation, ...]


def helping_changes(
    plan: Plan, snapshot: Snapshot, catalog: Catalog, policy: Policy, now: datetime, *, budget: Budget
) -> Helping:
    """The smallest change for the pods without a place. All searches share the budget; pods that others left out for
    the same reasons have a few plans of their own."""
    waiting = list(_by_need(plan, snapshot, catalog, policy))
    groups: list[Group] = []
    without: list[str] = []
    made: list[tuple[str, Change]] = []
    causes: dict[frozenset[Code], Change] = {}
    searched = 0
    while waiting and searched < _SEARCHES:
        wanted, *waiting = waiting
        trials = Replanner(wanted.asked, policy, now)
        advice = _first(causes.get(wanted.asked.codes), trials, budget)
        if advice is None and len(wanted.workloads) > 1:
            waiting = [*(_Waiting(one, (one,)) for one in wanted.workloads), *waiting]
        searched += 1
        if advice is None:
            without += [pod.key for pod in wanted.asked.pods] if len(wanted.workloads) == 1 else []
            continue
        causes.setdefault(wanted.asked.codes, advice.change)
        joined, advice = _with_alike(advice, trials, [one.asked for one in waiting[:_WORKLOADS]])
        beside = apart(advice, made, Replanner(joined, policy, now))
        made.append((joined.pod.key, beside.change))
        groups.append(Group(tuple(pod.key for pod in joined.pods), beside))
        waiting = [one for one in waiting if not one.asked.keys <= joined.keys]
    helped = {key for group in groups for key in group.pods}
    failed = tuple(key for key in dict.fromkeys(without) if key not in helped)
    rest = (pod.key for one in waiting for pod in one.asked.pods)
    untried = tuple(key for key in dict.fromkeys(rest) if key not in {*helped, *failed})
    return Helping(tuple(_named_apart(groups)), failed, untried)


def _named_apart(groups: Iterable[Group]) -> Iterator[Group]:
    """The groups, in which each change that lists a node pool of any name gives it another one."""
    number = 0
    for group in groups:
        change = group.advice.change
        number += any(part.detail.get("group") == ANY_GROUP for part in change.steps)
        if number > 1:
            renamed = tuple(_of_group(part, f"{ANY_GROUP}-{number}") for part in change.steps)
            change = replace(change, parts=renamed) if change.parts else renamed[0]
        yield replace(group, advice=replace(group.advice, change=change))


def _of_group(part: Change, name: str) -> Change:
    if part.detail.get("group") != ANY_GROUP:
        return part
    shown = part.detail["labels"]
    assert isinstance(shown, tuple)
    labels = tuple(label.replace(f"={ANY_GROUP}", f"={name}") for label in shown)
    return replace(part, detail=FrozenMap({**part.detail, "group": name, "labels": labels}))


def _first(earlier: Change | None, trials: Replanner, budget: Budget) -> Advice | None:
    """What helped pods that were left out for the same reasons, made for these; else the first change that helps."""
    same = like_before(earlier, trials, Budget(_ALIKE)) if earlier is not None else None
    if same is not None:
        return same
    return next(iter(advise_for(trials.asked, trials.policy, trials.now, most=1, budget=budget)), None)


def _by_need(plan: Plan, snapshot: Snapshot, catalog: Catalog, policy: Policy) -> Iterator[_Waiting]:
    """The pods without a place, those with equal needs together."""
    pods = {pod.key: pod for pod in snapshot.pods}
    worth = (entry for entry in plan.outside if worth_serving(entry))
    first: dict[object, Pod] = {}
    for entry in (*plan.left_out, *worth):
        first.setdefault(workload_of(pods[entry.pod], snapshot), pods[entry.pod])
    needs: dict[object, list[Situation]] = {}
    for pod in first.values():
        if (asked := Situation.of(pod, snapshot, catalog, plan, policy.where)) is not None:
            needs.setdefault(_needs(asked), []).append(asked)
    for alike in needs.values():
        yield _Waiting(_union(alike), tuple(alike))


def _needs(asked: Situation) -> tuple[object, ...]:
    """The same for pods that the same change places: what they ask of a node, and why they have none."""
    pod = asked.pod
    claims = [asked.snapshot.claims.get(key) for key in claim_keys(pod)]
    return (
        *(pod.namespace, pod.scheduler_name, pod.node_selector, pod.affinity, pod.tolerations, pod.overhead),
        *(
            _amounts(pod.containers),
            _amounts(pod.init_containers),
            asked.codes,
            frozenset(asked.clouds),
            asked.of_others,
            group_of_its_own(pod, asked.snapshot),
        ),
        tuple(claim and (claim.requests, claim.constraints) for claim in claims),
    )


def _amounts(containers: Iterable[Container]) -> tuple[FrozenMap[str, object], ...]:
    return tuple(container.requests for container in containers)


def _union(situations: Sequence[Situation]) -> Situation:
    pods = {pod.key: pod for asked in situations for pod in asked.pods}
    return replace(situations[0], pods=tuple(pods.values())) if len(situations) > 1 else situations[0]


def _with_alike(advice: Advice, trials: Replanner, others: Sequence[Situation]) -> tuple[Situation, Advice]:
    """The pods that the change places together with those others that need one like it, and the plan for all."""
    own = same_for(advice.change, trials.asked)
    made = [(other, change) for other in others if (change := same_for(advice.change, other)) is not None]
    for _ in range(2):
        if own is None or not made:
            break
        situation = _union([trials.asked, *(other for other, _ in made)])
        together = Replanner(situation, trials.policy, trials.now)
        change = _joint([(trials.asked, own), *made])
        if not together.tries(change):
            break
        result = together.tried(change)
        if result is not None:
            return situation, complete(Advice(change, result), together, Budget(_ALIKE))
        placed = {placement.pod for placement in together.plan(change).placements}
        made = [(other, change) for other, change in made if other.keys <= placed]
    return trials.asked, advice


def _joint(changes: Sequence[tuple[Situation, Change]]) -> Change:
    """The changes of several workloads as one, in which each part names all its pods."""
    alike: dict[tuple[object, ...], list[tuple[Situation, Change]]] = {}
    for asked, change in changes:
        for part in change.steps:
            alike.setdefault(_shape(part), []).append((asked, part))
    return Change.together(*(_of_all(found) for found in alike.values()))


def _of_all(found: Sequence[tuple[Situation, Change]]) -> Change:
    parts = [part for _, part in found]
    pods = list(dict.fromkeys(pod.key for asked, _ in found for pod in asked.pods))
    subjects = list(dict.fromkeys(part.subject for part in parts))
    more = f" and {len(pods) - 1} more" if len(pods) > 1 else ""
    whole = Change.together(*parts)
    return replace(
        whole,
        kind=parts[0].kind,
        subject=f"pod {pods[0]}{more}" if subjects[0].startswith("pod ") else " and ".join(subjects),
        detail=FrozenMap({key: _value(key, parts) for key in parts[0].detail}),
        parts=(),
    )


def _value(key: str, parts: Sequence[Change]) -> Fact:
    """The fact of all parts: their objects together, or their values one beside the other."""
    values = list(dict.fromkeys(part.detail[key] for part in parts))
    if key in _OBJECTS:
        return tuple(dict.fromkeys(name for value in values if isinstance(value, tuple) for name in value))
    return " or ".join(map(str, values)) if key in _VALUES and len(values) > 1 else values[0]


def same_for(earlier: Change, asked: Situation) -> Change | None:
    """The change that places pods of another workload, made for these, which may select another value; None if they
    have no such change."""
    own: dict[tuple[object, ...], Change] = {}
    for change in (*single_changes(asked), *missing_volumes(asked)):
        for part in change.steps:
            own.setdefault(_shape(part), part)
    wanted = [part for part in earlier.steps if part.kind not in _COMPLETING]
    found = [own.get(_shape(part), part if part.kind in _OF_POOLS else None) for part in wanted]
    made = [part for part in found if part is not None]
    if asked.of_others or not made or len(made) < len(wanted):
        return None
    return Change.together(*made)


def like_before(earlier: Change, trials: Replanner, budget: Budget) -> Advice | None:
    """The same as advice; None as well if it does not place them."""
    change = same_for(earlier, trials.asked)
    if change is None or not trials.tries(change) or not budget.take():
        return None
    result = trials.tried(change)
    return None if result is None else complete(Advice(change, result), trials, budget)


def _shape(part: Change) -> tuple[object, ...]:
    """The common part of changes of pods that differ in a value."""
    kind, _, name = part.subject.partition(" ")
    detail = {key: value for key, value in part.detail.items() if key not in (*_VALUES, *_OBJECTS, _OF_TRIAL)}
    return part.kind, kind, name if kind in ("pool", "NodePool") else "", FrozenMap(detail)


def apart(advice: Advice, before: Iterable[tuple[str, Change]], trials: Replanner) -> Advice:
    """The advice in a copy of the pool where a change `before`, for another pod, needs the pool to be otherwise; as it
    is where none does, or where the copy does not place the pods."""
    for pod, earlier in before:
        pool = _contested(earlier, advice.change, trials.asked.snapshot)
        if pool is not None:
            copied = _in_copy(advice.change, pool, pod)
            result = trials.tried(copied)
            return advice if result is None else Advice(copied, result)
    return advice


def _contested(first: Change, second: Change, snapshot: Snapshot) -> CapacityPool | None:
    """A pool of the snapshot that lacks something of the first change once the second is made as well, or that would
    be one group of nodes for both: pods that may share one have one change."""
    before = {pool.name: pool for pool in snapshot.pools}
    once = {pool.name: pool for pool in first.edit(snapshot).pools}
    alone = {pool.name: pool for pool in second.edit(snapshot).pools}
    twice = {pool.name: pool for pool in second.edit(first.edit(snapshot)).pools}
    for name in before.keys() & once.keys() & alone.keys() & twice.keys():
        given = {key: value for key, value in once[name].labels.items() if before[name].labels.get(key) != value}
        lost = any(twice[name].labels.get(key) != value for key, value in given.items())
        drivers = once[name].drivers != before[name].drivers and twice[name].drivers != once[name].drivers
        shared = any(value == alone[name].labels.get(key) == ANY_GROUP for key, value in given.items())
        if lost or drivers or shared:
            return before[name]
    return None


def _in_copy(change: Change, pool: CapacityPool, pod: str) -> Change:
    """The change made in a copy of the pool, which stays as it is for the change of another pod."""

    def edit(snapshot: Snapshot) -> Snapshot:
        after = change.edit(snapshot)
        copies = tuple(replace(found, name=f"{pool.name}-copy") for found in after.pools if found.name == pool.name)
        kept = tuple(pool if found.name == pool.name else found for found in after.pools)
        return replace(after, pools=(*kept, *copies))

    subject, copy = pool_subject(pool), f"a copy of pool {pool.name}, which itself changes for {pod}"
    parts = tuple(replace(part, subject=copy if part.subject == subject else part.subject) for part in change.parts)
    return replace(change, subject=copy if change.subject == subject else change.subject, edit=edit, parts=parts)
