"""How many accelerators the nodes of a pool have, as its limit counts them."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import pytest

from autoscaler.model.capacity import CapacityPool, Limits
from autoscaler.model.provisioned_node import Phase
from autoscaler.planning.supply.limits import accelerators_in_use
from instance_catalog.dataclass import replace
from instance_catalog.types.catalog import Catalog
from tests.builders import SMALL, machine, ours, pairs, plan, snapshot

CATALOG = Catalog.of(
    [machine("s4", SMALL, 4, "3.60"), replace(machine("half", SMALL, 1, "0.50"), accelerator_count=Fraction(1, 2))]
)


def test_nodes_that_are_there_or_coming_count_for_their_pool() -> None:
    nodes = (
        ours("a", "s4", phase=Phase.READY),
        ours("b", "s4", phase=Phase.INTENDED),
        ours("c", "s4", phase=Phase.GONE),
        ours("d", "s4", phase=Phase.FAILED),
        ours("e", "s4", phase=Phase.FAILED, provider_id="its-machine-is-still-there"),
        ours("o", "s4", pool="other"),
        ours("f", "left-the-catalog"),
    )
    assert accelerators_in_use(snapshot([], provisioned=nodes), CATALOG) == {"team": 12, "other": 4}


def test_parts_are_added_up_before_they_are_rounded() -> None:
    three = tuple(ours(name, "half") for name in "abc")
    assert accelerators_in_use(snapshot([], provisioned=three), CATALOG) == {"team": 2}


@pytest.mark.parametrize(
    ("price", "limit", "nodes"), [("0.1", "0.3", 3), ("0.1", "0.29", 2), ("33.3333", "99.9999", 3)]
)
def test_prices_are_added_up_exactly(price: str, limit: str, nodes: int) -> None:
    """In binary floating point three times 0.1 is more than 0.3."""
    pods, claims = pairs(5)
    pool = CapacityPool("team", limits=Limits(usd_per_hour=Decimal(limit)))
    made = plan(snapshot(pods, claims, pools=(pool,)), catalog=Catalog.of([machine("one", SMALL, 1, price)]))
    assert len(made.launches) == nodes
    assert made.usd_per_hour == nodes * Decimal(price)
