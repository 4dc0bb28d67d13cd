"""The machines of a ComputeClass of GKE as requirements of a CapacityPool."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from autoscaler.model.other_autoscalers import ComputeClass, MachineRule
from instance_catalog.kubernetes import labels
from instance_catalog.kubernetes.node_selector import Requirement
from instance_catalog.prediction.system_labels import type_labels
from instance_catalog.types.catalog import Catalog
from instance_catalog.types.clouds import clouds_of_labels
from instance_catalog.types.instance_type import CapacityType, InstanceType

_CLOUDS: Final = clouds_of_labels((labels.GKE_COMPUTE_CLASS,))
_GIGA: Final = 10**9
_MOST_VALUES: Final = 16  # more are no small change
_KEYS: Final = (
    *(labels.INSTANCE_TYPE, labels.GKE_MACHINE_FAMILY, labels.GKE_ACCELERATOR, labels.GKE_ACCELERATOR_COUNT),
    labels.ACCELERATOR,
)


def machines_of_class(found: ComputeClass, catalog: Catalog) -> tuple[Requirement, ...]:
    """Requirements that admit the machines with accelerators of its priorities, and no others. None if it names none
    that the catalog has, or if no few requirements say it."""
    wanted = {one.name for rule in found.rules for one in _machines(rule, catalog)}
    if not wanted:
        return ()
    types = [catalog.types[name] for name in sorted(wanted)]
    every = [_Facts(one) for one in catalog if one.cloud in _CLOUDS and one.accelerator is not None]
    named = [_keys_named(rule) for rule in found.rules if any(_machines(rule, catalog))]
    for keys in dict.fromkeys((*named, frozenset({labels.INSTANCE_TYPE}), frozenset(_KEYS[::2]))):
        asked = tuple(_asking(key, types) for key in _KEYS if key in keys)
        admitted = {one.name for one in every if all(one.values.get(r.key) in r.values for r in asked)}
        if asked and admitted == wanted and all(len(r.values) <= _MOST_VALUES for r in asked):
            return asked
    return ()


def capacity_of_class(found: ComputeClass, catalog: Catalog) -> tuple[CapacityType, ...]:
    """How its priorities buy the machines, in their order; without those that only reservations have."""
    rules = (rule for rule in found.rules if not rule.reserved and any(_machines(rule, catalog)))
    return tuple(dict.fromkeys(map(_capacity, rules)))


def _capacity(rule: MachineRule) -> CapacityType:
    if rule.flex_start:
        return CapacityType.FLEX_START
    return CapacityType.SPOT if rule.spot else CapacityType.ON_DEMAND


class _Facts:
    """The name of a type and the values of its labels."""

    def __init__(self, one: InstanceType) -> None:
        self.name, self.values = one.name, _labels_of(one)


def _labels_of(one: InstanceType) -> Mapping[str, str]:
    card = {} if one.accelerator is None else {labels.ACCELERATOR: one.accelerator.key}
    return {**type_labels(one), **card, labels.INSTANCE_TYPE: one.machine_type}


def _asking(key: str, types: Iterable[InstanceType]) -> Requirement:
    return Requirement(key, "In", tuple(dict.fromkeys(v for one in types if (v := _labels_of(one).get(key)))))


def _keys_named(rule: MachineRule) -> frozenset[str]:
    """The labels that say what the rule says."""
    named = {
        labels.INSTANCE_TYPE: rule.machine_type,
        labels.GKE_MACHINE_FAMILY: rule.machine_family,
        labels.GKE_ACCELERATOR: rule.gpu,
        labels.GKE_ACCELERATOR_COUNT: rule.gpu_count,
        labels.ACCELERATOR: rule.tpu,
    }
    return frozenset(key for key, value in named.items() if value)


def _machines(rule: MachineRule, catalog: Catalog) -> Iterator[InstanceType]:
    """The types with accelerators that the rule admits; none for node pools, whose machines only they know, and for a
    rule that names no machine."""
    if rule.node_pools or not _keys_named(rule):
        return
    checks = tuple(_checks(rule))
    for one in catalog:
        if one.cloud in _CLOUDS and one.accelerator is not None and all(check(one) for check in checks):
            yield one


def _checks(rule: MachineRule) -> Iterator[Callable[[InstanceType], bool]]:
    def label(key: str, value: str) -> Callable[[InstanceType], bool]:
        return lambda one: _labels_of(one).get(key) == value

    if rule.machine_type:
        yield label(labels.INSTANCE_TYPE, rule.machine_type)
    if rule.machine_family:
        yield label(labels.GKE_MACHINE_FAMILY, rule.machine_family)
    if rule.gpu:
        yield label(labels.GKE_ACCELERATOR, rule.gpu)
    else:
        yield lambda one: one.name == one.machine_type  # GPUs that are attached have to be named
    if rule.gpu_count:
        yield label(labels.GKE_ACCELERATOR_COUNT, str(rule.gpu_count))
    if rule.tpu:
        yield lambda one: one.accelerator is not None and one.accelerator.node_label == rule.tpu
    if rule.tpu_count:
        yield lambda one: one.device_count == rule.tpu_count
    if rule.tpu_topology:
        yield lambda one: rule.tpu_topology in (one.topology, *one.slice_topologies)
    yield lambda one: one.vcpu >= rule.min_cores and one.memory.value >= rule.min_memory_gb * _GIGA
