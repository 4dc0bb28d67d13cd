"""Terminates: from a leaving node to no machine, no Node and no object.

Draining → Terminating is written before the provider is called; calling twice is harmless, since Gone is an answer. A
machine counts as gone only if the provider reports it; then the Node and, last, the ProvisionedNode are removed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import datetime
from typing import Final

from autoscaler.cluster.api import ForbiddenError, KubernetesApi, NotFoundError
from autoscaler.cluster.journal import Journal
from autoscaler.cluster.resources import NODES
from autoscaler.kube.node import parse_node
from autoscaler.lifecycle.ownership import is_node_of
from autoscaler.lifecycle.provisioned_node import Why
from autoscaler.model.provisioned_node import Phase, ProvisionedNode
from instance_catalog.kubernetes.labels import POOL
from providers.contract import Instance, InstanceState, Provider

# A stopped machine stays until it is ended.
ALIVE: Final = (InstanceState.PENDING, InstanceState.RUNNING, InstanceState.STOPPED)
_ENDED_BY: Final = {Phase.DRAINING: Why.DRAINED, Phase.FAILED: Why.MACHINE_LEFT}


def terminate(
    node: ProvisionedNode,
    *,
    provider: Provider,
    machines: Mapping[str, Instance],
    journal: Journal,
    now: datetime,
    whole: Iterable[str] = (),
) -> None:
    """Asks the provider to end the node's machine. `machines` are those it lists, by provider id; `whole` are the other
    machines of the node's slice, which end in the same call.

    A machine that is no longer listed, or not yet, is left to lifecycle, which decides by its age whether it is gone.
    """
    if node.phase is not Phase.TERMINATING:
        node = journal.move(node, _ENDED_BY[node.phase], now)
    if is_alive(node, machines):
        machine = machines[node.provider_id].id
        failures = provider.terminate((machine, *whole)).failures
        if machine in failures:
            raise failures[machine]


def is_alive(node: ProvisionedNode, machines: Mapping[str, Instance]) -> bool:
    """True if the provider lists the node's machine, and it has not begun to end."""
    machine = machines.get(node.provider_id)
    return machine is not None and machine.state in ALIVE


def remove_objects(node: ProvisionedNode, *, api: KubernetesApi, journal: Journal) -> None:
    """Removes the objects of a node without a machine: its Node, then its ProvisionedNode."""
    with suppress(NotFoundError):
        found = parse_node(api.get(NODES, node.node_name))
        # The name may belong to another machine now; the uid guards against that until the API server deletes.
        if is_node_of(found, node):
            # The admission policy lets the account delete labelled Nodes only. The cloud's controller manager removes
            # the Node of a group that registers without the label, and the object need not wait for that.
            with suppress(*(() if POOL in found.labels else (ForbiddenError,))):
                api.delete(NODES, found.name, uid=found.uid)
    journal.forget(node)
