"""What nodes of groups register with beside what their machine and their pool say: pods select it, and are kept off."""

from __future__ import annotations

import pytest

from autoscaler.execution.providers_seen import with_groups
from autoscaler.model.capacity import CapacityPool, GroupNodes, GroupOffering, GroupRoom, Limits, Mode, NodeTemplateRef
from autoscaler.model.pod import Pod
from autoscaler.model.provisioned_node import OfferingRef
from autoscaler.model.reason import Code
from autoscaler.model.snapshot import Snapshot
from autoscaler.planning.supply.groups import registered
from autoscaler.report.reasons import text_of
from instance_catalog.dataclass import replace
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes import labels
from instance_catalog.kubernetes.node_selector import Requirement
from instance_catalog.kubernetes.taint import Taint, Toleration
from instance_catalog.types.catalog import Catalog
from instance_catalog.types.instance_type import CapacityType
from providers.contract import OfferingKey, TemplateRef, TemplateStatus
from providers.registered import Registered, Room
from tests.builders import SMALL, claim, machine, ours, plan, pod, snapshot, types, why_left

NODE_POOL = "cloud.google.com/gke-nodepool"
TEAM = Taint("team", "a")
INTEL = machine("intel", SMALL, 1, "1.00")
CATALOG = Catalog.of([INTEL])
A, B = (OfferingKey("intel", f"us-east-1{zone}", CapacityType.ON_DEMAND) for zone in "ab")
POOL = CapacityPool(
    "team", Mode.ACT, drivers=("nvidia",), limits=Limits(nodes=5), node_template=NodeTemplateRef("GCPNodeTemplate", "g")
)


def pool(*nodes: tuple[OfferingKey, str, tuple[Taint, ...]]) -> CapacityPool:
    """The pool, as the provider describes the groups of its template: what they start, and of which node pool."""
    registers = FrozenMap({key: Registered(FrozenMap({NODE_POOL: name}), taints) for key, name, taints in nodes})
    status = TemplateStatus(TemplateRef("GCPNodeTemplate", "g"), groups=frozenset(registers), registers=registers)
    (found,) = with_groups([POOL], [status])
    return found


def state(pool: CapacityPool, *, selects: str = "", tolerates: tuple[Toleration, ...] = ()) -> Snapshot:
    selector = FrozenMap({NODE_POOL: selects} if selects else {})
    wanting: Pod = pod("p", "c", node_selector=selector, tolerations=tolerates)
    return snapshot([wanting], [claim("c")], pools=(pool,))


@pytest.mark.parametrize(("selects", "zone"), [("first", "us-east-1a"), ("second", "us-east-1b")])
def test_a_pod_that_selects_a_node_pool_gets_a_node_of_that_one(selects: str, zone: str) -> None:
    """The other is no alternate: its nodes have another name."""
    (launch,) = plan(state(pool((A, "first", ()), (B, "second", ())), selects=selects), catalog=CATALOG).launches
    assert [offering.zone for offering in launch.offerings] == [zone]
    assert launch.node.labels[NODE_POOL] == selects


def test_a_pod_that_selects_none_may_get_either() -> None:
    (launch,) = plan(state(pool((A, "first", ()), (B, "second", ()))), catalog=CATALOG).launches
    assert len(launch.offerings) == 2
    assert NODE_POOL not in launch.node.labels  # which one is not known yet


def test_a_node_pool_that_no_group_has_is_no_match() -> None:
    result = plan(state(pool((A, "first", ())), selects="third"), catalog=CATALOG)
    assert types(result) == []
    assert Code.NODE_SELECTOR_MISMATCH in why_left(result, "p")


def test_a_taint_of_a_node_pool_keeps_pods_off_its_nodes_alone() -> None:
    both = pool((A, "first", (TEAM,)), (B, "second", ()))
    (launch,) = plan(state(both), catalog=CATALOG).launches
    assert [offering.zone for offering in launch.offerings] == ["us-east-1b"]
    tainted = pool((A, "first", (TEAM,)))
    result = plan(state(tainted), catalog=CATALOG)
    assert types(result) == []
    assert Code.TAINT_NOT_TOLERATED in why_left(result, "p")
    assert types(plan(state(tainted, tolerates=(Toleration("team", "Exists"),)), catalog=CATALOG)) == ["intel"]
    gone = replace(tainted, startup_taints=(TEAM,))
    assert types(plan(state(gone), catalog=CATALOG)) == ["intel"]


