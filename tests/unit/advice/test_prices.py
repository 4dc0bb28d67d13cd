"""What fits and has no price: a price is asked for before an accelerator is given up."""

from __future__ import annotations

from decimal import Decimal

import pytest

from autoscaler.advice.advise import advise
from autoscaler.advice.change import ChangeKind
from autoscaler.advice.prices import ElsewherePriced, cheaper_at_list_prices
from autoscaler.model.snapshot import Snapshot
from autoscaler.planning.planner import plan_for
from autoscaler.planning.policy import Policy, Where
from instance_catalog.dataclass import replace
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.node_selector import NodeSelector, NodeSelectorTerm, Requirement
from instance_catalog.types.catalog import Catalog
from instance_catalog.types.instance_type import CapacityType, Price
from tests.builders import LARGE, NOW, SMALL, TEAM, claim, gpus, machine, pod, snapshot
from tests.one_line_advice import advice_lines

NAMED = FrozenMap({"node.kubernetes.io/instance-type": "mystery"})
PRICED, UNPRICED = machine("known", SMALL, 1, "1.00"), machine("mystery", LARGE, 1, None)


def kinds(*, most: int = 3) -> list[ChangeKind]:
    given = snapshot([pod("p", "c", node_selector=NAMED)], [claim("c", gpus())])
    catalog, policy = Catalog.of([PRICED, UNPRICED]), Policy(considered=100)
    found = advise(given.pods[0], given, catalog, plan_for(given, catalog, policy, NOW), policy, NOW, most=most)
    assert all(entry.result.usd_per_hour is None for entry in found if entry.change.kind is ChangeKind.SET_PRICE)
    assert all("no price known" in line for line in advice_lines(found))
    return [entry.change.kind for entry in found]


def test_a_price_comes_before_another_accelerator() -> None:
    assert kinds(most=1) == [ChangeKind.SET_PRICE]


def test_no_accelerator_is_given_up_beside_it() -> None:
    assert kinds() == [ChangeKind.SET_PRICE]


@pytest.mark.parametrize("key", ["node.kubernetes.io/instance-type", "cloud.google.com/gke-accelerator"])
@pytest.mark.parametrize("required", [False, True])
def test_no_type_is_near_to_what_the_catalog_lacks(key: str, required: bool) -> None:
    affinity = NodeSelector((NodeSelectorTerm((Requirement(key, "In", ("unheard-of",)),)),))
    wanting = (
        pod("p", "c", affinity=affinity) if required else pod("p", "c", node_selector=FrozenMap({key: "unheard-of"}))
    )
    given = snapshot([wanting], [claim("c", gpus())])
    # In both clouds: each label says in which of them the pod runs.
    catalog = Catalog.of([PRICED, machine("theirs", SMALL, 1, "9.00", cloud="gcp")])
    policy = Policy(considered=100)
    assert advise(given.pods[0], given, catalog, plan_for(given, catalog, policy, NOW), policy, NOW) == ()


def test_a_price_of_the_region_that_the_pod_names() -> None:
    """What has one elsewhere has none there: nobody is led out of a zone for want of a number."""
    selected = FrozenMap({"topology.kubernetes.io/zone": "eu-west-1a"})
    given = snapshot([pod("p", "c", node_selector=selected)], [claim("c", gpus())])
    catalog, policy = Catalog.of([PRICED]), Policy(considered=100)
    found = advise(given.pods[0], given, catalog, plan_for(given, catalog, policy, NOW), policy, NOW, most=1)
    assert [(entry.change.kind, entry.change.detail["price"]) for entry in found] == [
        (ChangeKind.SET_PRICE, "price.eu-west-1")
    ]
    (line,) = advice_lines(found)
    assert line.startswith("say what known costs (`foreslice catalog set known price.eu-west-1=DOLLARS ")
    assert "and plan with --catalog DIR → 1 × known" in line


