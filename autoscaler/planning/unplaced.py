"""Explains pods without a node: the change that would help, and the nearest misses over all types.

It returns codes and facts; report/ creates the text. It has no influence on the plan.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TypeAlias

from autoscaler.model.plan import LeftOut, LeftOutVerdict, NearMiss
from autoscaler.model.reason import NO_SUBJECT, SHORT_AMOUNTS, Code, Reason, Subject
from autoscaler.model.verdict import Fatal, Fits, Unknown, Verdict
from autoscaler.planning.demand.bundles import Bundle
from autoscaler.planning.demand.demand import claim_keys
from autoscaler.planning.missing_labels import missing_labels
from autoscaler.planning.packing.room import numbers_in
from autoscaler.planning.placement.considered import Alike, Bought, why_not
from autoscaler.planning.placement.nothing_has import class_of_nothing, leaves_open, nothing_has
from autoscaler.planning.placement.packing_input import PackingInput
from autoscaler.planning.policy import Policy
from autoscaler.planning.supply.candidates import Candidate
from instance_catalog.dataclass import dataclass, field, replace
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.prediction.device_plugins import is_plugin_resource

# The later the check that fails, the nearer the miss. Codes that are not listed are in between.
_FARNESS = {
    Code.NOT_RUNNABLE: 10,
    Code.FRACTION_UNASKED: 10,
    Code.NOT_IN_GROUPS: 10,
    Code.NO_DEVICE_OF_CLASS: 9,
    Code.NODE_AFFINITY_MISMATCH: 8,
    Code.NODE_SELECTOR_MISMATCH: 8,
    Code.TAINT_NOT_TOLERATED: 8,
    Code.INSUFFICIENT_RESOURCE: 7,  # checked before devices
    Code.SELECTOR_FALSE: 6,
    Code.TOO_FEW_DEVICES: 2,
    Code.NO_COMBINATION: 1,
    Code.CONSTRAINT_UNSATISFIED: 1,
    Code.COUNTERS_EXHAUSTED: 1,
    Code.CAPACITY_INSUFFICIENT: 1,
    Code.INSUFFICIENT_WITH_CLAIMS: 1,
}
_MIDDLE = 5
_SELECTING = frozenset({Code.NODE_SELECTOR_MISMATCH, Code.NODE_AFFINITY_MISMATCH})
_SELECTED = _FARNESS[Code.SELECTOR_FALSE]
# Codes that may result from all pods of the bundle being on one node.
_CROWDED = frozenset(
    SHORT_AMOUNTS | {Code.PORT_CONFLICT, Code.POD_ANTI_AFFINITY, Code.TOPOLOGY_SPREAD, Code.VOLUME_LIMIT}
)
# The available amounts differ from type to type; findings that differ only in them are equal.
_AMOUNTS = ("found", "free", "devices")


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of an attempt, as far as explanations need it.

    `placed` are keys of bundles. `stuck` and `doubted` are the verdicts of existing nodes about classes. `dropped` are
    the gangs that stay out, with the number of their pods that existing nodes could have taken. `refused` are the
    refusals of the replay, by key of the bundle.
    """

    placed: frozenset[str]
    stuck: Mapping[int, Fatal | Unknown]
    dropped: Mapping[str, int]
    bought: Bought
    refused: Mapping[str, Verdict] = field(default_factory=dict)
    undecided: Mapping[int, Unknown] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Diagnosis:
    """The reason of one class, for its sample."""

    verdict: LeftOutVerdict
    reasons: tuple[Reason, ...]
    misses: tuple[NearMiss, ...] = ()
    types: int = 0


Elsewhere: TypeAlias = Callable[[int], Iterable[Reason]]


