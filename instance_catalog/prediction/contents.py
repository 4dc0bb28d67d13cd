"""What a driver puts into one ResourceSlice, before pool, name and numbering, which are alike for all drivers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from instance_catalog.kubernetes.resource_slice import CounterSet, Device

# Limits of one slice (k8s.io/api resource/v1 0.36): the lower one where a device has counters, taints or lists.
MOST_DEVICES: Final = 128
MOST_ADVANCED_DEVICES: Final = 64
MOST_COUNTER_SETS: Final = 8


@dataclass(frozen=True, slots=True)
class SliceContents:
    """Devices in the order in which the driver lists them, and the counter sets declared beside them."""

    devices: tuple[Device, ...] = ()
    shared_counters: tuple[CounterSet, ...] = ()


def devices_in_chunks(devices: Sequence[Device], most: int) -> tuple[SliceContents, ...]:
    return tuple(SliceContents(tuple(devices[i : i + most])) for i in range(0, len(devices), most))


def counters_in_chunks(sets: Sequence[CounterSet]) -> tuple[SliceContents, ...]:
    """Slices with as many counter sets as one may have."""
    most = MOST_COUNTER_SETS
    return tuple(SliceContents((), tuple(sets[i : i + most])) for i in range(0, len(sets), most))
