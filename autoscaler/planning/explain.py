"""Why: the offerings that were considered for each demand, and for each pod left out the nearest misses.

Only codes and facts; report/ makes the text. It decides nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from autoscaler.model.plan import Considered, LeftOut, NearMiss
from autoscaler.model.reason import Code, Reason
from autoscaler.model.verdict import DoesNotFit, Fatal, Fits, Unknown, Verdict
from autoscaler.planning.bundles import Bundle
from autoscaler.planning.candidates import Candidate
from autoscaler.planning.demand import claim_keys
from autoscaler.planning.limits import binding
from autoscaler.planning.market import Market
from autoscaler.planning.policy import Policy
from instance_catalog.frozen_map import FrozenMap

_OUTCOMES: dict[type, str] = {Fits: "fits", DoesNotFit: "does-not-fit", Fatal: "fatal", Unknown: "unknown"}
_SHOWN_FIRST = {"chosen": 0, "fits": 1, "unknown": 2, "fatal": 3, "does-not-fit": 4}
# The further a check comes, the nearer the miss. Codes that are not listed are in between.
_FARNESS = {
    Code.NO_DEVICE_OF_CLASS: 9,
    Code.NODE_AFFINITY_MISMATCH: 8,
    Code.NODE_SELECTOR_MISMATCH: 8,
    Code.TAINT_NOT_TOLERATED: 8,
    Code.INSUFFICIENT_RESOURCE: 7,  # checked before devices: says nothing about them
    Code.SELECTOR_FALSE: 6,
    Code.TOO_FEW_DEVICES: 2,
    Code.NO_COMBINATION: 1,
    Code.CONSTRAINT_UNSATISFIED: 1,
    Code.COUNTERS_EXHAUSTED: 1,
    Code.CAPACITY_INSUFFICIENT: 1,
}
_MIDDLE = 5
# Amounts found differ from type to type; they do not make a different finding.
_AMOUNTS = ("found", "free", "devices")


@dataclass(frozen=True, slots=True)
class Bought:
    """What the plan buys (nodes by index of the candidate) and shapes it must not buy, with the class they break."""

    nodes: Mapping[int, int] = field(default_factory=dict)
    banned: Mapping[int, int] = field(default_factory=dict)

    def candidates(self, market: Market) -> list[Candidate]:
        """One entry per node."""
        return [market.candidates[i] for i, count in self.nodes.items() for _ in range(count)]


def considered(
    market: Market, item: int, chosen: frozenset[int], bought: Bought, policy: Policy
) -> tuple[Considered, ...]:
    """The candidates that were looked at for the class: the chosen ones, those that fit by price, and the others.

    What is dearer than a sure answer needs no look; a few more are looked at, so that there is something to compare.
    """
    looked_at = _looked_at(market, item, policy)
    fitting = [i for i in looked_at if _fits(market, i, item)]
    entries = {i: _considered(market, i, item, i in chosen, bought, fitting) for i in looked_at}
    order = sorted(
        looked_at,
        key=lambda i: (
            _SHOWN_FIRST[entries[i].outcome],
            market.bar(i, item) is not None,
            _cost(market.candidates[i]),
            i,
        ),
    )
    return tuple(entries[i] for i in order[: policy.considered])


def _looked_at(market: Market, item: int, policy: Policy) -> list[int]:
    indexes = range(len(market.candidates))
    found = [i for i in indexes if market.trials.known(market.shape_of[i], item)]
    fits = sum(1 for i in found if _fits(market, i, item))
    known = set(found)
    for i in sorted(indexes, key=lambda i: (_cost(market.candidates[i]), i)):
        if fits >= policy.shown_fits:
            break
        if i not in known:
            found.append(i)
            fits += _fits(market, i, item)
    return found


def _fits(market: Market, candidate: int, item: int) -> bool:
    return isinstance(market.trials.verdict(market.shape_of[candidate], item), Fits)


def _cost(candidate: Candidate) -> tuple[object, ...]:
    return (candidate.usd_per_hour is None, candidate.usd_per_hour or 0)


def _considered(
    market: Market, index: int, item: int, chosen: bool, bought: Bought, fitting: Sequence[int]
) -> Considered:
    candidate = market.candidates[index]
    verdict = market.trials.verdict(market.shape_of[index], item)
    outcome = "chosen" if chosen else _OUTCOMES[type(verdict)]
    if chosen:
        reasons: tuple[Reason, ...] = (why_chosen(market, index, item, fitting),)
    elif isinstance(verdict, Fits):
        reasons = tuple(_why_not(market, index, item, bought))
    else:
        reasons = verdict.reasons
    nodes = bought.nodes.get(index, 0) if chosen else 0
    return Considered(candidate.pool.name, candidate.profiles, candidate.offering, outcome, reasons, nodes)


def why_chosen(market: Market, index: int, item: int, fitting: Iterable[int]) -> Reason:
    """Prepaid, preferred by a claim over something cheaper, or simply the cheapest."""
    candidate = market.candidates[index]
    if candidate.block:
        return Reason.of(Code.PREPAID, block=candidate.block.name)
    preference = _preference(market, index, item)
    cheaper = [i for i in fitting if market.bar(i, item) is None and _cost(market.candidates[i]) < _cost(candidate)]
    if any(_preference(market, i, item) > preference for i in cheaper):
        return Reason.of(Code.PREFERRED)
    return Reason.of(Code.CHEAPEST)


def _preference(market: Market, candidate: int, item: int) -> int:
    verdict = market.trials.verdict(market.shape_of[candidate], item)
    return verdict.preference if isinstance(verdict, Fits) else 0


def _why_not(market: Market, index: int, item: int, bought: Bought) -> Iterable[Reason]:
    """What kept something that fits from being bought; nothing if another was just better."""
    bar = market.bar(index, item)
    if bar:
        yield bar
    broken = bought.banned.get(market.shape_of[index])
    if broken is not None:
        yield Reason.of(Code.BREAKS_OTHER_POD, pod=market.classes[broken].sample.key)
    limit = binding(market.candidates[index], market.limits, bought.candidates(market))
    if limit and not bar:
        yield limit.reason()


def left_out(market: Market, item: int, bundle: Bundle, bought: Bought, policy: Policy) -> Iterable[LeftOut]:
    """One entry for each pod of a bundle that gets no node."""
    verdict, reasons, misses = _diagnosis(market, item, bought, policy)
    names = _names(market.classes[item].sample, bundle)
    reasons = tuple(_renamed(reason, names) for reason in reasons)
    misses = tuple(replace(miss, reason=_renamed(miss.reason, names)) for miss in misses)
    for pod in bundle.pods:
        yield LeftOut(pod.key, verdict, reasons, claims=claim_keys(pod), near_misses=misses)


def _diagnosis(
    market: Market, item: int, bought: Bought, policy: Policy
) -> tuple[str, tuple[Reason, ...], tuple[NearMiss, ...]]:
    """The verdict over all candidates: what would have to change for the bundle to be placed."""
    verdicts = [(i, market.trials.verdict(market.shape_of[i], item)) for i in range(len(market.candidates))]
    fitting = [i for i, verdict in verdicts if isinstance(verdict, Fits)]
    misses = near_misses(verdicts, market, policy)
    if fitting:
        reasons = dict.fromkeys(r for i in fitting for r in _why_not(market, i, item, bought))
        return "does-not-fit", _few(reasons, policy), misses
    for kind, name in ((Unknown, "unknown"), (Fatal, "fatal")):
        hits = [verdict for _, verdict in verdicts if isinstance(verdict, kind)]
        if hits and (kind is Unknown or len(hits) == len(verdicts)):
            return name, _few(dict.fromkeys(r for verdict in hits for r in _reasons(verdict)), policy), misses
    everywhere = {_reasons(verdict) for _, verdict in verdicts}
    if len(everywhere) == 1:
        return "does-not-fit", (*_split(market, item), *everywhere.pop()), ()
    return "does-not-fit", (*_split(market, item), Reason.of(Code.NO_CANDIDATE, offerings=len(verdicts))), misses


def _few(reasons: Iterable[Reason], policy: Policy) -> tuple[Reason, ...]:
    """One reason per code and subject, the first ones."""
    by_kind: dict[tuple[Code, str], Reason] = {}
    for reason in reasons:
        by_kind.setdefault((reason.code, "" if reason.code is Code.NEEDS_RESERVATION else reason.subject), reason)
    return tuple(by_kind.values())[: policy.near_misses]


def _reasons(verdict: Verdict) -> tuple[Reason, ...]:
    return () if isinstance(verdict, Fits) else verdict.reasons


def _split(market: Market, item: int) -> Iterable[Reason]:
    """For pods that share a claim, which claim binds them."""
    shared = market.classes[item].sample.shared_claims
    if shared:
        yield Reason.of(Code.BUNDLE_SPLIT, f"claim {shared[0]}", pods=len(market.classes[item].sample.pods))


def near_misses(verdicts: Iterable[tuple[int, Verdict]], market: Market, policy: Policy) -> tuple[NearMiss, ...]:
    """Each type's nearest miss over its variants, equal findings counted; nearest first."""
    nearest: dict[str, Reason] = {}
    for index, verdict in verdicts:
        name = market.candidates[index].instance_type.name
        for reason in _reasons(verdict)[:1]:
            if name not in nearest or _farness(reason) < _farness(nearest[name]):
                nearest[name] = reason
    groups: dict[object, list[tuple[str, Reason]]] = {}
    for name, reason in nearest.items():
        groups.setdefault((reason.code, reason.subject, _kind(reason)), []).append((name, reason))
    misses = [NearMiss(_best(group)[1], len(group), _best(group)[0]) for group in groups.values()]
    misses.sort(key=lambda miss: (_farness(miss.reason), -miss.types, miss.example))
    return tuple(misses[: policy.near_misses])


