"""A packing problem reduced to rules that hold for every order of bundles: whole numbers within the room of a node.

Everything that the oracle accepts follows these rules, so their optimum is a lower bound (bound.py). The oracle accepts
nearly every node that follows them, so they show better nodes (refine.py). Only the oracle decides.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from math import inf
from typing import TypeAlias

from autoscaler.planning.packing.problem import Counts, Oracle, Problem, Solution, State
from autoscaler.planning.packing.room import Bits, Room, bits_of, numbers_in
from instance_catalog.dataclass import dataclass

Sizes: TypeAlias = Mapping[Hashable, int]


@dataclass(frozen=True, slots=True)
class Group:
    """`count` bundles of equal size, of these items, which the same kinds take."""

    sizes: Sizes
    kinds: frozenset[int]
    items: tuple[int, ...]
    count: int


@dataclass(frozen=True, slots=True)
class Relaxation:
    """The bundles that a solution places, and the kinds that are worth buying for them, cheapest first.

    Kinds have the capacity types that the solution uses. `rooms` is by shape.
    """

    groups: tuple[Group, ...]
    kinds: tuple[int, ...]
    rooms: Mapping[int, Sizes]

    @staticmethod
    def of(problem: Problem, oracle: Oracle[State], solution: Solution) -> Relaxation:
        """The reduced problem for the bundles that the solution places."""
        ranks = {problem.kinds[column.kind].rank for column in solution.columns}
        offered = [index for index, kind in enumerate(problem.kinds) if kind.rank in ranks]
        placed = tuple(item.count - left for item, left in zip(problem.items, solution.left, strict=True))
        shapes = _of_use(oracle, placed, bits_of({problem.kinds[index].shape for index in offered}))
        offered = [index for index in offered if shapes >> problem.kinds[index].shape & 1]
        rooms = {shape: oracle.room(shape) for shape in numbers_in(shapes)}
        groups = _groups(problem, oracle, rooms, offered=offered, placed=placed)
        return Relaxation(groups, _undominated(problem, offered, groups, rooms), rooms)


def _of_use(oracle: Oracle[State], placed: Counts, among: Bits) -> Bits:
    """Those of the shapes that may take one of the bundles, by cached answers."""
    kin: dict[Hashable, tuple[int, Bits]] = {}
    for item, count in enumerate(placed):
        if count:
            key = oracle.kin(item)
            first, roomy = kin.get(key, (item, 0))
            kin[key] = first, roomy | oracle.roomy(item)
    found: Bits = 0
    for item, roomy in kin.values():
        found |= bits_of(s for s in numbers_in(roomy & among & ~found) if not oracle.refuses_kin(s, item))
    return found


def _groups(
    problem: Problem, oracle: Oracle[State], rooms: Mapping[int, Sizes], *, offered: Sequence[int], placed: Counts
) -> tuple[Group, ...]:
    found: dict[tuple[frozenset[tuple[Hashable, int]], frozenset[int]], tuple[Sizes, list[int]]] = {}
    kinds_of: dict[Bits, frozenset[int]] = {}
    room, among = Room(rooms, missing=inf), bits_of(rooms)
    refusing = [index for index in offered if problem.kinds[index].refuses]
    for item, count in enumerate(placed):
        sizes = oracle.sizes(item) if count else None
        if sizes is None:
            continue  # unknown, so it counts as 0
        takers = oracle.may_take(item, among & room.of(sizes))
        if takers not in kinds_of:
            kinds_of[takers] = frozenset(i for i in offered if takers >> problem.kinds[i].shape & 1)
        kinds = kinds_of[takers].difference(i for i in refusing if item in problem.kinds[i].refuses)
        # Sorted, because a set has no order, and the order of dimensions decides between equal programs.
        found.setdefault((frozenset(sizes.items()), kinds), (sizes, []))[1].append(item)
    return tuple(
        Group(sizes, kinds, tuple(items), sum(placed[item] for item in items))
        for (_, kinds), (sizes, items) in found.items()
    )


def _undominated(
    problem: Problem, offered: Sequence[int], groups: Sequence[Group], rooms: Mapping[int, Sizes]
) -> tuple[int, ...]:
    """The kinds without those for which another one costs no more, has no less room and takes no less."""
    alike = list(dict.fromkeys(group.kinds for group in groups))  # far fewer than groups
    takes = {index: frozenset(n for n, kinds in enumerate(alike) if index in kinds) for index in offered}
    dimensions = {dimension for group in groups for dimension in group.sizes}
    kept: list[int] = []
    for index in sorted(offered, key=lambda i: (problem.kinds[i].usd_per_hour, i)):
        kind, room = problem.kinds[index], rooms[problem.kinds[index].shape]
        if takes[index] and not any(
            takes[index] <= takes[other]
            and all(a <= b for a, b in zip(problem.kinds[other].uses, kind.uses, strict=True))
            and all(_at_least(rooms[problem.kinds[other].shape].get(d), room.get(d)) for d in dimensions)
            for other in kept
        ):
            kept.append(index)
    return tuple(kept)


def _at_least(one: int | None, other: int | None) -> bool:
    """True if there is at least as much room; None means no bound."""
    return one is None or (other is not None and one >= other)
