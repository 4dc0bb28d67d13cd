"""Packings of many different bundles: cheaper ones are found, and what is found is possible."""

from __future__ import annotations

import random
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal

import pytest

from autoscaler.planning.packing.fillings import Fillings
from autoscaler.planning.packing.greedy import solve_greedily
from autoscaler.planning.packing.knapsack import Knapsacks
from autoscaler.planning.packing.problem import Budget, GangRule, Item, Kind, Problem, Solution
from autoscaler.planning.packing.refine import _Refiner, refine
from autoscaler.planning.packing.relaxation import Relaxation
from autoscaler.planning.packing.room import Bits, bits_of, numbers_in
from autoscaler.planning.packing.solve import solve
from instance_catalog.dataclass import replace

BUDGET = Budget(demands=0, puts=200)
Vector = tuple[int, ...]


@dataclass(frozen=True)
class Node:
    """What is on a node."""

    shape: int
    items: tuple[int, ...] = ()


@dataclass(frozen=True)
class Vectors:
    """An oracle over integer vectors. `enemies` are items that no node takes together, which sizes do not say.

    Of the `unsized` items nobody knows what they take.
    """

    shapes: tuple[Vector, ...]
    takes: tuple[Vector, ...]
    enemies: frozenset[frozenset[int]] = frozenset()
    unsized: frozenset[int] = frozenset()

    def empty(self, shape: int) -> Node:
        return Node(shape)

    def put(self, state: Node, item: int) -> Node | None:
        if not self.has_room(state, item) or any(frozenset((item, other)) in self.enemies for other in state.items):
            return None
        return replace(state, items=(*state.items, item))

    def preference(self, state: Node) -> int:
        return 0

    def free(self, state: Node) -> int:
        return self._left(state)[0]

    def worth_trying(self, shape: int, item: int) -> bool:
        return True

    def kin(self, item: int) -> int:
        return item

    def given_up(self, item: int) -> bool:
        return False

    def refuses_kin(self, shape: int, item: int) -> bool:
        return False

    def full(self, state: Node) -> bool:
        return not any(self._left(state))

    def has_room(self, state: Node, item: int) -> bool:
        return all(size <= free for size, free in zip(self.takes[item], self._left(state), strict=True))

    def sizes(self, item: int) -> dict[Hashable, int] | None:
        return None if item in self.unsized else dict(enumerate(self.takes[item]))

    def room(self, shape: int) -> dict[Hashable, int]:
        return dict(enumerate(self.shapes[shape]))

    def fits(self, shape: int, item: int) -> bool:
        return self.has_room(self.empty(shape), item)

    def roomy(self, item: int) -> Bits:
        return self.may_take(item, bits_of(range(len(self.shapes))))

    def may_take(self, item: int, among: Bits) -> Bits:
        return bits_of(shape for shape in numbers_in(among) if self.fits(shape, item))

    def _left(self, state: Node) -> Vector:
        room = self.shapes[state.shape]
        return tuple(size - sum(self.takes[item][d] for item in state.items) for d, size in enumerate(room))


def case(seed: int, *, items: int = 40, most: int = 1) -> tuple[Problem, Vectors]:
    """Bundles that all differ, as Kubernetes counts them: devices, milli-CPU and bytes; machines of several sizes."""
    draw = random.Random(seed)
    shapes, kinds = [], []
    for devices in (1, 2, 4, 8):
        for cores in (4, 8, 16):
            shapes.append((devices, devices * cores * 1000, devices * draw.randint(8, 64) * 2**30))
            price = Decimal(devices * (70 + 6 * cores) + draw.randint(-20, 20)) / 100
            kinds.append(Kind(len(kinds), price, uses=(Decimal(devices),)))
    takes = tuple(
        (count := draw.choice((1, 1, 1, 2, 4)), count * draw.randint(500, 9000), count * draw.randint(2**20, 2**33))
        for _ in range(items)
    )
    asked = tuple(Item(draw.randint(1, most)) for _ in range(items))
    return Problem(asked, tuple(kinds), limits=(Decimal("Infinity"),)), Vectors(tuple(shapes), takes)


def started(problem: Problem, oracle: Vectors) -> tuple[Fillings[Node], Solution]:
    fillings = Fillings(problem, oracle)
    return fillings, solve_greedily(problem, fillings)


def refined(problem: Problem, oracle: Vectors, start: Solution) -> Solution:
    relaxation = Relaxation.of(problem, oracle, start)
    return refine(problem, Fillings(problem, oracle), relaxation, None, start=start, budget=Budget())


def faults(problem: Problem, oracle: Vectors, found: Solution) -> Iterator[str]:
    """Why the solution is impossible."""
    placed = [item for column in found.columns for item in column.pattern]
    for index, (item, left) in enumerate(zip(problem.items, found.left, strict=True)):
        if placed.count(index) + left != item.count or left < 0:
            yield f"item {index}: {placed.count(index)} placed, {left} left of {item.count}"
    for column in found.columns:
        kind = problem.kinds[column.kind]
        node: Node | None = oracle.empty(kind.shape)
        for bundle in column.pattern:
            node = None if node is None else oracle.put(node, bundle)
        if node is None or kind.refuses.intersection(column.pattern):
            yield f"kind {column.kind} does not take {column.pattern}"
    for limit, used in zip(problem.limits, _used(problem, found), strict=True):
        if used > limit:
            yield f"{used} of {limit} used"


def _used(problem: Problem, found: Solution) -> Iterable[Decimal]:
    for index in range(len(problem.limits)):
        yield sum((problem.kinds[column.kind].uses[index] for column in found.columns), Decimal(0))


