"""Drift: the difference between a node's published slices and the prediction for its type.

Both are the same type. `unify` gives the prediction the values that only the node could know; then comparison is `==`,
and the rest is listed as differences. Values are bound one to one: a token gets one value everywhere, two tokens of one
attribute never share a value, and no token gets a value that the prediction has for another device, because constraints
in claims rely on all of that. Pure; must not know drivers, nor how differences are shown.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from enum import Enum
from typing import TypeAlias

from instance_catalog.dataclass import dataclass, replace
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.quantity import Quantity
from instance_catalog.kubernetes.resource_slice import (
    NOWHERE,
    AttributeValue,
    Capacity,
    Device,
    ListValue,
    NodeAllocatable,
    NodeReach,
    Pool,
    ResourceSlice,
    RuntimeOnly,
    Unset,
    Version,
    exact,
)

Compared: TypeAlias = AttributeValue | Capacity | Quantity | tuple[object, ...] | NodeReach | None


class SeveralNodesError(ValueError):
    """The slices belong to more than one node, or to none, so no single node published them."""


class Change(Enum):
    """The kind of a difference from the prediction."""

    MISSING = "missing"  # predicted, not published
    EXTRA = "extra"  # published, not predicted
    DIFFERENT = "different"


class Aspect(Enum):
    DRIVER = "driver"
    LAYOUT = "slices"  # how devices and counter sets are divided over slices
    DEVICE = "device"
    ATTRIBUTE = "attribute"
    CAPACITY = "capacity"
    COUNTER = "counter"


@dataclass(frozen=True, slots=True)
class Difference:
    """One difference. `device` and `field` are "" if it is about more than one; None: there is no value."""

    change: Change
    aspect: Aspect
    driver: str
    device: str = ""
    field: str = ""
    predicted: Compared = None
    published: Compared = None


@dataclass(frozen=True, slots=True)
class Unified:
    """Both sides in one form: same node, names and order.

    `bound` is the value of each token. `answers` are gaps of the catalog that the published slices fill;
    they are no differences.
    """

    predicted: tuple[ResourceSlice, ...]
    published: tuple[ResourceSlice, ...]
    bound: FrozenMap[RuntimeOnly, AttributeValue]
    answers: tuple[Difference, ...]

    @property
    def equal(self) -> bool:
        """True if the node published the predicted slices."""
        return not self.differences

    @property
    def differences(self) -> tuple[Difference, ...]:
        """Every difference, by driver and device; () where both sides are `==`."""
        return tuple(_differences(self.predicted, self.published))


def node_names(slices: Iterable[ResourceSlice]) -> tuple[str, ...]:
    """The nodes that published them, by name; slices that are not of one node (network-attached devices) count not."""
    return tuple(sorted({slice_.reach.node_name for slice_ in slices if slice_.reach.node_name}))


def unify(predicted: Iterable[ResourceSlice], published: Iterable[ResourceSlice]) -> Unified:
    """The two sides, to be compared. Of published pools only the newest generation counts, as for the allocator.

    Not compared: slice names, the generation, the order of slices and of devices within a slice, and whether a
    capacity is a guess. Raises SeveralNodesError if the published slices are not those of one node.
    """
    real = tuple(published)
    nodes = node_names(real)
    if len(nodes) != 1 or any(not slice_.reach.node_name for slice_ in real):
        raise SeveralNodesError(f"expected the slices of one node, found {', '.join(nodes) or 'none'}")
    node = nodes[0]
    wanted = _canonical(predicted, node)
    found = _canonical(_newest(real), node)
    binding = _Binding.among(wanted)
    renamed = {driver: binding.pair(_devices(wanted, driver), _devices(found, driver)) for driver in _drivers(wanted)}
    bound = (
        replace(slice_, devices=tuple(binding.applied(d, renamed[slice_.driver]) for d in slice_.devices))
        for slice_ in wanted
    )
    answers = tuple(_answers(wanted, renamed, binding.values))
    return Unified(_canonical(bound, node), found, FrozenMap(binding.values), answers)


def _answers(
    wanted: tuple[ResourceSlice, ...],
    renamed: Mapping[str, Mapping[str, str]],
    values: Mapping[RuntimeOnly, AttributeValue],
) -> Iterator[Difference]:
    for slice_ in wanted:
        for device in slice_.devices:
            name = renamed[slice_.driver].get(device.name, "")
            for field, token in device.attributes.items():
                if name and isinstance(token, RuntimeOnly) and token.is_catalog_gap and token in values:
                    value = values[token]
                    yield Difference(Change.DIFFERENT, Aspect.ATTRIBUTE, slice_.driver, name, field, token, value)


class _Binding:
    """The values given to tokens so far. A catalog gap may turn out to be any value, also one of another gap."""

    def __init__(self, known: dict[str, set[Hashable]]) -> None:
        self.values: dict[RuntimeOnly, AttributeValue] = {}
        self._taken = known  # by attribute, each with its kind

    @staticmethod
    def among(slices: Iterable[ResourceSlice]) -> _Binding:
        known: dict[str, set[Hashable]] = {}
        for slice_ in slices:
            for device in slice_.devices:
                for name, value in device.attributes.items():
                    known.setdefault(name, set()).update(() if isinstance(value, RuntimeOnly) else (exact(value),))
        return _Binding(known)

    def pair(self, wanted: Mapping[str, Device], found: Mapping[str, Device]) -> dict[str, str]:
        """Published names of predicted devices: namesakes first, then the most alike of those that contradict nothing.

        A device without namesake has a name that the prediction made up, since it derives from an unknown address.
        """
        names: dict[str, str] = {}
        for name, device in wanted.items():
            if name in found:
                names[name] = name
                self._take(device, found[name])
        left = {name: device for name, device in found.items() if name not in names}
        for name, device in wanted.items():
            alike = (
                [(self._likeness(device, other), other.name) for other in left.values()] if name not in names else []
            )
            best = max(alike, key=lambda item: item[0], default=(0, ""))
            if best[0] > 0:
                names[name] = best[1]
                self._take(device, left.pop(best[1]))
        return names

    def applied(self, device: Device, names: Mapping[str, str]) -> Device:
        """The predicted device with the values bound and the name it turned out to have."""
        values = {n: self.values.get(v, v) if isinstance(v, RuntimeOnly) else v for n, v in device.attributes.items()}
        return replace(device, name=names.get(device.name, device.name), attributes=FrozenMap(values))

    def _take(self, wanted: Device, found: Device) -> None:
        for name, token in wanted.attributes.items():
            value = found.attributes.get(name)
            if not isinstance(token, RuntimeOnly) or token in self.values:
                continue
            if value is None or not _is_kind(value, token.kind):
                continue
            taken = self._taken.setdefault(name, set())
            if token.is_catalog_gap:
                self.values[token] = value
            elif exact(value) not in taken:
                taken.add(exact(value))
                self.values[token] = value

    def _likeness(self, wanted: Device, found: Device) -> int:
        """The number of attributes that agree; 0 if a known value is contradicted."""
        count = 0
        for name, value in wanted.attributes.items():
            known = self.values.get(value, value) if isinstance(value, RuntimeOnly) else value
            if isinstance(known, RuntimeOnly) or name not in found.attributes:
                continue
            if exact(known) != exact(found.attributes[name]):
                return 0
            count += 1
        return count


def _newest(slices: tuple[ResourceSlice, ...]) -> tuple[ResourceSlice, ...]:
    newest: dict[tuple[str, str], int] = {}
    for slice_ in slices:
        key = (slice_.driver, slice_.pool.name)
        newest[key] = max(newest.get(key, 0), slice_.pool.generation)
    return tuple(slice_ for slice_ in slices if slice_.pool.generation == newest[slice_.driver, slice_.pool.name])


def _canonical(slices: Iterable[ResourceSlice], node: str) -> tuple[ResourceSlice, ...]:
    """One form for both sides: slices of a driver sorted by their content, and named by that order."""
    ordered = sorted((_ordered(slice_) for slice_ in slices), key=_content)
    numbers: dict[str, int] = {}
    found = []
    for slice_ in ordered:
        number = numbers[slice_.driver] = numbers.get(slice_.driver, -1) + 1
        pool = Pool(node, slice_count=slice_.pool.slice_count)
        found.append(replace(slice_, name=f"{number}", pool=pool, reach=NodeReach(node_name=node)))
    return tuple(found)


def _ordered(slice_: ResourceSlice) -> ResourceSlice:
    devices = (_unqualified(device, slice_.driver) for device in slice_.devices)
    return replace(
        slice_,
        devices=tuple(sorted(devices, key=lambda device: device.name)),
        shared_counters=tuple(sorted(slice_.shared_counters, key=lambda counters: counters.name)),
    )


def _unqualified(device: Device, driver: str) -> Device:
    """Names in the driver's own domain without it, which means the same; capacities without the mark of a guess."""
    own = f"{driver}/"
    return replace(
        device,
        attributes=FrozenMap({name.removeprefix(own): value for name, value in device.attributes.items()}),
        capacity=FrozenMap({n.removeprefix(own): replace(c, guess=False) for n, c in device.capacity.items()}),
        consumes_counters=tuple(sorted(device.consumes_counters, key=lambda consumed: consumed.counter_set)),
        node_allocatable=FrozenMap({n: _of_capacity(entry, own) for n, entry in device.node_allocatable.items()}),
    )


