"""The schema of `drivers` in a catalog file: drivers that Foreslice does not ship, described by templates.

Edge code, like schema.py. Every error that a template can have is refused here, so that predicting never fails.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Annotated, Final, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator
from pydantic.alias_generators import to_camel

from instance_catalog.drivers.custom import (
    AMOUNTS,
    CONDITIONS,
    FIELDS,
    AttributeTemplate,
    CustomDriver,
    DeviceTemplate,
    ForEach,
    fields_in,
    only_field,
)
from instance_catalog.drivers.terms import DeviceClassFacts, PrepareRules
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.quantity import Quantity, QuantityError
from instance_catalog.kubernetes.resource_slice import AttributeKind, NodeAllocatable, NodeMapping, NodeOverhead

_MOST_PROPERTIES: Final = 32  # attributes and capacities of a device, k8s.io/api resource/v1
_LONGEST_TEXT: Final = 64
_LONGEST_SELECTOR: Final = 10 * 1024  # of a DeviceClass, as the number of its selectors
_LONGEST_TABLE: Final = 32
_LITERALS: Final[Mapping[AttributeKind, re.Pattern[str]]] = {
    "int": re.compile(r"-?\d{1,18}"),
    "bool": re.compile("true|false"),
    "version": re.compile(r"\d+\.\d+\.\d+"),
}
_KIND_OF: Final[Mapping[str, AttributeKind]] = {
    "string": "string",
    "int_": "int",
    "bool_": "bool",
    "version": "version",
}
_BRACES: Final = re.compile(r"[{}]")

QualifiedName: TypeAlias = Annotated[
    str, Field(pattern=r"^([a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?/)?[A-Za-z_][A-Za-z0-9_]{0,31}$")
]
NodeResource: TypeAlias = Annotated[str, Field(pattern=r"^(cpu|memory|hugepages-\d+[KMGT]i)$")]
Subdomain: TypeAlias = Annotated[str, Field(pattern=r"^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$")]


class _Entry(BaseModel):
    model_config = ConfigDict(extra="forbid", alias_generator=to_camel, frozen=True)


class AttributeEntry(_Entry):
    """One attribute, as in a ResourceSlice. null: published, but the value exists only on a running node."""

    string: str | None = Field(None, max_length=_LONGEST_TEXT)
    int_: int | str | None = Field(None, alias="int")
    bool_: bool | str | None = Field(None, alias="bool")
    version: str | None = Field(None, max_length=_LONGEST_TEXT)

    @model_validator(mode="after")
    def _one_kind(self) -> AttributeEntry:
        if len(self.model_fields_set) != 1:
            raise ValueError("exactly one of string, int, bool and version, such as {string: '{model}'}")
        return self

    def template(self) -> AttributeTemplate:
        (name,) = self.model_fields_set
        value = getattr(self, name)
        text = None if value is None else str(value).lower() if isinstance(value, bool) else str(value)
        return AttributeTemplate(_KIND_OF[name], text)


class MappingEntry(_Entry):
    """The device is a part of the node's own amount: a number for each device, or for the consumed part of a
    capacity."""

    capacity_key: QualifiedName | None = None
    capacity_multiplier: str | int | None = None
    device_multiplier: str | int | None = None

    @model_validator(mode="after")
    def _one_way(self) -> MappingEntry:
        by_capacity = self.capacity_key is not None
        if by_capacity == (self.device_multiplier is not None):
            raise ValueError("either deviceMultiplier, or capacityKey with capacityMultiplier")
        if by_capacity != (self.capacity_multiplier is not None):
            raise ValueError("capacityKey and capacityMultiplier together, such as capacityMultiplier: 1")
        return self


class OverheadEntry(_Entry):
    """The amount of the node's own resource that the use of the device costs."""

    per_pod: str | int | None = None
    per_container: str | int | None = None

    @model_validator(mode="after")
    def _some(self) -> OverheadEntry:
        if self.per_pod is None and self.per_container is None:
            raise ValueError("perPod or perContainer, such as {perPod: 512Mi}")
        return self


