"""The hosts of a slice end in one call: none before all of them are leaving and empty.

The provider ends a slice as a whole or not at all. A pod that is found on one host keeps the machines of all.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from datetime import datetime

from autoscaler.cluster.api import KubernetesApi
from autoscaler.cluster.journal import Journal
from autoscaler.execution.drain import cordon, is_closed, occupants_now
from autoscaler.execution.terminate import ALIVE
from autoscaler.lifecycle.leaving import may_evict
from autoscaler.lifecycle.ownership import OwnNodes
from autoscaler.lifecycle.provisioned_node import Why, has_machine, is_leaving, may_take_pods
from autoscaler.lifecycle.slices import other_hosts, slice_of
from autoscaler.model.provisioned_node import Phase, ProvisionedNode
from providers.contract import TAG_BATCH, Instance


def hosts_left(node: ProvisionedNode, nodes: Iterable[ProvisionedNode]) -> tuple[ProvisionedNode, ...]:
    """The other hosts of its slice that have a machine."""
    return tuple(one for one in other_hosts(node, nodes) if has_machine(one))


def ending_with(
    node: ProvisionedNode,
    machines: Mapping[str, Instance],
    own: OwnNodes,
    found_empty: set[str],
    *,
    api: KubernetesApi,
    journal: Journal,
    now: datetime,
) -> tuple[str, ...] | None:
    """The ids of the other machines that end with a node that may end; None while they may not. `machines` are those
    that the provider lists, and `found_empty` the slices that were checked in this reconcile: each is checked once.

    The hosts of its slice are leaving, take no more pods, and have none. If one of them stays, a drain that needed
    empty nodes is taken back. A machine of the slice without an object ends as well, unless its Node is registered.
    """
    if not slice_of(node):
        return ()
    others = hosts_left(node, journal.nodes)
    if any(may_take_pods(host) for host in others) and not may_evict(node) and node.phase is Phase.DRAINING:
        journal.move(node, Why.POD_FOUND, now, ())
        return None
    if any(may_take_pods(host) for host in others):
        return None
    if slice_of(node) not in found_empty:
        if not all(_is_empty(host, api=api, own=own) for host in (node, *others)):
            return None
        found_empty.add(slice_of(node))
    written = {one.provider_id for one in journal.nodes}
    of_slice = (machine for machine in machines.values() if machine.tags.get(TAG_BATCH) == node.batch)
    unwritten = [machine for machine in of_slice if machine.provider_id not in written]
    if any(machine.state in ALIVE and own.has_joined(machine.provider_id) for machine in unwritten):
        return None  # pods may run there: it is adopted first (orphans.py), and drained like the others
    # By their ids: if its LaunchBatch was deleted, no tag may show which machines it launched.
    hosts = (machines[host.provider_id] for host in others if host.provider_id in machines)
    return tuple(machine.id for machine in (*hosts, *unwritten))


def may_begin_with(
    node: ProvisionedNode, nodes: Iterable[ProvisionedNode], *, own: OwnNodes, occupied: Container[str]
) -> bool:
    """True if the other hosts of the slice allow a drain that needs empty nodes to begin. `occupied` are names of
    Nodes; the pods of each host are read once more when its own drain begins."""
    hosts = hosts_left(node, nodes)
    return all(is_leaving(host) or (is_closed(own.of(host)) and own.name_of(host) not in occupied) for host in hosts)


def may_end_stopped(
    node: ProvisionedNode,
    nodes: Iterable[ProvisionedNode],
    *,
    api: KubernetesApi,
    own: OwnNodes,
    occupied: Container[str],
) -> bool:
    """True if a node whose machine is stopped may begin to leave: at once, or a host of a slice together with the
    others, which take no pods from then on."""
    found = own.of(node)
    closed = found is None or not slice_of(node) or cordon(api, found)
    return closed and may_begin_with(node, nodes, own=own, occupied=occupied)


def stays_empty(node: ProvisionedNode, own: OwnNodes, occupied: Container[str]) -> bool:
    """True if no further drain is needed: a Node that registers after a drain has no taint, and may have got pods.

    A machine of its own is ended once its Node takes no more pods; a host of a slice once it has none, too.
    """
    return is_closed(own.of(node)) and (not slice_of(node) or own.name_of(node) not in occupied)


def _is_empty(host: ProvisionedNode, *, api: KubernetesApi, own: OwnNodes) -> bool:
    """True if it takes no more pods, and none run there, read from the API server."""
    return is_closed(own.of(host)) and not occupants_now(api, own.name_of(host))
