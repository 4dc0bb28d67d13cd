"""First fit: comparing amounts beforehand changes nothing but the number of questions."""

from __future__ import annotations

import random
from decimal import Decimal

import pytest

from autoscaler.planning.packing import open_nodes
from autoscaler.planning.packing.fillings import Fillings
from autoscaler.planning.packing.first_fit import solve_by_first_fit
from autoscaler.planning.packing.problem import Budget, GangRule, Item, Kind, Problem, Solution
from autoscaler.planning.packing.solve import solve
from tests.unit.planning.packing.test_refine import Vectors

ITEMS = 30


def _case(seed: int) -> tuple[Problem, Vectors]:
    """Nearly equal bundles, some of them enemies, of unknown size, larger than a vector holds or in gangs."""
    draw = random.Random(seed)
    huge = draw.choice((1, 1, 2**61, 2**80))
    shapes = tuple((draw.randint(4, 9) * huge, draw.randint(1, 8)) for _ in range(4))
    takes = tuple((draw.randint(1, 4) * huge + draw.choice((-1, 0, 1)), draw.randint(0, 2)) for _ in range(ITEMS))
    enemies = frozenset(frozenset(draw.sample(range(ITEMS), 2)) for _ in range(draw.choice((0, 20))))
    oracle = Vectors(shapes, takes, enemies, frozenset(draw.sample(range(ITEMS), draw.choice((0, 5)))))
    kinds = tuple(
        Kind(
            shape,
            Decimal(draw.randint(3, 9)),
            uses=(Decimal(1),),
            refuses=frozenset(draw.sample(range(ITEMS), draw.choice((0, 8)))),
        )
        for shape in range(4)
    )
    gangs = tuple(GangRule(draw.randint(0, 1)) for _ in range(3))
    items = tuple(
        Item(draw.randint(1, 3), level=draw.randint(0, 1), gang=draw.choice((None, None, 0, 1, 2)))
        for _ in range(ITEMS)
    )
    return Problem(items, kinds, limits=(Decimal(draw.choice((5, 12, 100))),), gangs=gangs), oracle


def _solved(case: tuple[Problem, Vectors]) -> tuple[Solution, int]:
    fillings = Fillings(*case)
    return solve_by_first_fit(case[0], fillings), fillings.puts


@pytest.mark.parametrize("seed", range(60))
def test_vectors_change_nothing_but_the_number_of_questions(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_nodes, "_MANY", 1)
    vectors, fewer = _solved(_case(seed))
    monkeypatch.setattr(open_nodes, "_MANY", ITEMS + 1)
    plain, puts = _solved(_case(seed))
    assert vectors == plain
    assert fewer <= puts


def test_a_gang_that_stays_incomplete_leaves_the_nodes_as_they_were() -> None:
    """Three of a gang of four find room beside the first bundle and on a node of their own; the last one does not."""
    oracle = Vectors(((4, 9),), ((2, 0), (1, 0), (4, 0), (2, 0)))
    items = (Item(1), Item(2, gang=0), Item(2, gang=0), Item(1))
    kind = Kind(0, Decimal(1), uses=(Decimal(1),))
    problem = Problem(items, (kind,), limits=(Decimal(2),), gangs=(GangRule(0),))
    found = solve_by_first_fit(problem, Fillings(problem, oracle))
    assert sorted(column.pattern for column in found.columns) == [(0, 3)]
    assert found.left == (0, 2, 2, 0)


@pytest.mark.parametrize("many", [1, 99])
def test_a_node_of_a_gang_that_was_taken_back_has_its_room_again(many: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_nodes, "_MANY", many)
    test_a_gang_that_stays_incomplete_leaves_the_nodes_as_they_were()


def test_at_any_cost_nothing_is_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = Problem((Item(2),), (Kind(0, Decimal(1), uses=()),))
    oracle = Vectors(((4, 4),), ((1, 1),), frozenset(), frozenset())
    monkeypatch.setattr("autoscaler.planning.packing.solve._searched", None)
    assert solve(problem, oracle, Budget(any_cost=True)).left == (0,)