def _of_capacity(entry: NodeAllocatable, own: str) -> NodeAllocatable:
    if entry.mapping is None or entry.mapping.capacity is None:
        return entry
    return replace(entry, mapping=replace(entry.mapping, capacity=entry.mapping.capacity.removeprefix(own)))


def _content(slice_: ResourceSlice) -> tuple[object, ...]:
    return slice_.driver, [d.name for d in slice_.devices], [c.name for c in slice_.shared_counters]


def _drivers(slices: Iterable[ResourceSlice]) -> tuple[str, ...]:
    return tuple(sorted({slice_.driver for slice_ in slices}))


def _devices(slices: Iterable[ResourceSlice], driver: str) -> dict[str, Device]:
    return {device.name: device for slice_ in slices if slice_.driver == driver for device in slice_.devices}


def _is_kind(value: AttributeValue, kind: str) -> bool:
    match value:
        case bool():
            return kind == "bool"
        case int():
            return kind == "int"
        case str():
            return kind == "string"
        case Version():
            return kind == "version"
        case ListValue():
            return value.kind == kind
        case RuntimeOnly() | Unset():
            return False


def _differences(wanted: tuple[ResourceSlice, ...], found: tuple[ResourceSlice, ...]) -> Iterator[Difference]:
    for driver in sorted({*_drivers(wanted), *_drivers(found)}):
        here = tuple(slice_ for slice_ in wanted if slice_.driver == driver)
        there = tuple(slice_ for slice_ in found if slice_.driver == driver)
        if not here or not there:
            yield Difference(Change.EXTRA if there else Change.MISSING, Aspect.DRIVER, driver)
            continue
        yield from _of_layout(driver, here, there)
        yield from _of_counter_sets(driver, here, there)
        devices = _devices(here, driver), _devices(there, driver)
        for name in sorted({*devices[0], *devices[1]}):
            one, other = devices[0].get(name), devices[1].get(name)
            if one is None or other is None:
                yield Difference(_change(one, other), Aspect.DEVICE, driver, name)
            else:
                yield from _of_device(driver, one, other)


