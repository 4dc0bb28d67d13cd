"""Decides which DRA drivers run on the nodes of a pool: the listed ones, those of the cluster's DaemonSets, or
assumed ones."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Final

from autoscaler.model.capacity import CapacityBlock, CapacityPool, Mode, PodScope
from autoscaler.model.device_class import DeviceClass
from autoscaler.model.reason import Code, Reason
from autoscaler.model.resource_claim import Request
from autoscaler.model.snapshot import NO_DRIVERS, Snapshot
from instance_catalog.dataclass import replace
from instance_catalog.drivers.custom import CustomDriver
from instance_catalog.drivers.opaque import CHANNEL_CLASS
from instance_catalog.drivers.profile import (
    NO_CUSTOM_DRIVERS,
    DriverProfile,
    DriverProfileError,
    DriverSet,
    parse_driver_set,
    with_gates,
)
from instance_catalog.kubernetes.profile import KubernetesProfile
from instance_catalog.prediction.device_plugins import NO_DRIVER, plugin_resources
from instance_catalog.prediction.predict import expected_unasked, unpredictable
from instance_catalog.prediction.variants import implicit_driver_sets, slice_variants, with_drivers
from instance_catalog.types.instance_type import InstanceType

_DRIVER: Final = re.compile(r"device\.driver\s*==\s*[\"']([^\"']+)[\"']")
# Kinds of node templates whose provider launches slices of several hosts as a whole.
SLICE_TEMPLATES: Final = frozenset({"GCPNodeTemplate"})
# NVIDIA GPU feature discovery as (profile name, option).
FEATURE_DISCOVERY: Final = ("nvidia", "feature-discovery")
_TOPOLOGY: Final = "topology"  # the option of drivers for machines that form slices
_COMPUTE_DOMAIN: Final = "compute-domain"
_NVLINK: Final = "multi-node NVLink"
_DISCOVERED: Final = frozenset({FEATURE_DISCOVERY})
# The most nodes of one LaunchBatch, by its schema.
LARGEST_SLICE: Final = 100
# Kinds of node templates whose provider publishes the slices itself: no DaemonSet runs there.
PUBLISHING_TEMPLATES = frozenset({"SimulatedNodeTemplate", "KwokNodeTemplate"})


def running_drivers(snapshot: Snapshot) -> DriverSet:
    """The drivers that the cluster's DaemonSets run.

    If two DaemonSets run one driver with different options, the first by name counts. The set's notes report this, and
    all assumptions.
    """
    found: dict[str, DriverProfile] = {}
    homes: dict[str, str] = {}
    notes: list[str] = []
    for daemon_set in snapshot.daemon_sets:
        notes += daemon_set.drivers.notes
        for profile in daemon_set.drivers.profiles:
            if found.setdefault(profile.name, profile) != profile:
                notes.append(
                    f"{profile.name} runs differently in DaemonSets {homes[profile.name]} and {daemon_set.key}; the "
                    "first counts. Name the drivers in the CapacityPool to decide"
                )
            homes.setdefault(profile.name, daemon_set.key)
    return DriverSet(tuple(found.values()), tuple(dict.fromkeys(notes)))


def handed_out(snapshot: Snapshot) -> frozenset[str]:
    """The drivers whose devices a device plugin of the cluster provides."""
    return frozenset(found.device_plugin for found in snapshot.daemon_sets if found.device_plugin)


def driver_sets(
    pool: CapacityPool,
    instance_type: InstanceType,
    *,
    kubernetes: KubernetesProfile,
    block: CapacityBlock | None = None,
    running: DriverSet = NO_DRIVERS,
    wanted: frozenset[str] = frozenset(),
    gates: frozenset[tuple[str, str]] = frozenset(),
    topologies: frozenset[str] = frozenset(),
    plugged: tuple[frozenset[str], frozenset[str]] = (frozenset(), frozenset()),
    instead: bool = False,
    linked: bool = False,
) -> tuple[DriverSet, ...]:
    """The sets of drivers that a node of the pool may run, in order of preference.

    The sets are those that the pool or the block lists. Implicit pools have every variant, also those of `wanted`
    (driver names). For Auto, they are those of `running` that are known to have devices on the type. If no driver runs,
    or the provider publishes the slices, the plainest variant is assumed. Assumed drivers may also have the feature
    gates of `gates` (profile name, feature gate), because they are not known to be off. FEATURE_DISCOVERY among them is
    on in all sets of implicit pools. TPU machines form slices of the `topologies`.

    `plugged` are drivers whose devices a device plugin of the cluster provides, and drivers whose devices the demand
    requests from a plugin. A type with such devices, and without devices of a running driver, is offered as if no
    driver ran. A type whose devices no driver is known to publish is offered without drivers, as is one with devices
    that the demand requests from a vendor's own plugin (NO_DRIVER), where no running driver has any on it, and as is a
    machine without accelerators in a pool for all pods. With
    `instead`, and in implicit pools, a type with assumed drivers is also offered without the drivers whose devices the
    demand requests from a plugin: a device is provided by one of both.

    If the demand needs IMEX channels (`linked`), implicit pools have them only on machines with multi-node NVLink:
    elsewhere no container gets one.
    """
    listed = (block.drivers if block else ()) or pool.drivers
    if listed:
        drivers = readable(listed, custom=instance_type.custom_drivers)
        return (drivers,) if drivers and unpredictable(instance_type, drivers) is None else ()
    if running.profiles and not pool.implicit and pool.node_template.kind not in PUBLISHING_TEMPLATES:
        there = DriverSet(tuple(p for p in running.profiles if expected_unasked(instance_type, p)))
        if there.profiles or not plugged[0] & plugin_resources(instance_type).keys():
            return (there,) if _is_plain(instance_type, pool) else _beside_running(there, instance_type, plugged[1])
    variants = _variants(instance_type, kubernetes, pool, linked=linked)
    by_plugin = plugged[1] & plugin_resources(instance_type).keys()
    if not variants and not instance_type.slice_topologies and (by_plugin or _is_plain(instance_type, pool)):
        variants = (NO_DRIVERS,)
    assumed = variants if pool.implicit else variants[:1]
    if by_plugin and (instead or pool.implicit):
        # The plugin is known to run, and the driver beside it is only assumed.
        known = by_plugin <= plugged[0] and not pool.implicit
        without = tuple(beside_plugins(one, by_plugin) for one in assumed)
        assumed = tuple(dict.fromkeys(without if known else (*assumed, *without)))
    discovered = FEATURE_DISCOVERY in gates
    gates = gates - {FEATURE_DISCOVERY}  # it runs on no machine or on all; a pool lists it
    gated = (found for variant in assumed if gates and (found := with_gates(variant, gates)) is not None)
    sliced = slice_variants(instance_type, assumed[:1], topologies)
    if not pool.implicit:
        return (*assumed, *sliced, *gated)
    every = (*assumed, *sliced, *gated, *with_drivers(instance_type, kubernetes, wanted))
    return tuple(with_gates(one, _DISCOVERED) or one for one in every) if discovered else every


def _is_plain(instance_type: InstanceType, pool: CapacityPool) -> bool:
    """True if the type has no accelerators and no devices of device plugins, and the pool serves pods without devices.

    Implicit pools serve only pods that ask for devices.
    """
    devices = instance_type.accelerator is not None or bool(plugin_resources(instance_type))
    return not devices and not pool.implicit and pool.scope.pods is PodScope.ALL


def _beside_running(
    there: DriverSet, instance_type: InstanceType, requested: AbstractSet[str]
) -> tuple[DriverSet, ...]:
    """The drivers of a node of the type in a cluster whose drivers are known; `there` are those with devices on it."""
    own_plugin = NO_DRIVER in requested & plugin_resources(instance_type).keys()
    return (there,) if (there.profiles or own_plugin) and unpredictable(instance_type, there) is None else ()


def _variants(
    instance_type: InstanceType, kubernetes: KubernetesProfile, pool: CapacityPool, *, linked: bool
) -> tuple[DriverSet, ...]:
    """Every variant. With `linked`, implicit pools have the driver of channels only on machines with multi-node
    NVLink."""
    variants = implicit_driver_sets(instance_type, kubernetes)
    if not linked or not pool.implicit or instance_type.fabric.multi_node:
        return variants
    return tuple(replace(v, profiles=tuple(p for p in v.profiles if p.name != _COMPUTE_DOMAIN)) for v in variants)


def with_cause(reason: Reason, pool: CapacityPool, instance_type: InstanceType) -> Reason:
    """The reason with what the machine lacks (`needs`), if `driver_sets` leaves out the channels of its driver
    because no container would get one."""
    channel = reason.code is Code.NO_DEVICE_OF_CLASS and reason.detail.get("device_class") == CHANNEL_CLASS
    if not channel or not pool.implicit or instance_type.fabric.multi_node:
        return reason
    return replace(reason, detail=reason.detail.with_items({"needs": _NVLINK}))


def beside_plugins(drivers: DriverSet, by_plugin: AbstractSet[str]) -> DriverSet:
    """The set without the drivers whose devices device plugins provide (by driver name).

    The TPU driver stays: its option has the slice of a host, whatever provides the chips.
    """
    kept = tuple(p for p in drivers.profiles if p.driver not in by_plugin or says_slice(p))
    return drivers if len(kept) == len(drivers.profiles) else replace(drivers, profiles=kept)


def says_slice(profile: DriverProfile) -> bool:
    """True if the profile has the slice of several hosts that a machine belongs to."""
    return _TOPOLOGY in profile.facts.options


def plans_slices(pool: CapacityPool, hosts: int) -> bool:
    """True if the pool may buy slices of this many hosts. A check excludes a pool that lists slices which its
    provider does not launch (SliceNotLaunched)."""
    return bool(pool.drivers) or pool.mode is Mode.OBSERVE or launches_slices(pool, hosts)


def launches_slices(pool: CapacityPool, hosts: int) -> bool:
    """True if the pool's provider launches all hosts of such a slice or none. One LaunchBatch is one slice."""
    kind = pool.node_template.kind
    return kind in PUBLISHING_TEMPLATES or (kind in SLICE_TEMPLATES and hosts <= LARGEST_SLICE)


def wanted_drivers(requests: Iterable[Request], classes: Mapping[str, DeviceClass]) -> frozenset[str]:
    exact = (part for r in requests for part in r.alternatives)
    names = {request.device_class for request in exact}
    texts = (selector.expression or "" for name in names if name in classes for selector in classes[name].selectors)
    return frozenset(found for text in texts for found in _DRIVER.findall(text))


def readable(profiles: Sequence[str], *, custom: Mapping[str, CustomDriver] = NO_CUSTOM_DRIVERS) -> DriverSet | None:
    """The driver profiles as a set; None if they cannot be read (unusable_fields.py reports that).

    `custom` are the drivers that the catalog describes.
    """
    try:
        return parse_driver_set(",".join(profiles), custom=custom) if profiles else NO_DRIVERS
    except DriverProfileError:
        return None
