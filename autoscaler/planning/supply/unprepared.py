"""Machines that a plan launches and whose accelerators do not work until people prepare them."""

from __future__ import annotations

from collections.abc import Iterable

from autoscaler.model.capacity import NO_TEMPLATE, CapacityPool
from autoscaler.model.plan import PlannedNode
from instance_catalog.drivers.device_plugins import device_plugins
from instance_catalog.drivers.facts import driver_facts
from instance_catalog.prediction.device_plugins import plugin_of
from instance_catalog.prediction.runnable import NeedsMore, what_else_it_needs
from instance_catalog.types.catalog import Catalog
from instance_catalog.types.instance_type import InstanceType


def unprepared(nodes: Iterable[PlannedNode], pools: Iterable[CapacityPool], catalog: Catalog) -> dict[str, NeedsMore]:
    """By instance type, what its nodes need that nobody has seen to. A pool that names a node template or drivers says
    what its nodes have."""
    prepared = {pool.name for pool in pools if pool.drivers or pool.node_template != NO_TEMPLATE}
    found: dict[str, NeedsMore] = {}
    for node in nodes:
        machine = catalog.types.get(node.offering.instance_type)
        if machine is None or node.pool in prepared or not _gives_accelerators(node, machine):
            continue
        if needed := what_else_it_needs(machine):
            found[machine.name] = needed
    return found


def _gives_accelerators(node: PlannedNode, machine: InstanceType) -> bool:
    """Whether a driver or a device plugin has the accelerators of the node for pods. One that makes up its devices, or
    that has the network cards, does without them."""
    vendor = machine.accelerator.vendor if machine.accelerator else ""
    profiles = {text.partition(":")[0] for text in node.drivers}
    resources = {entry.resource for entry in node.handed_out}
    published = {facts.driver for name, facts in driver_facts().items() if name in profiles}
    return any(
        plugin.vendor == vendor and (plugin.driver in published or plugin in map(plugin_of, resources))
        for plugin in device_plugins()
    )
