"""ClusterDevices: all parts of a snapshot that allocation needs, indexed once and then immutable."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import lru_cache
from operator import is_
from typing import Final, TypeAlias, TypeVar

from autoscaler.dra.inventory.pools import NodePools, gather
from autoscaler.dra.inventory.selectable import SelectorMemo
from autoscaler.dra.inventory.selectors import SelectorEngine
from autoscaler.dra.inventory.taints import rules_in_force, with_rules
from autoscaler.dra.outcome import AllocationOutcome
from autoscaler.model.device_class import DeviceClass, DeviceTaintRule
from autoscaler.model.node import Node
from instance_catalog.dataclass import dataclass, field, replace
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.profile import KubernetesProfile
from instance_catalog.kubernetes.resource_slice import ResourceSlice
from instance_catalog.prediction.predict import PLACEHOLDER_NODE

Slices: TypeAlias = tuple[ResourceSlice, ...]
_Gathered: TypeAlias = tuple[NodePools, SelectorMemo]
_V = TypeVar("_V")
_Key: TypeAlias = tuple[str, FrozenMap[str, str]]  # name and labels of a node: all that its pools depend on

_Question: TypeAlias = tuple[Hashable, tuple[int, ...]]

_MOST: Final = 16_384  # cached nodes; hypothetical ones are among them for a while
_MOST_OUTCOMES: Final = 4096  # a plan with many nodes must not leave a large cache behind


@dataclass(frozen=True, slots=True)
class SliceLayer:
    """Slices by the key that a node looks them up with; each tuple keeps the input order.

    Up to 0.36, slices with counters are for all nodes; `counters_are_local` makes them follow their nodeName.
    `take_node_amounts`: True if a device takes of the node's own amounts.
    """

    counters_are_local: bool = False
    local: Mapping[str, Slices] = field(default_factory=dict)
    shared: Slices = ()
    pools: Mapping[tuple[str, str], Slices] = field(default_factory=dict)
    take_node_amounts: bool = False

    def plus(self, slices: Iterable[ResourceSlice]) -> SliceLayer:
        """The same with more slices, after the present ones, split as upstream's NewAllocator does."""
        local: dict[str, list[ResourceSlice]] = {}
        pools: dict[tuple[str, str], list[ResourceSlice]] = {}
        shared: list[ResourceSlice] = []
        taking = self.take_node_amounts
        for slice_ in slices:
            taking = taking or any(device.node_allocatable for device in slice_.devices)
            pools.setdefault((slice_.driver, slice_.pool.name), []).append(slice_)
            if slice_.reach.node_name and (self.counters_are_local or not slice_.shared_counters):
                local.setdefault(slice_.reach.node_name, []).append(slice_)
            else:
                shared.append(slice_)
        return SliceLayer(
            self.counters_are_local,
            local={**self.local, **{node: self.local.get(node, ()) + tuple(new) for node, new in local.items()}},
            shared=self.shared + tuple(shared),
            pools={**self.pools, **{key: self.pools.get(key, ()) + tuple(new) for key, new in pools.items()}},
            take_node_amounts=taking,
        )


@dataclass(frozen=True, slots=True)
class _Layers:
    """The cluster's slices below those of hypothetical nodes, so that adding a node copies only the latter."""

    below: SliceLayer
    above: SliceLayer
    mixed: bool = False  # True if a hypothetical node adds to a pool of the cluster, or to slices for all nodes

    def plus(self, slices: Sequence[ResourceSlice]) -> _Layers:
        """The same with more slices of hypothetical nodes."""
        above = self.above.plus(slices)
        mixed = any((slice_.driver, slice_.pool.name) in self.below.pools for slice_ in slices)
        return _Layers(self.below, above, self.mixed or mixed or bool(above.shared))

    def local(self, node: str) -> Sequence[ResourceSlice]:
        return self.below.local.get(node, ()) + self.above.local.get(node, ())

    def shared(self) -> Sequence[ResourceSlice]:
        return self.below.shared + self.above.shared

    def of_pool(self, driver: str, pool: str) -> Sequence[ResourceSlice]:
        return self.below.pools.get((driver, pool), ()) + self.above.pools.get((driver, pool), ())

    def only_below(self, node: str) -> bool:
        """True if no slice of a hypothetical node concerns the node."""
        return not self.mixed and node not in self.above.local

    def around(self, node: str) -> Slices:
        """Every slice that the node's pools may depend on."""
        near = (*self.local(node), *self.shared())
        pools = dict.fromkeys((slice_.driver, slice_.pool.name) for slice_ in near)
        return (*near, *(slice_ for key in pools for slice_ in self.of_pool(*key)))


