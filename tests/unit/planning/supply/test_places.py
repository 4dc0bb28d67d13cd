"""Where a plan buys: regions and zones of pools, of the demand and of the command line, each at its own price."""

from __future__ import annotations

from decimal import Decimal

import pytest

from autoscaler.model.capacity import CapacityPool
from autoscaler.model.node import Node
from autoscaler.model.plan import Plan
from autoscaler.model.reason import Code
from autoscaler.planning.planner import plan_for
from autoscaler.planning.policy import Policy, Where
from autoscaler.planning.supply.places import Place, places_of_nodes
from instance_catalog.dataclass import replace
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes import labels
from instance_catalog.kubernetes.node_selector import Requirement
from instance_catalog.types.catalog import Catalog
from instance_catalog.types.instance_type import CapacityType, Price
from tests.builders import NOW, SMALL, claim, codes, machine, plan, pod, shipped, snapshot, types, why_left

WEST = FrozenMap({"eu-west-1": FrozenMap({CapacityType.ON_DEMAND: Price(Decimal(2), "eu-west-1", "2026-10")})})
CATALOG = Catalog.of(
    [
        machine("aws-listed", SMALL, 1, "1.00", spot="0.30"),
        replace(machine("aws-both", SMALL, 1, "1.50"), zone_prices=WEST),
        machine("gcp-one", SMALL, 1, "0.50", cloud="gcp"),
    ]
)


def pool(key: str, *values: str, operator: str = "In") -> CapacityPool:
    return CapacityPool("team", requirements=(Requirement(key, operator, values),))


def planned(*pools: CapacityPool, where: Where | None = None, **fields: object) -> Plan:
    state = snapshot([pod("p", "c", **fields)], [claim("c")], pools=pools)
    return plan_for(state, CATALOG, Policy(where=where or Where()), NOW)


@pytest.mark.parametrize(
    ("wanted", "bought"),
    [
        pytest.param(pool(labels.REGION, "us-east-1"), "aws-listed", id="the region of the list price"),
        pytest.param(pool(labels.REGION_BETA, "us-east-1"), "aws-listed", id="the key of old"),
        pytest.param(pool(labels.REGION, "eu-west-1"), "aws-both", id="another region with a price"),
        pytest.param(pool(labels.ZONE, "eu-west-1b"), "aws-both", id="a zone of that region"),
        pytest.param(pool(labels.CLOUD, "aws"), "aws-listed", id="a cloud"),
        pytest.param(pool(labels.REGION, operator="Exists"), "gcp-one", id="any region"),
        pytest.param(pool(labels.OPERATING_SYSTEM, "linux"), "gcp-one", id="the operating system"),
    ],
)
def test_a_pool_may_require_every_well_known_label(wanted: CapacityPool, bought: str) -> None:
    assert types(planned(wanted)) == [bought]


@pytest.mark.parametrize("place", [pool(labels.REGION, "ap-south-1"), pool(labels.ZONE, "ap-south-1a")])
def test_what_has_no_price_in_a_region_is_not_bought_at_that_of_another(place: CapacityPool) -> None:
    found = planned(place)
    assert types(found) == []
    assert why_left(found, "p") == [Code.NO_PRICE]
    (warning,) = found.warnings
    assert (warning.code, str(warning.subject), warning.detail["region"]) == (Code.NO_PRICE, "pool team", "ap-south-1")


def test_a_setting_buys_what_has_no_price() -> None:
    state = snapshot([pod("p", "c")], [claim("c")], pools=(pool(labels.REGION, "ap-south-1"),))
    found = plan(state, catalog=CATALOG, policy=Policy(buy_unpriced=True))
    assert len(found.launches) == 1
    assert codes(found.warnings) == []


def test_a_pod_may_name_a_region() -> None:
    found = planned(node_selector=FrozenMap({labels.REGION: "eu-west-1"}))
    (node,) = found.launches
    assert (node.offering.instance_type, node.offering.price_region) == ("aws-both", "eu-west-1")
    assert node.node.labels[labels.REGION] == "eu-west-1"