def _farness(reason: Reason) -> int:
    return _FARNESS.get(reason.code, _MIDDLE)


def _kind(reason: Reason) -> FrozenMap[str, object]:
    return FrozenMap({key: value for key, value in reason.detail.items() if key not in _AMOUNTS})


def _best(group: Sequence[tuple[str, Reason]]) -> tuple[str, Reason]:
    """The type that came nearest by the amount found; the first by price otherwise, as candidates are ordered."""
    found = [entry for entry in group if isinstance(entry[1].detail.get("found"), int)]
    return max(found, key=lambda entry: entry[1].detail["found"]) if found else group[0]


def _names(sample: Bundle, bundle: Bundle) -> dict[str, str]:
    """Keys of pods and claims of the sample → of the bundle."""
    names: dict[str, str] = {}
    for ours, theirs in zip(sample.pods, bundle.pods, strict=True):
        names[ours.key] = theirs.key
        names |= dict(zip(claim_keys(ours), claim_keys(theirs), strict=True))
    return names


def _renamed(reason: Reason, names: Mapping[str, str]) -> Reason:
    """Verdicts are shared by equal bundles and speak of the sample; here each bundle gets its own names back."""
    subject = " ".join(names.get(word, word) for word in reason.subject.split(" "))
    detail = {k: names.get(v, v) if isinstance(v, str) else v for k, v in reason.detail.items()}
    return Reason(reason.code, subject, FrozenMap(detail))
