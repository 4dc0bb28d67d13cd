"""Explains purchases: the offerings that were considered for each demand, and the reason for the chosen one.

It returns codes and facts; report/ creates the text. It has no influence on the plan.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from decimal import Decimal
from functools import cached_property
from itertools import chain, islice

from autoscaler.model.plan import Considered, ConsideredOutcome
from autoscaler.model.reason import NO_SUBJECT, Code, Fact, Reason, Subject
from autoscaler.model.verdict import DoesNotFit, Fatal, Fits, Unknown, Verdict
from autoscaler.planning.demand.bundles import has_alternatives
from autoscaler.planning.packing.room import bits_of, numbers_in
from autoscaler.planning.placement.packing_input import ADMITTED, PackingInput, named_drivers
from autoscaler.planning.policy import Policy
from autoscaler.planning.supply.candidates import Candidate
from autoscaler.planning.supply.limits import binding_after
from instance_catalog.dataclass import dataclass

_OUTCOMES: dict[type, ConsideredOutcome] = {
    Fits: ConsideredOutcome.FITS,
    DoesNotFit: ConsideredOutcome.DOES_NOT_FIT,
    Fatal: ConsideredOutcome.FATAL,
    Unknown: ConsideredOutcome.UNKNOWN,
}


@dataclass(frozen=True, slots=True)
class Bought:
    """The purchases of the plan (nodes by index of the candidate) and shapes that must not be bought, each with the
    class that it would break.

    `used` is the part of each limit that the nodes use.
    """

    nodes: Mapping[int, int]
    banned: Mapping[int, int]
    used: tuple[Decimal, ...]

    @staticmethod
    def of(packing: PackingInput, nodes: Mapping[int, int], banned: Mapping[int, int]) -> Bought:
        """The same with the used limits, which explanations read thousands of times."""
        counts = [(packing.candidates[index], count) for index, count in nodes.items()]
        used = (sum((limit.uses(c) * count for c, count in counts), Decimal(0)) for limit in packing.limits)
        return Bought(nodes, banned, tuple(used))


class Explanations:
    """The explanations of candidates, class by class. Explanations that several classes share are computed once."""

    def __init__(self, packing: PackingInput, bought: Bought, policy: Policy) -> None:
        self._packing = packing
        self._bought = bought
        self._policy = policy
        self._known: dict[int, Considered] = {}  # candidates that fit, are not chosen, and admit every class
        self._views: dict[Hashable, _View] = {}

    def considered(self, item: int, chosen: Mapping[int, int]) -> tuple[Considered, ...]:
        """The considered candidates for the class: the chosen ones, those that fit by price, and the others.

        `chosen` are those that bundles of the class use, with the number of such nodes. Candidates that are more
        expensive than one that surely fits are not checked, except for a few to compare with.
        """
        packing, view = self._packing, self._view(item)
        listed, explanations = list[Considered](), dict[Hashable, Verdict]()
        for i in view.shown(chosen, self._policy.considered):
            fits = view.outcome(i) is ConsideredOutcome.FITS
            same = fits and not chosen.get(i) and packing.admission(i, item) is ADMITTED
            entry = self._known.get(i) if same else None
            if entry is None:
                # What is chosen or fits has its reasons beside its verdict.
                verdict = None if fits or chosen.get(i) else self._explanation(i, item, view, explanations)
                entry = _considered(packing, i, item, chosen.get(i, 0), self._bought, view, verdict)
                if same:
                    self._known[i] = entry
            listed.append(entry)
        return tuple(listed)

    def _explanation(self, candidate: int, item: int, view: _View, explanations: dict[Hashable, Verdict]) -> Verdict:
        """The explanation of the candidate; `explanations` has those of others with the same devices."""
        trials, shape = self._packing.trials, self._packing.shape_of[candidate]
        if candidate not in view.told_as:
            view.told_as[candidate] = trials.told_as(shape, item)
        key = view.told_as[candidate]
        if key is None:
            return trials.explained(shape, item)
        if key not in explanations:
            explanations[key] = trials.explained(shape, item)
        return explanations[key]

    def _view(self, item: int) -> _View:
        key = self._packing.same_outcomes(item)
        if key is None:
            return _View(self._packing, item, self._policy)
        if key not in self._views:
            self._views[key] = _View(self._packing, item, self._policy)
        return self._views[key]


class _View:
    """The outcome of each candidate for a class, for all with known shapes and a few more by price.

    `told_as`: by candidate with a finished explanation; equal if the explanation is the same.
    """

    def __init__(self, packing: PackingInput, item: int, policy: Policy) -> None:
        self._packing = packing
        self._item = item
        known, self._refusing = packing.trials.known_shapes(item), packing.trials.refusing(item)
        self._by_shape = {shape: self._asked(shape) for shape in numbers_in(known & ~self._refusing)}
        self._more = self._fitting_more(policy.shown_fits)
        self._listed: list[int] = []
        self._rest = self._in_order()
        self.told_as: dict[int, Hashable] = {}

    def outcome(self, candidate: int) -> ConsideredOutcome | None:
        """The outcome of the candidate; None if it was not checked."""
        shape = self._packing.shape_of[candidate]
        if self._refusing >> shape & 1:
            return ConsideredOutcome.DOES_NOT_FIT
        return self._by_shape.get(shape) or self._more.get(candidate)

    def fitting(self) -> Iterable[int]:
        """The candidates that fit, by price."""
        return self._of(ConsideredOutcome.FITS)

    def shown(self, chosen: Mapping[int, int], most: int) -> list[int]:
        """At most `most` of the checked candidates: the most informative first, among these the cheapest."""
        first = sorted((i for i in chosen if chosen[i]), key=self._packing.place_by_cost.__getitem__)
        # Only candidates that are shown are sorted, and explanations are cached for the next class.
        self._listed += islice(self._rest, max(0, most + len(chosen) - len(self._listed)))
        others = (i for i in self._listed if not chosen.get(i))
        return list(islice(chain((i for i in first if self.outcome(i)), others), most))

    def _asked(self, shape: int) -> ConsideredOutcome:
        return _OUTCOMES[type(self._packing.trials.verdict(shape, self._item))]

    def _fitting_more(self, wanted: int) -> dict[int, ConsideredOutcome]:
        """The cheapest unknown candidates, in the order of their prices, until `wanted` of them fit."""
        packing, asked, found = self._packing, dict[int, ConsideredOutcome](), dict[int, ConsideredOutcome]()
        of_shape, fits = packing.of_shape, ConsideredOutcome.FITS
        wanted -= sum(len(of_shape[shape]) for shape, outcome in self._by_shape.items() if outcome is fits)
        for i in packing.by_cost if wanted > 0 else ():
            shape = packing.shape_of[i]
            if shape in self._by_shape or self._refusing >> shape & 1:
                continue
            if shape not in asked:
                asked[shape] = self._asked(shape)
            found[i] = asked[shape]
            wanted -= found[i] is fits
            if wanted <= 0:
                break
        return found

    def _of(self, outcome: ConsideredOutcome) -> Iterator[int]:
        """The candidates with this outcome, by price: worked out as far as they are read."""
        packing, shape_of = self._packing, self._packing.shape_of
        shapes = bits_of(shape for shape, found in self._by_shape.items() if found is outcome)
        if outcome is ConsideredOutcome.DOES_NOT_FIT:
            shapes |= self._refusing
        more = {i for i, found in self._more.items() if found is outcome}
        return (i for i in packing.by_cost if shapes >> shape_of[i] & 1 or i in more) if shapes or more else iter(())

    def _in_order(self) -> Iterator[int]:
        """All checked candidates in the order of the output."""
        for outcome in ConsideredOutcome:
            barred = list[int]()
            for i in self._of(outcome):
                if self._packing.bar(i, self._item) is None:
                    yield i
                else:
                    barred.append(i)
            yield from barred


@dataclass(frozen=True, slots=True)
class _Samples:
    """Candidates that represent all, and by name of their types the number of types that each represents."""

    candidates: tuple[int, ...]
    types: Mapping[str, int]


class Alike:
    """The candidates whose explanations differ, class by class. Classes with the same verdicts share them."""

    def __init__(self, packing: PackingInput) -> None:
        self.packing = packing
        self._known: dict[Hashable, _Samples] = {}

    @cached_property
    def _every(self) -> _Samples:
        """Most plans leave no pod out, and explain nothing."""
        return _Samples(tuple(range(len(self.packing.candidates))), dict.fromkeys(self.packing.of_type, 1))

    def explained(self, item: int) -> tuple[list[tuple[int, Verdict]], Mapping[str, int]]:
        """The explanation of each of them for the class, and the types that they represent."""
        trials, shape_of, samples = self.packing.trials, self.packing.shape_of, self._samples(item)
        return [(i, trials.explained(shape_of[i], item)) for i in samples.candidates], samples.types

    def _samples(self, item: int) -> _Samples:
        """All candidates if the class fits somewhere, or if nothing is known of others with the same verdicts."""
        key = self.packing.same_outcomes(item)
        if key is None:
            return self._every
        if key not in self._known:
            self._known[key] = self._sampled(item)
        return self._known[key]

    def _sampled(self, item: int) -> _Samples:
        packing, trials = self.packing, self.packing.trials
        if any(trials.fits(shape, item) for shape in range(len(packing.shapes))):
            return self._every
        told = [trials.told_as(shape, item) for shape in range(len(packing.shapes))]
        found: dict[Hashable, tuple[str, list[int]]] = {}  # by all that is told of a type
        counts: dict[str, int] = {}
        for name, members in packing.of_type.items():
            first: dict[Hashable, int] = {}
            for index in members:
                shape = packing.shape_of[index]
                first.setdefault((index if told[shape] is None else told[shape], self._seen(index)), index)
            name, _ = found.setdefault(tuple(first), (name, list(first.values())))
            counts[name] = counts.get(name, 0) + 1
        return _Samples(tuple(sorted(index for _, indices in found.values() for index in indices)), counts)

    def _seen(self, index: int) -> Hashable:
        """What an explanation reads of the candidate beside its verdict."""
        candidate = self.packing.candidates[index]
        bar = candidate.barred.code if candidate.excluded and candidate.barred else None
        return candidate.pool.name, candidate.instance_type.fabric.multi_node, bar


def undecided_cheaper(packing: PackingInput, item: int, chosen: Mapping[int, int]) -> Reason | None:
    """The types that may cost less than the choice for the class and of which it is not known whether they fit.

    `chosen` are candidates with the number of nodes. Types that fit in another variant are left out: they were
    compared. So are types with too few devices to serve a bundle for less than the choice.
    """
    unknown = packing.trials.undecided(item) if chosen else 0
    if not unknown:
        return None
    prices = [(packing.candidates[i].usd_per_hour or Decimal(0)) * nodes for i, nodes in chosen.items()]
    paid, bundles = sum(prices), len(packing.classes[item].members)
    found: dict[str, tuple[Candidate, Reason]] = {}
    members = [i for shape in numbers_in(unknown) for i in packing.of_shape[shape]]
    for i in sorted(members, key=packing.place_by_cost.__getitem__):
        candidate = packing.candidates[i]
        price = candidate.usd_per_hour
        if price is None or price >= paid:
            break
        if not candidate.barred and price * bundles < paid * min(bundles, _most_bundles(packing, i, item)):
            verdict = packing.trials.verdict(packing.shape_of[i], item)
            found.setdefault(candidate.instance_type.name, (candidate, verdict.reasons[0]))
    undecided = [(name, *rest) for name, rest in found.items() if not _fits_cheaper(packing, item, name, paid)]
    if not undecided:
        return None
    name, candidate, reason = undecided[0]
    facts: dict[str, Fact] = {"types": len(undecided), "example": name, "price": f"{candidate.usd_per_hour:.2f}"}
    if "attributes" in reason.detail:
        facts["attributes"] = reason.detail["attributes"]
    pod = packing.classes[item].sample.key
    return Reason.of(Code.CHEAPER_UNKNOWN, Subject("pod", pod), **facts)


def _fits_cheaper(packing: PackingInput, item: int, instance_type: str, paid: Decimal | int) -> bool:
    """True if the type is known to take the class in some variant that costs less."""
    trials, known = packing.trials, packing.trials.known_shapes(item)
    return any(
        not candidate.barred and known >> shape & 1 and trials.fits(shape, item)
        for i in packing.of_type[instance_type]
        if (candidate := packing.candidates[i]).usd_per_hour is not None and candidate.usd_per_hour < paid
        for shape in [packing.shape_of[i]]
    )


def _most_bundles(packing: PackingInput, candidate: int, item: int) -> int:
    """The most bundles of the class on a node, by its devices; all of them if devices can be shared."""
    shape = packing.shapes[packing.shape_of[candidate]]
    bundles = len(packing.classes[item].members)
    shared = (d.allow_multiple_allocations for slice_ in shape.sample.slices for d in slice_.devices)
    if shape.units.divisible or any(shared):
        return bundles
    return max(1, shape.units.total(named_drivers([packing.classes[item]], packing.snapshot)))


def cost_of(candidate: Candidate) -> tuple[bool, Decimal]:
    """The sort key of candidates by price, those without a price last."""
    return (candidate.usd_per_hour is None, candidate.usd_per_hour or Decimal(0))


def _considered(
    packing: PackingInput,
    index: int,
    item: int,
    nodes: int,
    bought: Bought,
    view: _View,
    verdict: Verdict | None,
) -> Considered:
    """`verdict`: None if it takes the class."""
    candidate = packing.candidates[index]
    outcome = ConsideredOutcome.CHOSEN if nodes else _OUTCOMES[Fits if verdict is None else type(verdict)]
    if nodes:
        reasons: tuple[Reason, ...] = (why_chosen(packing, index, item, view.fitting()),)
    elif verdict is None or isinstance(verdict, Fits):
        reasons = tuple(why_not(packing, index, item, bought))
    else:
        reasons = verdict.reasons
    return Considered(candidate.pool.name, candidate.profiles, candidate.offering, outcome, reasons, nodes)


def why_chosen(packing: PackingInput, index: int, item: int, fitting: Iterable[int]) -> Reason:
    """The reason for the choice: prepaid, preferred by a claim over something cheaper, or the cheapest."""
    candidate = packing.candidates[index]
    if candidate.block:
        return Reason.of(Code.PREPAID, block=candidate.block.name)
    if has_alternatives(packing.classes[item].sample, packing.snapshot.claims):
        preference, cost = preference_of(packing, index, item), cost_of(candidate)
        cheaper = (i for i in fitting if cost_of(packing.candidates[i]) < cost and packing.bar(i, item) is None)
        if any(preference_of(packing, i, item) > preference for i in cheaper):
            return Reason.of(Code.PREFERRED, NO_SUBJECT, **_share(candidate))
    return Reason.of(Code.CHEAPEST, NO_SUBJECT, **_share(candidate))


def _share(candidate: Candidate) -> dict[str, str]:
    share = candidate.instance_type.share
    return {"share": share} if share else {}


def preference_of(packing: PackingInput, candidate: int, item: int) -> int:
    """Sum of the firstAvailable indexes that a bundle of the class gets there; 0 if it does not fit."""
    verdict = packing.trials.verdict(packing.shape_of[candidate], item)
    return verdict.preference if isinstance(verdict, Fits) else 0


def why_not(packing: PackingInput, index: int, item: int, bought: Bought, *, nodes: int = 1) -> Iterable[Reason]:
    """The reasons why `nodes` nodes that fit were not bought; none if another candidate was only better."""
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
