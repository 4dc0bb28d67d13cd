"""The faults of existing nodes: a driver that publishes nothing, devices that a device plugin offers as well.

Future nodes will have the same problems, so `foreslice doctor` checks the existing ones.
"""

from __future__ import annotations

from collections.abc import Iterator

from autoscaler.model.reason import Code, Reason, Subject
from autoscaler.model.snapshot import Snapshot
from autoscaler.scheduling.daemons import runs_on
from instance_catalog.drivers.device_plugins import device_plugins
from instance_catalog.drivers.facts import broken_gpudirect
from instance_catalog.drivers.opaque import CHANNEL_DRIVER
from instance_catalog.kubernetes.labels import INSTANCE_TYPE
from instance_catalog.kubernetes.resource_slice import Version

_NVIDIA = "gpu.nvidia.com"
# Drivers whose devices only some nodes have, but whose DaemonSets may run on all of them.
_EVERYWHERE = frozenset({"dra.net", CHANNEL_DRIVER, "dra.cpu"})


def silent_drivers(snapshot: Snapshot) -> Iterator[Reason]:
    """Ready nodes that a driver DaemonSet selects by a label, and for which the driver has published nothing."""
    published = {(slice_.driver, slice_.reach.node_name) for slice_ in snapshot.slices}
    for found in snapshot.daemon_sets:
        drivers = {profile.driver for profile in found.drivers.profiles} - _EVERYWHERE
        if not drivers or not (found.pod.node_selector or found.pod.affinity):
            continue
        for node in snapshot.nodes:
            if not node.ready or not runs_on(found, node):
                continue
            for driver in sorted(drivers):
                if (driver, node.name) not in published:
                    yield Reason.of(Code.DRIVER_SILENT, Subject("node", node.name), driver=driver, daemon_set=found.key)


def without_gpudirect(snapshot: Snapshot) -> Iterator[Reason]:
    """Nodes whose driver publishes a version with which EFA does not reach the memory of their GPUs."""
    types = {node.name: node.labels.get(INSTANCE_TYPE, "") for node in snapshot.nodes}
    found: dict[str, tuple[str, int]] = {}
    for slice_ in snapshot.slices:
        name = slice_.reach.node_name
        for device in slice_.devices if slice_.driver == _NVIDIA else ():
            version = device.attributes.get("driverVersion")
            if name in types and isinstance(version, Version):
                first = version.text.partition(".")[0]
                found.setdefault(name, (types[name], int(first) if first.isdecimal() else 0))
    for name, (kind, branch) in sorted(found.items()):
        for rule in broken_gpudirect():
            if kind.startswith(rule.types) and branch >= rule.from_branch:
                yield Reason.of(
                    Code.GPUDIRECT_BROKEN,
                    Subject("node", name),
                    instance_type=kind,
                    branch=branch,
                    instead=rule.instead,
                    parameter=rule.parameter,
                )


def devices_handed_out_twice(snapshot: Snapshot) -> Iterator[Reason]:
    """Nodes on which a driver publishes and a device plugin offers its devices, too."""
    resources = {plugin.driver: plugin.resource_prefixes for plugin in device_plugins()}
    by_node = {(slice_.reach.node_name, slice_.driver) for slice_ in snapshot.slices if slice_.devices}
    for node in snapshot.nodes:
        for driver, prefixes in resources.items():
            offered = [
                name for name, amount in node.allocatable.items() if name.startswith(prefixes) and amount.sign > 0
            ]
            if offered and (node.name, driver) in by_node:
                yield Reason.of(
                    Code.DEVICES_TWICE, Subject("node", node.name), driver=driver, resources=tuple(sorted(offered))
                )
