"""Resource pools as one node sees them (GatherPools of k8s.io/dynamic-resource-allocation, v0.36 and v0.37).

Slices become pools, pools become one flat list of devices in the order in which the search tries them. A node's pools
do not depend on claims, so they are built once per node.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

from autoscaler.dra.inventory.counters import Counter, Draw, declared, draws_of
from autoscaler.dra.inventory.taints import blocking_taints
from autoscaler.dra.outcome import FatalError
from autoscaler.model.node import Node
from autoscaler.model.reason import Code, Subject
from instance_catalog.dataclass import dataclass, field, replace
from instance_catalog.kubernetes.node_selector import BadSelectorError, matches
from instance_catalog.kubernetes.profile import KubernetesProfile
from instance_catalog.kubernetes.resource_slice import Device, DeviceId, NodeReach, ResourceSlice
from instance_catalog.kubernetes.taint import Taint


class SliceIndex(Protocol):
    """The slices that matter for a node, found without a scan of the cluster; each answer keeps the input order."""

    def local(self, node: str) -> Sequence[ResourceSlice]:
        """Slices with this nodeName."""

    def shared(self) -> Sequence[ResourceSlice]:
        """Slices without nodeName; up to 0.36 also those with shared counters."""

    def of_pool(self, driver: str, pool: str) -> Sequence[ResourceSlice]:
        """All slices of one pool, on any node."""


@dataclass(slots=True, eq=False)
class PooledDevice:
    """A device that may be allocated on a node; `index` is its place in the order of the search.

    A node has many and a search reads few, so derived values are computed on access.
    """

    index: int
    device: Device
    resource_slice: ResourceSlice
    pool: NodePool
    draws: tuple[Draw, ...]
    taints: tuple[Taint, ...]  # those that need a toleration
    shareable: bool

    @property
    def driver(self) -> str:
        return self.pool.driver

    @property
    def name(self) -> str:
        """Its name within the pool."""
        return self.device.name

    @property
    def id(self) -> DeviceId:
        """Its name within the cluster."""
        return DeviceId(self.pool.driver, self.pool.name, self.device.name)

    @property
    def unsupported(self) -> tuple[str, ...]:
        """Fields of newer Kubernetes versions in the device or its slice."""
        return self.device.unsupported + self.resource_slice.unsupported

    @property
    def reach(self) -> NodeReach:
        return self.device.reach if self.resource_slice.per_device_node_selection else self.resource_slice.reach


@dataclass(slots=True, eq=False)
class NodePool:
    """One pool. `incomplete` and `invalid` ones offer nothing, but prevent allocationMode All."""

    driver: str
    name: str
    incomplete: bool = False
    invalid: str = ""
    slices: tuple[ResourceSlice, ...] = ()
    others: tuple[ResourceSlice, ...] = ()  # same pool and generation, not for this node: they draw counters too
    counters: dict[Counter, int] = field(default_factory=dict)
    binds: bool = False
    draws_by_device: dict[str, list[tuple[Draw, ...]]] = field(default_factory=dict)

    @property
    def sort_key(self) -> tuple[bool, str, str]:
        """Pools with binding conditions come last, otherwise by driver and name."""
        return (self.binds, self.driver, self.name)

    def __str__(self) -> str:
        return f"{self.driver}/{self.name}"


@dataclass(frozen=True, slots=True)
class NodePools:
    """All pools of a node in order, and the devices of the usable ones in the order of the search.

    `barrier` is set if a pool after the last device ends a search that gets there (v0.34: an invalid pool is fatal).
    `undecided` names a slice with counters of v0.34, which counts them per slice; this is not implemented.
    """

    pools: tuple[NodePool, ...]
    devices: tuple[PooledDevice, ...]
    barrier: NodePool | None = None
    undecided: str = ""

    def offered(self) -> Iterator[tuple[NodePool, Sequence[Device]]]:
        """The same devices slice by slice, each slice with its pool."""
        for pool in self.pools:
            if pool is self.barrier:
                return
            if not pool.invalid:
                yield from ((pool, slice_.devices) for slice_ in pool.slices)

    @property
    def unfinished(self) -> NodePool | None:
        """The first pool that makes All impossible."""
        return next((pool for pool in self.pools if pool.incomplete or pool.invalid), None)

    @property
    def any_invalid(self) -> bool:
        """True if a failed search ends as an error of the node."""
        return any(pool.invalid for pool in self.pools)


def gather(node: Node, slices: SliceIndex, profile: KubernetesProfile) -> NodePools:
    """The pools visible on the node. Raises FatalError for a node selector that cannot be parsed."""
    groups: dict[tuple[str, str], list[ResourceSlice]] = {}
    for slice_ in (*slices.local(node.name), *slices.shared()):
        if _hidden(slice_, profile) or not _relevant(slice_, node, profile):
            continue
        group = groups.setdefault((slice_.driver, slice_.pool.name), [])
        if group and slice_.pool.generation < group[0].pool.generation:
            continue
        if group and slice_.pool.generation > group[0].pool.generation:
            group.clear()
        group.append(slice_)
    pools = [
        pool
        for (driver, name), group in groups.items()
        if (pool := _finish(group, slices.of_pool(driver, name), profile)) is not None
    ]
    pools.sort(key=lambda pool: pool.sort_key)
    found = _flatten(pools, profile)
    if not profile.allocator.counters_per_slice:
        return found
    counted = (slice_.name for group in groups.values() for slice_ in group if slice_.shared_counters)
    return replace(found, undecided=next(counted, ""))


def reaches(reach: NodeReach, node: Node) -> bool:
    """True if a slice or device is for the node (NodeMatches). Raises BadSelectorError."""
    if reach.node_name:
        return reach.node_name == node.name
    if reach.all_nodes:
        return True
    return reach.node_selector is not None and matches(reach.node_selector, name=node.name, labels=node.labels)


def _hidden(slice_: ResourceSlice, profile: KubernetesProfile) -> bool:
    return not profile.gates.partitionable_devices and (
        slice_.per_device_node_selection is not None or bool(slice_.shared_counters)
    )


def _relevant(slice_: ResourceSlice, node: Node, profile: KubernetesProfile) -> bool:
    if slice_.shared_counters and not profile.allocator.counter_slices_follow_node_filter:
        return True
    reach = slice_.reach
    try:
        if reach.node_name or reach.all_nodes or reach.node_selector is not None:
            return reaches(reach, node)
        if slice_.per_device_node_selection:
            return any(reaches(device.reach, node) for device in slice_.devices)
    except BadSelectorError as error:
        raise FatalError.of(
            Code.BAD_NODE_SELECTOR, Subject("ResourceSlice", slice_.name), driver=slice_.driver, problem=str(error)
        ) from error
    return False


def _finish(
    group: list[ResourceSlice], everything: Sequence[ResourceSlice], profile: KubernetesProfile
) -> NodePool | None:
    """The pool of a group of visible slices; None when its generation is obsolete."""
    if not profile.allocator.slices_sorted_by_name:
        # Up to 0.35 slices are not sorted, and those of a node are not taken before others: they keep the listed order.
        visible = {id(slice_) for slice_ in group}
        group = [slice_ for slice_ in everything if id(slice_) in visible]
    first = group[0]
    wanted = first.pool.slice_count
    if len(group) == wanted:
        return _build(group, (), profile)
    pool = NodePool(first.driver, first.pool.name, incomplete=True)
    if profile.allocator.completeness_by_visible_slices:
        return pool if not profile.allocator.incomplete_pool_allocates else _build(group, (), profile, incomplete=True)
    if any(slice_.pool.generation > first.pool.generation for slice_ in everything):
        return None
    current = [slice_ for slice_ in everything if slice_.pool.generation == first.pool.generation]
    if len(current) != wanted:
        return pool
    return _build(group, current, profile)


def _build(
    group: list[ResourceSlice],
    current: Sequence[ResourceSlice],
    profile: KubernetesProfile,
    *,
    incomplete: bool = False,
) -> NodePool:
    """`current`: all slices of the generation, if the visible ones alone were not complete."""
    if profile.allocator.slices_sorted_by_name:
        group = sorted(group, key=lambda slice_: slice_.name)
    elsewhere: Sequence[ResourceSlice] = ()
    if len(group) < len(current):
        visible = {slice_.name for slice_ in group}
        elsewhere = [slice_ for slice_ in current if slice_.name not in visible]
    partitions = profile.gates.partitionable_devices
    counter_slices = [slice_ for slice_ in (*group, *elsewhere) if partitions and slice_.shared_counters]
    pool = NodePool(
        driver=group[0].driver,
        name=group[0].pool.name,
        incomplete=incomplete,
        slices=tuple(slice_ for slice_ in group if not (partitions and slice_.shared_counters)),
        others=tuple(slice_ for slice_ in elsewhere if not (partitions and slice_.shared_counters)),
    )
    pool.invalid = _problem_with_names(pool.slices)
    if partitions and not pool.invalid:
        try:
            pool.counters = declared(counter_set for slice_ in counter_slices for counter_set in slice_.shared_counters)
        except ValueError as error:
            pool.invalid = str(error)
        else:
            sets = {counter_set.name for slice_ in counter_slices for counter_set in slice_.shared_counters}
            pool.invalid = _problem_with_counters(pool, sets)
    pool.binds = not pool.invalid and any(
        device.binding_conditions is not None for slice_ in pool.slices for device in slice_.devices
    )
    return pool


def _problem_with_names(slices: Iterable[ResourceSlice]) -> str:
    names = [device.name for slice_ in slices for device in slice_.devices]
    if len(set(names)) == len(names):
        return ""
    twice = next(name for index, name in enumerate(names) if name in names[:index])
    return f"duplicate device name {twice}"


def _problem_with_counters(pool: NodePool, sets: set[str]) -> str:
    for slice_ in (*pool.slices, *pool.others):
        for device in slice_.devices:
            if not device.consumes_counters:
                continue
            for entry in device.consumes_counters:
                if entry.counter_set not in sets:
                    return f"counter set {entry.counter_set} not found"
                for name in entry.counters:
                    if (entry.counter_set, name) not in pool.counters:
                        return f"counter {name} not found in counter set {entry.counter_set}"
            pool.draws_by_device.setdefault(device.name, []).append(draws_of(device.consumes_counters))
    return ""


def _flatten(pools: Sequence[NodePool], profile: KubernetesProfile) -> NodePools:
    shares = profile.gates.consumable_capacity
    devices: list[PooledDevice] = []
    for pool in pools:
        if pool.invalid and profile.allocator.duplicate_device_fatal:
            return NodePools(tuple(pools), tuple(devices), barrier=pool)
        if pool.invalid:
            continue
        for slice_ in pool.slices:
            for device in slice_.devices:
                draws = draws_of(device.consumes_counters) if device.consumes_counters else ()
                taints = blocking_taints(device, profile) if device.taints else ()
                shareable = device.allow_multiple_allocations and shares
                devices.append(PooledDevice(len(devices), device, slice_, pool, draws, taints, shareable))
    return NodePools(tuple(pools), tuple(devices))
