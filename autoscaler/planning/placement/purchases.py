"""Buying: solve the packing problem, without nodes that would break another pod, and list what to fall back to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from autoscaler.model.verdict import Fits
from autoscaler.planning.demand.bundles import Bundle, has_alternatives
from autoscaler.planning.packing.objective import Score
from autoscaler.planning.packing.problem import Column, Counts, Solution
from autoscaler.planning.packing.solve import solve
from autoscaler.planning.placement.considered import Bought, preference_of, why_chosen
from autoscaler.planning.placement.launches import Purchase
from autoscaler.planning.placement.packing_input import Offered, PackingInput, Supply
from autoscaler.planning.placement.trial import Filled
from autoscaler.planning.policy import Policy
from autoscaler.planning.supply.candidates import OFFERING_KEYS, Candidate
from autoscaler.planning.supply.hypothetical import hypothetical
from autoscaler.planning.supply.limits import binding
from autoscaler.scheduling.fit import fit
from autoscaler.scheduling.world import World


@dataclass(frozen=True, slots=True)
class Buying:
    """What is bought, with the candidates chosen for each class; `optimal` when nothing better exists."""

    purchases: tuple[Purchase, ...]
    chosen: tuple[tuple[int, Counts], ...]  # candidate and bundles of each class, one entry per purchase
    bought: Bought
    score: Score
    optimal: bool

    def chosen_for(self, item: int) -> frozenset[int]:
        """Candidates that some bundle of the class goes to."""
        return frozenset(candidate for candidate, counts in self.chosen if counts[item])


def combined(buyings: Sequence[Buying]) -> Buying:
    """Several purchases as one."""
    nodes: dict[int, int] = {}
    banned: dict[int, int] = {}
    for buying in buyings:
        banned |= buying.bought.banned
        for index, count in buying.bought.nodes.items():
            nodes[index] = nodes.get(index, 0) + count
    return Buying(
        purchases=tuple(purchase for buying in buyings for purchase in buying.purchases),
        chosen=tuple(entry for buying in buyings for entry in buying.chosen),
        bought=Bought(nodes, banned),
        score=buyings[0].score,
        optimal=all(buying.optimal for buying in buyings),
    )


def buy(
    market: PackingInput,
    rest: Mapping[int, tuple[Bundle, ...]],
    started: Mapping[str, int],
    offered: Offered,
    policy: Policy,
) -> Buying:
    """The best purchases for the bundles that are left, from what is offered."""
    counts = {item: len(bundles) for item, bundles in rest.items()}
    banned: dict[int, int] = {}
    while True:
        sale = market.problem(counts, started, offered, frozenset(banned))
        solution = solve(sale.problem, market.trials, policy.budget)
        breaking = _breaking(market, sale, solution, offered.protected)
        if not breaking:
            return _bought(market, rest, offered, sale, solution, banned, policy)
        banned |= breaking


def _breaking(market: PackingInput, sale: Supply, solution: Solution, protected: Iterable[int]) -> dict[int, int]:
    """Shapes of the solution whose devices would make the check of a pending pod abort, with the class of that pod."""
    shapes = {market.shape_of[sale.candidates[column.kind]] for column in solution.columns}
    broken = {shape: market.trials.breaks(shape, protected) for shape in sorted(shapes)}
    return {shape: item for shape, item in broken.items() if item is not None}


def _bought(
    market: PackingInput,
    rest: Mapping[int, tuple[Bundle, ...]],
    offered: Offered,
    sale: Supply,
    solution: Solution,
    banned: Mapping[int, int],
    policy: Policy,
) -> Buying:
    queues = {item: list(bundles) for item, bundles in rest.items()}
    nodes: dict[int, int] = {}
    for column in solution.columns:
        index = sale.candidates[column.kind]
        nodes[index] = nodes.get(index, 0) + 1
    bought = Bought(nodes, dict(banned))
    alternates: dict[tuple[int, Counts], tuple[Candidate, ...]] = {}
    purchases: list[Purchase] = []
    chosen: list[tuple[int, Counts]] = []
    for column in sorted(solution.columns, key=lambda c: (c.kind, tuple(-n for n in c.counts))):
        index = sale.candidates[column.kind]
        key = (index, column.counts)
        if key not in alternates:
            alternates[key] = _alternates(market, sale, column, [*offered.bought, *bought.candidates(market)], policy)
        bundles = tuple(queues[i].pop(0) for i, n in enumerate(column.counts) for _ in range(n))
        first = next(i for i, n in enumerate(column.counts) if n)
        reason = why_chosen(market, index, first, sale.candidates)
        purchases.append(Purchase(market.candidates[index], bundles, alternates[key], (reason,)))
        chosen.append(key)
    return Buying(tuple(purchases), tuple(chosen), bought, solution.score, solution.optimal)


def _alternates(
    market: PackingInput, sale: Supply, column: Column, bought: Sequence[Candidate], policy: Policy
) -> tuple[Candidate, ...]:
    """Offerings of the same pool and drivers that take the same bundles too, in the order of the objective.

    Earlier alternatives of firstAvailable come first, then wanted capacity types, then the price.
    """
    chosen = market.candidates[sale.candidates[column.kind]]
    others = [
        i
        for i in sale.candidates
        if i != sale.candidates[column.kind]
        and market.candidates[i].pool == chosen.pool
        and market.candidates[i].drivers == chosen.drivers
        and _registered(market, i) == _registered(market, sale.candidates[column.kind])
    ]
    wanted = [item for item, n in enumerate(column.counts) if n]
    has_restrictions = [
        item for item in wanted if has_alternatives(market.classes[item].sample, market.snapshot.claims)
    ]
    others.sort(
        key=lambda i: (
            sum(preference_of(market, i, item) for item in has_restrictions),
            market.candidates[i].rank,
            market.candidates[i].usd_per_hour or 0,
            i,
        )
    )
    nodes = list(bought)
    nodes.remove(chosen)
    found: list[Candidate] = []
    for index in others:
        if len(found) == policy.alternates:
            break
        candidate = market.candidates[index]
        refused = any(n and market.bar(index, item) for item, n in enumerate(column.counts))
        if not refused and binding(candidate, market.limits, nodes) is None and _takes(market, index, column.counts):
            found.append(candidate)
    return tuple(found)


def _registered(market: PackingInput, candidate: int) -> dict[str, str]:
    """The labels of the offering that somebody looks at."""
    seen = market.shapes[market.shape_of[candidate]].node.labels
    return {key: value for key, value in seen.items() if key in OFFERING_KEYS}


def _takes(market: PackingInput, candidate: int, counts: Counts) -> bool:
    state: Filled | None = market.trials.empty(market.shape_of[candidate])
    for item in (i for i, n in enumerate(counts) for _ in range(n)):
        state = market.trials.put(state, item) if state else None
    return state is not None


def each_alone(
    market: PackingInput, purchases: Sequence[Purchase], failed: Iterable[Bundle], world: World
) -> tuple[Purchase, ...]:
    """The purchases with every failed bundle on a node of its own: the best that takes it beside all the others.

    `world` is the world after the replay in which they failed.
    """
    alone = {bundle.key: bundle for bundle in failed}
    kept = [replace(p, bundles=tuple(b for b in p.bundles if b.key not in alone)) for p in purchases]
    kept = [p for p in kept if p.bundles]
    item_of = {bundle.key: i for i, c in enumerate(market.classes) for bundle in c.members}
    for number, (key, bundle) in enumerate(alone.items()):
        bought = [p.candidate for p in kept]
        for index in _best_first(market, item_of[key], bought):
            candidate = market.candidates[index]
            future = hypothetical(candidate, market.snapshot, name=f"retry-{number}")
            beside = future.added_to(world)
            verdict = fit(bundle.pods, future.node.name, beside)
            if isinstance(verdict, Fits):
                world = beside.placed(bundle.pods, future.node.name, verdict)
                kept.append(Purchase(candidate, (bundle,)))
                break
    return tuple(kept)


def _best_first(market: PackingInput, item: int, bought: Sequence[Candidate]) -> list[int]:
    """One candidate of every shape that takes the class: wanted capacity types first, by price."""
    order = sorted(
        range(len(market.candidates)),
        key=lambda i: (market.candidates[i].rank, market.candidates[i].usd_per_hour or 0, i),
    )
    shapes: dict[int, int] = {}
    for i in order:
        allowed = market.bar(i, item) is None and binding(market.candidates[i], market.limits, bought) is None
        if allowed and isinstance(market.trials.verdict(market.shape_of[i], item), Fits):
            shapes.setdefault(market.shape_of[i], i)
    return list(shapes.values())
