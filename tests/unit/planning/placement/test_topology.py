"""Which domain a gang gets."""

from __future__ import annotations

import pytest

from autoscaler.model.capacity import CapacityPool
from instance_catalog.kubernetes import labels
from instance_catalog.kubernetes.node_selector import Requirement
from instance_catalog.types.catalog import Catalog
from instance_catalog.types.instance_type import CapacityType
from tests.builders import SMALL, gang, gpus, machine, pairs, plan, snapshot, types

CATALOG = Catalog.of([machine("cheap", SMALL, 4, "3.60", spot="1.00"), machine("dear", SMALL, 4, "40.00")])
ONLY, EITHER = (CapacityType.ON_DEMAND,), (CapacityType.ON_DEMAND, CapacityType.SPOT)


def pool(zone: str, instance_type: str, kinds: tuple[CapacityType, ...]) -> CapacityPool:
    requirements = (Requirement(labels.ZONE, "In", (zone,)), Requirement(labels.INSTANCE_TYPE, "In", (instance_type,)))
    return CapacityPool(instance_type, capacity_types=kinds, requirements=requirements)


@pytest.mark.parametrize("dear", [ONLY, EITHER])
@pytest.mark.parametrize("cheap", [ONLY, EITHER])
def test_the_cheapest_domain_whatever_capacity_types_the_others_have(
    cheap: tuple[CapacityType, ...], dear: tuple[CapacityType, ...]
) -> None:
    pods, claims = pairs(2, gpus(), gang="g")
    pools = (pool("us-east-1a", "dear", dear), pool("us-east-1b", "cheap", cheap))
    given = snapshot(pods, claims, pools=pools, gangs=gang("g", 2, labels.ZONE))
    assert types(plan(given, catalog=CATALOG)) == ["cheap"]


def test_a_domain_with_preferred_capacity_before_a_cheaper_one() -> None:
    """The second pool takes spot where its type is not sold on demand."""
    catalog = Catalog.of([machine("cheap", SMALL, 4, None, spot="1.00"), CATALOG.get("dear")])
    pods, claims = pairs(2, gpus(), gang="g")
    pools = (pool("us-east-1a", "dear", ONLY), pool("us-east-1b", "cheap", EITHER))
    given = snapshot(pods, claims, pools=pools, gangs=gang("g", 2, labels.ZONE))
    assert types(plan(given, catalog=catalog)) == ["dear"]