def unplaced(packing: PackingInput, outcome: Outcome, policy: Policy, elsewhere: Elsewhere) -> Iterator[LeftOut]:
    """One entry for each pod without a place. `elsewhere` returns what a class needs that no pool offers."""
    alike = Alike(packing)
    for item, bundle_class in enumerate(packing.classes):
        bundles = [bundle for bundle in bundle_class.members if bundle.key not in outcome.placed]
        if not bundles:
            continue
        if not policy.explains:
            yield from (LeftOut(pod.key, LeftOutVerdict.DOES_NOT_FIT, ()) for bundle in bundles for pod in bundle.pods)
            continue
        found = _diagnosis(alike, item, outcome, policy, elsewhere)
        for bundle in bundles:
            refused = outcome.refused.get(bundle.key)
            own = () if refused is None else _reasons(refused)
            shown = found
            if refused is not None and packing.trials.ledger.refused(item):  # not every other node was checked
                spent = packing.trials.ledger.unknown(item, bundle.pods[0])
                shown, own = replace(found, verdict=LeftOutVerdict.UNKNOWN), (*spent.reasons, *own)
            for entry in _entries(shown, bundle_class.sample, bundle):
                yield replace(entry, reasons=tuple(dict.fromkeys((*own, *entry.reasons)))) if own else entry


def _entries(found: _Diagnosis, sample: Bundle, bundle: Bundle) -> Iterator[LeftOut]:
    reasons, misses = found.reasons, found.misses
    if bundle is not sample:
        names = _names(sample, bundle)
        reasons = tuple(_renamed(reason, names) for reason in reasons)
        misses = tuple(replace(miss, reason=_renamed(miss.reason, names)) for miss in misses)
    for pod in bundle.pods:
        yield LeftOut(pod.key, found.verdict, reasons, claims=claim_keys(pod), near_misses=misses, types=found.types)


def _diagnosis(alike: Alike, item: int, outcome: Outcome, policy: Policy, elsewhere: Elsewhere) -> _Diagnosis:
    packing, stuck = alike.packing, outcome.stuck.get(item)
    if stuck:
        return _Diagnosis(LeftOutVerdict.FATAL if isinstance(stuck, Fatal) else LeftOutVerdict.UNKNOWN, stuck.reasons)
    gang = packing.classes[item].sample.gang
    nodes = sum(len(c.members) for c in packing.classes if c.sample.gang == gang) if gang else 1
    found = _crowded_out(packing, item) or _over_candidates(alike, item, outcome, policy, nodes=nodes)
    if found.reasons and all(r.code in _NOWHERE for r in found.reasons):
        found = replace(found, reasons=(*found.reasons, *(elsewhere(item) if packing.snapshot.pools else ())))
    return replace(found, reasons=(*_gang_reasons(packing, gang, outcome), *found.reasons)) if gang else found


def _gang_reasons(packing: PackingInput, key: str, outcome: Outcome) -> Iterator[Reason]:
    gang = packing.snapshot.gangs[key]
    progress = packing.running.get(key, 0) + outcome.dropped.get(key, 0)
    yield Reason.of(Code.GANG_INCOMPLETE, Subject("gang", key), wanted=gang.min_count, placed=progress)
    if gang.topology_key:
        yield Reason.of(Code.GANG_TOPOLOGY, Subject("gang", key), key=gang.topology_key)


def _crowded_out(packing: PackingInput, item: int) -> _Diagnosis | None:
    """The reason if other classes of the namespace leave too little work for this one: then types give no better
    reason."""
    trials = packing.trials
    reason = trials.ledger.crowded_out(item, packing.classes[item].sample.pods[0])
    if reason is None or any(trials.fits(s, item) for s in numbers_in(trials.known_shapes(item))):
        return None
    return _Diagnosis(LeftOutVerdict.UNKNOWN, (reason,))


