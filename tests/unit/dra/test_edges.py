"""Amounts at their edges: exactly what is left can be had, and not the smallest part more."""

from __future__ import annotations

import pytest

from autoscaler.dra.allocation.capacity import has_room
from autoscaler.dra.inventory.counters import CounterTable
from instance_catalog.kubernetes.profile import REFERENCE
from instance_catalog.kubernetes.quantity import Quantity
from instance_catalog.kubernetes.resource_slice import Capacity

SLICES = ("gpu-0", "memory-slices")


@pytest.mark.parametrize(("amount", "taken"), [(2, True), (3, False)])
def test_counters_give_what_they_have_to_the_last_unit(amount: int, taken: bool) -> None:
    table = CounterTable.of({SLICES: 7}, [((SLICES, 5),)])
    assert table.take(((SLICES, amount),)) is taken
    assert table.take(((SLICES, 2),)) is not taken


@pytest.mark.parametrize(("asked", "in_use", "room"), [("4", "6", True), ("5", "6", False), ("10", "0", True)])
def test_a_capacity_gives_what_it_has_to_the_last_unit(asked: str, in_use: str, room: bool) -> None:
    found = has_room(
        {"cores": Quantity.parse(asked)},
        {"cores": Capacity(Quantity.parse("10"))},
        in_use={"cores": Quantity.parse(in_use)},
        profile=REFERENCE,
    )
    assert found is room
