"""Which nodes have room: the same as comparing every amount of every node."""

from __future__ import annotations

import random
from math import inf

import pytest

from autoscaler.planning.packing.room import Room, bits_of, numbers_in

AMOUNTS = (-1, 0, 1, 2, 3, 2**53, 2**53 + 1, 2**80)


@pytest.mark.parametrize("missing", [0, inf])
@pytest.mark.parametrize("seed", range(20))
def test_room_is_that_of_every_node(seed: int, missing: float) -> None:
    draw = random.Random(seed)
    names = "abc"
    nodes = {
        number: {name: draw.choice(AMOUNTS) for name in draw.sample(names, draw.randint(0, 3))}
        for number in draw.sample(range(200), 30)
    }
    room = Room(nodes, missing=missing)
    for _ in range(20):
        sizes = {name: draw.choice(AMOUNTS) for name in draw.sample(names, draw.randint(0, 3))}
        enough = {n for n, has in nodes.items() if all(size <= has.get(name, missing) for name, size in sizes.items())}
        assert set(numbers_in(room.of(sizes))) == enough


def test_bits_are_a_set_of_numbers() -> None:
    assert list(numbers_in(bits_of([70, 0, 3, 3]))) == [0, 3, 70]
    assert bits_of([]) == 0