def _over_candidates(alike: Alike, item: int, outcome: Outcome, policy: Policy, *, nodes: int) -> _Diagnosis:
    """The verdict over all candidates: the change after which the class would be placed."""
    packing = alike.packing
    verdicts, types = alike.explained(item)
    if crowded_out := _crowded_out(packing, item):  # explanations cost work as well
        return crowded_out
    anything = [i for i, verdict in verdicts if isinstance(verdict, Fits)]
    # A candidate on which the pod would never run is not reported beside one that is available after a change.
    fitting = [i for i in anything if not packing.candidates[i].excluded] or anything
    lacking = _lacking(packing, item)
    misses = near_misses(verdicts, packing, policy, lacking, types)
    diagnosis = partial(_Diagnosis, misses=misses, types=len(packing.of_type))
    if fitting:
        bars = [tuple(why_not(packing, i, item, outcome.bought, nodes=nodes)) for i in fitting]
        # If nothing prevents one offering, the deficits of the others are not the reason.
        obstacles = (r for found in bars for r in found if all(bars) or r.code not in _OF_ALL)
        return diagnosis(LeftOutVerdict.DOES_NOT_FIT, _few(dict.fromkeys(obstacles), policy))
    # A claim that depends on a run-time value is decided if no device can have that value.
    if without_device := [r for r in nothing_has(packing, item) if r.code is Code.NOTHING_HAS and "driver" in r.detail]:
        return diagnosis(LeftOutVerdict.DOES_NOT_FIT, tuple(without_device))
    # If nothing fits, one node on which a selector fails is enough: kube-scheduler then aborts the whole attempt.
    undecided = [outcome.undecided[item]] if item in outcome.undecided else []
    kinds: tuple[tuple[type[Unknown | Fatal], LeftOutVerdict], ...] = (
        (Unknown, LeftOutVerdict.UNKNOWN),
        (Fatal, LeftOutVerdict.FATAL),
    )
    # An offering that is not bought whatever its devices are is not undecided.
    possible = [found for i, found in verdicts if not packing.candidates[i].excluded]
    for kind, name in kinds:
        hits = [verdict for verdict in (*undecided, *possible) if isinstance(verdict, kind)]
        if hits:
            reasons = dict.fromkeys(r for verdict in hits for r in _reasons(verdict))
            return diagnosis(name, _few(reasons, policy))
    everywhere = {tuple(_of_all(reason, lacking) for reason in _reasons(verdict)) for _, verdict in verdicts}
    first = tuple(_of_no_offering(packing, item, everywhere, possible))
    none = (Reason.of(Code.NO_CANDIDATE, offerings=len(packing.shape_of)),)
    found = diagnosis(LeftOutVerdict.DOES_NOT_FIT, (*first, *(everywhere.pop() if len(everywhere) == 1 else none)))
    return _unknown(found) if packing.snapshot.from_files and any(map(leaves_open, first)) else found


def _of_no_offering(
    packing: PackingInput, item: int, everywhere: Iterable[tuple[Reason, ...]], possible: Iterable[Verdict]
) -> Iterator[Reason]:
    """Reasons that hold of all offerings at once, before those of each."""
    yield from _never_together(packing, item, possible)
    if any(reason.code in _CROWDED for found in everywhere for reason in found):
        yield from _split(packing, item)
    yield from nothing_has(packing, item)
    yield from class_of_nothing(packing, item)


def _unknown(found: _Diagnosis) -> _Diagnosis:
    """Of a class that may exist and is not in the files, or whose devices nobody predicts: the other obstacles, without
    the missing class of each type."""
    reasons = (r for r in found.reasons if r.code is not Code.CLASS_NOT_FOUND or leaves_open(r))
    misses = (miss for miss in found.misses if miss.reason.code is not Code.CLASS_NOT_FOUND)
    return replace(found, verdict=LeftOutVerdict.UNKNOWN, reasons=tuple(reasons), misses=tuple(misses))


# Reasons that only mean that no offering fits.
_NOWHERE = (
    Code.NO_CANDIDATE,
    Code.NOTHING_HAS,
    Code.NOT_PREDICTED,
    Code.BUNDLE_SPLIT,
    Code.TIED_SPLIT,
    *SHORT_AMOUNTS,
    Code.TOO_FEW_DEVICES,
    Code.NO_DEVICE_OF_CLASS,
    Code.SELECTOR_FALSE,
    Code.NO_COMBINATION,
)


# Reasons of one offering that apply to all in its place or of its kind.
_OF_ALL = (
    *(Code.NEEDS_RESERVATION, Code.OVERFLOW_NEVER, Code.NO_PRICE),
    *(Code.NOT_RUNNABLE, Code.FRACTION_UNASKED, Code.NOT_IN_GROUPS),
)


