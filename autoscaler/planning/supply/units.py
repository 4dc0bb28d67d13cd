"""Counting devices as people do: eight GPUs are eight, however many partitions they could be cut into.

Devices that draw from one counter set are ways to use one thing, so they count once. Only drivers that a node's pods
use are counted: nobody misses the free channel of a compute domain. It must not know how devices are chosen.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final, TypeAlias

from autoscaler.model.resource_claim import Allocation
from instance_catalog.kubernetes.resource_slice import DeviceId, ResourceSlice

_PARTITION: Final = "mig"  # value of the attribute `type` of NVIDIA's driver
Unit: TypeAlias = tuple[str, str, str]  # driver, pool, counter set or device


@dataclass(frozen=True)
class DeviceUnits:
    """The units that the devices of some slices are, or are parts of."""

    slices: tuple[ResourceSlice, ...]

    @cached_property
    def by_device(self) -> Mapping[DeviceId, frozenset[Unit]]:
        """Every device with its units."""
        return {
            DeviceId(piece.driver, piece.pool.name, device.name): frozenset(
                (piece.driver, piece.pool.name, name)
                for name in ([c.counter_set for c in device.consumes_counters] or [device.name])
            )
            for piece in self.slices
            for device in piece.devices
        }

    @cached_property
    def totals(self) -> Mapping[str, int]:
        """How many units each driver has."""
        units = set[Unit]().union(*self.by_device.values())
        return {driver: sum(1 for unit in units if unit[0] == driver) for driver in sorted({u[0] for u in units})}

    @cached_property
    def divisible(self) -> bool:
        """Whether some unit can be used by several devices."""
        return any(device.consumes_counters for piece in self.slices for device in piece.devices)

    @cached_property
    def cut(self) -> frozenset[str]:
        """The drivers whose devices are partitions that were fixed before the node runs (static MIG)."""
        return frozenset(
            piece.driver
            for piece in self.slices
            for device in piece.devices
            if device.attributes.get("type") == _PARTITION and not device.consumes_counters
        )

    def left(self, used: Collection[Unit]) -> int:
        """Units that are not used, of the drivers whose units are."""
        return self.total(unit[0] for unit in used) - len(used)

    def unwanted(self, used: Collection[Unit]) -> int:
        """What of the node is better not left, as a number: the units that are left. Partitions that are left are room
        for more pods of the kind, and a layout that has fewer of them wastes the rest of its GPUs: they count below 0.
        """
        return -self.left(used) if any(unit[0] in self.cut for unit in used) else self.left(used)

    def touched(self, devices: Iterable[DeviceId]) -> frozenset[Unit]:
        """The units of these devices; devices of other slices have none here."""
        return frozenset().union(*(self.by_device.get(device, frozenset()) for device in devices))

    def total(self, drivers: Iterable[str]) -> int:
        """Units of these drivers; of all, if none is named."""
        totals, wanted = self.totals, set(drivers)
        return sum(totals.get(driver, 0) for driver in wanted) if wanted else sum(totals.values())


def devices_of(allocations: Iterable[Allocation]) -> tuple[DeviceId, ...]:
    """The devices that allocations hold, admin access aside: that holds nothing."""
    return tuple(
        DeviceId(result.driver, result.pool, result.device)
        for allocation in allocations
        for result in allocation.devices
        if not result.admin_access
    )
