"""What a claim asks for in vain is known without a trial, and only then: every type is tried otherwise."""

from __future__ import annotations

from fractions import Fraction

import pytest

from autoscaler.model.device_class import Selector
from autoscaler.model.resource_claim import Allocation
from autoscaler.model.snapshot import Snapshot
from autoscaler.planning.placement.nothing_has import asks_in_vain, no_type_has
from instance_catalog.dataclass import replace
from instance_catalog.drivers.custom import CustomDriver
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.quantity import Quantity
from instance_catalog.kubernetes.resource_slice import NodeReach
from instance_catalog.types.catalog import Catalog
from tests.builders import SMALL, claim, gpus, machine, pod, snapshot
from tests.e2e.harness.machines import machine as published
from tests.unit.planning.placement.packing_inputs import packing_input

MEMORY = 'device.capacity["gpu.nvidia.com"].memory'
NAME = 'device.attributes["gpu.nvidia.com"].productName'
ABOUT = replace(SMALL, model="About", memory=None, memory_bounds=(Quantity.parse("20Gi"), Quantity.parse("24Gi")))
UNSURE = replace(SMALL, model="Unsure", product_name=None, product_names=("Unsure A", "Unsure B"))
CATALOG = Catalog.of(
    [machine("small", SMALL, 1, "1"), machine("about", ABOUT, 1, "2"), machine("unsure", UNSURE, 1, "3")]
)
IN_VAIN = [f'{NAME} == "Unsure C"', f'{MEMORY}.isGreaterThan(quantity("500Gi"))', f'true && {NAME} == ""']
NOT_IN_VAIN = [
    f'{NAME} == "Small S1"',
    f'{NAME} == "Unsure A"',
    f'{NAME} == "Unsure C" || true',
    f'!({NAME} == "Unsure C")',
    f'{MEMORY}.compareTo(quantity("22Gi")) >= 0',
    f'{MEMORY}.compareTo(quantity("500Gi")) < 0',
]


def _state(expression: str, **fields: object) -> Snapshot:
    request = replace(gpus(), selectors=(Selector(expression),))
    return snapshot([pod("p", "c")], [replace(claim("c", request), **fields)])  # type: ignore[arg-type]


@pytest.mark.parametrize("expression", IN_VAIN)
def test_no_type_takes_what_asks_in_vain(expression: str) -> None:
    packing = packing_input(_state(expression), CATALOG)
    assert asks_in_vain(packing, 0)
    assert no_type_has(packing, CATALOG, 0)
    assert len(packing.shapes) >= 3
    assert not any(packing.trials.takes(shape, 0) for shape in range(len(packing.shapes)))


@pytest.mark.parametrize("expression", NOT_IN_VAIN)
def test_what_may_be_there_is_tried(expression: str) -> None:
    packing = packing_input(_state(expression), CATALOG)
    assert not asks_in_vain(packing, 0)
    assert not no_type_has(packing, CATALOG, 0)


def test_a_part_of_a_card_is_no_choice() -> None:
    nameless = replace(SMALL, product_name=None)
    packing = packing_input(_state(IN_VAIN[0]), CATALOG)
    assert not no_type_has(packing, Catalog.of([*CATALOG, machine("nameless", nameless, 1, "4")]), 0)
    part = replace(machine("part", nameless, 1, "4"), accelerator_count=Fraction(1, 2))
    assert no_type_has(packing, Catalog.of([*CATALOG, part]), 0)


def test_a_driver_that_the_catalog_describes_may_publish_it() -> None:
    mine = CustomDriver("mine", "mine.example.com", "v1", ())
    described = replace(CATALOG.types["small"], custom_drivers=FrozenMap({"mine": mine}))
    assert not no_type_has(packing_input(_state(IN_VAIN[0]), CATALOG), Catalog.of([described]), 0)


def test_devices_that_every_node_reaches_may_have_it() -> None:
    state = _state(IN_VAIN[0])
    (piece, *_) = published("g6.xlarge", "there").slices
    anywhere = replace(piece, reach=NodeReach(all_nodes=True))
    assert asks_in_vain(packing_input(state, CATALOG), 0)
    with_it = packing_input(replace(state, slices=(anywhere,)), CATALOG)
    assert not asks_in_vain(with_it, 0)
    assert not no_type_has(with_it, CATALOG, 0)


def test_an_allocated_claim_asks_for_nothing_any_more() -> None:
    packing = packing_input(_state(IN_VAIN[0], allocation=Allocation(())), CATALOG)
    assert not asks_in_vain(packing, 0)
    assert not no_type_has(packing, CATALOG, 0)
