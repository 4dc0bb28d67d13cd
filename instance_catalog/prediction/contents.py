"""What a driver puts into one ResourceSlice, before pool, name and numbering, which are alike for all drivers."""

from __future__ import annotations

from dataclasses import dataclass

from instance_catalog.resource_slice import CounterSet, Device


@dataclass(frozen=True, slots=True)
class SliceContents:
    """Devices in the order in which the driver lists them, and the counter sets declared beside them."""

    devices: tuple[Device, ...] = ()
    shared_counters: tuple[CounterSet, ...] = ()
