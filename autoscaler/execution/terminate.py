"""Terminating: from a node that is on its way out to no machine, no Node and no object.

Draining → Terminating is written before the provider is asked; asking twice is harmless, since Gone is an answer. A
machine is believed to be gone when the provider says so; only then the Node and, last, the ProvisionedNode are removed.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime

from autoscaler.cluster.api import KubernetesApi, NotFoundError
from autoscaler.cluster.journal import Journal
from autoscaler.cluster.resources import NODES
from autoscaler.model.provisioned_node import Phase, ProvisionedNode
from providers.contract import Instance, InstanceState, Provider


def terminate(
    node: ProvisionedNode, *, provider: Provider, machines: Mapping[str, Instance], journal: Journal, now: datetime
) -> None:
    """Ask the provider to end the node's machine. `machines` are those it lists, by provider id."""
    if node.phase is not Phase.TERMINATING:
        node = journal.move(node, Phase.TERMINATING, now)
    machine = machines.get(node.provider_id)
    if machine is None:
        # Listed no more, or not yet: lifecycle decides which, by age.
        return
    if machine.state in (InstanceState.PENDING, InstanceState.RUNNING):
        answer = provider.terminate((machine.id,))
        if machine.id in answer.gone:
            journal.move(node, Phase.GONE, now)
    elif machine.state is InstanceState.TERMINATED:
        journal.move(node, Phase.GONE, now)


def bury(node: ProvisionedNode, *, api: KubernetesApi, journal: Journal) -> None:
    """Remove what is left of a node without a machine: its Node object, then its ProvisionedNode."""
    with suppress(NotFoundError):
        api.delete(NODES, node.node_name)
    journal.forget(node)