def _of_layout(
    driver: str, wanted: tuple[ResourceSlice, ...], found: tuple[ResourceSlice, ...]
) -> Iterator[Difference]:
    """Differences in the division of common devices and counter sets over slices, and in fields of whole slices."""
    common = {*_names(wanted)} & {*_names(found)}
    layouts = [_slice_fields(wanted, common), _slice_fields(found, common)]
    yield from _fields(driver, "", Aspect.LAYOUT, *layouts)


def _slice_fields(slices: tuple[ResourceSlice, ...], common: set[str]) -> dict[str, Compared]:
    return {
        "contents": tuple(tuple(name for name in _names((slice_,)) if name in common) for slice_ in slices),
        "resourceSliceCount": tuple(slice_.pool.slice_count for slice_ in slices),
        "perDeviceNodeSelection": tuple(p.name for p in slices if p.per_device_node_selection),
        "other": tuple(name for slice_ in slices for name in slice_.unsupported),
    }


def _names(slices: tuple[ResourceSlice, ...]) -> list[str]:
    """Devices and counter sets, which cannot have the same name by their form in any driver."""
    return [name for slice_ in slices for name in [*(d.name for d in slice_.devices), *_sets_of(slice_)]]


def _sets_of(slice_: ResourceSlice) -> list[str]:
    return [f"counters {counters.name}" for counters in slice_.shared_counters]