@pytest.mark.slow
@pytest.mark.parametrize("most", [1, 6])
def test_different_bundles_are_packed_close_to_the_lower_bound(most: int) -> None:
    ratios = []
    for seed in range(4):
        problem, oracle = case(seed, most=most)
        _, start = started(problem, oracle)
        found = solve(problem, oracle, BUDGET)
        assert not list(faults(problem, oracle, found)), f"seed {seed}"
        assert found.score <= start.score
        assert found.at_least is not None
        ratios.append(float(found.score.usd_per_hour / found.at_least))
    assert min(ratios) >= 1
    assert max(ratios) < 1.05, ratios
    assert sorted(ratios)[2] < 1.03, ratios


@pytest.mark.slow
def test_a_plan_is_better_than_its_start_and_has_the_same_bundles() -> None:
    better = 0
    for seed in range(4):
        problem, oracle = case(seed, items=20, most=2)
        _, start = started(problem, oracle)
        found = refined(problem, oracle, start)
        assert found.left == start.left
        assert not list(faults(problem, oracle, found)), f"seed {seed}"
        assert found.score <= start.score
        better += found.score.usd_per_hour < start.score.usd_per_hour
    assert better >= 3


@pytest.mark.slow
def test_equal_inputs_give_equal_plans() -> None:
    problem, oracle = case(3)
    _, start = started(problem, oracle)
    assert refined(problem, oracle, start) == refined(problem, oracle, start)


@pytest.mark.slow
def test_what_only_the_oracle_refuses_is_not_bought() -> None:
    """Sizes propose nodes that are refused: the plan is possible, and still better than its start."""
    better = refusals = 0
    for seed in range(3):
        problem, oracle = case(seed, items=30)
        draw = random.Random(seed)
        enemies = frozenset(frozenset(draw.sample(range(30), 2)) for _ in range(120))
        hostile = replace(oracle, enemies=enemies)
        _, start = started(problem, hostile)
        found = refined(problem, hostile, start)
        assert not list(faults(problem, hostile, found)), f"seed {seed}"
        better += found.score < start.score
        refusals += bool(list(faults(problem, hostile, refined(problem, oracle, started(problem, oracle)[1]))))
    assert better >= 2
    assert refusals, "the sizes alone never proposed what is refused"


@pytest.mark.slow
def test_a_cheaper_plan_within_the_limits_or_none() -> None:
    """The limit is what the start uses; cheaper nodes use more of it."""
    bound = 0
    for seed in range(5):
        problem, oracle = case(seed, items=20)
        kinds = tuple(replace(kind, uses=(Decimal(100) / kind.usd_per_hour,)) for kind in problem.kinds)
        free = replace(problem, kinds=kinds)
        _, start = started(free, oracle)
        tight = replace(free, limits=(next(iter(_used(free, start))),))
        found = refined(tight, oracle, start)
        assert not list(faults(tight, oracle, found)), f"seed {seed}"
        unbound = refined(free, oracle, start)
        bound += next(iter(_used(free, unbound))) > tight.limits[0]
    assert bound, "no limit was in the way"


def test_neighbourhoods_that_save_nothing_end_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    problem, oracle = case(0, items=300)
    fillings, start = started(problem, oracle)
    knapsacks = Knapsacks(problem, Relaxation.of(problem, oracle, start))
    tried: list[int] = []
    monkeypatch.setattr(_Refiner, "_again", lambda _, nodes: tried.append(len(nodes)) or [])
    found = _Refiner(problem, fillings, knapsacks, Decimal(0), {}, {}).nearby(start.columns, [], 48)
    assert found == list(start.columns)
    assert len(tried) == 12


def test_bundles_without_sizes_stay_where_they_are() -> None:
    for seed in range(2):
        problem, oracle = case(seed, items=30)
        unsized = frozenset(range(0, 30, 5))
        partly = replace(oracle, unsized=unsized)
        _, start = started(problem, partly)
        found = refined(problem, partly, start)
        assert not list(faults(problem, partly, found)), f"seed {seed}"
        stay = [column for column in start.columns if unsized.intersection(column.pattern)]
        assert stay
        assert all(column in found.columns for column in stay)


def test_gangs_and_what_is_left_out_stay_as_they_are() -> None:
    problem, oracle = case(1, items=20)
    items = tuple(replace(item, gang=index % 2) for index, item in enumerate(problem.items))
    gangs = replace(problem, items=items, gangs=(GangRule(), GangRule(2)), limits=(Decimal(12),))
    _, start = started(gangs, oracle)
    found = refined(gangs, oracle, start)
    assert any(start.left)
    assert found.left == start.left
    assert not list(faults(gangs, oracle, found))


@pytest.mark.parametrize("most", [0, 3])
def test_a_budget_limits_how_many_neighbourhoods_are_packed_again(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    problem, oracle = case(3)
    _, start = started(problem, oracle)
    again: list[int] = []
    monkeypatch.setattr(_Refiner, "_again", lambda _, nodes: again.append(len(nodes)) or [])
    relaxation = Relaxation.of(problem, oracle, start)
    budget = Budget(neighbourhoods=most)
    refine(problem, Fillings(problem, oracle), relaxation, None, start=start, budget=budget)
    assert len(again) == most


@pytest.mark.parametrize(("near_enough", "tried"), [(Decimal(1), True), (Decimal(1000), False)])
def test_what_is_near_enough_is_not_improved(
    near_enough: Decimal, tried: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem, oracle = case(3)
    asked: list[object] = []

    def instead(*_: object, start: Solution, **__: object) -> Solution:
        asked.append(start)
        return start

    monkeypatch.setattr("autoscaler.planning.packing.solve.refine", instead)
    found = solve(problem, oracle, Budget(states=1, near_enough=near_enough))
    assert not found.optimal
    assert bool(asked) is tried
