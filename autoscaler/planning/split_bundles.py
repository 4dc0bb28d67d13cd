"""Plans pods that share a claim if not all of them fit together on one node.

The devices of a claim are on one node, so its pods are planned for one node. kube-scheduler schedules them one by one:
a pod that fits nowhere, or has no room beside the others, stays Pending and does not prevent others from running. So a
bundle without a node is tried without the pods that fit nowhere even alone, and then with a part of the rest, the first
ones in the scheduler's order, until it gets a node. Gangs are not split: their members start together or not at all.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Set
from typing import Final, TypeAlias

from autoscaler.model.plan import LeftOut, LeftOutVerdict, Plan
from autoscaler.model.pod import Pod
from autoscaler.model.reason import Code, Reason, Subject
from autoscaler.model.snapshot import Snapshot
from autoscaler.planning.demand.bundles import Bundle, bundles_of
from autoscaler.planning.demand.demand import claim_keys
from instance_catalog.dataclass import replace
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.labels import HOSTNAME

Make: TypeAlias = Callable[[Snapshot], Plan]

# The most bundles in one plan, by priority; each halving makes a small plan for all of them.
_MOST: Final = 8
# Divisors of a bundle's size: the largest part is tried first, the smallest last.
_PARTS: Final = (1, 2, 4, 16, 64)
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

    `make` plans. It is called only if there is such a bundle: at most six times for these pods alone, and once more for
    all pods if one of them got a node.
    """
    stuck = _stuck(plan, snapshot)
    if not stuck:
        return plan
    alone = make(_each_alone(snapshot, stuck))
    impossible = {left.pod for left in alone.left_out if not any(reason.code in _LIMITS for reason in left.reasons)}
    kept, work = set[str](), plan.work + alone.work
    possible = {bundle: [pod for pod in bundle.pods if pod.key not in impossible] for bundle in stuck}
    for part in _PARTS:
        # The whole bundle was tried already.
        tried = [
            pods[: len(pods) // part]
            for bundle, pods in possible.items()
            if kept.isdisjoint(pod.key for pod in pods) and (part > 1 or len(pods) < len(bundle.pods))
        ]
        if not any(tried):
            continue
        trial = make(_with_only(snapshot, [pod for pods in tried for pod in pods]))
        placed, work = {placement.pod for placement in trial.placements}, work + trial.work
        kept |= {pod.key for pods in tried for pod in pods if placed.issuperset(each.key for each in pods)}
    bundles = [bundle for bundle in stuck if kept.intersection(pod.key for pod in bundle.pods)]
    if not bundles:
        return replace(plan, work=work)
    out = {pod.key: bundle for bundle in bundles for pod in bundle.pods if pod.key not in kept}
    better = make(replace(snapshot, pods=tuple(pod for pod in snapshot.pods if pod.key not in out)))
    why = {left.pod: left for left in alone.left_out if left.pod in impossible}
    by_key = {pod.key: pod for pod in snapshot.pods if pod.key in out}
    refusals = {left.pod: [r for r in left.reasons if r.code is Code.CLAIM_NOT_SHAREABLE] for left in plan.left_out}
    left_out = (
        _left_out(by_key[key], bundle, kept, why.get(key), refusals.get(key, ())) for key, bundle in sorted(out.items())
    )
    return replace(better, left_out=(*better.left_out, *left_out), work=work + better.work)


def _stuck(plan: Plan, snapshot: Snapshot) -> list[Bundle]:
    """Bundles of several pods that fit on no node, by priority."""
    left = {found.pod for found in plan.left_out if found.verdict is LeftOutVerdict.DOES_NOT_FIT}
    pods = [pod for pod in snapshot.pods if left and pod.gang is None and pod.key in left]
    pods.sort(key=lambda pod: pod.turn)
    return [bundle for bundle in bundles_of(pods, snapshot.claims) if len(bundle.pods) > 1][:_MOST]


def _with_only(snapshot: Snapshot, pending: Collection[Pod]) -> Snapshot:
    """The snapshot with these pending pods and no others."""
    return replace(snapshot, pods=(*(pod for pod in snapshot.pods if pod.node_name is not None), *pending))


def _each_alone(snapshot: Snapshot, bundles: Iterable[Bundle]) -> Snapshot:
    """The snapshot with only the pods of the bundles pending, none of which shares a claim with another."""
    claims, pods = dict(snapshot.claims.items()), []
    for bundle in bundles:
        shared = {key for key in bundle.shared_claims if key in claims and claims[key].allocation is None}
        for number, pod in enumerate(bundle.pods):
            own = {claims[key].name: f"{claims[key].name}{_COPY}{number}" for key in shared & {*claim_keys(pod)}}
            for name, copy in own.items():
                claim = claims[f"{pod.namespace}/{name}"]
                claims[f"{pod.namespace}/{copy}"] = replace(claim, name=copy, uid=f"{claim.uid}{_COPY}{number}")
            entries = (replace(entry, claim=own.get(entry.claim or "", entry.claim)) for entry in pod.claims)
            pods.append(replace(pod, claims=tuple(entries)))
    return replace(_with_only(snapshot, pods), claims=FrozenMap(claims))


def _uncopied(subject: Subject) -> Subject:
    """The subject with the name of the claim whose copy it is."""
    return replace(subject, name=_COPIES.sub("", subject.name))


def _left_out(pod: Pod, bundle: Bundle, kept: Set[str], alone: LeftOut | None, refusals: Iterable[Reason]) -> LeftOut:
    """The reason why a pod gets no node beside the others: what it lacks alone, that the others use the room, or
    that the claims must not be shared (`refusals`)."""
    if alone is not None:
        reasons = tuple(replace(reason, subject=_uncopied(reason.subject)) for reason in alone.reasons)
        return replace(alone, reasons=reasons, claims=claim_keys(pod))
    shared = next(key for key in bundle.shared_claims if key in claim_keys(pod))
    first = sum(each.key in kept for each in bundle.pods)
    why = Reason.of(Code.BUNDLE_SPLIT, Subject("claim", shared), pods=len(bundle.pods), first=first)
    return LeftOut(pod.key, LeftOutVerdict.DOES_NOT_FIT, (*refusals, why), claims=claim_keys(pod))
