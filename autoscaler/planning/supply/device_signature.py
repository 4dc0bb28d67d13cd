"""Which machines publish devices that no allocation on a fresh node can tell apart.

What is known only at run time, or not in the catalog, is a token. Two machines of different types with the same GPUs
differ in the names of such tokens, and nothing depends on those: selectors see that a value is open, constraints
whether two tokens are the same one. So tokens count by where they appear for the first time.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final
from weakref import WeakValueDictionary

from instance_catalog.kubernetes.resource_slice import AttributeValue, Capacity, Device, ResourceSlice, RuntimeOnly
from instance_catalog.prediction.tokens import scope_of


class DeviceSignature:
    """Stands for everything that tells such machines apart. The same object as long as somebody keeps it."""

    __slots__ = ("__weakref__",)


_MOST: Final = 24  # devices of a machine
_KNOWN: Final[WeakValueDictionary[Hashable, DeviceSignature]] = WeakValueDictionary()


def signature_of(slices: tuple[ResourceSlice, ...]) -> DeviceSignature:
    """One object for slices of fresh nodes of one name on which every claim gets the same answer.

    Order counts, because allocation takes devices in order. Quantities count as they are written, because expressions
    can tell. Of many devices, names of unknown values count as well: hundreds of partitions take longer to compare than
    to ask.
    """
    if sum(len(piece.devices) for piece in slices) > _MOST:
        return _KNOWN.setdefault(slices, DeviceSignature())
    numbers: dict[str, int] = {}
    seen = tuple(
        (
            piece.name,
            piece.driver,
            piece.pool,
            piece.reach,
            piece.per_device_node_selection,
            piece.shared_counters,
            piece.unsupported,
            tuple([_of_device(device, numbers) for device in piece.devices]),
        )
        for piece in slices
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
    """With its type, since Python takes True for 1."""
    kind = type(value).__name__
    if not isinstance(value, RuntimeOnly):
        return kind, value
    number = numbers.setdefault(value.group, len(numbers))
    return kind, value.kind, value.one_of, scope_of(value), number


def _of_capacity(capacity: Capacity) -> tuple[Hashable, ...]:
    return capacity, capacity.form, capacity.value.text
