"""The accelerators of a node, and the free part of each: a number from 0 to 1.

A device that uses counters is a part of the counted accelerator; all devices of one counter set are one accelerator.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from typing import Final

from autoscaler.dra.allocation.context import AllocationContext
from autoscaler.dra.inventory.counters import CounterTable, nano
from autoscaler.dra.inventory.pools import NodePool, PooledDevice
from instance_catalog.dataclass import dataclass
from instance_catalog.kubernetes.quantity import Quantity
from instance_catalog.kubernetes.resource_slice import Device, DeviceId

# The attributes with the model: of NVIDIA and AMD, of Intel, of Google's TPUs, and of AWS Neuron (as predicted by
# instance_catalog/prediction/drivers). Network cards and compute domains have none of these.
_MODEL: Final = ("productName", "model", "tpuGen", "resourceType")
_ONE: Final = 10**9  # in nano units


@dataclass(frozen=True, slots=True)
class FreeUnit:
    """An accelerator, the devices that use it, and its `free` part."""

    name: str
    accelerator: str
    devices: frozenset[DeviceId]
    free: Fraction


def accelerator_of(device: Device) -> str:
    """The model name from its driver; "" if it is no accelerator."""
    names = (device.attributes.get(name) for name in _MODEL)
    return next((name for name in names if isinstance(name, str)), "")


def free_units(at: AllocationContext) -> Iterator[FreeUnit]:
    """The node's own accelerators; devices that several nodes can reach are not counted."""
    grouped: dict[tuple[NodePool, str], list[PooledDevice]] = {}
    for pooled in at.pools.devices:
        if pooled.reach.node_name == at.node.name:
            sets = [entry.counter_set for entry in pooled.device.consumes_counters]
            for name in sets or [pooled.name]:
                grouped.setdefault((pooled.pool, name), []).append(pooled)
    tables = {pool: CounterTable.of(pool.counters, at.drawn(pool)).available for pool, _ in grouped}
    busy = at.exclusively_allocated()
    for (pool, name), members in grouped.items():
        model = next((found for pooled in members if (found := accelerator_of(pooled.device))), "")
        if model:
            counted = bool(members[0].draws)
            free = _of_counters(name, pool, tables[pool]) if counted else _of_device(members[0], busy, at)
            yield FreeUnit(f"{pool}/{name}", model, frozenset(pooled.id for pooled in members), free)


def _of_counters(name: str, pool: NodePool, available: Mapping[tuple[str, str], int]) -> Fraction:
    """The smallest free share of the set's amounts.

    Counters of 1 are places, like the memory slices of MIG: they count together, because otherwise the first used place
    would count as the whole.
    """
    declared = {counter: total for counter, total in pool.counters.items() if counter[0] == name and total > 0}
    places = [counter for counter, total in declared.items() if total <= _ONE]
    parts = [_share(available[counter], total) for counter, total in declared.items() if counter not in places]
    if places:
        parts.append(_share(sum(max(0, available[c]) for c in places), sum(declared[c] for c in places)))
    return min(parts, default=Fraction(1))


def _of_device(pooled: PooledDevice, busy: list[bool], at: AllocationContext) -> Fraction:
    if busy[pooled.index]:
        return Fraction(0)
    consumed = at.allocated.use_of(pooled.driver, pooled.pool.name).consumed.get(pooled.name)
    return min(_left(pooled, consumed.items()), default=Fraction(1)) if consumed else Fraction(1)


def _left(pooled: PooledDevice, consumed: Iterable[tuple[str, Quantity]]) -> Iterator[Fraction]:
    for name, amount in consumed:
        capacity = pooled.device.capacity.get(name)
        total = nano(capacity.value) if capacity is not None else 0
        if total > 0:
            yield _share(total - nano(amount), total)


def _share(left: int, total: int) -> Fraction:
    return Fraction(max(0, min(left, total)), total)
