"""Device taints: those that a request does not tolerate, and those that DeviceTaintRules add to published slices."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from autoscaler.model.device_class import DeviceTaintRule
from instance_catalog.dataclass import replace
from instance_catalog.kubernetes.profile import KubernetesProfile
from instance_catalog.kubernetes.resource_slice import Device, ResourceSlice
from instance_catalog.kubernetes.taint import Taint, Toleration

_BLOCKING = ("NoSchedule", "NoExecute")


def blocking_taints(device: Device, profile: KubernetesProfile) -> tuple[Taint, ...]:
    """The taints of a device that need a toleration (taintPreventsAllocation, v0.36; any effect in v0.34)."""
    if not device.taints or not profile.gates.device_taints:
        return ()
    if profile.allocator.any_taint_effect_blocks:
        return device.taints
    return tuple(taint for taint in device.taints if taint.effect in _BLOCKING)


def tolerated(taints: Sequence[Taint], tolerations: Sequence[Toleration]) -> bool:
    return all(any(toleration.tolerates(taint) for toleration in tolerations) for taint in taints)


def rules_in_force(rules: Iterable[DeviceTaintRule], profile: KubernetesProfile) -> tuple[DeviceTaintRule, ...]:
    """The rules if the profile's gate is on: DRADeviceTaintRules, in v1.34 DRADeviceTaints.

    From v1.37.1 on a rule without deviceSelector selects nothing; before, everything (resourceslice/tracker).
    """
    gates, own = profile.gates, profile.allocator.taint_rules_have_own_gate
    if not (gates.device_taint_rules or (gates.device_taints and not own)):
        return ()
    everything = profile.allocator.rule_without_selector_taints_all
    return tuple(rule for rule in rules if rule.has_selector or everything)


def with_rules(slice_: ResourceSlice, rules: Iterable[DeviceTaintRule]) -> ResourceSlice:
    """The slice with the taints of all matching rules appended to its devices (resourceslice/tracker, v0.36)."""
    matching = [
        rule for rule in rules if rule.driver in (None, slice_.driver) and rule.pool in (None, slice_.pool.name)
    ]
    if not matching:
        return slice_
    devices = tuple(_tainted(device, matching) for device in slice_.devices)
    return replace(slice_, devices=devices)


def _tainted(device: Device, rules: Iterable[DeviceTaintRule]) -> Device:
    mine = [rule for rule in rules if rule.device in (None, device.name)]
    if not mine:
        return device
    return replace(
        device,
        taints=device.taints + tuple(rule.taint for rule in mine if not rule.unsupported),
        # Such a rule may select the device or not, so it is unknown whether the device is usable.
        unsupported=device.unsupported + tuple(f"DeviceTaintRule {rule.name}" for rule in mine if rule.unsupported),
    )
