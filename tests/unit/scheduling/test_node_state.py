"""What is kept of nodes from one reconcile to the next."""

from __future__ import annotations

from autoscaler.model.node import Node
from autoscaler.model.pod import Container, Pod
from autoscaler.scheduling.node_state import AddedMemory, AddedNode, NodeState, StateMemory
from instance_catalog.dataclass import replace
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.quantity import Quantity

BOX = Container("main", FrozenMap({"cpu": Quantity.parse("1")}))
NODE = Node("n", allocatable=FrozenMap({"cpu": Quantity.parse("8"), "pods": Quantity.parse("10")}))
FIRST, SECOND = (Pod("ns", name, uid=name, containers=(BOX,)) for name in ("first", "second"))


def test_a_node_that_did_not_change_is_not_counted_again() -> None:
    memory = StateMemory()
    before = memory.of([NODE], {"n": [FIRST]})
    assert memory.of([NODE], {"n": [FIRST]})["n"] is before["n"]


def test_a_change_of_the_node_or_its_pods_is_seen() -> None:
    memory = StateMemory()

    def free(node: Node, *pods: Pod) -> int:
        return memory.of([node], {node.name: pods})[node.name].free("cpu")

    smaller = replace(NODE, allocatable=NODE.allocatable.with_items({"cpu": Quantity.parse("4")}))
    larger = replace(SECOND, containers=(BOX, BOX))
    assert free(NODE, FIRST) == 7000
    assert free(NODE, FIRST, SECOND) == 6000
    assert free(NODE, FIRST, larger) == 5000
    assert free(NODE, larger) == 6000
    assert free(smaller, larger) == 2000
    assert free(NODE) == 8000
    assert memory.of([], {}) == {}
    assert len(memory) == 0


class TestAddedMemory:
    def test_a_node_is_the_same_object_while_nothing_that_made_it_changes(self) -> None:
        memory, node, other = AddedMemory(), Node("a"), Node("a")

        def made(read: Node) -> AddedNode:
            return memory.of("a", (read,), lambda: AddedNode(NodeState.of(read)))

        first = made(node)
        memory.begin()
        assert made(node) is first
        memory.begin()
        assert made(other) is not first  # equal, but another object

    def test_only_nodes_of_the_previous_world_are_kept(self) -> None:
        memory, node = AddedMemory(), Node("a")
        memory.of("a", (node,), lambda: AddedNode(NodeState.of(node)))
        memory.begin()
        assert [one.name for one in memory.nodes()] == ["a"]
        memory.begin()
        assert not list(memory.nodes())