def _few(reasons: Iterable[Reason], policy: Policy) -> tuple[Reason, ...]:
    """The first reasons, one per code and subject. Existing reservations are not mentioned beside another reason."""
    by_kind: dict[tuple[Code, Subject], Reason] = {}
    for reason in reasons:
        by_kind.setdefault((reason.code, NO_SUBJECT if reason.code in _OF_ALL else reason.subject), reason)
    found = tuple(by_kind.values())
    others = tuple(reason for reason in found if reason.code is not Code.NEEDS_RESERVATION)
    return (others or found)[: policy.near_misses]


def _reasons(verdict: Verdict) -> tuple[Reason, ...]:
    return () if isinstance(verdict, Fits) else verdict.reasons


def _split(packing: PackingInput, item: int) -> Iterable[Reason]:
    """For pods that share a claim, the claim that binds them; for others, that affinity does."""
    sample = packing.classes[item].sample
    if shared := sample.shared_claims:
        yield Reason.of(Code.BUNDLE_SPLIT, Subject("claim", shared[0]), pods=len(sample.pods))
    elif sample.tied:
        yield Reason.of(Code.TIED_SPLIT, Subject("pod", sample.pods[0].key), pods=len(sample.pods))


def _never_together(packing: PackingInput, item: int, verdicts: Iterable[Verdict]) -> Iterator[Reason]:
    """That classes whose devices some offering has are never on one node together: which devices a GPU is divided into
    is a setting of the driver. False of a class that no offering has."""
    found = [{reason.subject: reason for reason in _reasons(verdict)} for verdict in verdicts]
    lacking = {
        reason.subject: str(reason.detail["device_class"])
        for reasons in found
        for reason in reasons.values()
        if reason.code is Code.NO_DEVICE_OF_CLASS
    }
    classes = tuple(dict.fromkeys(lacking.values()))
    alone = all(any(subject not in reasons for reasons in found) for subject in lacking)
    if len(classes) > 1 and alone and all(lacking.keys() & reasons.keys() for reasons in found):
        yield Reason.of(Code.NO_COMBINATION, Subject("pod", packing.classes[item].sample.pods[0].key), classes=classes)


def _lacking(packing: PackingInput, item: int) -> dict[Subject, Reason]:
    """By pod, the labels that no offering has."""
    found = (missing_labels(pod, packing.labels) for pod in packing.classes[item].sample.pods)
    return {reason.subject: reason for reason in found if reason}


def _of_all(reason: Reason, lacking: Mapping[Subject, Reason]) -> Reason:
    """True if a label is missing on one node only, while other labels exclude the pod from all nodes."""
    return lacking.get(reason.subject, reason) if reason.code in _SELECTING else reason


def near_misses(
    verdicts: Iterable[tuple[int, Verdict]],
    packing: PackingInput,
    policy: Policy,
    lacking: Mapping[Subject, Reason],
    types: Mapping[str, int],
) -> tuple[NearMiss, ...]:
    """For each type the nearest miss over its variants, equal findings counted, nearest first.

    A deficit of one variant is left out if another variant fits, or if `lacking` has labels that all types lack, by
    pod. `types`: by name, the number of types that this one represents.
    """
    nearest: dict[str, Reason] = {}
    verdicts = tuple(verdicts)
    fit = {packing.candidates[i].instance_type.name for i, verdict in verdicts if _would_run(packing, i, verdict)}
    for index, verdict in verdicts:
        name = packing.candidates[index].instance_type.name
        if name in fit:
            continue
        for reason in (_of_all(miss, lacking) for miss in _misses(packing.candidates[index], verdict)):
            if name not in nearest or _farness_in_type(reason) < _farness_in_type(nearest[name]):
                nearest[name] = reason
    groups: dict[object, list[tuple[str, Reason]]] = {}
    for name, reason in nearest.items():
        # Predicted devices are numbered; the number of the device that was checked first has no meaning.
        subject = Subject("device") if reason.subject.kind == "device" else reason.subject
        groups.setdefault((reason.code, subject, _kind(reason)), []).append((name, reason))
    counts = [sum(types[name] for name, _ in group) for group in groups.values()]
    best = map(_best, groups.values())
    misses = [NearMiss(reason, count, name) for (name, reason), count in zip(best, counts, strict=True)]
    misses.sort(key=lambda miss: (_farness(miss.reason), _none_of_it(miss.reason), -miss.types, miss.example))
    return tuple(misses[: policy.near_misses])


