"""Groups whose policy keeps their machines in one block: a gang that must be in one is served by one of them."""

from __future__ import annotations

import pytest

from autoscaler.execution.providers_seen import with_groups
from autoscaler.model.capacity import CapacityPool, Limits, Mode, NodeTemplateRef
from autoscaler.model.labels import LabelSelector
from autoscaler.model.node import Node
from autoscaler.model.pod import PodAffinityTerm
from autoscaler.model.provisioned_node import OfferingRef, Phase, ProvisionedNode
from autoscaler.model.reason import Code
from autoscaler.model.snapshot import Snapshot
from autoscaler.planning.supply.groups import keeps_together
from instance_catalog.dataclass import replace
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes import labels
from instance_catalog.types.catalog import Catalog
from instance_catalog.types.instance_type import ANY_ZONE, CapacityType
from providers.contract import OfferingKey, TemplateRef, TemplateStatus
from providers.registered import Registered
from tests.builders import SMALL, gang, gpus, machine, ours, pairs, plan, pod, snapshot, why_left

BLOCK = labels.GCE_TOPOLOGY_BLOCK
CATALOG = Catalog.of([machine("intel", SMALL, 1, "1.00")])
A, B = (OfferingKey("intel", f"us-east-1{zone}", CapacityType.ON_DEMAND) for zone in "ab")
POOL = CapacityPool(
    "team", Mode.ACT, drivers=("nvidia",), limits=Limits(nodes=9), node_template=NodeTemplateRef("GCPNodeTemplate", "g")
)
NEAR = Registered(same=frozenset({BLOCK}))
FAR = Registered()


def pool(*nodes: tuple[OfferingKey, Registered]) -> CapacityPool:
    """The pool, as the provider describes the groups of its template."""
    registers = FrozenMap(dict(nodes))
    status = TemplateStatus(TemplateRef("GCPNodeTemplate", "g"), groups=frozenset(registers), registers=registers)
    (found,) = with_groups([POOL], [status])
    return found


def state(*nodes: tuple[OfferingKey, Registered], size: int = 2, **fields: object) -> Snapshot:
    """A gang that must be in one block, each of whose pods takes a node."""
    pods, claims = pairs(size, gpus(), gang="train")
    return snapshot(pods, claims, pools=(pool(*nodes),), gangs=gang("train", size, BLOCK), **fields)


def running(*blocks: str | None) -> tuple[tuple[Node, ...], tuple[ProvisionedNode, ...]]:
    """Nodes of the group A that have registered, each in a block, or before that is known; nothing fits on them."""
    nodes = tuple(
        Node(f"n{i}", labels=FrozenMap({BLOCK: of} if of else {}), ready=bool(of)) for i, of in enumerate(blocks)
    )
    ref = OfferingRef("intel", "us-east-1a", CapacityType.ON_DEMAND)
    return nodes, tuple(ours(node.name, phase=Phase.READY, offering=ref) for node in nodes)


def test_a_gang_is_bought_in_the_group_that_keeps_its_machines_together() -> None:
    found = plan(state((A, FAR), (B, NEAR)), catalog=CATALOG)
    assert [node.offering.zone for node in found.launches] == ["us-east-1b"] * 2
    assert [[one.zone for one in node.offerings] for node in found.launches] == [["us-east-1b"]] * 2  # no alternates


def test_without_such_a_group_nothing_is_promised() -> None:
    found = plan(state((A, FAR), (B, FAR)), catalog=CATALOG)
    assert found.launches == ()
    assert Code.GANG_TOPOLOGY in why_left(found, "p00")


def test_two_groups_of_one_offering_may_be_in_two_blocks() -> None:
    found = plan(state((A, NEAR.beside(NEAR))), catalog=CATALOG)
    assert found.launches == ()