def _of_counter_sets(
    driver: str, wanted: tuple[ResourceSlice, ...], found: tuple[ResourceSlice, ...]
) -> Iterator[Difference]:
    sets = [{c.name: c.counters for slice_ in slices for c in slice_.shared_counters} for slices in (wanted, found)]
    yield from _fields(driver, "", Aspect.COUNTER, _flat(sets[0]), _flat(sets[1]))


def _of_device(driver: str, wanted: Device, found: Device) -> Iterator[Difference]:
    name = found.name
    yield from _fields(driver, name, Aspect.ATTRIBUTE, wanted.attributes, found.attributes)
    yield from _fields(driver, name, Aspect.CAPACITY, wanted.capacity, found.capacity)
    yield from _fields(driver, name, Aspect.COUNTER, _consumed(wanted), _consumed(found))
    yield from _fields(driver, name, Aspect.DEVICE, _device_fields(wanted), _device_fields(found))


def _fields(
    driver: str, device: str, aspect: Aspect, wanted: Mapping[str, Compared], found: Mapping[str, Compared]
) -> Iterator[Difference]:
    for name in sorted({*wanted, *found}):
        one, other = wanted.get(name), found.get(name)
        if one != other or type(one) is not type(other):  # True == 1 in Python, not in an attribute
            yield Difference(_change(one, other), aspect, driver, device, name, one, other)


def _change(wanted: Compared | Device, found: Compared | Device) -> Change:
    return Change.EXTRA if wanted is None else Change.MISSING if found is None else Change.DIFFERENT


def _consumed(device: Device) -> dict[str, Quantity]:
    return _flat({consumed.counter_set: consumed.counters for consumed in device.consumes_counters})


def _flat(sets: Mapping[str, Mapping[str, Quantity]]) -> dict[str, Quantity]:
    """ "SET/COUNTER" → value."""
    return {f"{name}/{counter}": value for name, counters in sets.items() for counter, value in counters.items()}


def _node_allocatable(device: Device) -> Iterator[str]:
    """As the API names its parts: cpu.mapping.deviceMultiplier=2."""
    for resource, entry in sorted(device.node_allocatable.items()):
        if (mapping := entry.mapping) is not None:
            yield f"{resource}.mapping"
            parts = {"capacityKey": mapping.capacity, "capacityMultiplier": mapping.multiplier}
            parts |= {"deviceMultiplier": mapping.per_device}
            yield from (f"{resource}.mapping.{name}={part}" for name, part in parts.items() if part is not None)
        if (overhead := entry.overhead) is not None:
            parts = {"perPod": overhead.per_pod, "perContainer": overhead.per_container}
            yield from (f"{resource}.overhead.{name}={part}" for name, part in parts.items() if part is not None)


def _device_fields(device: Device) -> dict[str, Compared]:
    """The set fields that are neither attribute, capacity nor counter; named as in the API."""
    given: dict[str, Compared] = {
        "taints": device.taints or None,
        "allowMultipleAllocations": device.allow_multiple_allocations or None,
        "bindsToNode": device.binds_to_node or None,
        "bindingConditions": device.binding_conditions,
        "bindingFailureConditions": device.binding_failure_conditions,
        "nodeAllocatableResources": tuple(_node_allocatable(device)) or None,
        "nodeName": device.reach if device.reach != NOWHERE else None,
        "other": device.unsupported or None,
    }
    return {name: value for name, value in given.items() if value is not None}