@pytest.mark.parametrize(
    ("where", "bought"),
    [
        pytest.param(Where(clouds=("aws",)), "aws-listed", id="cloud"),
        pytest.param(Where(regions=("eu-west-1",)), "aws-both", id="region"),
        pytest.param(Where(clouds=("aws",), capacity_types=(CapacityType.SPOT,)), "aws-listed", id="spot"),
    ],
)
def test_the_command_line_narrows_the_world(where: Where, bought: str) -> None:
    assert types(planned(where=where)) == [bought]


def test_allowed_capacity_types_stand_instead_of_those_of_the_pool() -> None:
    (node,) = planned(
        pool(labels.CLOUD, "aws"), where=Where(capacity_types=(CapacityType.SPOT, CapacityType.ON_DEMAND))
    ).launches
    assert (node.offering.capacity_type, node.usd_per_hour) == ("spot", Decimal("0.30"))


def test_a_requirement_that_no_node_can_meet_is_reported() -> None:
    found = planned(pool("topology.kubernetes.io/regoin", "us-east-1"))
    (warning,) = found.warnings
    assert warning.code is Code.UNUSABLE
    assert "did you mean 'topology.kubernetes.io/region'" in str(warning.detail["problem"])


@pytest.mark.parametrize(("key", "value"), [(labels.ZONE, "us-east-1a"), (labels.REGION, "us-east-1")])
def test_an_unknown_place_may_be_one_that_is_excluded(key: str, value: str) -> None:
    """The provider would choose the zone: perhaps the one in which the pool must not launch."""
    excluded = CapacityPool("team", requirements=(Requirement(key, "NotIn", (value,)),))
    result = plan(snapshot([pod("a", "c")], [claim("c")], pools=(excluded,)))
    assert types(result) == []
    assert [r.detail["field"] for r in result.warnings if r.code is Code.UNUSABLE] == ["spec.requirements[0]"]
    both = replace(
        excluded, requirements=(Requirement(labels.ZONE, "In", ("here-1a", "us-east-1a")), *excluded.requirements)
    )
    named = plan(snapshot([pod("a", "c")], [claim("c")], pools=(both,)), policy=Policy(buy_unpriced=True))
    assert {node.offering.zone for node in named.launches} == {"here-1a"}
    assert not [r for r in named.warnings if r.code is Code.UNUSABLE]


def test_nodes_tell_cloud_and_region() -> None:
    nodes = [
        Node("a", provider_id="aws:///us-east-1a/i-1", labels=FrozenMap({labels.ZONE: "us-east-1a"})),
        Node("b", labels=FrozenMap({labels.REGION: "europe-west4"})),
        Node("c"),
    ]
    assert places_of_nodes(nodes) == Where(("aws", "gcp"), ("europe-west4", "us-east-1"))


@pytest.mark.parametrize("key", [labels.KARPENTER_FAMILY, labels.EKS_CAPACITY_TYPE, labels.GKE_MACHINE_FAMILY])
def test_a_requirement_on_what_other_systems_write_is_no_mistake(key: str) -> None:
    """Advice writes such requirements itself; a pool without drivers was said to admit nothing by them."""
    own = CapacityPool("team", drivers=(), requirements=(Requirement(key, "In", ("x",)),))
    state = snapshot([pod("a", "c")], [claim("c")], pools=(own,))
    found = plan(state, catalog=shipped("inf2.xlarge", "g2-standard-4"))
    assert [reason for reason in found.warnings if reason.code is Code.UNUSABLE] == []


@pytest.mark.parametrize(("length", "possible"), [(63, True), (64, False), (240_000, False)])
def test_name_that_no_label_can_have_is_no_place(length: int, *, possible: bool) -> None:
    """A pod's node affinity may want such a zone, and each type is asked."""
    name = "us-east-" + "1" * (length - 9) + "a"
    assert Place(name).in_cloud("aws") is possible
    assert Place(region=name[:-1] + "1").in_cloud("aws") is possible