def _would_run(packing: PackingInput, index: int, verdict: Verdict) -> bool:
    return isinstance(verdict, Fits) and not packing.candidates[index].excluded


def _misses(candidate: Candidate, verdict: Verdict) -> tuple[Reason, ...]:
    """The first reason. If the pod would never run on the candidate, missing devices are not mentioned."""
    excluded = candidate.excluded and candidate.barred and not isinstance(verdict, Fits)
    return (Reason.of(candidate.barred.code),) if excluded and candidate.barred else _leading(_reasons(verdict))


def _leading(reasons: tuple[Reason, ...]) -> tuple[Reason, ...]:
    """The first reason; of several resources the one of a device plugin, which may be missing together with huge
    pages. It names other extended resources (`nor`) of which there is none, too: who adds one shall not meet the
    next."""
    if len(reasons) < 2 or reasons[0].code is not Code.INSUFFICIENT_RESOURCE:
        return reasons[:1]
    none_of = {str(r.detail.get("resource", "")): r for r in reasons if _none_of_it(r)}
    first = next((r for name, r in none_of.items() if is_plugin_resource(name)), reasons[0])
    others = tuple(name for name, r in none_of.items() if "/" in name and r is not first)
    return (
        replace(first, detail=first.detail.with_items({"nor": others})) if others and _none_of_it(first) else first,
    )


def _farness(reason: Reason) -> int:
    return _FARNESS.get(reason.code, _MIDDLE)


def _farness_in_type(reason: Reason) -> tuple[int, bool, bool]:
    """The same among variants of one type.

    A variant without a device of the class has passed all filters before it. A variant without any of a resource, which
    a device plugin or a driver has to provide, is not reported beside one that has some, nor one without its devices
    beside one without huge pages.
    """
    none = _none_of_it(reason)
    farness = _SELECTED if reason.code is Code.NO_DEVICE_OF_CLASS else _farness(reason)
    return farness, none, none and is_plugin_resource(str(reason.detail["resource"]))


def _none_of_it(reason: Reason) -> bool:
    return reason.code is Code.INSUFFICIENT_RESOURCE and reason.detail.get("free") == 0


def _kind(reason: Reason) -> FrozenMap[str, object]:
    return FrozenMap({key: value for key, value in reason.detail.items() if key not in _AMOUNTS})


def _best(group: Sequence[tuple[str, Reason]]) -> tuple[str, Reason]:
    """The type with the largest available amount; otherwise the first by price, in the order of candidates."""
    return max(group, key=lambda entry: max(_amounts(entry[1]), default=-1))


def _amounts(reason: Reason) -> Iterator[int]:
    for name in ("found", "free"):
        amount = reason.detail.get(name)
        if isinstance(amount, int):
            yield amount


def _names(sample: Bundle, bundle: Bundle) -> dict[str, str]:
    """Keys of pods and claims of the sample → of the bundle."""
    names: dict[str, str] = {}
    for ours, theirs in zip(sample.pods, bundle.pods, strict=True):
        names[ours.key] = theirs.key
        names |= dict(zip(claim_keys(ours), claim_keys(theirs), strict=True))
    return names


def _renamed(reason: Reason, names: Mapping[str, str]) -> Reason:
    """The reason with the names of a bundle: equal bundles share verdicts, which have the names of the sample."""
    detail = {k: names.get(v, v) if isinstance(v, str) else v for k, v in reason.detail.items()}
    return Reason(reason.code, reason.subject.renamed(names), FrozenMap(detail))
