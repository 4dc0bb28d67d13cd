"""Filling a node: what is left out at once because it is too large would have been refused one by one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import pytest

from autoscaler.planning.packing.fillings import Fillings
from autoscaler.planning.packing.problem import Pattern, with_one
from autoscaler.planning.packing.room import bits_of
from instance_catalog.dataclass import replace
from tests.unit.planning.packing.test_refine import Node, Vectors, case


@dataclass(frozen=True)
class Counting(Vectors):
    """Counts what it is asked."""

    asked: list[int] = field(default_factory=list, compare=False)

    def has_room(self, state: Node, item: int) -> bool:
        self.asked.append(item)
        return super().has_room(state, item)


def one_by_one(oracle: Vectors, shape: int, residual: Sequence[int], items: Sequence[int]) -> Iterator[Pattern]:
    """The same without looking at sizes: every item is asked about."""
    node, pattern = oracle.empty(shape), tuple[int, ...]()
    for item in items:
        for _ in range(residual[item]):
            after = oracle.put(node, item)
            if after is None:
                break
            node, pattern = after, with_one(pattern, item)
            yield pattern
        if not pattern or oracle.full(node):
            return


@pytest.mark.parametrize("seed", range(4))
def test_steps_of_filling_are_those_of_asking_about_every_item(seed: int) -> None:
    problem, oracle = case(seed, items=120, most=3)
    oracle = replace(oracle, unsized=frozenset(range(0, 120, 7)), enemies=frozenset({frozenset({3, 40 + seed})}))
    fillings, long = Fillings(problem, oracle), 0
    for shape in range(len(oracle.shapes)):
        for first in range(0, 100, 9):
            items = [item for item in range(first, 120) if item % 5]
            found = list(fillings.filled(shape, problem.demand, bits_of(items)))
            assert found == list(one_by_one(oracle, shape, problem.demand, items))
            long += len(found) > 2
    assert long > 10


def test_what_is_too_large_is_not_asked_about() -> None:
    """The node has room for the first and the last of 500."""
    counting = Counting(shapes=((10,),), takes=((6,), *(((5,),) * 498), (4,)))
    problem, _ = case(0, items=500)
    fillings = Fillings(problem, counting)
    assert list(fillings.filled(0, [1] * 500, bits_of(range(500)))) == [(0,), (0, 499)]
    assert len(counting.asked) < 30