class NodeAllocatableEntry(_Entry):
    """The amounts of the node's own resources that an allocation of the device uses; the gate is
    DRANodeAllocatableResources."""

    mapping: MappingEntry | None = None
    overhead: OverheadEntry | None = None

    @model_validator(mode="after")
    def _some(self) -> NodeAllocatableEntry:
        if self.mapping is None and self.overhead is None:
            raise ValueError("mapping or overhead")
        return self

    def value(self, name: str) -> NodeAllocatable:
        """The value of the entry; `name` is that of the resource."""
        mapping, overhead = self.mapping, self.overhead
        return NodeAllocatable(
            None
            if mapping is None
            else NodeMapping(
                mapping.capacity_key,
                _quantity(name, mapping.capacity_multiplier, least=1),
                _quantity(name, mapping.device_multiplier, least=1),
            ),
            None
            if overhead is None
            else NodeOverhead(_quantity(name, overhead.per_pod), _quantity(name, overhead.per_container)),
        )


class DeviceEntry(_Entry):
    """A device for each accelerator or network card (`forEach`), or one a node. `{field}` is filled in."""

    for_each: ForEach = "accelerator"
    where: dict[str, str] = Field({}, description="only for hardware with these values: {vendor: AMD}, {kind: efa}")
    name: str = Field(pattern=r"^[a-z0-9{]([a-zA-Z0-9{}-]*[a-z0-9}])?$", description="gpu-{index}")
    attributes: dict[QualifiedName, AttributeEntry] = {}
    capacity: dict[QualifiedName, str | int] = Field({}, description="a quantity, or {memory} or {vcpu}")
    allow_multiple_allocations: bool = False
    node_allocatable_resources: dict[NodeResource, NodeAllocatableEntry] = {}

    @model_validator(mode="after")
    def _fits_the_hardware(self) -> DeviceEntry:
        _known(self.where, CONDITIONS[self.for_each], "where")
        each = self.for_each != "node"
        if not each and fields_in(self.name):
            raise ValueError(f"name: {self.name!r} without a field in braces: forEach: node makes one device a node")
        _known(fields_in(self.name), ("index",), "name")
        if each and "{index}" not in self.name:
            raise ValueError("a name with {index}, so that no two devices have the same")
        if len(self.attributes) + len(self.capacity) > _MOST_PROPERTIES:
            raise ValueError(f"at most {_MOST_PROPERTIES} attributes and capacities, the API's limit for a device")
        for name, attribute in self.attributes.items():
            self._check_attribute(name, attribute.template())
        for name, amount in self.capacity.items():
            _check_amount(name, str(amount), AMOUNTS[self.for_each])
        for name, entry in self.node_allocatable_resources.items():
            self._check_mapping(name, entry)
        return self

    def _check_mapping(self, name: str, entry: NodeAllocatableEntry) -> None:
        entry.value(name)
        key = entry.mapping.capacity_key if entry.mapping else None
        if key is not None:
            _known((key,), self.capacity, f"nodeAllocatableResources {name}: capacityKey")
            if not self.allow_multiple_allocations:
                what = "says nothing of capacities, and kube-scheduler fails on it"
                raise ValueError(f"allowMultipleAllocations: true with capacityKey: otherwise an allocation {what}")

    def _check_attribute(self, name: str, template: AttributeTemplate) -> None:
        if template.text is None:
            return
        kinds = FIELDS[self.for_each]
        _known(fields_in(template.text), kinds, f"attribute {name}")
        field = only_field(template.text)
        if template.kind == "string":
            if field is None and _BRACES.search(re.sub(r"\{\w+\}", "", template.text)):
                raise ValueError(f"attribute {name}: braces only around a field")
        elif field is not None:
            if kinds[field] != template.kind:
                fitting = ", ".join(known for known, kind in kinds.items() if kind == template.kind)
                is_kind = f"attribute {name}: {{{field}}} is a {kinds[field]}"
                raise ValueError(f"{is_kind}; fields of kind {template.kind}: {fitting}")
        elif not _LITERALS[template.kind].fullmatch(template.text):
            raise ValueError(f"attribute {name}: a value of kind {template.kind}, or one field")

    def template(self) -> DeviceTemplate:
        return DeviceTemplate(
            self.for_each,
            self.name,
            FrozenMap(self.where),
            FrozenMap({name: attribute.template() for name, attribute in self.attributes.items()}),
            FrozenMap({name: str(amount) for name, amount in self.capacity.items()}),
            self.allow_multiple_allocations,
            FrozenMap({name: entry.value(name) for name, entry in self.node_allocatable_resources.items()}),
        )