def test_a_machine_of_any_zone_may_be_of_either_group() -> None:
    ref = OfferingRef("intel", ANY_ZONE, CapacityType.ON_DEMAND)
    assert keeps_together(pool((A, NEAR), (B, NEAR)), ref, BLOCK) is None
    assert keeps_together(pool((A, NEAR)), ref, BLOCK) is not None


def test_a_sub_block_is_in_one_block_and_not_the_other_way_round() -> None:
    (wanted,) = gang("train", 2, labels.GCE_TOPOLOGY_SUBBLOCK).values()
    given = replace(state((A, NEAR)), gangs=FrozenMap({wanted.key: wanted}))
    assert plan(given, catalog=CATALOG).launches == ()


def test_a_gang_that_wants_the_place_for_itself_is_promised_nothing() -> None:
    """Another group may be in the same block."""
    given = state((A, NEAR))
    away = PodAffinityTerm(LabelSelector(), BLOCK, ("default",))
    pods = tuple(replace(one, pod_anti_affinity=(away,)) for one in given.pods)
    assert plan(replace(given, pods=pods), catalog=CATALOG).launches == ()


def test_nodes_that_are_coming_are_used_and_not_bought_a_second_time() -> None:
    given = state((A, NEAR))
    bought = plan(given, catalog=CATALOG)
    coming = tuple(
        ours(node.name, phase=Phase.LAUNCHED, offering=node.offering, drivers=node.drivers) for node in bought.launches
    )
    again = plan(replace(given, provisioned=coming), catalog=CATALOG)
    assert again.launches == ()
    assert {place.node for place in again.placements} == {node.name for node in coming}


@pytest.mark.parametrize("block", ["b7", None])
def test_a_late_member_follows_the_others_into_their_group(block: str | None) -> None:
    nodes, provisioned = running(block)
    given = state((A, NEAR), (B, NEAR), size=1, nodes=nodes, provisioned=provisioned)
    home = pod("there", gang="train", node_name="n0", phase="Running")
    found = plan(replace(given, pods=(*given.pods, home)), catalog=CATALOG)
    assert [node.offering.zone for node in found.launches] == ["us-east-1a"]


def test_a_group_whose_ready_node_has_no_block_promises_nothing() -> None:
    """kube-scheduler knows no domain of a node without the label, and a machine that is bought would serve nobody."""
    nodes, provisioned = running(None)
    given = state((A, NEAR), size=1, nodes=tuple(replace(node, ready=True) for node in nodes), provisioned=provisioned)
    home = pod("there", gang="train", node_name="n0", phase="Running")
    assert plan(replace(given, pods=(*given.pods, home)), catalog=CATALOG).launches == ()


def test_a_node_of_the_group_that_the_pool_named_before_says_nothing_of_this_one() -> None:
    """Its label says which node pool it is of. The gang is where that one is, and the new group may be elsewhere."""
    nodes, provisioned = running("b7")
    old = tuple(replace(node, labels=node.labels.with_items({labels.GKE_NODE_POOL: "old"})) for node in nodes)
    new = Registered(FrozenMap({labels.GKE_NODE_POOL: "new"}), same=frozenset({BLOCK}))
    given = state((A, new), size=1, nodes=old, provisioned=provisioned)
    home = pod("there", gang="train", node_name="n0", phase="Running")
    assert plan(replace(given, pods=(*given.pods, home)), catalog=CATALOG).launches == ()


def test_a_late_member_of_a_gang_elsewhere_is_promised_nothing() -> None:
    given = state((A, NEAR), size=1, nodes=(Node("foreign", labels=FrozenMap({BLOCK: "b1"})),))
    home = pod("there", gang="train", node_name="foreign", phase="Running")
    assert plan(replace(given, pods=(*given.pods, home)), catalog=CATALOG).launches == ()


def test_a_group_whose_nodes_are_in_two_blocks_after_all_promises_nothing() -> None:
    nodes, provisioned = running("b7", "b8")
    given = state((A, NEAR), nodes=nodes, provisioned=provisioned)
    assert plan(given, catalog=CATALOG).launches == ()
