"""Buys nodes: solves the packing problem without nodes that would break another pod, and lists alternative
offerings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from functools import cached_property

from autoscaler.model.reason import Code, Reason
from autoscaler.model.verdict import Fits
from autoscaler.planning.demand.bundles import Bundle, has_alternatives
from autoscaler.planning.packing.objective import Score
from autoscaler.planning.packing.problem import Pattern, Solution
from autoscaler.planning.placement.considered import Bought, preference_of, why_chosen
from autoscaler.planning.placement.launches import Launches, Purchase
from autoscaler.planning.placement.packing_input import Offered, PackingInput, PoolAndZone, Supply, pool_and_zone
from autoscaler.planning.policy import Policy
from autoscaler.planning.supply.candidates import Candidate
from autoscaler.planning.supply.hypothetical import hypothetical
from autoscaler.planning.supply.limits import binding_after, uses_of
from autoscaler.planning.supply.offering_labels import offering_keys
from autoscaler.scheduling.world import World
from instance_catalog.dataclass import dataclass, replace


@dataclass(frozen=True)
class Buying:
    """The purchases, with the candidates chosen for each class; `optimal` if nothing better exists.

    `at_least`: that of the Solution; None if not known.
    """

    purchases: tuple[Purchase, ...]
    chosen: tuple[tuple[int, Pattern], ...]  # candidate and the classes of its bundles, one entry per purchase
    bought: Bought
    score: Score
    optimal: bool
    at_least: Decimal | None = None

    def chosen_for(self, item: int) -> Counter[int]:
        """The candidates of bundles of the class, with the number of such nodes."""
        return self._by_item.get(item, Counter())

    @cached_property
    def _by_item(self) -> dict[int, Counter[int]]:
        found: dict[int, Counter[int]] = {}
        for candidate, pattern in self.chosen:
            for item in set(pattern):
                found.setdefault(item, Counter())[candidate] += 1
        return found


def combined(packing: PackingInput, buyings: Sequence[Buying]) -> Buying:
    """Several purchases as one."""
    if len(buyings) == 1:
        return buyings[0]
    nodes: dict[int, int] = {}
    banned: dict[int, int] = {}
    for buying in buyings:
        banned |= buying.bought.banned
        for index, count in buying.bought.nodes.items():
            nodes[index] = nodes.get(index, 0) + count
    return Buying(
        purchases=tuple(purchase for buying in buyings for purchase in buying.purchases),
        chosen=tuple(entry for buying in buyings for entry in buying.chosen),
        bought=Bought.of(packing, nodes, banned),
        score=buyings[0].score,
        optimal=all(buying.optimal for buying in buyings),
    )


def buy_for_all(
    packing: PackingInput,
    rest: Mapping[int, tuple[Bundle, ...]],
    postponed: Mapping[str, Reason],
    started: Mapping[str, int],
    offered: Offered,
    policy: Policy,
) -> Buying:
    """Buy for the rest, and for those `postponed` pods that kube-scheduler would bind to the new nodes before the
    others.

    A delay postpones purchases only: the first pod in the queue takes a node, whichever pod it was launched for.
    Without a node for each of them, the pods of the rest would wait for one launch after the other.
    """
    # A pod that is stuck on existing nodes is broken already, and a pod with a place there needs no protection.
    buying = buy(packing, rest, started, replace(offered, protected=tuple(rest)), policy)
    first = _coming_first(packing, postponed, buying)
    if not first:
        return buying
    all_of_them = {item: (*rest.get(item, ()), *first.get(item, ())) for item in sorted({*rest, *first})}
    return buy(packing, all_of_them, started, replace(offered, protected=tuple(all_of_them)), policy)


def _coming_first(
    packing: PackingInput, postponed: Mapping[str, Reason], buying: Buying
) -> Mapping[int, tuple[Bundle, ...]]:
    """By class, the delayed bundles that fit on a bought machine and are earlier in the queue than one of its
    bundles."""
    delayed = {key for key, reason in postponed.items() if reason.code is Code.SCALE_UP_DELAYED}
    turns = [bundle.turn for purchase in buying.purchases for bundle in purchase.bundles]
    if not delayed or not turns:
        return {}
    shapes = {packing.shape_of[i] for i, _ in buying.chosen if packing.candidates[i].hosts == 1}
    found: dict[int, tuple[Bundle, ...]] = {}
    for item, kind in enumerate(packing.classes):
        earlier = tuple(b for b in kind.members if b.key in delayed and b.turn < max(turns))
        if earlier and any(packing.trials.fits(shape, item) for shape in sorted(shapes)):
            found[item] = earlier
    return found


def buy(
    packing: PackingInput,
    rest: Mapping[int, tuple[Bundle, ...]],
    started: Mapping[str, int],
    offered: Offered,
    policy: Policy,
) -> Buying:
    counts = {item: len(bundles) for item, bundles in rest.items()}
    banned: dict[int, int] = {}
    if not packing.gangs and not any(counts.values()):
        return _nothing(packing)  # as in most reconciles; attempts for gangs are compared by their scores
    while True:
        supply = packing.problem(counts, started, offered, frozenset(banned))
        solution = packing.solved(supply.problem, policy.budget)
        breaking = _breaking(packing, supply, solution, offered.protected)
        if not breaking:
            return _bought(packing, rest, offered, supply, solution, banned, policy)
        banned |= breaking


def _nothing(packing: PackingInput) -> Buying:
    return Buying((), (), Bought.of(packing, {}, {}), Score(), optimal=True, at_least=Decimal(0))


def _breaking(packing: PackingInput, supply: Supply, solution: Solution, protected: Iterable[int]) -> dict[int, int]:
    """Shapes of the solution whose devices would make the check of a pending pod abort, with the class of that pod."""
    shapes = {packing.shape_of[supply.candidates[column.kind]] for column in solution.columns}
    return packing.trials.breaking(sorted(shapes), protected)


def _bought(
    packing: PackingInput,
    rest: Mapping[int, tuple[Bundle, ...]],
    offered: Offered,
    supply: Supply,
    solution: Solution,
    banned: Mapping[int, int],
    policy: Policy,
) -> Buying:
    queues = {item: list(bundles) for item, bundles in rest.items()}
    items = len(packing.classes)
    nodes: dict[int, int] = {}
    for column in solution.columns:
        index = supply.candidates[column.kind]
        nodes[index] = nodes.get(index, 0) + packing.candidates[index].hosts
    bought = Bought.of(packing, nodes, dict(banned))
    before = uses_of(offered.bought, packing.limits)
    used = tuple(a + b for a, b in zip(before, bought.used, strict=True))
    similar: dict[int, list[int]] = {}
    alternates: dict[tuple[int, Pattern], tuple[Candidate, ...]] = {}
    purchases: list[Purchase] = []
    chosen: list[tuple[int, Pattern]] = []
    for column in sorted(solution.columns, key=lambda c: (c.kind, (*c.pattern, items))):
        index = supply.candidates[column.kind]
        key = (index, column.pattern)
        if key not in alternates and packing.candidates[index].hosts == 1:
            if index not in similar:
                similar[index] = _similar(packing, supply.candidates, index)
            alternates[key] = _alternates(packing, index, column.pattern, similar[index], used=used, policy=policy)
        reason = why_chosen(packing, index, column.pattern[0], supply.candidates)
        if packing.candidates[index].hosts > 1:
            purchases += _whole_slice(packing, index, column.pattern, queues, reason)
            chosen += [(index, p) for p in packing.oracle.by_host(packing.shape_of[index], column.pattern) if p]
            continue
        bundles = tuple(queues[item].pop(0) for item in column.pattern)
        purchases.append(Purchase(packing.candidates[index], bundles, alternates[key], (reason,)))
        chosen.append(key)
    return Buying(tuple(purchases), tuple(chosen), bought, solution.score, solution.optimal, solution.at_least)


def _whole_slice(
    packing: PackingInput, index: int, pattern: Pattern, queues: Mapping[int, list[Bundle]], reason: Reason
) -> Iterator[Purchase]:
    """Every host of a slice, also hosts without pods. There is no alternative offering for a single host."""
    candidate = packing.candidates[index]
    profile = candidate.drivers.profile("tpu")
    topology = profile.option("topology") if profile else None
    part = Reason.of(Code.WHOLE_SLICE, hosts=candidate.hosts, topology=topology or "")
    whole = queues[pattern[0]][0].key
    for items in packing.oracle.by_host(packing.shape_of[index], pattern):
        bundles = tuple(queues[item].pop(0) for item in items)
        yield Purchase(candidate, bundles, reasons=(reason, part) if bundles else (part,), whole=whole)


def _similar(packing: PackingInput, offered: Iterable[int], index: int) -> list[int]:
    """The other offerings of the same pool and drivers: preferred capacity types first, then by price."""
    chosen, registered = packing.candidates[index], _registered(packing, index)
    found = [
        i
        for i in offered
        if i != index
        and packing.candidates[i].hosts == 1
        and packing.candidates[i].pool == chosen.pool
        and packing.candidates[i].drivers == chosen.drivers
        and _registered(packing, i) == registered
    ]
    found.sort(key=lambda i: (packing.candidates[i].rank, packing.candidates[i].usd_per_hour or 0, i))
    return found


def _alternates(
    packing: PackingInput,
    index: int,
    pattern: Pattern,
    similar: Sequence[int],
    *,
    used: Sequence[Decimal],
    policy: Policy,
) -> tuple[Candidate, ...]:
    """Those of the `similar` offerings that take the same bundles, in the order of the objective.

    Earlier alternatives of firstAvailable come first, then preferred capacity types, then the price.
    """
    chosen, wanted = packing.candidates[index], sorted(set(pattern))
    with_alternatives = [
        item for item in wanted if has_alternatives(packing.classes[item].sample, packing.snapshot.claims)
    ]
    others = similar
    if with_alternatives:  # a stable sort
        others = sorted(similar, key=lambda i: sum(preference_of(packing, i, item) for item in with_alternatives))
    used = [amount - limit.uses(chosen) for amount, limit in zip(used, packing.limits, strict=True)]
    found, holding = list[Candidate](), packing.trials.may_hold(wanted)
    for other in others:
        if len(found) == policy.alternates:
            break
        if not holding >> packing.shape_of[other] & 1:
            continue
        candidate = packing.candidates[other]
        if any(packing.bar(other, item) for item in wanted):
            continue
        within = binding_after(candidate, packing.limits, used) is None
        if within and packing.trials.holds(packing.shape_of[other], pattern):
            found.append(candidate)
    return tuple(found)


def _registered(packing: PackingInput, candidate: int) -> dict[str, str]:
    """The labels of the offering that pods, volumes or devices depend on."""
    seen = packing.shapes[packing.shape_of[candidate]].node.labels
    keys = offering_keys(packing.candidates[candidate].pool)
    return {key: value for key, value in seen.items() if key in keys}


def packed_again(
    packing: PackingInput,
    purchases: Sequence[Purchase],
    launches: Launches,
    started: Mapping[str, int],
    policy: Policy,
) -> tuple[Purchase, ...]:
    """The purchases with the bundles that failed in their replay packed once more.

    Each class gets the best node that takes one of its bundles beside all others: one pod that refuses others in its
    zone must not make each of them buy a node of its own. Bundles that do not fit there together fail again. `started`:
    the members of gangs that have a place after the replay.
    """
    kept, free = _parted(packing, purchases, (bundle for bundle, _ in launches.failed))
    rest: dict[int, list[Bundle]] = {}
    for bundle, item in free:
        rest.setdefault(item, []).append(bundle)
    retries, bought = _Retries(packing, launches.world), tuple(p.candidate for p in kept)
    places = {item: retries.place_for(bundles[0], item, bought) for item, bundles in rest.items()}
    offered = replace(packing.everything(), protected=tuple(rest), bought=bought, places=places)
    again = buy(packing, {item: tuple(bundles) for item, bundles in rest.items()}, started, offered, policy)
    return (*kept, *again.purchases)


def each_alone(
    packing: PackingInput, purchases: Sequence[Purchase], failed: Iterable[Bundle], world: World
) -> tuple[Purchase, ...]:
    """The purchases with every failed bundle on a node of its own: the best one that takes it beside all the others.

    `world` is the cluster after the replay in which they failed.
    """
    kept, free = _parted(packing, purchases, failed)
    retries = _Retries(packing, world)
    for bundle, item in free:
        candidate = retries.node_for(bundle, item, [p.candidate for p in kept])
        if candidate is not None:
            kept.append(Purchase(candidate, (bundle,)))
    return tuple(kept)


def _parted(
    packing: PackingInput, purchases: Sequence[Purchase], failed: Iterable[Bundle]
) -> tuple[list[Purchase], list[tuple[Bundle, int]]]:
    """The purchases without the failed bundles; and those of the failed bundles that may use any node, with their
    classes.

    A gang that must be in one domain may not: its rest is too small, or runs without these pods.
    """
    out = {bundle.key: bundle for bundle in failed}
    kept = [replace(p, bundles=tuple(b for b in p.bundles if b.key not in out)) for p in purchases]
    used = {p.whole for p in kept if p.bundles}
    kept = [p for p in kept if p.bundles or (p.whole and p.whole in used)]
    item_of = {bundle.key: i for i, c in enumerate(packing.classes) for bundle in c.members}
    free = [(bundle, item_of[key]) for key, bundle in out.items() if not _bound_to_a_domain(bundle, packing)]
    return kept, free


class _Retries:
    """Nodes for single bundles beside everything in the cluster. Each class pays for the checks of its bundles."""

    def __init__(self, packing: PackingInput, world: World) -> None:
        self._packing = packing
        self._world = world
        self._made = 0
        self._beside: dict[int, World] = {}  # by shape: the present cluster with one such node
        self._refused: set[tuple[int, int]] = set()  # class and shape
        self._order = sorted(
            (i for i, candidate in enumerate(packing.candidates) if candidate.hosts == 1),  # no slices
            key=lambda i: (packing.candidates[i].rank, packing.candidates[i].usd_per_hour or 0, i),
        )

    def place_for(self, bundle: Bundle, item: int, bought: Sequence[Candidate]) -> PoolAndZone | None:
        """The pool and zone of the best candidate that takes the bundle beside everything; None if there is none."""
        for index in self._best_first(item, bought):
            if self._packing.trials.ledger.refused(item):
                return None
            if self._takes(bundle, item, self._packing.shape_of[index]):
                return pool_and_zone(self._packing.candidates[index])
        return None

    def node_for(self, bundle: Bundle, item: int, bought: Sequence[Candidate]) -> Candidate | None:
        """The best candidate that takes the bundle, which is placed there; None if there is none, or the class has
        used up its share."""
        packing = self._packing
        # Other pods can only take places from a bundle, unless it must be near them.
        final = not any(pod.pod_affinity or pod.topology_spread for pod in bundle.pods)
        for index in self._best_first(item, bought):
            shape = packing.shape_of[index]
            if packing.trials.ledger.refused(item):
                return None
            if self._takes(bundle, item, shape) and self._placed(bundle, item, index):
                return packing.candidates[index]
            if final:
                self._refused.add((item, shape))
        return None

    def _best_first(self, item: int, bought: Sequence[Candidate]) -> Iterator[int]:
        """One candidate of every shape that takes the class and has not refused it: preferred capacity types first,
        by price."""
        packing, asked = self._packing, set[int]()
        used = uses_of(bought, packing.limits)
        for index in self._order:
            candidate, shape = packing.candidates[index], packing.shape_of[index]
            if shape in asked or (item, shape) in self._refused or packing.bar(index, item) is not None:
                continue
            if binding_after(candidate, packing.limits, used) is None:
                asked.add(shape)
                if isinstance(packing.trials.verdict(shape, item), Fits):
                    yield index

    def _takes(self, bundle: Bundle, item: int, shape: int) -> bool:
        """True if a node of the shape takes the bundle beside everything; the node is predicted once."""
        sample = self._packing.shapes[shape].sample
        if shape not in self._beside:
            self._beside[shape] = sample.added_to(self._world)
        verdict = self._packing.trials.ledger.fit(item, bundle.pods, sample.node.name, self._beside[shape])
        return isinstance(verdict, Fits)

    def _placed(self, bundle: Bundle, item: int, index: int) -> bool:
        """Put the bundle onto a node of its own with a name of its own."""
        future = hypothetical(self._packing.candidates[index], self._packing.snapshot, name=f"retry-{self._made}")
        beside = future.added_to(self._world)
        verdict = self._packing.trials.ledger.fit(item, bundle.pods, future.node.name, beside)
        if not isinstance(verdict, Fits):
            return False
        self._world = beside.placed(bundle.pods, future.node.name, verdict)
        self._made += 1
        self._beside.clear()
        return True


def _bound_to_a_domain(bundle: Bundle, packing: PackingInput) -> bool:
    gangs = (packing.snapshot.gangs[pod.gang.key] for pod in bundle.pods if pod.gang)
    return any(gang.topology_key for gang in gangs)
