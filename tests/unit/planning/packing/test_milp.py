"""The mixed-integer program: one goal after the other, and no search for what cannot be less."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

import highspy
import pytest

from autoscaler.planning.packing import milp
from autoscaler.planning.packing.exact import assemble
from autoscaler.planning.packing.fillings import Fillings
from autoscaler.planning.packing.milp import improve
from autoscaler.planning.packing.problem import Budget, GangRule, Item, Kind, Problem
from instance_catalog.dataclass import replace
from tests.unit.planning.packing.test_refine import Vectors, case, faults, started

# No exact search, and few patterns: the program over generated ones.
BUDGET = Budget(demands=0, puts=200)


@pytest.fixture
def searches(monkeypatch: pytest.MonkeyPatch) -> list[None]:
    """One entry for each search of HiGHS."""
    found: list[None] = []
    minimize: Callable[..., object] = highspy.Highs.minimize

    def counted(*args: object) -> object:
        found.append(None)
        return minimize(*args)

    monkeypatch.setattr(highspy.Highs, "minimize", counted)
    return found


def with_priorities(problem: Problem) -> Problem:
    """The same, with a priority of its own for each item."""
    return replace(problem, items=tuple(replace(item, level=index) for index, item in enumerate(problem.items)))


def test_a_priority_of_which_nobody_is_left_out_is_not_searched(searches: list[None]) -> None:
    problem, oracle = case(1, items=30)
    problem = with_priorities(problem)
    fillings, start = started(problem, oracle)
    found = improve(problem, fillings, [start], BUDGET)
    assert not list(faults(problem, oracle, found))
    assert found.score <= start.score
    assert 0 < len(searches) < 10


def test_where_some_are_left_out_the_others_are_not_searched(searches: list[None]) -> None:
    problem, oracle = case(1, items=30)
    problem = with_priorities(replace(problem, limits=(Decimal(40),)))
    fillings, start = started(problem, oracle)
    assert any(start.left)
    found = improve(problem, fillings, [start], BUDGET)
    assert not list(faults(problem, oracle, found))
    assert found.score <= start.score
    assert 0 < len(searches) < 20


def test_the_more_important_one_is_placed_although_the_first_plan_leaves_it_out() -> None:
    """Two machines may be bought, each of which takes one of three."""
    oracle = Vectors(shapes=((1,),), takes=((1,), (1,), (1,)))
    items = (Item(1), Item(1, level=1), Item(1, level=2))
    problem = Problem(items, (Kind(0, Decimal(1), uses=(Decimal(1),)),), limits=(Decimal(2),))
    fillings = Fillings(problem, oracle)
    columns = [column for item in (1, 2) if (column := fillings.column(0, (item,)))]
    found = improve(problem, fillings, [assemble(problem, columns)], BUDGET)
    assert found.left == (0, 0, 1)


def test_prices_count_to_their_last_decimal() -> None:
    """Machines of 3 and 2 cost a millionth of a dollar less than the one of 5, which would be one node instead of two.
    The catalog has such prices."""
    oracle = Vectors(shapes=((3,), (5,), (2,)), takes=((2,), (1,)))
    prices = [Decimal(price) for price in ("3.000001", "5.000002", "2.000000")]
    problem = Problem((Item(1), Item(3)), tuple(Kind(shape, price) for shape, price in enumerate(prices)))
    fillings = Fillings(problem, oracle)
    alone = [column for item in (0, 1, 1, 1) if (column := fillings.column(1, (item,)))]
    found = improve(problem, fillings, [assemble(problem, alone)], Budget(demands=0))
    assert found.optimal
    assert found.score.usd_per_hour == Decimal("5.000001")


def test_a_price_that_nobody_pays_stops_no_search() -> None:
    """HiGHS refuses numbers of more than 15 digits."""
    oracle = Vectors(shapes=((1,), (2,)), takes=((1,),))
    kinds = (Kind(0, Decimal("1.234567")), Kind(1, Decimal(10) ** 17))
    problem = Problem((Item(4),), kinds)
    fillings = Fillings(problem, oracle)
    start = [column for _ in range(4) if (column := fillings.column(1, (0,)))]
    assert improve(problem, fillings, [assemble(problem, start)], Budget(demands=0)).score.usd_per_hour == Decimal(
        "4.938268"
    )


def test_gangs_that_hold_up_the_search_end_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sixty gangs of ten with room for twenty machines: HiGHS needs 5,000 steps, and minutes for some hundred gangs."""
    monkeypatch.setattr(milp, "_STEPS", 500)
    statuses: list[object] = []
    minimize: Callable[..., object] = highspy.Highs.minimize

    def noted(program: highspy.Highs, *args: object) -> object:
        result = minimize(program, *args)
        statuses.append(program.getModelStatus())
        return result

    monkeypatch.setattr(highspy.Highs, "minimize", noted)
    sizes = (1, 4, 8)
    oracle = Vectors(shapes=tuple((size, 200 * size) for size in sizes), takes=tuple((1, n) for n in range(1, 61)))
    items = tuple(Item(10, gang=index) for index in range(60))
    kinds = tuple(Kind(i, Decimal(size), uses=(Decimal(1),)) for i, size in enumerate(sizes))
    problem = Problem(items, kinds, limits=(Decimal(20),), gangs=(GangRule(0),) * 60)
    fillings, start = started(problem, oracle)
    found = improve(problem, fillings, [start], BUDGET)
    assert statuses[-1] == highspy.HighsModelStatus.kInterrupt
    assert found == start
