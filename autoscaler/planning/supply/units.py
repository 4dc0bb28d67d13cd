"""Counts devices as users do: eight GPUs are eight, whatever the number of partitions that they can be divided into.

Devices that use one counter set are alternatives for one thing, so they count once. Only drivers that a node's pods use
are counted: a free channel of a compute domain is no loss. This module does not know how devices are chosen.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from functools import cached_property
from typing import Final, TypeAlias

from autoscaler.model.resource_claim import Allocation
from instance_catalog.dataclass import dataclass
from instance_catalog.kubernetes.resource_slice import DeviceId, ResourceSlice

_PARTITION: Final = "mig"  # the value of the attribute `type` of NVIDIA's driver
Unit: TypeAlias = tuple[str, str, str]  # driver, pool, counter set or device


@dataclass(frozen=True)
class DeviceUnits:
    """The units of the devices of some slices. A device is one unit or a part of several."""

    slices: tuple[ResourceSlice, ...]

    @cached_property
    def by_device(self) -> Mapping[DeviceId, frozenset[Unit]]:
        """Every device with its units."""
        return {
            DeviceId(slice_.driver, slice_.pool.name, device.name): frozenset(
                (slice_.driver, slice_.pool.name, name)
                for name in ([c.counter_set for c in device.consumes_counters] or [device.name])
            )
            for slice_ in self.slices
            for device in slice_.devices
        }

    @cached_property
    def totals(self) -> Mapping[str, int]:
        """The number of units of each driver."""
        units = set[Unit]().union(*self.by_device.values())
        return {driver: sum(1 for unit in units if unit[0] == driver) for driver in sorted({u[0] for u in units})}

    @cached_property
    def divisible(self) -> bool:
        """True if several devices can use one unit."""
        return any(device.consumes_counters for slice_ in self.slices for device in slice_.devices)

    @cached_property
    def cut(self) -> frozenset[str]:
        """The drivers whose devices are partitions that were fixed before the node starts (static MIG)."""
        return frozenset(
            slice_.driver
            for slice_ in self.slices
            for device in slice_.devices
            if device.attributes.get("type") == _PARTITION and not device.consumes_counters
        )

    def left(self, used: Collection[Unit]) -> int:
        """The free units of the drivers whose units are in use."""
        return self.total(unit[0] for unit in used) - len(used)

    def unwanted(self, used: Collection[Unit]) -> int:
        """The free units that a plan should avoid, as a number.

        Free partitions are room for more pods of this kind, and a layout with fewer partitions wastes the rest of its
        GPUs: they count below 0.
        """
        return -self.left(used) if any(unit[0] in self.cut for unit in used) else self.left(used)

    def touched(self, devices: Iterable[DeviceId]) -> frozenset[Unit]:
        """The units of these devices; devices of other slices have none here."""
        return frozenset().union(*(self.by_device.get(device, frozenset()) for device in devices))

    def total(self, drivers: Iterable[str]) -> int:
        """The units of these drivers; of all drivers if none is named."""
        totals, wanted = self.totals, set(drivers)
        return sum(totals.get(driver, 0) for driver in wanted) if wanted else sum(totals.values())


def devices_of(allocations: Iterable[Allocation]) -> tuple[DeviceId, ...]:
    """The devices that allocations hold, without admin access, which holds nothing."""
    return tuple(
        DeviceId(result.driver, result.pool, result.device)
        for allocation in allocations
        for result in allocation.devices
        if not result.admin_access
    )
