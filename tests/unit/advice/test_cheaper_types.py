"""Machines that are never sold on demand, where nobody said how to buy."""

from __future__ import annotations

import pytest

from autoscaler.advice.cheaper_types import cheaper_if_asked_for
from autoscaler.model.capacity import CapacityPool
from autoscaler.planning.planner import plan_for
from autoscaler.planning.policy import Policy, Where
from instance_catalog.dataclass import replace
from instance_catalog.types.catalog import Catalog
from instance_catalog.types.instance_type import CapacityType
from tests.builders import NOW, claim, gpus, pod, shipped, snapshot

H100 = shipped("a3-highgpu-1g", "a3-highgpu-8g")


def test_a_smaller_machine_that_is_never_sold_on_demand_is_named_with_its_price() -> None:
    given, policy = snapshot([pod("p", "c")], [claim("c", gpus())]), Policy()
    dear = plan_for(given, H100, policy, NOW)
    assert [node.offering.instance_type for node in dear.launches] == ["a3-highgpu-8g"]
    answer = cheaper_if_asked_for(dear, given, H100, policy, NOW)
    assert answer is not None
    assert (answer.types, answer.launches) == (("a3-highgpu-1g",), (("a3-highgpu-1g", 1),))
    # What is said is what the command gives.
    again = plan_for(given, H100, replace(policy, where=Where(capacity_types=answer.allowed)), NOW)
    assert [(node.offering.instance_type, node.usd_per_hour) for node in again.launches] == [
        ("a3-highgpu-1g", answer.usd_per_hour)
    ]


@pytest.mark.parametrize(
    ("catalog", "count", "where", "pools"),
    [
        pytest.param(H100, 8, Where(), (), id="all eight are needed"),
        pytest.param(shipped("g6.xlarge", "g6.12xlarge"), 1, Where(), (), id="Spot alone is no news"),
        pytest.param(H100, 1, Where(capacity_types=(CapacityType.ON_DEMAND,)), (), id="somebody said how"),
        pytest.param(H100, 1, Where(), (CapacityPool("gpu"),), id="a pool says how"),
    ],
)
def test_where_it_changes_nothing_nothing_is_said(
    catalog: Catalog, count: int, where: Where, pools: tuple[CapacityPool, ...]
) -> None:
    given, policy = snapshot([pod("p", "c")], [claim("c", gpus(count))], pools=pools), Policy(where=where)
    decided = plan_for(given, catalog, policy, NOW)
    assert decided.launches
    assert cheaper_if_asked_for(decided, given, catalog, policy, NOW) is None