@dataclass(frozen=True, slots=True, eq=False)
class _Indexed:
    """Indexed slices of a snapshot under taint rules, and the pools of nodes that depend on nothing else."""

    profile: KubernetesProfile
    slices: Slices
    rules: tuple[DeviceTaintRule, ...]
    layer: SliceLayer
    nodes: dict[_Key, _Gathered] = field(default_factory=dict)

    def is_of(self, profile: KubernetesProfile, slices: Slices, rules: tuple[DeviceTaintRule, ...]) -> bool:
        """True if it was built from exactly these objects."""
        same = self.profile is profile and self.rules == rules and len(self.slices) == len(slices)
        return same and all(map(is_, self.slices, slices))


def _keep_only(nodes: Iterable[Node], known: dict[_Key, _V]) -> None:
    """Delete all entries but those of the nodes with the labels that they have now.

    Most labels are the very same object, which needs no comparison. Equal ones replace those of the key: they are the
    same object the next time.
    """
    there = {node.name: node.labels for node in nodes}
    for name, seen in [(name, seen) for name, seen in known if there.get(name) is not seen]:
        entry, now = known.pop((name, seen), None), there.get(name)
        if entry is not None and now == seen:
            known[name, now] = entry


@dataclass(slots=True, eq=False)
class SliceMemory:
    """The indexed slices of the previous snapshot: in most reconciles they are unchanged.

    It belongs to one series of plans, and no two threads use it at once.
    """

    _last: _Indexed | None = None

    def of(
        self, slices: Iterable[ResourceSlice], rules: tuple[DeviceTaintRule, ...], profile: KubernetesProfile
    ) -> _Indexed:
        """The indexed slices, with the cached pools of nodes."""
        found = tuple(slices)
        if self._last is None or not self._last.is_of(profile, found, rules):
            self._last = _indexed(found, rules, profile)
        return self._last

    def keep(self, nodes: Iterable[Node]) -> None:
        """Delete all cached nodes except these, with the labels that they have."""
        known = self._last.nodes if self._last else {}
        if known:
            _keep_only(nodes, known)

    def __len__(self) -> int:
        """The number of cached nodes."""
        return len(self._last.nodes) if self._last else 0


def _indexed(slices: Slices, rules: tuple[DeviceTaintRule, ...], profile: KubernetesProfile) -> _Indexed:
    empty = SliceLayer(profile.allocator.counter_slices_follow_node_filter)
    return _Indexed(profile, slices, rules, empty.plus(with_rules(slice_, rules) for slice_ in slices))


@dataclass(frozen=True, slots=True, eq=False)
class NodeMemory:
    """Pools and selector answers of nodes, for as long as exactly the same slices concern them.

    Most nodes have not changed since the previous plan. Slices are compared by identity: they are immutable, and a
    watch keeps the same objects until the API server sends others. Nodes that are gone are deleted: names are not used
    again, and the entry of a node has all of its devices.
    """

    engine: SelectorEngine
    _known: dict[_Key, tuple[Slices, _Gathered]] = field(default_factory=dict)
    _offered: dict[_Key, tuple[Slices, _Gathered]] = field(default_factory=dict)  # of nodes that could be launched

    def of(self, key: _Key, around: Slices) -> _Gathered | None:
        """The cached entry of the node with these slices."""
        known, gathered = self._among(key).get(key, ((), None))
        same = len(known) == len(around) and all(map(is_, known, around))
        return gathered if same else None

    def remember(self, key: _Key, around: Slices, gathered: _Gathered) -> _Gathered:
        """Replace the entry of the node. If there are too many nodes, all are deleted."""
        among = self._among(key)
        if len(among) >= _MOST:
            among.clear()
        among[key] = around, gathered
        return gathered

    def keep(self, nodes: Iterable[Node]) -> None:
        """Delete all entries except those of these nodes, with their labels, and of nodes that could be launched."""
        _keep_only(nodes, self._known)

    def _among(self, key: _Key) -> dict[_Key, tuple[Slices, _Gathered]]:
        return self._offered if key[0] == PLACEHOLDER_NODE else self._known

    def __len__(self) -> int:
        return len(self._known) + len(self._offered)


@lru_cache(maxsize=2)
def node_memory(profile: KubernetesProfile) -> NodeMemory:
    """The cache of nodes in this process for a Kubernetes profile."""
    # Imported here because loading the CEL grammar is a good part of a command's start-up time.
    from autoscaler.dra.inventory.cel_selectors import CelSelectors

    return NodeMemory(CelSelectors(profile))


