"""The Node of a ProvisionedNode. Names of Nodes are used again: on some clouds they are derived from an address.

The provider's id links them. If a provider does not set it on Nodes, the name counts, together with the label of the
launch; a Node with another id belongs to another machine, whatever its name and labels are.
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
    """Nodes, by the ProvisionedNode that they belong to."""

    def __init__(self, nodes: Iterable[Node]) -> None:
        self._by_name = {node.name: node for node in nodes}
        self._by_id = {node.provider_id: node for node in self._by_name.values() if node.provider_id}

    def of(self, provisioned: ProvisionedNode) -> Node | None:
        """The Node, or None: it does not exist, or the one with its name belongs to another machine."""
        if provisioned.provider_id and (by_id := self._by_id.get(provisioned.provider_id)) is not None:
            return by_id
        found = self._by_name.get(provisioned.node_name)
        return found if found is not None and is_node_of(found, provisioned) else None

    def has_joined(self, provider_id: str) -> bool:
        """True if the machine with this id has a Node."""
        return provider_id in self._by_id

    def name_of(self, provisioned: ProvisionedNode) -> str:
        """The node name of pods on its machine; "" if another machine's Node has that name."""
        found = self.of(provisioned)
        if found is not None:
            return found.name
        return "" if provisioned.node_name in self._by_name else provisioned.node_name