class PrepareEntry(_Entry):
    """The requests that the driver refuses after scheduling. The scheduler does not check them: the pod would be bound
    and never start."""

    all_devices_of_node: bool = False  # a claim that does not hold all its devices on the node


class DeviceClassEntry(_Entry):
    """A DeviceClass that the driver's chart installs."""

    name: Subdomain
    selectors: list[Annotated[str, Field(min_length=1, max_length=_LONGEST_SELECTOR)]] = Field(
        min_length=1, max_length=_LONGEST_TABLE, description="CEL; a device must meet all of them"
    )
    extended_resource_name: Annotated[str, Field(pattern=r"^[a-z0-9.-]+/[A-Za-z0-9._-]+$")] | None = None


class DriverEntry(_Entry):
    """A driver that Foreslice does not ship, of one release."""

    name: str = Field(pattern=r"^[a-z0-9]([a-z0-9-]*[a-z0-9])?$", description="what --drivers and pools call it")
    driver: str = Field(pattern=r"^[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?$", description="its name in ResourceSlices")
    release: str = Field("v0.0.0", pattern=r"^v?\d+\.\d+(\.\d+)?$")
    source: str = Field("", description="where the description comes from")
    node_labels: dict[str, str] = Field({}, description="labels that nodes with its devices carry")
    prepare: PrepareEntry = PrepareEntry()
    device_classes: list[DeviceClassEntry] = []
    devices: list[DeviceEntry] = Field(min_length=1)

    @field_validator("device_classes")
    @classmethod
    def _distinct_classes(cls, classes: list[DeviceClassEntry]) -> list[DeviceClassEntry]:
        if len({found.name for found in classes}) != len(classes):
            raise ValueError("another name for every DeviceClass")
        return classes

    @field_validator("devices")
    @classmethod
    def _distinct_names(cls, devices: list[DeviceEntry]) -> list[DeviceEntry]:
        names = [device.name for device in devices]
        if len(set(names)) != len(names):
            raise ValueError("another name for every device template, such as nic-{index} beside gpu-{index}")
        return devices

    def custom_driver(self) -> CustomDriver:
        return CustomDriver(
            name=self.name,
            driver=self.driver,
            release=self.release,
            devices=tuple(device.template() for device in self.devices),
            node_labels=FrozenMap(self.node_labels),
            prepare=PrepareRules(all_devices_of_node=self.prepare.all_devices_of_node),
            device_classes=tuple(
                DeviceClassFacts(found.name, tuple(found.selectors), found.extended_resource_name, self.source)
                for found in self.device_classes
            ),
            source=self.source,
        )


def _known(names: Iterable[str], allowed: Iterable[str], what: str) -> None:
    unknown = [name for name in names if name not in allowed]
    if unknown:
        raise ValueError(f"{what}: {unknown[0]!r} is not a field here; there are {', '.join(allowed) or 'none'}")


def _check_amount(name: str, text: str, fields: tuple[str, ...]) -> None:
    if fields_in(text):
        if only_field(text) not in fields:
            raise ValueError(f"capacity {name}: a quantity, or one of {', '.join(f'{{{field}}}' for field in fields)}")
        return
    try:
        amount = Quantity.parse(text)
    except QuantityError as error:
        raise ValueError(f"capacity {name}: a Kubernetes quantity such as 80Gi, or {{memory}}") from error
    if amount.sign < 0:
        raise ValueError(f"capacity {name}: a quantity of at least 0")


def _quantity(name: str, written: str | int | None, *, least: int = 0) -> Quantity | None:
    """A multiplier (`least` 1: above 0) or an overhead, in the form that the API server stores."""
    if written is None:
        return None
    try:
        amount = Quantity.stored(str(written))
    except QuantityError as error:
        raise ValueError(f"nodeAllocatableResources {name}: a Kubernetes quantity such as 2 or 512Mi") from error
    if amount.sign < least:
        raise ValueError(f"nodeAllocatableResources {name}: a quantity {'above' if least else 'of at least'} 0")
    return amount
