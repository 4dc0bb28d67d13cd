"""Which Node is the one of a ProvisionedNode. Names of Nodes come again: on some clouds they follow from an address.

The provider's id links them. A provider that does not set it on Nodes leaves the name, together with the label that
the launch asked for; a Node that carries another id is somebody else's, whatever its name and labels are.
"""

from __future__ import annotations

from collections.abc import Iterable

from autoscaler.model.node import Node
from autoscaler.model.provisioned_node import ProvisionedNode
from instance_catalog.kubernetes.labels import POOL


def is_node_of(node: Node, provisioned: ProvisionedNode) -> bool:
    if node.provider_id:
        return node.provider_id == provisioned.provider_id
    return node.name == provisioned.node_name and node.labels.get(POOL) == provisioned.pool


class OwnNodes:
    """Nodes, to be found by the ProvisionedNode they belong to."""

    def __init__(self, nodes: Iterable[Node]) -> None:
        self._by_name = {node.name: node for node in nodes}
        self._by_id = {node.provider_id: node for node in self._by_name.values() if node.provider_id}

    def of(self, provisioned: ProvisionedNode) -> Node | None:
        """The Node, or None: it is not there, or the one with its name is somebody else's."""
        by_id = self._by_id.get(provisioned.provider_id) if provisioned.provider_id else None
        found = by_id or self._by_name.get(provisioned.node_name)
        return found if found is not None and is_node_of(found, provisioned) else None

    def has_joined(self, provider_id: str) -> bool:
        """Whether the machine with this id has a Node."""
        return provider_id in self._by_id

    def name_of(self, provisioned: ProvisionedNode) -> str:
        """The name that pods on its machine are bound to; "" when that is the name of somebody else's Node."""
        found = self.of(provisioned)
        if found is not None:
            return found.name
        return "" if provisioned.node_name in self._by_name else provisioned.node_name
