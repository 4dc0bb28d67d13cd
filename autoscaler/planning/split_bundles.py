"""Plans pods that share a claim, or that affinity ties to one node, if not all of them fit together on one node.

The devices of a claim are on one node, so its pods are planned for one node. kube-scheduler schedules them one by one:
a pod that fits nowhere, or has no room beside the others, stays Pending and does not prevent others from running. So a
bundle without a node is tried without the pods that fit nowhere even alone, and then with as many of the rest as fit,
the first ones in the scheduler's order. Gangs are not split: their members start together or not at all.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from itertools import count
from math import isqrt
from operator import lt
from typing import Final, TypeAlias

from autoscaler.model.plan import LeftOut, LeftOutVerdict, Plan
from autoscaler.model.pod import Pod
from autoscaler.model.reason import Code, Reason, Subject
from autoscaler.model.snapshot import Snapshot
from autoscaler.planning.demand.bundles import Bundle, bundles_of
from autoscaler.planning.demand.demand import claim_keys
from autoscaler.planning.demand.ties import needs_a_node_of_others, ties_of
from autoscaler.scheduling.world import World
from instance_catalog.dataclass import replace
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.labels import HOSTNAME

Make: TypeAlias = Callable[[Snapshot], Plan]

# The most bundles in one plan, by priority; each halving makes a small plan for all of them.
_MOST: Final = 8
# The plans for parts of the bundles end after this much work, but there are at least as many.
_WORK: Final = 130_000
_LEAST_PLANS: Final = 3
_LIMITS: Final = frozenset({Code.POOL_LIMIT, Code.SPENDING_GUARD})  # each pod alone would buy a node of its own
# Marks a pod's own copy of a shared claim; names of real claims do not contain it.
_COPY: Final = "~"
_COPIES: Final = re.compile(rf"{_COPY}\d+")


def with_domain_reasons(plan: Plan, snapshot: Snapshot) -> Plan:
    """Add a reason to nodes that must have one value of a topology label, because the affinity of their pods requires
    it.

    This applies if there are several such nodes. While their zone is unknown, nothing else in the plan shows it.
    """
    if len(plan.launches) < 2:
        return plan
    wanting = {pod.key: keys for pod in snapshot.pods if (keys := frozenset(t.topology_key for t in pod.pod_affinity))}
    domains = [frozenset[str]().union(*(wanting.get(key, frozenset()) for key in node.pods)) for node in plan.launches]
    often = Counter(key for each in domains for key in each - {HOSTNAME})
    added = [tuple(Reason.of(Code.SAME_DOMAIN, key=key) for key in sorted(each) if often[key] > 1) for each in domains]
    if not any(added):
        return plan
    nodes = (replace(node, reasons=(*node.reasons, *more)) for node, more in zip(plan.launches, added, strict=True))
    return replace(plan, launches=tuple(nodes))


def with_split_bundles(plan: Plan, snapshot: Snapshot, make: Make) -> Plan:
    """The plan in which bundles that fit on no node as a whole leave out as few pods as possible.

    `make` plans. It is called only if there is such a bundle: for these pods alone, for parts of them, and once
    more for all pods if one of them got a node.
    """
    stuck = _stuck(plan, snapshot)
    if not stuck:
        return plan
    alone = make(_each_alone(snapshot, stuck))
    impossible = {left.pod for left in alone.left_out if not any(reason.code in _LIMITS for reason in left.reasons)}
    possible = [[pod for pod in bundle.pods if pod.key not in impossible] for bundle in stuck]
    most = [min(len(pods), len(bundle.pods) - 1) for pods, bundle in zip(possible, stuck, strict=True)]
    kept, work = _largest_parts(snapshot, possible, most, make)
    work += plan.work + alone.work
    bundles = [bundle for bundle in stuck if kept.intersection(pod.key for pod in bundle.pods)]
    if not bundles:
        return replace(plan, work=work)
    out = {pod.key for bundle in bundles for pod in bundle.pods if pod.key not in kept}
    better = make(replace(snapshot, pods=tuple(pod for pod in snapshot.pods if pod.key not in out)))
    why = {left.pod: left for left in alone.left_out if left.pod in impossible}
    refusals = {left.pod: [r for r in left.reasons if r.code is Code.CLAIM_NOT_SHAREABLE] for left in plan.left_out}
    added = (left for bundle in bundles for left in _left_outs(bundle, kept, why, refusals))
    left_out = (*better.left_out, *sorted(added, key=lambda left: left.pod))
    return replace(better, left_out=left_out, work=work + better.work)


def _largest_parts(
    snapshot: Snapshot, bundles: Sequence[Sequence[Pod]], most: Sequence[int], make: Make
) -> tuple[set[str], int]:
    """The first pods of each bundle that fit on one node, at most `most` of them; and the work.

    Each plan narrows the numbers of all bundles. The first one tries all pods if some were left out already, the others
    the geometric mean: one node takes few pods, however many there are.
    """
    least, most, plans, work = [0] * len(bundles), list(most), 0, 0
    while any(map(lt, least, most)) and (plans < _LEAST_PLANS or work < _WORK):
        means = (max(low + 1, isqrt((low or 1) * high)) for low, high in zip(least, most, strict=True))
        sizes = [
            high if high == len(pods) else min(mean, high)
            for mean, high, pods in zip(means, most, bundles, strict=True)
        ]
        tried = [pods[:size] for pods, size in zip(bundles, sizes, strict=True)]
        trial = make(_with_only(snapshot, [pod for pods in tried for pod in pods]))
        placed, work, plans = {placement.pod for placement in trial.placements}, work + trial.work, plans + 1
        for number, pods in enumerate(tried):
            if placed.issuperset(pod.key for pod in pods):
                least[number] = sizes[number]
            else:
                most[number] = sizes[number] - 1
    return {pod.key for pods, size in zip(bundles, least, strict=True) for pod in pods[:size]}, work


def _stuck(plan: Plan, snapshot: Snapshot) -> list[Bundle]:
    """Bundles of several pods that fit on no node: the first of each namespace by priority, then the second ones."""
    no_room = (found for found in plan.left_out if found.verdict is LeftOutVerdict.DOES_NOT_FIT)
    left = {found.pod for found in no_room if all(reason.code is not Code.JOINS_NODE for reason in found.reasons)}
    pods = [pod for pod in snapshot.pods if left and pod.gang is None and pod.key in left]
    pods.sort(key=lambda pod: pod.turn)
    tied = any(map(needs_a_node_of_others, pods))
    ties = ties_of(pods, World.of(snapshot)) if tied else {}
    found = [bundle for bundle in bundles_of(pods, snapshot.claims, ties) if len(bundle.pods) > 1]
    numbers: dict[str, Iterator[int]] = {}
    found.sort(key=lambda bundle: next(numbers.setdefault(bundle.pods[0].namespace, count())))
    return found[:_MOST]


def _with_only(snapshot: Snapshot, pending: Collection[Pod]) -> Snapshot:
    """The snapshot with these pending pods and no others."""
    return replace(snapshot, pods=(*(pod for pod in snapshot.pods if pod.node_name is not None), *pending))


def _each_alone(snapshot: Snapshot, bundles: Iterable[Bundle]) -> Snapshot:
    """The snapshot with only the pods of the bundles pending, none of which shares a claim with another or is tied."""
    claims, pods = dict(snapshot.claims.items()), []
    for bundle in bundles:
        shared = {key for key in bundle.shared_claims if key in claims and claims[key].allocation is None}
        for number, pod in enumerate(bundle.pods):
            own = {claims[key].name: f"{claims[key].name}{_COPY}{number}" for key in shared & {*claim_keys(pod)}}
            for name, copy in own.items():
                claim = claims[f"{pod.namespace}/{name}"]
                claims[f"{pod.namespace}/{copy}"] = replace(claim, name=copy, uid=f"{claim.uid}{_COPY}{number}")
            entries = (replace(entry, claim=own.get(entry.claim or "", entry.claim)) for entry in pod.claims)
            affinity = () if bundle.tied else pod.pod_affinity
            pods.append(replace(pod, claims=tuple(entries), pod_affinity=affinity))
    return replace(_with_only(snapshot, pods), claims=FrozenMap(claims))


def _uncopied(subject: Subject) -> Subject:
    """The subject with the name of the claim whose copy it is."""
    return replace(subject, name=_COPIES.sub("", subject.name))


def _left_outs(
    bundle: Bundle, kept: Set[str], alone: Mapping[str, LeftOut], refusals: Mapping[str, list[Reason]]
) -> Iterator[LeftOut]:
    """The pods of a bundle that get no node beside the others. The reason: what a pod lacks `alone`, that the others
    use the room, or that the claims must not be shared (`refusals`)."""
    shared, first = bundle.shared_claims, sum(each.key in kept for each in bundle.pods)
    for pod in bundle.pods:
        if (why := alone.get(pod.key)) is not None:
            reasons = tuple(replace(reason, subject=_uncopied(reason.subject)) for reason in why.reasons)
            yield replace(why, reasons=reasons, claims=claim_keys(pod))
        elif pod.key not in kept:
            own = next((key for key in shared if key in claim_keys(pod)), None)
            tied = Code.TIED_SPLIT, Subject("pod", pod.key)
            code, subject = (Code.BUNDLE_SPLIT, Subject("claim", own)) if own else tied
            last = Reason.of(code, subject, pods=len(bundle.pods), first=first)
            reasons = (*refusals.get(pod.key, ()), last)
            yield LeftOut(pod.key, LeftOutVerdict.DOES_NOT_FIT, reasons, claims=claim_keys(pod))
