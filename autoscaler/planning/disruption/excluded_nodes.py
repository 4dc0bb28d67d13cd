"""Nodes that are excluded from moves that make room."""

from __future__ import annotations

from autoscaler.lifecycle.movable import mark_of_node
from autoscaler.lifecycle.provisioned_node import is_stopped, may_take_pods
from autoscaler.model.provisioned_node import ProvisionedNode
from autoscaler.model.snapshot import Snapshot
from autoscaler.planning.demand.virtual_pods import booked_nodes
from autoscaler.planning.disruption.running import ends_soon


def closed_nodes(snapshot: Snapshot) -> frozenset[str]:
    """Names of the nodes that nothing moves to: those that end or are removed, hosts of slices, and booked ones."""
    own = {node.node_name for node in snapshot.provisioned if _closed(node)}
    return frozenset(own | booked_nodes(snapshot))


def kept_nodes(snapshot: Snapshot) -> frozenset[str]:
    """Names of the nodes that nothing moves away from: the closed ones, prepaid ones, and nodes with a
    do-not-disrupt mark."""
    marked = {node.name for node in snapshot.nodes if mark_of_node(node)}
    prepaid = {node.node_name for node in snapshot.provisioned if node.offering.block or node.offering.reservation}
    return closed_nodes(snapshot) | marked | prepaid


def _closed(node: ProvisionedNode) -> bool:
    goes = not may_take_pods(node) or is_stopped(node) or node.unhealthy_since is not None
    return goes or node.hosts > 1 or ends_soon(node)