def test_not_where_the_command_line_names_the_region() -> None:
    """There the reason says how to get the prices of the region."""
    given = snapshot([pod("p", "c")], [claim("c", gpus())])
    catalog, policy = Catalog.of([PRICED]), Policy(considered=100, where=Where(regions=("eu-west-1",)))
    found = advise(given.pods[0], given, catalog, plan_for(given, catalog, policy, NOW), policy, NOW)
    assert all(entry.change.kind is not ChangeKind.SET_PRICE for entry in found)


@pytest.mark.parametrize(("key", "types"), [("cloud.google.com/gke-spot", {"theirs"}), ("disk", {"ours"})])
def test_what_is_given_up_is_no_reason_to_leave_the_cloud(key: str, types: set[str]) -> None:
    """A label that only Google's nodes have says where the pod runs, whether or not it is dropped."""
    given = snapshot([pod("p", "c", node_selector=FrozenMap({key: "x"}))], [claim("c", gpus())])
    catalog = Catalog.of([machine("ours", SMALL, 1, "1.00"), machine("theirs", SMALL, 1, "9.00", cloud="gcp")])
    policy = Policy(considered=100)
    found = advise(given.pods[0], given, catalog, plan_for(given, catalog, policy, NOW), policy, NOW)
    assert {ref.instance_type for entry in found for ref, _ in entry.result.launches} == types


def test_of_several_kinds_without_a_price_the_first_that_the_pool_prefers() -> None:
    """The same one in every process, whatever order a set has there."""
    sold = tuple(CapacityType(kind) for kind in ("spot", "flex-start"))
    for order in (sold, sold[::-1]):
        pool = replace(TEAM, capacity_types=order)
        given = snapshot([pod("p", "c", node_selector=NAMED)], [claim("c", gpus())], pools=(pool,))
        catalog, policy = Catalog.of([PRICED, replace(UNPRICED, capacity_types=sold)]), Policy(considered=100)
        (found,) = advise(given.pods[0], given, catalog, plan_for(given, catalog, policy, NOW), policy, NOW, most=1)
        assert found.change.detail["sold_as"] == order[0]


def in_region(region: str, *, pods: int = 1) -> tuple[Catalog, Policy, Snapshot]:
    """A dear type with a price there, a cheap one with a price elsewhere."""
    place = {region: FrozenMap({CapacityType.ON_DEMAND: Price(Decimal(9), region, "")})}
    dear = replace(machine("dear", LARGE, 1, "9.00"), zone_prices=FrozenMap(place))
    given = snapshot([pod(f"p{n}", f"c{n}") for n in range(pods)], [claim(f"c{n}", gpus()) for n in range(pods)])
    return Catalog.of([dear, PRICED]), Policy(where=Where(regions=(region,))), given


def test_a_price_that_the_region_lacks_is_told_where_it_would_make_the_plan_cheaper() -> None:
    catalog, policy, given = in_region("eu-west-1")
    plan = plan_for(given, catalog, policy, NOW)
    assert [node.offering.instance_type for node in plan.launches] == ["dear"]
    found = cheaper_at_list_prices(plan, given, catalog, policy, NOW)
    assert found == ElsewherePriced("aws", "eu-west-1", ("known",), ("us-east-1",), Decimal(1), (("known", 1),))


def test_a_price_that_the_region_lacks_is_not_told_where_it_changes_nothing() -> None:
    catalog, policy, given = in_region("eu-west-1")
    dearer = replace(
        catalog.types["known"], prices=FrozenMap({CapacityType.ON_DEMAND: Price(Decimal(10), "us-east-1", "")})
    )
    catalog = replace(catalog, types=catalog.types.with_items({"known": dearer}), digest="dearer")
    assert cheaper_at_list_prices(plan_for(given, catalog, policy, NOW), given, catalog, policy, NOW) is None
    anywhere = Policy()
    assert cheaper_at_list_prices(plan_for(given, catalog, anywhere, NOW), given, catalog, anywhere, NOW) is None
    catalog, policy, many = in_region("eu-west-1", pods=101)
    assert cheaper_at_list_prices(plan_for(many, catalog, policy, NOW), many, catalog, policy, NOW) is None
