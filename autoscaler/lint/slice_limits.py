"""Values in ResourceSlices that the API server refuses. Drivers keep these limits; people who write slices for tests
often do not know them.

Limits: k8s.io/kubernetes pkg/apis/resource/validation and k8s.io/api resource/v1, v1.36.3; v1.34 where it differs, and
v1.37.2 for nodeAllocatableResources.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from autoscaler.cel.interpreter.device import split_name
from autoscaler.kube.resource_claim import FLAT_VERSION
from autoscaler.lint.limits import MAX_DOMAIN, MAX_IDENTIFIER, check_entries
from autoscaler.lint.rules import INVALID_OBJECT, TOO_MANY_ENTRIES, Finding
from autoscaler.lint.subjects import SliceSubject
from instance_catalog.diagnostic import Path
from instance_catalog.kubernetes.profile import KubernetesProfile, SliceLimits
from instance_catalog.kubernetes.resource_slice import AttributeValue, Device, ListValue, NodeAllocatable, Version
from instance_catalog.kubernetes.semver import SemanticVersion, SemverError

_MAX_NAMES: Final = 32  # attributes and capacities of one device together
_MAX_TEXT: Final = 64
_MAX_COUNTER_SETS, _MAX_CONSUMED_SETS = 8, 2
_MAX_CONDITIONS: Final = 4
_NODE_AMOUNTS: Final = ("cpu", "memory")  # and hugepages-*


def check_slice_limits(subject: SliceSubject, profile: KubernetesProfile) -> Iterator[Finding]:
    """Counts, lengths, and what excludes each other."""
    slice_, name = subject.slice, subject.object
    limits = profile.slices
    most = limits.elaborate_devices if any(map(_is_elaborate, slice_.devices)) else limits.devices
    yield from check_entries(name, ("spec", "devices"), slice_.devices, most)
    yield from check_entries(name, ("spec", "sharedCounters"), slice_.shared_counters, _MAX_COUNTER_SETS)
    if limits.counters_apart and slice_.shared_counters and slice_.devices:
        message = "a slice holds shared counters or devices, not both"
        step = "put the counters into a slice of their own in the same pool"
        yield Finding.of(INVALID_OBJECT, name, ("spec", "sharedCounters"), message, step)
    below: Path = ("basic",) if subject.version == FLAT_VERSION else ()
    for index, device in enumerate(slice_.devices):
        yield from _device(name, ("spec", "devices", index, *below), slice_.driver, device, limits)


def _is_elaborate(device: Device) -> bool:
    lists = any(isinstance(value, ListValue) for value in device.attributes.values())
    return bool(device.taints or device.consumes_counters) or lists


def _device(name: str, path: Path, driver: str, device: Device, limits: SliceLimits) -> Iterator[Finding]:
    both = (*device.attributes, *device.capacity)
    if len(both) > _MAX_NAMES:
        message = f"{len(both)} attributes and capacities; the API allows {_MAX_NAMES} together"
        yield Finding.of(TOO_MANY_ENTRIES, name, path, message, f"remove {len(both) - _MAX_NAMES} of them")
    yield from check_entries(name, (*path, "taints"), device.taints, limits.taints)
    yield from check_entries(name, (*path, "consumesCounters"), device.consumes_counters, _MAX_CONSUMED_SETS)
    yield from check_entries(name, (*path, "bindingConditions"), device.binding_conditions or (), _MAX_CONDITIONS)
    for group, names in (("attributes", device.attributes), ("capacity", device.capacity)):
        for qualified in names:
            domain, identifier = split_name(qualified, driver)
            if len(domain) > MAX_DOMAIN or len(identifier) > MAX_IDENTIFIER:
                message = f"domains have at most {MAX_DOMAIN} characters, names {MAX_IDENTIFIER}"
                yield Finding.of(TOO_MANY_ENTRIES, name, (*path, group, qualified), message, "shorten the name")
    for resource, entry in device.node_allocatable.items():
        yield from _node_allocatable(name, (*path, "nodeAllocatableResources", resource), device, resource, entry)
    for qualified, value in device.attributes.items():
        yield from _value(name, (*path, "attributes", qualified), value)
    for qualified, capacity in device.capacity.items():
        if capacity.policy is not None and not device.allow_multiple_allocations:
            message = "a request policy needs allowMultipleAllocations: true on the device"
            place = (*path, "capacity", qualified, "requestPolicy")
            yield Finding.of(INVALID_OBJECT, name, place, message, "allow them, or remove the policy")


def _node_allocatable(
    name: str, path: Path, device: Device, resource: str, entry: NodeAllocatable
) -> Iterator[Finding]:
    """validateNodeAllocatableResources, and a mapping on which kube-scheduler fails."""

    def invalid(message: str, step: str, *below: str) -> Finding:
        return Finding.of(INVALID_OBJECT, name, (*path, *below), message, step)

    if resource not in _NODE_AMOUNTS and not resource.startswith("hugepages-"):
        yield invalid(f"{resource} is none of a node's own amounts", "use cpu, memory or hugepages-SIZE")
    mapping, overhead = entry.mapping, entry.overhead
    if mapping is None and overhead is None:
        yield invalid("has neither mapping nor overhead", "write one of them, or remove the entry")
    if mapping is not None:
        by_capacity = mapping.capacity is not None
        if by_capacity == (mapping.per_device is not None) or by_capacity != (mapping.multiplier is not None):
            step = "write deviceMultiplier, or capacityKey with capacityMultiplier"
            yield invalid("counts neither devices nor a capacity, or both", step, "mapping")
        if mapping.capacity is not None and mapping.capacity not in device.capacity:
            step = f"name one of {', '.join(device.capacity) or 'the capacities, of which the device has none'}"
            yield invalid(f"the device has no capacity {mapping.capacity!r}", step, "mapping", "capacityKey")
        if mapping.capacity is not None and not device.allow_multiple_allocations:
            message = "allocations of a device that is not shared say nothing of capacities: kube-scheduler fails on it"
            step = "set allowMultipleAllocations: true, or write deviceMultiplier instead"
            yield invalid(message, step, "mapping", "capacityKey")
        if any(factor is not None and factor.sign <= 0 for factor in (mapping.multiplier, mapping.per_device)):
            yield invalid("a multiplier is not above 0", "write a positive quantity", "mapping")
    if overhead is not None:
        parts = [part for part in (overhead.per_pod, overhead.per_container) if part is not None]
        if not parts or any(part.sign < 0 for part in parts):
            yield invalid("has no amount, or one below 0", "write perPod or perContainer", "overhead")


def _value(name: str, path: Path, value: AttributeValue) -> Iterator[Finding]:
    text = value.text if isinstance(value, Version) else value
    if isinstance(text, str) and len(text) > _MAX_TEXT:
        message = f"{len(text)} characters; the API allows {_MAX_TEXT}"
        yield Finding.of(TOO_MANY_ENTRIES, name, path, message, "shorten the value")
    if isinstance(value, Version):
        try:
            SemanticVersion.parse(value.text)
        except SemverError as error:
            message = f"{value.text!r} is not a semantic version: {error}"
            yield Finding.of(INVALID_OBJECT, name, path, message, "write major.minor.patch, like 1.2.3")
