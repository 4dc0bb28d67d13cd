"""Large packings by the prices of the lower bound, a window of bundles after the other."""

from __future__ import annotations

from decimal import Decimal

import pytest

from autoscaler.planning.packing.bound import _all_bought, _entries, lower_bound
from autoscaler.planning.packing.coarse import coarse
from autoscaler.planning.packing.fillings import Fillings
from autoscaler.planning.packing.first_fit import solve_by_first_fit
from autoscaler.planning.packing.greedy import solve_greedily
from autoscaler.planning.packing.knapsack import Knapsacks
from autoscaler.planning.packing.problem import Item, Kind, Problem
from autoscaler.planning.packing.relaxation import Group, Relaxation
from autoscaler.planning.packing.rolling import rolling
from autoscaler.planning.packing.solve import solve
from instance_catalog.dataclass import replace
from tests.unit.planning.packing.test_refine import BUDGET, Vectors, case, faults


def test_nodes_are_worth_what_they_cost_and_hold_each_bundle_once() -> None:
    import numpy

    problem, oracle = case(0, items=700, most=2)
    fillings = Fillings(problem, oracle)
    start = solve_by_first_fit(problem, fillings)
    relaxation = Relaxation.of(problem, oracle, start)
    bound = lower_bound(problem, relaxation, 10_000_000)
    assert bound is not None
    prices = numpy.zeros(700)
    prices[list(bound.prices)] = list(bound.prices.values())
    bundles = [index for index, item in enumerate(problem.items) for _ in range(item.count)]
    found, rest = rolling(fillings, Knapsacks(problem, relaxation), prices, bundles)
    assert sorted([*(item for column in found for item in column.pattern), *rest.elements()]) == bundles
    assert rest.total() < 100
    for column in found:
        assert float(column.score.usd_per_hour) < 1.07 * sum(prices[item] for item in column.pattern)
    worth = sum(prices[item] for column in found for item in column.pattern)
    assert float(sum(column.score.usd_per_hour for column in found)) < 1.003 * worth


def test_a_program_that_would_be_too_large_is_made_coarser_and_its_bound_stays_low() -> None:
    problem, oracle = case(0, items=300)
    start = solve_by_first_fit(problem, Fillings(problem, oracle))
    relaxation = Relaxation.of(problem, oracle, start)
    exact, rough = (lower_bound(problem, relaxation, entries) for entries in (10_000_000, 20_000))
    assert exact is not None
    assert rough is not None
    assert exact.usd_per_hour * Decimal("0.97") < rough.usd_per_hour < exact.usd_per_hour
    assert rough.prices.keys() == exact.prices.keys()
    off = [rough.prices[item] / price for item, price in exact.prices.items()]
    assert min(off) > 0.9
    assert max(off) < 1.1
    assert lower_bound(problem, relaxation, 0) is None


def test_the_entries_of_a_program_are_counted_without_making_it() -> None:
    for seed in range(3):
        problem, oracle = case(seed, items=60)
        relaxation = Relaxation.of(problem, oracle, solve_by_first_fit(problem, Fillings(problem, oracle)))
        made = _all_bought(problem, relaxation, relaxation.groups)
        entries = sum(len(one.groups) + sum(len(row.sizes) for row in one.rows) for one in made)
        assert _entries(problem, relaxation) == entries > 1000


def test_similar_bundles_are_one_as_small_as_the_least_of_them() -> None:
    kinds = frozenset({1})
    groups = [Group({"cpu": cpu, "memory": 90 - cpu}, kinds, (cpu,), 2) for cpu in (1, 2, 50, 51)]
    odd = Group({"cpu": 1}, frozenset({2}), (9,), 1)
    found = coarse([*groups, odd], {"cpu": 10.0, "memory": 1000.0}, 3)
    assert [(group.sizes, group.items, group.count) for group in found] == [
        ({"cpu": 1, "memory": 88}, (1, 2), 4),
        ({"cpu": 50, "memory": 39}, (50, 51), 4),
        ({"cpu": 1}, (9,), 1),
    ]


@pytest.mark.slow
def test_large_plans_are_close_to_their_lower_bound() -> None:
    problem, oracle = case(2, items=450)
    found = solve(problem, oracle, replace(BUDGET, bound=10_000_000))
    assert not list(faults(problem, oracle, found))
    assert found.at_least is not None
    assert found.score.usd_per_hour < found.at_least * Decimal("1.02")


@pytest.mark.slow
def test_who_is_left_out_of_a_large_plan_counts_before_what_it_costs() -> None:
    """Where first fit leaves out more than filling does, there is more to find than a lower cost."""
    problem, oracle = case(2, items=420)
    tight = replace(problem, limits=(Decimal(450),))
    fillings = Fillings(tight, oracle)
    greedy, first_fit = solve_greedily(tight, fillings), solve_by_first_fit(tight, fillings)
    assert greedy.score.left_out < first_fit.score.left_out
    found = solve(tight, oracle, replace(BUDGET, puts=0, columns=10))
    assert found.score.left_out <= greedy.score.left_out


def test_capacity_that_is_wanted_more_counts_before_what_it_costs() -> None:
    """First fit puts the small bundles beside the large one, whose machine is of a type that they want less."""
    kinds = (Kind(0, Decimal(100), rank=1), Kind(1, Decimal(1)))
    problem = Problem((*(Item(1),) * 400, Item(1)), kinds)
    oracle = Vectors(((10_000,), (400,)), takes=(*((1,),) * 400, (5000,)), unsized=frozenset(range(401)))
    assert solve(problem, oracle, replace(BUDGET, puts=0, columns=10)).score.capacity == (1,)
