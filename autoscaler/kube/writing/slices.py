"""ResourceSlice → resource.k8s.io/v1 manifest: the object that a driver's publishing library sends to the API server.

For printed predictions, and for simulated and KWOK nodes that publish them. Maps are written in the order of their
names, as the API server prints them; lists keep their order, which determines the allocator's order. Must not depend on
instance types or drivers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from autoscaler.errors import InternalError
from instance_catalog.kubernetes import labels
from instance_catalog.kubernetes.node_selector import NodeSelector, NodeSelectorTerm, Requirement
from instance_catalog.kubernetes.quantity import Quantity
from instance_catalog.kubernetes.resource_slice import (
    AttributeValue,
    Capacity,
    CounterConsumption,
    Device,
    ListValue,
    NodeAllocatable,
    NodeReach,
    RequestPolicy,
    ResourceSlice,
    RuntimeOnly,
    Unset,
    Version,
)
from instance_catalog.kubernetes.taint import Taint

Manifest = dict[str, Any]
API_VERSION = "resource.k8s.io/v1"


def slice_manifest(slice_: ResourceSlice, *, node_uid: str | None = None, placeholders: Iterable[str] = ()) -> Manifest:
    """The manifest of a slice whose values are all concrete.

    `node_uid` makes the Node the owner, as the driver does. `placeholders` names attributes with an invented value; an
    annotation lists them. Raises InternalError for a value that has no form in the API (`prediction.concrete` makes
    tokens concrete first).
    """
    metadata: Manifest = {"name": slice_.name}
    made_up = ",".join(placeholders)
    if made_up:
        metadata["annotations"] = {labels.PLACEHOLDERS: made_up}
    if node_uid is not None:
        owner = {"apiVersion": "v1", "kind": "Node", "name": slice_.pool.name, "uid": node_uid, "controller": True}
        metadata["ownerReferences"] = [owner]
    return {"apiVersion": API_VERSION, "kind": "ResourceSlice", "metadata": metadata, "spec": _spec(slice_)}


def _spec(slice_: ResourceSlice) -> Manifest:
    pool = slice_.pool
    spec: Manifest = {
        "driver": slice_.driver,
        "pool": {"name": pool.name, "generation": pool.generation, "resourceSliceCount": pool.slice_count},
        **_reach(slice_.reach),
    }
    if slice_.per_device_node_selection is not None:
        spec["perDeviceNodeSelection"] = slice_.per_device_node_selection
    if slice_.shared_counters:
        spec["sharedCounters"] = [{"name": s.name, "counters": _counters(s.counters)} for s in slice_.shared_counters]
    if slice_.devices:
        spec["devices"] = [_device(device) for device in slice_.devices]
    return spec


def _device(device: Device) -> Manifest:
    written: Manifest = {"name": device.name}
    if device.attributes:
        written["attributes"] = {name: _attribute(name, v) for name, v in sorted(device.attributes.items())}
    if device.capacity:
        written["capacity"] = {name: _capacity(c) for name, c in sorted(device.capacity.items())}
    if device.consumes_counters:
        written["consumesCounters"] = [_consumption(c) for c in device.consumes_counters]
    if device.taints:
        written["taints"] = [_taint(taint) for taint in device.taints]
    if device.binding_conditions is not None:
        written["bindingConditions"] = list(device.binding_conditions)
    if device.binding_failure_conditions is not None:
        written["bindingFailureConditions"] = list(device.binding_failure_conditions)
    if device.allow_multiple_allocations:
        written["allowMultipleAllocations"] = True
    if device.binds_to_node:
        written["bindsToNode"] = True
    if device.node_allocatable:
        entries = sorted(device.node_allocatable.items())
        written["nodeAllocatableResources"] = {name: _node_allocatable(entry) for name, entry in entries}
    return {**written, **_reach(device.reach)}


def _attribute(name: str, value: AttributeValue) -> Manifest:
    match value:
        case bool():
            return {"bool": value}
        case int():
            return {"int": value}
        case str():
            return {"string": value}
        case Version(text):
            return {"version": text}
        case ListValue(kind, items):
            return {f"{kind}s": [item.text if isinstance(item, Version) else item for item in items]}
        case RuntimeOnly(_, group):
            raise InternalError(f"attribute {name} has no value yet ({group}); make the slice concrete first")
        case Unset(found):
            raise InternalError(f"attribute {name} has no single value ({found or 'none'}) that could be published")


def _capacity(capacity: Capacity) -> Manifest:
    written: Manifest = {"value": str(capacity.value)}
    if capacity.policy is not None:
        written["requestPolicy"] = _policy(capacity.policy)
    return written


def _policy(policy: RequestPolicy) -> Manifest:
    written: Manifest = {}
    if policy.default is not None:
        written["default"] = str(policy.default)
    if policy.valid_values:
        written["validValues"] = [str(value) for value in policy.valid_values]
    if policy.valid_range is not None:
        limits = policy.valid_range
        named = (("min", limits.min), ("max", limits.max), ("step", limits.step))
        written["validRange"] = {name: str(value) for name, value in named if value is not None}
    return written


def _consumption(consumption: CounterConsumption) -> Manifest:
    return {"counterSet": consumption.counter_set, "counters": _counters(consumption.counters)}


def _node_allocatable(entry: NodeAllocatable) -> Manifest:
    written: Manifest = {}
    if (mapping := entry.mapping) is not None:
        amounts = {"capacityMultiplier": mapping.multiplier, "deviceMultiplier": mapping.per_device}
        key = {} if mapping.capacity is None else {"capacityKey": mapping.capacity}
        written["mapping"] = {**key, **_given(amounts)}
    if (overhead := entry.overhead) is not None:
        written["overhead"] = _given({"perPod": overhead.per_pod, "perContainer": overhead.per_container})
    return written


def _given(amounts: Mapping[str, Quantity | None]) -> Manifest:
    return {name: str(amount) for name, amount in amounts.items() if amount is not None}


def _counters(counters: Mapping[str, Quantity]) -> Manifest:
    return {name: {"value": str(value)} for name, value in sorted(counters.items())}


def _taint(taint: Taint) -> Manifest:
    written = {"key": taint.key, "effect": taint.effect}
    return {**written, "value": taint.value} if taint.value else written


def _reach(reach: NodeReach) -> Manifest:
    if reach.node_name is not None:
        return {"nodeName": reach.node_name}
    if reach.node_selector is not None:
        return {"nodeSelector": _selector(reach.node_selector)}
    return {"allNodes": True} if reach.all_nodes else {}


def _selector(selector: NodeSelector) -> Manifest:
    return {"nodeSelectorTerms": [_term(term) for term in selector.terms]}


def _term(term: NodeSelectorTerm) -> Manifest:
    written: Manifest = {}
    if term.match_expressions:
        written["matchExpressions"] = [_requirement(r) for r in term.match_expressions]
    if term.match_fields:
        written["matchFields"] = [_requirement(r) for r in term.match_fields]
    return written


def _requirement(requirement: Requirement) -> Manifest:
    written: Manifest = {"key": requirement.key, "operator": requirement.operator}
    return {**written, "values": list(requirement.values)} if requirement.values else written
