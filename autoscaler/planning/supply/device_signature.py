"""Finds machines whose devices no allocation on a new node can distinguish.

Values that are known only at run time, or not in the catalog, are tokens. Two machines of different types with the same
GPUs differ in the names of such tokens, and nothing depends on the names: a selector only sees that a value is unknown,
a constraint only whether two tokens are the same. So tokens are numbered by their first occurrence.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final
from weakref import WeakValueDictionary

from instance_catalog.kubernetes.resource_slice import AttributeValue, Capacity, Device, ResourceSlice, RuntimeOnly
from instance_catalog.prediction.tokens import scope_of


class DeviceSignature:
    """Represents everything that distinguishes such machines. The same object as long as it is referenced."""

    __slots__ = ("__weakref__",)


_MOST: Final = 24  # the most devices of a machine
_KNOWN: Final[WeakValueDictionary[Hashable, DeviceSignature]] = WeakValueDictionary()


def signature_of(slices: tuple[ResourceSlice, ...]) -> DeviceSignature:
    """One object for slices of new nodes on which every claim gets the same answer.

    Order counts, because allocation uses devices in order. Quantities count as they are written, because expressions
    can read that. With many devices, names of unknown values count as well: hundreds of partitions take longer to
    compare than to evaluate.
    """
    if sum(len(slice_.devices) for slice_ in slices) > _MOST:
        return _KNOWN.setdefault(slices, DeviceSignature())
    numbers: dict[str, int] = {}
    seen = tuple(
        (
            slice_.name,
            slice_.driver,
            slice_.pool,
            slice_.reach,
            slice_.per_device_node_selection,
            slice_.shared_counters,
            slice_.unsupported,
            tuple([_of_device(device, numbers) for device in slice_.devices]),
        )
        for slice_ in slices
    )
    return _KNOWN.setdefault(seen, DeviceSignature())


def _of_device(device: Device, numbers: dict[str, int]) -> Hashable:
    return (
        device.name,
        tuple([(name, *_of_value(value, numbers)) for name, value in device.attributes.items()]),
        tuple([(name, *_of_capacity(capacity)) for name, capacity in device.capacity.items()]),
        device.consumes_counters,
        device.taints,
        device.reach,
        device.allow_multiple_allocations,
        device.binds_to_node,
        device.binding_conditions,
        device.binding_failure_conditions,
        device.node_allocatable,
        device.unsupported,
    )


def _of_value(value: AttributeValue, numbers: dict[str, int]) -> tuple[Hashable, ...]:
    """With its type, because True equals 1 in Python."""
    kind = type(value).__name__
    if not isinstance(value, RuntimeOnly):
        return kind, value
    number = numbers.setdefault(value.group, len(numbers))
    return kind, value.kind, value.one_of, scope_of(value), number


def _of_capacity(capacity: Capacity) -> tuple[Hashable, ...]:
    return capacity, capacity.form, capacity.value.text
