"""Machines that cost less and are left out: never sold on demand, or short of memory by a guess of the catalog."""

from __future__ import annotations

import pytest

from autoscaler.advice.advise import advise
from autoscaler.advice.cheaper_types import (
    IfMeasured,
    Less,
    cheaper_if_asked_for,
    cheaper_if_measured,
    cheaper_with_less,
)
from autoscaler.model.capacity import CapacityPool
from autoscaler.model.pod import Container
from autoscaler.model.snapshot import Snapshot
from autoscaler.planning.one_cloud import cheaper
from autoscaler.planning.planner import plan_for
from autoscaler.planning.policy import Policy, Where
from autoscaler.report.advised.oversized_text import less_requested
from autoscaler.report.advised.remarks import remarks
from instance_catalog.dataclass import replace
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.quantity import Quantity
from instance_catalog.types.catalog import Catalog
from instance_catalog.types.instance_type import CapacityType
from tests.builders import NOW, claim, gpus, pod, shipped, snapshot, types

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


# 16Gi, of which 14502092Ki are allocatable with the guess of 7.5 %, and 15730Mi without; 32Gi cost more.
CATALOG = shipped("g4dn.xlarge", "g4dn.2xlarge")


def wanting(memory: str) -> Snapshot:
    asking = Container("main", FrozenMap({"memory": Quantity.parse(memory)}))
    return snapshot([replace(pod("p", "c"), containers=(asking,))], [claim("c", gpus(1))])


def found_for(memory: str, catalog: Catalog = CATALOG, where: Where | None = None) -> IfMeasured | None:
    policy = Policy(where=where or Where())
    given = wanting(memory)
    return cheaper_if_measured(plan_for(given, catalog, policy, NOW), given, catalog, policy, NOW)


def test_a_machine_that_fits_but_for_a_guess_is_named_with_what_it_costs() -> None:
    given = wanting("14800Mi")
    assert types(plan_for(given, CATALOG, Policy(), NOW)) == ["g4dn.2xlarge"]
    found = found_for("14800Mi")
    assert found is not None
    assert found.launches == (("g4dn.xlarge", 1),)
    (one,) = found.types
    assert (one.instance_type, str(one.needed), str(one.assumed)) == ("g4dn.xlarge", "14800Mi", "14502092Ki")


@pytest.mark.parametrize("memory", ["10Gi", "15800Mi", "40Gi"])
def test_what_fits_anyway_or_never_is_not_named(memory: str) -> None:
    assert found_for(memory) is None


def test_a_measured_machine_and_another_cloud_are_not_named() -> None:
    measured = FrozenMap({"memory": Quantity.parse("14700Mi")})
    small, large = (CATALOG.types[name] for name in ("g4dn.xlarge", "g4dn.2xlarge"))
    assert found_for("14800Mi", Catalog.of([replace(small, allocatable=measured), large])) is None
    elsewhere = shipped("g4dn.xlarge", "g2-standard-8")
    assert found_for("14800Mi", elsewhere, Where(clouds=("gcp",))) is None


def test_a_sourced_overhead_is_no_guess() -> None:
    """Of GKE nodes it is known how much memory they show."""
    assert found_for("13300Mi", shipped("g2-standard-4", "g2-standard-8")) is None


def test_a_plan_for_the_same_price_is_not_cheaper() -> None:
    given = snapshot([pod("p", "c")], [claim("c", gpus())])
    assert cheaper(plan_for(given, H100, Policy(), NOW), given, H100, Policy(), NOW) is None


P5 = shipped("p5.4xlarge", "p5.48xlarge")


LARGE = {"node.kubernetes.io/instance-type": "p5.48xlarge"}


def asking(cpu: str = "32", memory: str = "192Gi", count: int = 1, selector: dict[str, str] | None = None) -> Snapshot:
    wanted = FrozenMap({"cpu": Quantity.parse(cpu), "memory": Quantity.parse(memory)})
    waiting = pod("p", "c", node_selector=FrozenMap(selector or {}))
    return snapshot([replace(waiting, containers=(Container("main", wanted),))], [claim("c", gpus(count))])


def with_less(given: Snapshot, catalog: Catalog = P5) -> Less | None:
    policy = Policy()
    return cheaper_with_less(plan_for(given, catalog, policy, NOW), given, catalog, policy, NOW)


def test_a_smaller_machine_that_lacks_cpu_for_the_pod_is_named_with_what_the_plan_costs_then() -> None:
    (warning,) = less_requested(with_less(asking()))
    assert warning.subject == "Pod default/p"
    assert warning.message == (
        "uses 1 of 8 H100 of p5.48xlarge, because p5.4xlarge with 1, for 6.88 $/h, has too little cpu for it"
    )
    assert warning.next_step == (
        "if that is enough, request cpu 32 → 15 (container main): then the plan is 1 × p5.4xlarge for 6.88 $/h"
    )
    (again,) = plan_for(asking("15"), P5, Policy(), NOW).launches
    assert again.offering.instance_type == "p5.4xlarge"


@pytest.mark.parametrize(
    ("given", "catalog"),
    [
        pytest.param(asking("15"), P5, id="it fits"),
        pytest.param(asking("90"), P5, id="far too little"),
        pytest.param(asking(count=2), P5, id="too few GPUs"),
        pytest.param(asking("10", "120Gi"), shipped("g6.12xlarge", "g6.8xlarge"), id="saves less than half"),
        pytest.param(asking(selector=LARGE), P5, id="somebody wants this one"),
        pytest.param(asking(), shipped("p5.48xlarge", "a3-highgpu-1g"), id="of another cloud"),
    ],
)
def test_no_smaller_request_is_named_where_it_is_of_no_use(given: Snapshot, catalog: Catalog) -> None:
    assert list(less_requested(with_less(given, catalog))) == []


@pytest.mark.parametrize(("more", "said"), [({}, True), (LARGE, False)])
def test_the_smallest_change_says_so_as_well(more: dict[str, str], said: bool) -> None:
    given, policy = asking(selector={"nvidia.com/gpu.product": "H100", **more}), Policy()
    (found,) = advise(given.pods[0], given, P5, plan_for(given, P5, policy, NOW), policy, NOW, most=1)
    assert found.result.launches[0][0].instance_type == "p5.48xlarge"
    assert any("it fits with cpu 32 → 15" in one for one in remarks(found)) is said
