"""Why: the offerings that were considered for each demand, and why one of them was chosen.

Only codes and facts; report/ makes the text. It decides nothing.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import chain, islice

from autoscaler.model.plan import Considered, ConsideredOutcome
from autoscaler.model.reason import Code, Fact, Reason
from autoscaler.model.verdict import DoesNotFit, Fatal, Fits, Unknown, Verdict
from autoscaler.planning.demand.bundles import has_alternatives
from autoscaler.planning.placement.packing_input import ADMITTED, PackingInput, named_drivers
from autoscaler.planning.policy import Policy
from autoscaler.planning.supply.candidates import Candidate
from autoscaler.planning.supply.limits import binding_after
from autoscaler.planning.work import over_budget

_OUTCOMES: dict[type, ConsideredOutcome] = {
    Fits: ConsideredOutcome.FITS,
    DoesNotFit: ConsideredOutcome.DOES_NOT_FIT,
    Fatal: ConsideredOutcome.FATAL,
    Unknown: ConsideredOutcome.UNKNOWN,
}
_SHOWN_FIRST = {outcome: rank for rank, outcome in enumerate(ConsideredOutcome)}


@dataclass(frozen=True, slots=True)
class Bought:
    """What the plan buys (nodes by index of the candidate) and shapes it must not buy, with the class they break.

    `used` is how much the nodes take of each limit.
    """

    nodes: Mapping[int, int]
    banned: Mapping[int, int]
    used: tuple[Decimal, ...]

    @staticmethod
    def of(packing: PackingInput, nodes: Mapping[int, int], banned: Mapping[int, int]) -> Bought:
        """The same, with what the nodes take of the limits, which explanations ask for thousands of times."""
        counts = [(packing.candidates[index], count) for index, count in nodes.items()]
        used = (sum((limit.uses(c) * count for c, count in counts), Decimal(0)) for limit in packing.limits)
        return Bought(nodes, banned, tuple(used))


class Explanations:
    """What is told of the candidates, class by class. What is the same for several classes is worked out once."""

    def __init__(self, packing: PackingInput, bought: Bought, policy: Policy) -> None:
        self._packing = packing
        self._bought = bought
        self._policy = policy
        self._known: dict[int, Considered] = {}  # of candidates that fit, are not chosen, and admit every class
        self._views: dict[Hashable, _View] = {}

    def considered(self, item: int, chosen: Mapping[int, int]) -> tuple[Considered, ...]:
        """The candidates that were looked at for the class: the chosen ones, those that fit by price, and the others.

        `chosen` are those that bundles of the class go to, with the number of such nodes.
        What is dearer than a sure answer needs no look; a few more are looked at, so that there is something to
        compare.
        """
        packing, view = self._packing, self._view(item)
        listed, told = list[Considered](), dict[Hashable, Verdict]()
        for i in view.shown(chosen, self._policy.considered):
            fits = view.looked_at[i] is ConsideredOutcome.FITS
            same = fits and not chosen.get(i) and packing.admission(i, item) is ADMITTED
            entry = self._known.get(i) if same else None
            if entry is None:
                verdict = self._told(i, item, view, told)
                entry = _considered(packing, i, item, chosen.get(i, 0), self._bought, view.fitting, verdict)
                if same:
                    self._known[i] = entry
            listed.append(entry)
        return tuple(listed)

    def _told(self, candidate: int, item: int, view: _View, told: dict[Hashable, Verdict]) -> Verdict:
        """What people read of the candidate; `told` has what was read of others with the same devices."""
        trials, shape = self._packing.trials, self._packing.shape_of[candidate]
        if candidate not in view.told_as:
            view.told_as[candidate] = trials.told_as(shape, item)
        key = view.told_as[candidate]
        if key is None:
            return trials.explained(shape, item)
        if key not in told:
            told[key] = trials.explained(shape, item)
        return told[key]

    def _view(self, item: int) -> _View:
        key = self._packing.same_outcomes(item)
        if key is None:
            return _view(self._packing, item, self._policy)
        if key not in self._views:
            self._views[key] = _view(self._packing, item, self._policy)
        return self._views[key]


@dataclass(frozen=True, slots=True)
class _View:
    """What came of each candidate for a class: `groups` are in the order in which people read them, by price.

    `told_as`: equal where the same is told of candidates, as far as somebody has read of them."""

    looked_at: Mapping[int, ConsideredOutcome]
    fitting: Sequence[int]
    by_cost: Sequence[int]
    groups: Sequence[Sequence[int]]
    told_as: dict[int, Hashable] = field(default_factory=dict)

    def shown(self, chosen: Mapping[int, int], most: int) -> list[int]:
        """So many of the candidates that were looked at: those first that say most, and of these the cheapest."""
        first = [i for i in self.by_cost if chosen.get(i)] if len(chosen) > 1 else [i for i in chosen if chosen[i]]
        others = (i for i in chain.from_iterable(self.groups) if not chosen.get(i))
        return list(islice(chain((i for i in first if i in self.looked_at), others), most))


def _view(packing: PackingInput, item: int, policy: Policy) -> _View:
    looked_at = _looked_at(packing, item, policy)
    by_cost = [i for i in packing.by_cost if i in looked_at]
    groups: dict[tuple[int, bool], list[int]] = {}
    for i in by_cost:
        groups.setdefault((_SHOWN_FIRST[looked_at[i]], packing.bar(i, item) is not None), []).append(i)
    fitting = [i for i, outcome in looked_at.items() if outcome is ConsideredOutcome.FITS]
    return _View(looked_at, fitting, by_cost, [groups[key] for key in sorted(groups)])


def _looked_at(packing: PackingInput, item: int, policy: Policy) -> dict[int, ConsideredOutcome]:
    """What came of each candidate of which it is known, and of a few more by price."""
    trials, shape_of = packing.trials, packing.shape_of
    outcomes = {shape: _OUTCOMES[type(trials.verdict(shape, item))] for shape in trials.known_shapes(item)}
    found = {i: outcomes[shape] for i, shape in enumerate(shape_of) if shape in outcomes}
    fits = sum(outcome is ConsideredOutcome.FITS for outcome in found.values())
    for i in packing.by_cost:
        if fits >= policy.shown_fits:
            break
        if i not in found:
            shape = shape_of[i]
            if shape not in outcomes:
                outcomes[shape] = _OUTCOMES[type(trials.verdict(shape, item))]
            found[i] = outcomes[shape]
            fits += found[i] is ConsideredOutcome.FITS
    return found


def undecided_cheaper(packing: PackingInput, item: int, chosen: Mapping[int, int]) -> Reason | None:
    """The types that may cost less than what was chosen for the class, and of which it is not known whether they fit.

    `chosen` are candidates with the number of nodes. A type that fits in another variant is none of them: it was
    compared. Nor is one whose devices are too few to bring the cost of a bundle below that of what was chosen.
    """
    prices = [(packing.candidates[i].usd_per_hour or Decimal(0)) * nodes for i, nodes in chosen.items()]
    paid, known = sum(prices), frozenset[int]()
    bundles = len(packing.classes[item].members)
    found: dict[str, tuple[Candidate, Reason]] = {}
    fitting: set[str] = set()
    if prices and not packing.trials.surely(item):
        known = frozenset(packing.trials.known_shapes(item))
    for i in packing.by_cost if known else ():
        candidate = packing.candidates[i]
        price = candidate.usd_per_hour
        if price is None or price >= paid:
            break
        if candidate.barred or packing.shape_of[i] not in known:
            continue
        verdict = packing.trials.verdict(packing.shape_of[i], item)
        if isinstance(verdict, Fits):
            fitting.add(candidate.instance_type.name)
            continue
        if not isinstance(verdict, Unknown) or over_budget(verdict):
            continue
        if price * bundles < paid * min(bundles, _most_bundles(packing, i, item)):
            found.setdefault(candidate.instance_type.name, (candidate, verdict.reasons[0]))
    undecided = [(name, *rest) for name, rest in found.items() if name not in fitting]
    if not undecided:
        return None
    name, candidate, reason = undecided[0]
    facts: dict[str, Fact] = {"types": len(undecided), "example": name, "price": f"{candidate.usd_per_hour:.2f}"}
    if "attributes" in reason.detail:
        facts["attributes"] = reason.detail["attributes"]
    pod = packing.classes[item].sample.key
    return Reason.of(Code.CHEAPER_UNKNOWN, f"pod {pod}", **facts)


def _most_bundles(packing: PackingInput, candidate: int, item: int) -> int:
    """How many bundles of the class a node may serve at most, by its devices; all where these can be shared."""
    shape = packing.shapes[packing.shape_of[candidate]]
    bundles = len(packing.classes[item].members)
    shared = (d.allow_multiple_allocations for piece in shape.sample.slices for d in piece.devices)
    if shape.units.divisible or any(shared):
        return bundles
    return max(1, shape.units.total(named_drivers([packing.classes[item]], packing.snapshot)))


def cost_of(candidate: Candidate) -> tuple[bool, Decimal]:
    """Orders candidates by price, unpriced ones last."""
    return (candidate.usd_per_hour is None, candidate.usd_per_hour or Decimal(0))


def _considered(
    packing: PackingInput,
    index: int,
    item: int,
    nodes: int,
    bought: Bought,
    fitting: Sequence[int],
    verdict: Verdict,
) -> Considered:
    candidate = packing.candidates[index]
    outcome = ConsideredOutcome.CHOSEN if nodes else _OUTCOMES[type(verdict)]
    if nodes:
        reasons: tuple[Reason, ...] = (why_chosen(packing, index, item, fitting),)
    elif isinstance(verdict, Fits):
        reasons = tuple(why_not(packing, index, item, bought))
    else:
        reasons = verdict.reasons
    return Considered(candidate.pool.name, candidate.profiles, candidate.offering, outcome, reasons, nodes)


def why_chosen(packing: PackingInput, index: int, item: int, fitting: Iterable[int]) -> Reason:
    """Prepaid, preferred by a claim over something cheaper, or simply the cheapest."""
    candidate = packing.candidates[index]
    if candidate.block:
        return Reason.of(Code.PREPAID, block=candidate.block.name)
    if has_alternatives(packing.classes[item].sample, packing.snapshot.claims):
        preference, cost = preference_of(packing, index, item), cost_of(candidate)
        cheaper = (i for i in fitting if cost_of(packing.candidates[i]) < cost and packing.bar(i, item) is None)
        if any(preference_of(packing, i, item) > preference for i in cheaper):
            return Reason.of(Code.PREFERRED, **_share(candidate))
    return Reason.of(Code.CHEAPEST, **_share(candidate))


def _share(candidate: Candidate) -> dict[str, str]:
    share = candidate.instance_type.share
    return {"share": share} if share else {}


def preference_of(packing: PackingInput, candidate: int, item: int) -> int:
    """Sum of the firstAvailable indexes that a bundle of the class gets there; 0 where it does not fit."""
    verdict = packing.trials.verdict(packing.shape_of[candidate], item)
    return verdict.preference if isinstance(verdict, Fits) else 0


def why_not(packing: PackingInput, index: int, item: int, bought: Bought, *, nodes: int = 1) -> Iterable[Reason]:
    """What kept `nodes` nodes that fit from being bought; nothing if another was just better."""
    bar = packing.bar(index, item)
    if bar:
        yield bar
    broken = bought.banned.get(packing.shape_of[index])
    if broken is not None:
        yield Reason.of(Code.BREAKS_OTHER_POD, pod=packing.classes[broken].sample.key)
    candidate = packing.candidates[index]
    nodes *= candidate.hosts
    used = bought.used
    if nodes > 1:
        used = tuple(u + limit.uses(candidate) * (nodes - 1) for u, limit in zip(used, packing.limits, strict=True))
    limit = binding_after(candidate, packing.limits, used)
    if limit and not bar:
        yield limit.reason()
