"""Whether a device plugin would run on a node to be, beside the driver: both would hand out the same devices."""

from __future__ import annotations

from collections.abc import Iterator

from autoscaler.checks.nodes import NodeToBe, as_labelled
from autoscaler.model.reason import Code, Reason
from autoscaler.model.snapshot import Snapshot
from autoscaler.scheduling.daemons import runs_on


def conflicting_plugins(to_be: NodeToBe, snapshot: Snapshot) -> Iterator[Reason]:
    """One reason for each device plugin that would run there."""
    drivers = {profile.driver for profile in to_be.drivers.profiles}
    for found in snapshot.daemon_sets:
        if found.device_plugin in drivers and runs_on(found, as_labelled(to_be.node, found)):
            yield Reason.of(Code.DEVICE_PLUGIN_RUNS, f"DaemonSet {found.key}", driver=found.device_plugin)
