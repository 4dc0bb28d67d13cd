"""gpu.nvidia.com, gate ConsumableShares: several claims share a GPU or a MIG device (v0.5.0 deviceinfo.go).

Time-slicing and MPS are not here: they are configuration inside a claim, and slices stay as they are. Must not know how
devices are made.
"""

from __future__ import annotations

from typing import Final

from instance_catalog.dataclass import replace
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.quantity import Quantity
from instance_catalog.kubernetes.resource_slice import Capacity, Device, RequestPolicy, ValidRange

_MEBIBYTE: Final = Quantity.parse("1Mi")
_ZERO: Final = Quantity.of(0, "BinarySI")
_ONE: Final = Quantity.of(1)


def shared(device: Device, mode: str) -> Device:
    """The device as it is published in a mode of --consumable-shares: unlimited, memory, or a number of shares.

    Memory is rounded down to 1Mi. A device without memory only becomes allocatable to several claims.
    """
    memory = device.capacity.get("memory")
    capacity = dict(device.capacity)
    if memory is not None:
        total = Quantity.of(memory.value.int64_value() // 2**20 * 2**20, "BinarySI")
        least, default = (_MEBIBYTE, total) if mode == "memory" else (_ZERO, _ZERO)
        policy = RequestPolicy(default, valid_range=ValidRange(min=least, max=total, step=_MEBIBYTE))
        capacity["memory"] = Capacity(total, policy, memory.guess, memory.bounds)
        if mode.isdigit():
            count = Quantity.of(int(mode))
            capacity["shares"] = Capacity(count, RequestPolicy(_ONE, valid_range=ValidRange(_ONE, count, _ONE)))
    return replace(device, capacity=FrozenMap(capacity), allow_multiple_allocations=True)
