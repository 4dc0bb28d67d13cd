"""Converts ResourceSlices (resource.k8s.io v1, v1beta2, v1beta1) to the types of instance_catalog.

v1beta1 has everything of a device but its name in `basic`; otherwise the versions agree. Fields of newer versions that
change the use of a device are in `unsupported`, so that the allocator answers unknown instead of guessing. So is
nodeAllocatableResourceMappings, the form that nodeAllocatableResources had in 1.36 alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from sys import intern

from autoscaler.kube.equal_parts import read_once
from autoscaler.kube.fields import INT64, Fields
from autoscaler.kube.metadata import header, parse_metadata
from autoscaler.kube.problem import Problems
from autoscaler.kube.resource_claim import FLAT_VERSION
from autoscaler.kube.selectors import DEVICE_TAINT_EFFECTS, parse_node_selector, parse_taint
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.quantity import Quantity
from instance_catalog.kubernetes.resource_slice import (
    AttributeKind,
    AttributeValue,
    Capacity,
    CounterConsumption,
    CounterSet,
    Device,
    ListValue,
    NodeAllocatable,
    NodeMapping,
    NodeOverhead,
    NodeReach,
    Pool,
    RequestPolicy,
    ResourceSlice,
    Unset,
    ValidRange,
    Version,
)

_ZERO = Quantity.of(0)
_LISTS: dict[str, AttributeKind] = {"ints": "int", "bools": "bool", "strings": "string", "versions": "version"}


def parse_resource_slice(raw: object, problems: Problems | None = None) -> ResourceSlice:
    """A ResourceSlice. Missing numbers are 0, as in Go: an absent resourceSliceCount never makes a pool complete."""
    fields = Fields(raw, problems)
    metadata = parse_metadata(fields)
    fields.ignore("apiVersion", "kind")
    flat = header(raw)[0] != FLAT_VERSION
    spec = fields.child("spec")
    pool = spec.child("pool")
    return ResourceSlice(
        name=metadata.name,
        driver=spec.required("driver"),
        pool=Pool(pool.required("name"), pool.integer("generation"), pool.integer("resourceSliceCount")),
        devices=tuple(_parse_device(entry, flat=flat) for entry in spec.children("devices")),
        reach=_parse_reach(spec),
        per_device_node_selection=spec.optional_flag("perDeviceNodeSelection"),
        shared_counters=tuple(CounterSet(*_parse_counters(entry, "name")) for entry in spec.children("sharedCounters")),
        unsupported=(*pool.unread(), *spec.unread(), *fields.unread()),
    )


def _parse_reach(fields: Fields) -> NodeReach:
    return NodeReach(
        node_name=fields.optional_text("nodeName") or None,
        node_selector=parse_node_selector(fields.optional_child("nodeSelector")),
        all_nodes=fields.flag("allNodes"),
    )


def _parse_device(fields: Fields, *, flat: bool) -> Device:
    name = fields.required("name")
    body = fields if flat else fields.child("basic")
    attributes = _parse_attributes(body.child("attributes"))
    like = _parse_body(body.without("name", "attributes") if flat else body.without("attributes"))
    return Device(
        name,
        attributes,
        like.capacity,
        like.consumes_counters,
        like.taints,
        like.reach,
        like.allow_multiple_allocations,
        like.binds_to_node,
        like.binding_conditions,
        like.binding_failure_conditions,
        like.node_allocatable,
        like.unsupported if flat else (*like.unsupported, *fields.unread()),
    )


def _parse_attributes(fields: Fields) -> FrozenMap[str, AttributeValue]:
    """The attributes by name: nearly all have one value of the type that its field names."""
    found: dict[str, AttributeValue] = {}
    for key, raw in fields.items():
        value = _plain(raw) if type(raw) is dict and len(raw) == 1 else None
        found[intern(key)] = _parse_attribute(fields.child(key)) if value is None else value
    return FrozenMap(found)


def _plain(raw: Mapping[object, object]) -> AttributeValue | None:
    """The value, if it is of the type that its field names and of one that needs no further look."""
    ((kind, value),) = raw.items()
    if type(value) is str:
        return intern(value) if kind == "string" else _version(value) if kind == "version" else None
    if type(value) is int:
        return value if kind == "int" and value in INT64 else None
    return value if type(value) is bool and kind == "bool" else None


@lru_cache(maxsize=1024)
def _version(text: str) -> Version:
    """The version: devices of a driver share few."""
    return Version(text)


@read_once
def _parse_body(body: Fields) -> Device:
    """A device without its name and its attributes."""
    body.ignore("bindingConditions", "bindingFailureConditions")
    capacity = body.child("capacity")
    node_allocatable, unknown = _parse_node_allocatable(body.child("nodeAllocatableResources"))
    return Device(
        name="",
        capacity=FrozenMap({key: _parse_capacity(capacity.child(key)) for key in capacity.names()}),
        consumes_counters=tuple(
            CounterConsumption(*_parse_counters(entry, "counterSet")) for entry in body.children("consumesCounters")
        ),
        taints=tuple(parse_taint(entry, effects=DEVICE_TAINT_EFFECTS) for entry in body.children("taints")),
        reach=_parse_reach(body),
        allow_multiple_allocations=body.flag("allowMultipleAllocations"),
        binds_to_node=body.flag("bindsToNode"),
        binding_conditions=body.texts("bindingConditions") if "bindingConditions" in body else None,
        binding_failure_conditions=(
            body.texts("bindingFailureConditions") if "bindingFailureConditions" in body else None
        ),
        node_allocatable=node_allocatable,
        unsupported=(*body.unread(), *unknown),
    )


def _parse_node_allocatable(fields: Fields) -> tuple[FrozenMap[str, NodeAllocatable], tuple[str, ...]]:
    """The resources by name, and the names of unknown fields."""
    found: dict[str, NodeAllocatable] = {}
    unknown: list[str] = []
    for resource in fields.names():
        entry = fields.child(resource)
        mapping, overhead = entry.optional_child("mapping"), entry.optional_child("overhead")
        found[resource] = NodeAllocatable(
            None
            if mapping is None
            else NodeMapping(
                mapping.optional_text("capacityKey") or None,
                mapping.quantity("capacityMultiplier"),
                mapping.quantity("deviceMultiplier"),
            ),
            None if overhead is None else NodeOverhead(overhead.quantity("perPod"), overhead.quantity("perContainer")),
        )
        unknown += [name for part in (entry, mapping, overhead) if part is not None for name in part.unread()]
    return FrozenMap(found), tuple(unknown)


def _parse_attribute(fields: Fields) -> AttributeValue:
    """The value. Exactly one of the value fields must be set; otherwise it is unset, as upstream calls it."""
    present = fields.names()
    if len(present) == 1:
        value = _parse_value(fields, present[0])
        if value is not None:
            fields.unread()
            return value
    elif not present:
        fields.problems.error(
            fields.path, "an attribute needs a value", "write one of int, bool, string or version below it"
        )
    else:
        fields.problems.error(
            fields.path, f"an attribute has one value, found {', '.join(present)}", "keep one of them"
        )
        fields.ignore(*present)
    fields.unread()
    return Unset(", ".join(present))


def _parse_value(fields: Fields, name: str) -> AttributeValue | None:
    match name:
        case "string":
            return fields.optional_text(name)
        case "int":
            return fields.optional_integer(name)
        case "bool":
            return fields.optional_flag(name)
        case "version":
            text = fields.optional_text(name)
            return None if text is None else Version(text)
        case _ if name in _LISTS:
            return _parse_list(fields, name, _LISTS[name])
        case _:
            return None


def _parse_list(fields: Fields, name: str, kind: AttributeKind) -> ListValue | None:
    values = fields.raw(name)
    expected = {"int": int, "bool": bool, "string": str, "version": str}[kind]
    if not isinstance(values, list) or any(type(value) is not expected for value in values):
        fields.error(name, f"expected a list of values of type {kind}", "write every entry with that type")
        return None
    return ListValue(kind, tuple(Version(value) if kind == "version" else value for value in values))


def _parse_capacity(fields: Fields) -> Capacity:
    value = fields.quantity("value")
    if value is None and "value" not in fields:
        fields.error("value", "is required", 'write the amount as `value: "40Gi"`')
    policy = fields.optional_child("requestPolicy")
    capacity = Capacity(value if value is not None else _ZERO, None if policy is None else _parse_policy(policy))
    fields.unread()
    return capacity


def _parse_policy(fields: Fields) -> RequestPolicy:
    default = fields.quantity("default")
    values = fields.quantity_list("validValues")
    limits = fields.optional_child("validRange")
    valid_range = None
    if limits is not None:
        valid_range = ValidRange(limits.quantity("min"), limits.quantity("max"), limits.quantity("step"))
        limits.unread()
    fields.unread()
    return RequestPolicy(default, values, valid_range)


def _parse_counters(fields: Fields, name_field: str) -> tuple[str, FrozenMap[str, Quantity]]:
    name = fields.required(name_field)
    counters = fields.child("counters")
    found = {}
    for counter in counters.names():
        entry = counters.child(counter)
        found[counter] = entry.quantity("value") or _ZERO
        entry.unread()
    fields.unread()
    return name, FrozenMap(found)