@dataclass(frozen=True, slots=True, eq=False)
class AllocationCache:
    """Outcomes of earlier allocations in one snapshot: a plan repeats many questions.

    Questions are the same if they are about the same objects. Equality is not enough: quantities compare by value, but
    upstream's arithmetic depends on how they are written. Entries keep their objects, so that no identity is reused.
    """

    _known: dict[_Question, tuple[Sequence[object], AllocationOutcome]] = field(default_factory=dict)

    def of(self, where: Hashable, asked: Sequence[object]) -> AllocationOutcome | None:
        """The outcome for exactly these objects at `where`."""
        found = self._known.get((where, tuple(map(id, asked))))
        return None if found is None else found[1]

    def remember(self, where: Hashable, asked: Sequence[object], outcome: AllocationOutcome) -> None:
        """Store an outcome; a full cache is emptied first."""
        if len(self._known) >= _MOST_OUTCOMES:
            self._known.clear()
        self._known[where, tuple(map(id, asked))] = asked, outcome


@dataclass(frozen=True, slots=True, eq=False)
class ClusterDevices:
    """Devices, classes and the Kubernetes profile of a snapshot. Build with `of`, extend with `with_slices`.

    It also has caches: pools and selector answers per node, and whole outcomes.
    """

    profile: KubernetesProfile
    classes: Mapping[str, DeviceClass]
    taint_rules: tuple[DeviceTaintRule, ...]
    engine: SelectorEngine
    layers: _Layers
    answers: AllocationCache = field(default_factory=AllocationCache)
    memory: NodeMemory | None = None
    _nodes: dict[_Key, _Gathered] = field(default_factory=dict)
    _below: dict[_Key, _Gathered] = field(default_factory=dict)

    @staticmethod
    def of(
        slices: Iterable[ResourceSlice],
        classes: Iterable[DeviceClass],
        taint_rules: Iterable[DeviceTaintRule],
        profile: KubernetesProfile,
        *,
        engine: SelectorEngine | None = None,
        memory: NodeMemory | None = None,
        kept: SliceMemory | None = None,
    ) -> ClusterDevices:
        """Index a snapshot. `engine` evaluates selectors; by default that of `memory`, or Kubernetes CEL. `kept`: the
        memory of the previous snapshot, for the same `engine`."""
        if engine is None and memory is not None:
            engine = memory.engine
        if engine is None:
            # Imported here because loading the CEL grammar is a good part of a command's start-up time.
            from autoscaler.dra.inventory.cel_selectors import CelSelectors

            engine = CelSelectors(profile)
        rules = rules_in_force(taint_rules, profile)
        indexed = (SliceMemory() if kept is None else kept).of(slices, rules, profile)
        return ClusterDevices(
            profile=profile,
            classes={device_class.name: device_class for device_class in classes},
            taint_rules=rules,
            engine=engine,
            memory=memory,
            layers=_Layers(indexed.layer, SliceLayer(indexed.layer.counters_are_local)),
            _below=indexed.nodes,
        )

    def with_slices(self, extra: Iterable[ResourceSlice]) -> ClusterDevices:
        """The cluster with these slices added, at the cost of the extra slices only."""
        layers = self.layers.plus([with_rules(slice_, self.taint_rules) for slice_ in extra])
        return replace(self, layers=layers, answers=AllocationCache(), _nodes={})

    @property
    def take_node_amounts(self) -> bool:
        """True if allocations of some devices take of a node's own amounts (KEP-5517)."""
        layers, counted = self.layers, self.profile.devices_take_node_amounts
        return counted and (layers.below.take_node_amounts or layers.above.take_node_amounts)

    def pools_of(self, node: Node) -> tuple[NodePools, SelectorMemo]:
        """The node's pools and its memo of selector answers. Raises FatalError for an unparsable node selector."""
        key = (node.name, node.labels)
        found = self._nodes.get(key)
        if found is None:
            below = self._below if self.layers.only_below(node.name) else self._nodes
            found = below.get(key)
            if found is None:
                found = self._remembered(key, node) if self.memory is not None else self._gathered(node)
            below[key] = self._nodes[key] = found
        return found

    def _gathered(self, node: Node) -> _Gathered:
        pools = gather(node, self.layers, self.profile)
        return pools, SelectorMemo(self.engine, self.profile, node, pools)

    def _remembered(self, key: _Key, node: Node) -> _Gathered:
        assert self.memory is not None
        around = self.layers.around(node.name)
        return self.memory.of(key, around) or self.memory.remember(key, around, self._gathered(node))
