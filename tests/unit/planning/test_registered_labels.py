"""All nodes of a launch register with one set of labels, so every label on them is right for each of its offerings."""

from __future__ import annotations

from autoscaler.model.capacity import CapacityPool, Limits, Mode, NodeTemplateRef
from autoscaler.model.plan import Plan, PlannedNode
from instance_catalog.dataclass import replace
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes import labels
from instance_catalog.kubernetes.node_selector import NodeSelector, NodeSelectorTerm, Requirement
from instance_catalog.types.catalog import Catalog
from tests.builders import SMALL, claim, machine, plan, pod, snapshot

CATALOG = Catalog.of([machine("a5.xlarge", SMALL, 1, "1"), machine("b6.xlarge", SMALL, 1, "2")])
POOL = CapacityPool("team", Mode.ACT, drivers=("nvidia",), limits=Limits(nodes=5))


def _planned(selector: dict[str, str], pool: CapacityPool = POOL) -> Plan:
    asking = pod("p", "c", node_selector=FrozenMap(selector))
    return plan(snapshot([asking], [claim("c")], pools=(pool,)), catalog=CATALOG)


def _node(selector: dict[str, str]) -> PlannedNode:
    (found,) = _planned(selector).launches
    return found


def test_labels_in_which_the_offerings_differ_are_left_out() -> None:
    node = _node({})
    assert [offering.instance_type for offering in node.offerings] == ["a5.xlarge", "b6.xlarge"]
    assert labels.KARPENTER_FAMILY not in node.node.labels
    assert node.node.labels[labels.KARPENTER_SIZE] == "xlarge"
    assert node.node.labels[labels.KARPENTER_CAPACITY_TYPE] == "on-demand"


def test_offerings_that_differ_in_a_label_that_pods_look_at_are_not_joined() -> None:
    either = Requirement(labels.KARPENTER_FAMILY, "In", ("a5", "b6"))
    asking = pod("p", "c", affinity=NodeSelector((NodeSelectorTerm((either,)),)))
    (node,) = plan(snapshot([asking], [claim("c")], pools=(POOL,)), catalog=CATALOG).launches
    assert [offering.instance_type for offering in node.offerings] == ["a5.xlarge"]
    assert node.node.labels[labels.KARPENTER_FAMILY] == "a5"


def test_a_node_group_registers_as_it_says_itself() -> None:
    group = replace(POOL, node_template=NodeTemplateRef("AWSGroupNodeTemplate", "group"))
    refused = _planned({labels.KARPENTER_FAMILY: "b6"}, group)
    assert not refused.launches
    assert [entry.verdict for entry in refused.left_out] == ["does-not-fit"]


def test_nodes_have_the_keys_that_came_before_todays_as_well() -> None:
    """Kubelets and cloud providers still write both, and manifests still select by the old ones."""
    node = _node({"beta.kubernetes.io/instance-type": "b6.xlarge", "beta.kubernetes.io/os": "linux"})
    assert [offering.instance_type for offering in node.offerings] == ["b6.xlarge"]
    assert node.node.labels["beta.kubernetes.io/instance-type"] == node.node.labels[labels.INSTANCE_TYPE]
    assert labels.ZONE_BETA not in node.node.labels  # the zone is not known yet
