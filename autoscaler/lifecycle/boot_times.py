"""The longest time from a machine's launch to its Node, and the observed times in this cluster.

All observations are in the histories of existing ProvisionedNodes: nothing else is stored, and a restart loses nothing.
A boot that ended while no controller ran appears longer than it was; the median and the ninth decile tolerate some of
these.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from datetime import datetime, timedelta
from statistics import median_low
from typing import Final, TypeAlias

from autoscaler.model.provisioned_node import BootTimes, Phase, ProvisionedNode
from instance_catalog.types.instance_type import InstanceType

# For pools and node templates without a bootTimeout. Karpenter gives every machine 15 minutes
# (kubernetes-sigs/karpenter issue 357 requests more, for images that take 15 to 20); images with GPU drivers boot in 3
# to 8. Bare metal starts its firmware and checks its memory first, and machines of an UltraServer start together with
# their fabric. Those two are not measured: docs/aws.md names what to check.
BOOT: Final = timedelta(minutes=15)
BOOT_METAL: Final = timedelta(minutes=30)
BOOT_ULTRASERVER: Final = timedelta(minutes=45)
LONGEST: Final = max(BOOT, BOOT_METAL, BOOT_ULTRASERVER)
# g4dn.metal, c5.metal-24xl, c3-highcpu-192-metal: both clouds have it in the name.
_METAL: Final = re.compile(r"[.-]metal(-|\Z)")


def boot_timeout(instance_type: InstanceType) -> timedelta:
    """The default for an instance type."""
    return BOOT_ULTRASERVER if instance_type.fabric.multi_node else boot_timeout_by_name(instance_type.name)


def boot_timeout_by_name(instance_type: str) -> timedelta:
    """The default, as far as the name shows."""
    return BOOT_METAL if _METAL.search(instance_type) else BOOT


BootKind: TypeAlias = tuple[str, tuple[str, ...]]
"""An instance type with the driver profiles of its nodes: images and drivers decide as much as the machine."""

# Boots of a kind that count, the newest: images and drivers change.
_NEWEST: Final = 50
# With fewer, the ninth decile is the slowest one.
_FOR_SLOW: Final = 10


def boot_kind(node: ProvisionedNode) -> BootKind:
    """The key of nodes with equal boot times."""
    return node.offering.instance_type, node.prediction.drivers


def boot_time(node: ProvisionedNode) -> tuple[datetime, timedelta] | None:
    """The time at which the node was first Ready, and the time that it took from launch; None if either is unknown."""
    launched = next((at for phase, at, _ in node.history if phase is Phase.LAUNCHED), None)
    if launched is None:
        return None
    ready = next((at for phase, at, _ in node.history if phase is Phase.READY and at >= launched), None)
    return None if ready is None else (ready, ready - launched)


def boot_times(nodes: Iterable[ProvisionedNode], kinds: Collection[BootKind]) -> Mapping[BootKind, BootTimes]:
    found: dict[BootKind, list[tuple[datetime, timedelta]]] = {}
    for node in nodes if kinds else ():
        kind = boot_kind(node)
        if kind in kinds and (boot := boot_time(node)) is not None:
            found.setdefault(kind, []).append(boot)
    return {kind: _summed_up([took for _, took in sorted(boots)[-_NEWEST:]]) for kind, boots in found.items()}


def _summed_up(took: list[timedelta]) -> BootTimes:
    took = sorted(took)
    slow = took[-(-9 * len(took) // 10) - 1] if len(took) >= _FOR_SLOW else None
    return BootTimes(len(took), median_low(took), slow)
