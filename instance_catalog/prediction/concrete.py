"""Binds a prediction to a particular node: the owners of its tokens, and values in their place.

`for_node` binds a prediction to a node's name: tokens of two hypothetical nodes differ, those of a capacity unit stay
shared. `make_concrete` replaces tokens by values, for simulated and KWOK nodes and for slices that are printed; they
are computed from hashes, so the same node always gets the same ones. Must not know drivers or instance types.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import Final

from instance_catalog.dataclass import replace
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.resource_slice import AttributeValue, Device, ResourceSlice, RuntimeOnly, Version
from instance_catalog.prediction.tokens import CATALOG, NODE, UNIT, scope_of, scoped

_Made = str | int | bool | Version


def for_node(slices: Iterable[ResourceSlice], node_name: str) -> tuple[ResourceSlice, ...]:
    """The same slices published by `node_name`: its pool, its slice names, its tokens."""
    on_this_node = cache(lambda token: scoped(token, node_name))  # a few dozen tokens on hundreds of partitions
    return tuple(
        replace(
            slice_,
            name=_renamed(slice_, node_name),
            pool=replace(slice_.pool, name=node_name),
            reach=replace(slice_.reach, node_name=node_name),
            devices=_mapped(slice_.devices, on_this_node),
        )
        for slice_ in slices
    )


def under_name(predicted: tuple[ResourceSlice, ...], node_name: str) -> tuple[ResourceSlice, ...]:
    """The slices under the node's name; the same object if they have it already."""
    own = all(slice_.pool.name == node_name for slice_ in predicted)
    return predicted if own else for_node(predicted, node_name)


def make_concrete(
    slices: Iterable[ResourceSlice], *, node_name: str, seed: str = "", unit: str = ""
) -> tuple[ResourceSlice, ...]:
    """The slices of `node_name` with a plausible value for every token: equal within a group, distinct otherwise.

    `seed` distinguishes nodes of one name (a node's uid); nodes of the same `unit` get the same unit-wide values. No
    value equals a known one of the same slices, except if there are too few to choose from (NUMA nodes).
    """
    named = for_node(slices, node_name)
    salts = {NODE: seed, UNIT: unit, CATALOG: ""}
    taken = {value for value in _values(named) if isinstance(value, str | int)}
    made: dict[str, _Made] = {}
    # Sorted, so that values do not depend on the order of slices and devices.
    for token in sorted({v for v in _values(named) if isinstance(v, RuntimeOnly)}, key=lambda t: t.group):
        made[token.group] = _value(token, f"{salts[scope_of(token)]}/{token.group}", taken)
    return tuple(replace(slice_, devices=_mapped(slice_.devices, lambda token: made[token.group])) for slice_ in named)


def placeholder_names(slice_: ResourceSlice) -> tuple[str, ...]:
    """The attributes of a predicted slice whose printed value is a placeholder.

    "uuid" means that attribute of every device that has it, "efa-00/resource.kubernetes.io/pcieRoot" that of one
    device.
    """
    open_in: dict[str, list[str]] = {}
    published: dict[str, int] = {}
    for device in slice_.devices:
        for name, value in device.attributes.items():
            published[name] = published.get(name, 0) + 1
            if isinstance(value, RuntimeOnly):
                open_in.setdefault(name, []).append(device.name)
    found: list[str] = []
    for name, devices in open_in.items():
        found += [name] if len(devices) == published[name] else [f"{device}/{name}" for device in devices]
    return tuple(sorted(found))


def _renamed(slice_: ResourceSlice, node_name: str) -> str:
    """Driver and node stand side by side in every slice name, in an order that depends on the library."""
    driver, old = slice_.driver, slice_.pool.name
    for pattern in ("{driver}-{node}-", "{node}-{driver}-"):
        found = pattern.format(driver=driver, node=old)
        if found in slice_.name:
            return slice_.name.replace(found, pattern.format(driver=driver, node=node_name), 1)
    return slice_.name


def _mapped(devices: tuple[Device, ...], change: Callable[[RuntimeOnly], AttributeValue]) -> tuple[Device, ...]:
    """The devices with every token replaced; devices without tokens stay the same objects."""
    return tuple(_with_tokens(device, change) for device in devices)


def _with_tokens(device: Device, change: Callable[[RuntimeOnly], AttributeValue]) -> Device:
    changed = {n: change(v) for n, v in device.attributes.items() if isinstance(v, RuntimeOnly)}
    return replace(device, attributes=FrozenMap({**device.attributes, **changed})) if changed else device


def _values(slices: tuple[ResourceSlice, ...]) -> Iterator[AttributeValue]:
    return (value for slice_ in slices for device in slice_.devices for value in device.attributes.values())


def _value(token: RuntimeOnly, text: str, taken: set[str | int]) -> _Made:
    """A value for the token; texts and numbers are tried until one is free."""
    if token.one_of:
        return token.one_of[0]
    match token.kind:
        case "version":
            return Version(_VERSIONS.get(_thing(token), "1.0.0"))
        case "bool":
            return False
        case "int":
            return _free(taken, lambda attempt: _number(text, attempt) % _LARGEST.get(_thing(token), 2**31))
        case "string":
            make = _MAKERS.get(_thing(token))
            if make is None:
                return _free(taken, lambda attempt: f"placeholder-{_digits(text, attempt, 8)}")
            return _free(taken, lambda attempt: make(token.group, _digits(text, attempt, 32)))


def _free(taken: set[str | int], make: Callable[[int], str | int]) -> str | int:
    """The first attempt that nothing else uses; after many, the first one although it is in use."""
    for attempt in range(_ATTEMPTS):
        value = make(attempt)
        if value not in taken:
            taken.add(value)
            return value
    return make(0)


def _thing(token: RuntimeOnly) -> str:
    """The kind of value that the token represents: the last part of its group."""
    return token.group.rpartition("/")[2]


def _number(text: str, attempt: int) -> int:
    return int(_digits(text, attempt, 12), 16)


def _digits(text: str, attempt: int, count: int) -> str:
    return hashlib.sha256(f"{attempt}/{text}".encode()).hexdigest()[:count]


def _uuid(group: str, digits: str) -> str:
    prefix = "MIG-" if "-mig-" in group else "GPU-" if ":gpu-" in group else "tpu-"
    return prefix + str(uuid.UUID(hex=digits, version=4))


_ATTEMPTS: Final = 64
_LARGEST: Final = {"numaNode": 2, "mtu": 9000}
_VERSIONS: Final = {"driverVersion": "580.126.9", "cudaDriverVersion": "13.0.0"}
_MAKERS: Final[dict[str, Callable[[str, str], str]]] = {
    "uuid": _uuid,
    "pciBusID": lambda _, digits: f"0000:{digits[:2]}:{int(digits[2:4], 16) % 32:02x}.0",
    "pcieRoot": lambda _, digits: f"pci0000:{digits[:2]}",
    "addressingMode": lambda _, digits: "HMM",
    "ifName": lambda _, digits: f"eth{int(digits[:4], 16) % 1000}",
    "mac": lambda _, digits: ":".join(["02", *(digits[i : i + 2] for i in range(0, 10, 2))]),
    "ipv4": lambda _, digits: f"10.{int(digits[:2], 16)}.{int(digits[2:4], 16)}.{int(digits[4:6], 16)}/16",
    "rdmaDevice": lambda _, digits: f"rdma{int(digits[:4], 16)}",
}