def test_of_a_node_whose_zone_is_open_only_what_all_groups_say_is_known() -> None:
    anywhere = OfferingRef("intel", "any", CapacityType.ON_DEMAND)
    assert registered(pool((A, "first", (TEAM,)), (B, "first", ())), anywhere) == ({NODE_POOL: "first"}, (TEAM,))
    assert registered(pool((A, "first", ()), (B, "second", ())), anywhere) == ({}, ())


def test_the_pool_requires_a_label_that_only_its_groups_have() -> None:
    wanted = Requirement(NODE_POOL, "In", ("second",))
    one = replace(pool((A, "first", ()), (B, "second", ())), requirements=(wanted,))
    (launch,) = plan(state(one), catalog=CATALOG).launches
    assert [offering.zone for offering in launch.offerings] == ["us-east-1b"]


def test_nodes_of_an_only_node_pool_are_known_whatever_it_starts() -> None:
    only = replace(POOL, registers=(GroupNodes(None, FrozenMap({NODE_POOL: "first"})),))
    (launch,) = plan(state(only, selects="first"), catalog=CATALOG).launches
    assert launch.node.labels[NODE_POOL] == "first"
    assert launch.node.labels[labels.POOL] == "team"


def test_a_template_that_could_not_be_read_leaves_what_was_known_of_its_groups_open() -> None:
    status = TemplateStatus(TemplateRef("GCPNodeTemplate", "g"), registers=FrozenMap({A: Registered(FrozenMap())}))
    (found,) = with_groups([POOL], [status])
    assert found.groups is None
    assert found.registers == (GroupNodes(GroupOffering("intel", "us-east-1a", CapacityType.ON_DEMAND)),)


def full(most: int) -> CapacityPool:
    """The pool, whose groups hold so many machines of A."""
    key = TemplateRef("GCPNodeTemplate", "g")
    (found,) = with_groups([POOL], [TemplateStatus(key, groups=frozenset({A}), rooms=FrozenMap({A: Room(most)}))])
    return found


@pytest.mark.parametrize(
    ("own", "placed"),
    [
        pytest.param(0, 2, id="all-empty"),
        pytest.param(1, 1, id="one-is-ours"),
        pytest.param(2, 0, id="all-are-ours"),
    ],
)
def test_no_more_is_planned_than_groups_have_room_for(own: int, placed: int) -> None:
    ref = OfferingRef("intel", "us-east-1a", CapacityType.ON_DEMAND)
    nodes = tuple(ours(f"n{i}", offering=ref) for i in range(own))
    pods = [pod(f"p{i}", f"c{i}") for i in range(3)]
    asked = snapshot(pods, [claim(f"c{i}") for i in range(3)], pools=(full(2),), provisioned=nodes)
    result = plan(asked, catalog=CATALOG)
    assert len(types(result)) == placed
    (why,) = {one for left in result.left_out for one in left.reasons if one.code is Code.GROUPS_FULL}
    assert "no group of GCPNodeTemplate g has room for more intel in us-east-1a (2 at most)" in text_of(why)


def test_the_room_of_one_template_says_nothing_of_another() -> None:
    other = replace(full(1), node_template=NodeTemplateRef("GCPNodeTemplate", "h"), name="other", rooms=())
    asked = snapshot([pod("p", "c")], [claim("c")], pools=(full(0), other))
    assert [node.pool for node in plan(asked, catalog=CATALOG).launches] == ["other"]


def test_two_pools_share_the_room_of_their_template() -> None:
    second = replace(full(2), name="second")
    pods = [pod(f"p{i}", f"c{i}") for i in range(3)]
    asked = snapshot(pods, [claim(f"c{i}") for i in range(3)], pools=(full(2), second))
    assert len(plan(asked, catalog=CATALOG).launches) == 2
    assert full(2).rooms == (GroupRoom(GroupOffering("intel", "us-east-1a", CapacityType.ON_DEMAND), 2),)
