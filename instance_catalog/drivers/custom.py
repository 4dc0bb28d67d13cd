"""A driver described in a catalog file: its devices, as templates over the hardware of a type.

Templates are text with fields in braces, `{model}`; an attribute whose text is one field takes the field's value, also
if it is only known to be equal on some devices. Must not know how files are read or what other drivers publish.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, Literal, TypeAlias

from instance_catalog.dataclass import dataclass, field
from instance_catalog.drivers.terms import NOTHING_REFUSED, DeviceClassFacts, PrepareRules
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.resource_slice import AttributeKind, NodeAllocatable

ForEach: TypeAlias = Literal["accelerator", "networkCard", "node"]

_OF_TYPE: Final[Mapping[str, AttributeKind]] = {"instanceType": "string", "cloud": "string", "vcpu": "int"}
_OF_DEVICE: Final[Mapping[str, AttributeKind]] = {
    "index": "int",
    "count": "int",
    "numaNode": "int",
    "pciBusID": "string",
    "pcieRoot": "string",
}
# The fields that a template may use, and the kind of attribute that each makes.
FIELDS: Final[Mapping[ForEach, Mapping[str, AttributeKind]]] = {
    "node": _OF_TYPE,
    "accelerator": {
        **_OF_TYPE,
        **_OF_DEVICE,
        "vendor": "string",
        "model": "string",
        "productName": "string",
        "architecture": "string",
        "cudaComputeCapability": "version",
    },
    "networkCard": {**_OF_TYPE, **_OF_DEVICE, "kind": "string", "subsystem": "string", "rdma": "bool"},
}
# Fields that a template's `where` may compare, and those that capacities may be.
CONDITIONS: Final[Mapping[ForEach, tuple[str, ...]]] = {
    "node": ("cloud", "instanceType"),
    "accelerator": ("vendor", "model", "architecture", "cloud", "instanceType"),
    "networkCard": ("kind", "cloud", "instanceType"),
}
AMOUNTS: Final[Mapping[ForEach, tuple[str, ...]]] = {
    "node": ("vcpu",),
    "accelerator": ("memory", "vcpu"),
    "networkCard": ("vcpu",),
}
_FIELD: Final = re.compile(r"\{([^{}]*)\}")


def fields_in(text: str) -> tuple[str, ...]:
    """The fields of a template: "{kind}-{index}" has kind and index."""
    return tuple(_FIELD.findall(text))


def only_field(text: str) -> str | None:
    """The field if the text is nothing else."""
    found = _FIELD.fullmatch(text)
    return found[1] if found else None


@dataclass(frozen=True, slots=True)
class AttributeTemplate:
    """An attribute: its kind and text. None: the value exists only on a running node and differs between devices."""

    kind: AttributeKind
    text: str | None


@dataclass(frozen=True, slots=True)
class DeviceTemplate:
    """One device for each accelerator or network card of a type, or one a node, where `where` holds."""

    for_each: ForEach
    name: str
    where: FrozenMap[str, str] = field(default_factory=FrozenMap)
    attributes: FrozenMap[str, AttributeTemplate] = field(default_factory=FrozenMap)
    capacity: FrozenMap[str, str] = field(default_factory=FrozenMap)  # quantities, or one field of AMOUNTS
    allow_multiple_allocations: bool = False
    node_allocatable: FrozenMap[str, NodeAllocatable] = field(default_factory=FrozenMap)


@dataclass(frozen=True, slots=True)
class CustomDriver:
    """A driver of one release. `name` is its profile's, `driver` what stands in ResourceSlices."""

    name: str
    driver: str
    release: str
    devices: tuple[DeviceTemplate, ...]
    node_labels: FrozenMap[str, str] = field(default_factory=FrozenMap)
    prepare: PrepareRules = NOTHING_REFUSED
    device_classes: tuple[DeviceClassFacts, ...] = ()
    source: str = ""
