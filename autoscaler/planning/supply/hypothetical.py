"""The future node of a candidate: labels, taints, allocatable resources, slices, and the pods of DaemonSets.

Nodes that the demand cannot distinguish share a shape: the same slices, allocatable resources, taints and DaemonSets,
and the same values of the labels that it reads. All shapes are evaluated under one placeholder name, so that they share
predictions and answers of selectors. A planned node gets its own name and slices.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Final

from autoscaler.model.node import Node
from autoscaler.model.pod import Pod
from autoscaler.model.provisioned_node import ProvisionedNode
from autoscaler.model.snapshot import Snapshot
from autoscaler.planning.supply.candidates import Candidate
from autoscaler.planning.supply.device_signature import DeviceSignature, signature_of
from autoscaler.planning.supply.drivers import handed_out, readable, says_slice
from autoscaler.planning.supply.groups import registered
from autoscaler.planning.supply.node_basis import Bought, NodeBasis, RecordedTerms
from autoscaler.planning.supply.offering_labels import offering_labels
from autoscaler.planning.supply.places import OLD_KEYS
from autoscaler.planning.supply.remembered import LastAnswers, Same
from autoscaler.planning.supply.units import DeviceUnits
from autoscaler.scheduling.daemons import daemon_pods
from autoscaler.scheduling.node_state import NodeState
from autoscaler.scheduling.world import World
from instance_catalog.dataclass import dataclass, replace
from instance_catalog.drivers.profile import refused_sharing
from instance_catalog.frozen_map import EMPTY, FrozenMap
from instance_catalog.kubernetes import labels
from instance_catalog.kubernetes.node_selector import NodeSelector
from instance_catalog.kubernetes.profile import KubernetesProfile
from instance_catalog.kubernetes.quantity import Quantity
from instance_catalog.kubernetes.resource_slice import ResourceSlice
from instance_catalog.kubernetes.taint import Taint
from instance_catalog.prediction.concrete import under_name
from instance_catalog.prediction.device_plugins import EFA, plugin_resources
from instance_catalog.prediction.predict import PLACEHOLDER_NODE, node_labels, predict, unpredictable
from instance_catalog.types.catalog import Catalog
from instance_catalog.types.clouds import facts_of
from instance_catalog.types.instance_type import ANY_ZONE
from instance_catalog.types.node_allocatable import node_allocatable


@dataclass(frozen=True, slots=True)
class Hypothetical:
    """A future node as the API server would show it, with pods of DaemonSets, and its predicted slices without its
    name (`predicted`)."""

    node: Node
    predicted: tuple[ResourceSlice, ...]
    daemons: tuple[Pod, ...] = ()

    @property
    def slices(self) -> tuple[ResourceSlice, ...]:
        """The predicted slices under its own name, made again each time, except for nodes with the placeholder name.

        Most of the nodes of a plan are equal, and their slices are never read.
        """
        return under_name(self.predicted, self.node.name)

    def added_to(self, world: World) -> World:
        return world.with_node(self.node, self.slices, daemon_pods=self.daemons)


@dataclass(frozen=True)
class Shape:
    """A hypothetical node that represents several candidates; its slices are predicted only when they are needed."""

    node: Node
    daemons: tuple[Pod, ...]
    candidate: Candidate
    profile: KubernetesProfile
    # The index of the shape of the same machine with its plainest drivers, if this is another preparation of it.
    plain: int | None = None

    @cached_property
    def sample(self) -> Hypothetical:
        """The node with its predicted slices."""
        return Hypothetical(self.node, _predicted(self.candidate, self.profile), self.daemons)

    @cached_property
    def free(self) -> Mapping[str, int]:
        """The amounts that pods of DaemonSets leave, in scheduler units."""
        state = NodeState.of(self.node, self.daemons)
        return {resource: state.free(resource) for resource in state.allocatable}

    @cached_property
    def whole_devices(self) -> int | None:
        """The number of devices, if each serves one claim only; None if they are divided or shared."""
        devices = [device for slice_ in self.sample.slices for device in slice_.devices]
        divided = any(d.consumes_counters or d.allow_multiple_allocations for d in devices)
        return None if divided else len(devices)

    @cached_property
    def signature(self) -> DeviceSignature:
        """Equal for shapes whose devices no claim can distinguish."""
        return signature_of(self.sample.slices)

    @cached_property
    def units(self) -> DeviceUnits:
        return DeviceUnits(self.sample.slices)


def hypothetical(basis: NodeBasis, snapshot: Snapshot, *, name: str) -> Hypothetical:
    """The node `name`, with the pods of DaemonSets."""
    return hypotheticals([(basis, name)], snapshot)[0]


def as_coming(provisioned: ProvisionedNode, snapshot: Snapshot, catalog: Catalog) -> Hypothetical | None:
    """The future node of a ProvisionedNode, from its offering; None if its slices cannot be predicted any more."""
    offering = provisioned.offering
    instance_type = catalog.types.get(offering.instance_type)
    drivers = readable(provisioned.prediction.drivers, custom=catalog.drivers)
    if instance_type is None or drivers is None or unpredictable(instance_type, drivers):
        return None
    pool = next((p for p in snapshot.pools if p.name == provisioned.pool), None)
    block = next((b for b in snapshot.blocks if b.name == offering.block), None)
    bought = Bought(
        pool=(
            RecordedTerms(provisioned.pool, provisioned.labels)
            if pool is None
            else replace(pool, labels=pool.labels.with_items(provisioned.labels))
        ),
        instance_type=instance_type,
        drivers=drivers,
        offering=offering,
        block=block,
    )
    return hypothetical(bought, snapshot, name=provisioned.node_name)


def hypotheticals(named: Sequence[tuple[NodeBasis, str]], snapshot: Snapshot) -> list[Hypothetical]:
    """The same for many nodes, most of which are equal."""
    plugins, found = plugins_of(snapshot), list[Hypothetical]()
    nodes: dict[int, Node] = {}  # by identity: one candidate may be many nodes
    for basis, name in named:
        if id(basis) not in nodes:
            amounts = _allocatable(basis, plugins)
            nodes[id(basis)] = future_node(basis, PLACEHOLDER_NODE, allocatable=amounts, profile=snapshot.profile)
        alike = nodes[id(basis)]
        own = {} if labels.HOSTNAME in basis.pool.labels else {labels.HOSTNAME: name}
        node = replace(alike, name=name, labels=alike.labels.with_items(own))
        daemons = daemon_pods(node, snapshot.daemon_sets)
        found.append(Hypothetical(node, _predicted(basis, snapshot.profile), daemons))
    return found


def template_of(basis: NodeBasis, snapshot: Snapshot, *, name: str) -> Hypothetical:
    """The node `name` without the pods of DaemonSets, for callers that add these themselves."""
    node = future_node(basis, name, allocatable=_allocatable(basis, plugins_of(snapshot)), profile=snapshot.profile)
    return Hypothetical(node, _predicted(basis, snapshot.profile))


def future_node(
    basis: NodeBasis,
    name: str,
    *,
    allocatable: FrozenMap[str, Quantity],
    profile: KubernetesProfile | None = None,
    kept: FrozenMap[str, str] | None = None,
) -> Node:
    """Only the Node object. Startup taints are removed before pods are placed.

    Without a profile, its features are unknown. `kept`: labels in place of all that it has.
    """
    return Node(
        name=name,
        labels=FrozenMap(_labels(basis, name)) if kept is None else kept,
        taints=_taints(basis),
        allocatable=allocatable,
        declared_features=profile.declared_features if profile else None,
        features_assumed=True,
        refused_sharing=refused_sharing(basis.drivers),
    )


def _labels(basis: NodeBasis, name: str) -> dict[str, str]:
    pool, block = basis.pool, basis.block
    offered = offering_labels(basis)
    old = {**OLD_KEYS, **{key: labels.ZONE for key in [facts_of(basis.instance_type.cloud).zone_label] if key}}
    return {
        # Kubelets, cloud providers and CSI drivers write these beside today's keys, and users and volumes select by
        # them.
        **{other: offered[key] for other, key in old.items() if offered.get(key, ANY_ZONE) != ANY_ZONE},
        **offered,
        labels.HOSTNAME: name,
        **node_labels(basis.instance_type, basis.drivers, unit=block.name if block else ""),
        **({} if pool.implicit else {labels.POOL: pool.name}),
        **({labels.CAPACITY_BLOCK: block.name} if block else {}),
        **pool.labels,
    }


def _taints(basis: NodeBasis) -> tuple[Taint, ...]:
    pool, block = basis.pool, basis.block
    theirs = (taint for taint in registered(pool, basis.offering).taints if taint not in pool.startup_taints)
    return tuple(dict.fromkeys((*pool.taints, *((block.taint,) if block and block.taint else ()), *theirs)))


@dataclass(frozen=True, slots=True)
class Plugins:
    """The devices of the cluster's DaemonSets: `handed` are the drivers whose devices a device plugin provides,
    `drivers` the DRA drivers that run. `known`: DaemonSets are visible. `assumed`: there is no cluster either."""

    handed: frozenset[str]
    drivers: frozenset[str]
    known: bool
    assumed: bool


def plugins_of(snapshot: Snapshot) -> Plugins:
    """The same for a snapshot."""
    sets = snapshot.daemon_sets
    drivers = frozenset(profile.driver for daemon_set in sets for profile in daemon_set.drivers.profiles)
    return Plugins(handed_out(snapshot), drivers, bool(sets), assumed=snapshot.from_files)


def _allocatable(basis: NodeBasis, plugins: Plugins) -> FrozenMap[str, Quantity]:
    found = node_allocatable(basis.instance_type, reserved=basis.pool.kubelet_reserved)
    plugged = _plugged(basis, plugins)
    # Without a pool the image may reserve huge pages for EFA, whatever provides the cards.
    every = plugin_resources(basis.instance_type).values() if basis.pool.implicit else (plugged,)
    kept = facts_of(basis.instance_type.cloud).huge_pages
    paged = [kept[resource] for amounts in every for resource in amounts if resource in kept]
    if not plugged and not paged:
        return found
    added = dict(plugged)
    for pages in paged:
        added[pages.resource] = pages.amount
        if "memory" not in basis.instance_type.allocatable:
            rest = found["memory"].int64_value() - pages.amount.int64_value()
            added["memory"] = Quantity.of(max(0, rest), "BinarySI")
    # Measurements on a node have precedence.
    return FrozenMap({**found, **added, **basis.instance_type.allocatable})


def _plugged(basis: NodeBasis, plugins: Plugins) -> FrozenMap[str, Quantity]:
    """The resources that device plugins add to the node: plugins of the cluster, for devices that no DRA driver of the
    node publishes.

    Without any CapacityPool, and in files in which neither the pool nor a DaemonSet defines what the nodes run, a
    plugin is assumed for the devices that no driver of the candidate has (`beside_plugins`). In a cluster without
    visible DaemonSets all plugins are assumed beside the drivers, except EFA's: its huge pages would reduce the memory
    of the node.
    """
    listed = (basis.block.drivers if basis.block else ()) or basis.pool.drivers
    drivers = {profile.driver for profile in basis.drivers.profiles}
    # An assumed driver does not count beside a plugin that is known to run.
    running = drivers if listed else drivers & plugins.drivers
    published = {profile.driver for profile in basis.drivers.profiles if not says_slice(profile)}
    unsaid = not listed and not plugins.known
    instead = basis.pool.implicit or (unsaid and plugins.assumed)
    found: dict[str, Quantity] = {}
    for driver, amounts in plugin_resources(basis.instance_type).items():
        there = driver in plugins.handed and driver not in running
        assumed = driver not in published if instead else unsaid and EFA not in amounts
        if not driver or there or assumed:
            found.update(amounts)
    return FrozenMap(found)


def _predicted(basis: NodeBasis, profile: KubernetesProfile) -> tuple[ResourceSlice, ...]:
    return predict(basis.instance_type, basis.drivers, kubernetes=profile)


_SHAPES: Final = LastAnswers[tuple[tuple["Shape", ...], tuple[int, ...]]]()


def shapes_of(
    candidates: Sequence[Candidate], snapshot: Snapshot, watched: frozenset[str]
) -> tuple[tuple[Shape, ...], tuple[int, ...]]:
    """The distinct shapes and, for each candidate, the index of its shape. `watched` are the label keys that matter."""
    arguments = (Same(candidates), snapshot.profile, snapshot.daemon_sets, snapshot.from_files, watched)
    return _SHAPES.of(arguments, lambda: _shapes_of(candidates, snapshot, watched))


def _shapes_of(
    candidates: Sequence[Candidate], snapshot: Snapshot, watched: frozenset[str]
) -> tuple[tuple[Shape, ...], tuple[int, ...]]:
    shapes: list[Shape] = []
    index: dict[tuple[object, ...], int] = {}
    of_candidate: list[int] = []
    plainest: dict[tuple[object, ...], int] = {}
    machines: dict[tuple[object, ...], FrozenMap[str, Quantity]] = {}
    plugins = plugins_of(snapshot)
    for candidate in candidates:
        plugged = _plugged(candidate, plugins)
        machine = (candidate.instance_type.name, candidate.pool.kubelet_reserved, plugged)
        amounts = machines.get(machine)
        if amounts is None:
            amounts = machines[machine] = _allocatable(candidate, plugins)
        daemons: tuple[Pod, ...] = ()
        if snapshot.daemon_sets:
            whole = future_node(candidate, PLACEHOLDER_NODE, allocatable=amounts, profile=snapshot.profile)
            daemons = daemon_pods(whole, snapshot.daemon_sets)
        kept = _watched(candidate, watched)
        # The same type with the same drivers publishes the same slices: comparing the slices would cost far more.
        key = (machine, candidate.drivers, kept, _taints(candidate), daemons)
        place = index.setdefault(key, len(shapes))
        if place == len(shapes):
            node = future_node(candidate, PLACEHOLDER_NODE, allocatable=amounts, profile=snapshot.profile, kept=kept)
            # Devices of device plugins are no preparation of the same devices.
            same = (candidate.pool.name, candidate.offering, candidate.offering.region, plugged)
            plain = plainest.setdefault(same, len(shapes))
            special = plain if plain != len(shapes) and candidate.hosts == 1 else None
            shapes.append(Shape(node, daemons, candidate, snapshot.profile, special))
        of_candidate.append(place)
    return tuple(shapes), tuple(of_candidate)


def _watched(candidate: Candidate, watched: frozenset[str]) -> FrozenMap[str, str]:
    """The labels of the node that matter; none are made if none matter."""
    if not watched:
        return EMPTY
    every = _labels(candidate, PLACEHOLDER_NODE)
    # A node has some dozens of labels; one pod may name 100,000.
    return FrozenMap({key: every[key] for key in sorted(every) if key in watched})


def watched_labels(snapshot: Snapshot, pods: Iterable[Pod]) -> frozenset[str]:
    """Keys of node labels that decide the placement of these pods, or the reach of a device or volume."""
    keys: set[str] = set()
    mounts = False
    for pod in pods:
        keys.update(pod.node_selector)
        keys.update(_keys(pod.affinity))
        keys.update(term.topology_key for term in (*pod.pod_affinity, *pod.pod_anti_affinity))
        keys.update(spread.topology_key for spread in pod.topology_spread)
        if pod.volumes:
            mounts = True
            keys.update((labels.ZONE, labels.REGION))
    for pod in snapshot.pods:
        if pod.pod_anti_affinity and pod.bound:
            keys.update(term.topology_key for term in pod.pod_anti_affinity)
    for daemon_set in snapshot.daemon_sets:
        keys.update(term.topology_key for term in daemon_set.pod.pod_anti_affinity)
    # Of each claim that is allocated: the comprehension takes half the time of `_keys`.
    keys.update(
        [
            requirement.key
            for claim in snapshot.claims.values()
            if (allocation := claim.allocation) is not None and (selector := allocation.node_selector) is not None
            for term in selector.terms
            for requirement in term.match_expressions
        ]
    )
    keys.update(key for selector in _of_devices(snapshot) for key in _keys(selector))
    if mounts:  # a cluster has thousands of volumes, and most rounds have no pod that asks for one
        keys.update(key for selector in _of_volumes(snapshot) for key in _keys(selector))
    keys.update(gang.topology_key for gang in snapshot.gangs.values() if gang.topology_key)
    return frozenset(keys)


def _of_devices(snapshot: Snapshot) -> Iterator[NodeSelector]:
    for slice_ in snapshot.slices:
        if slice_.reach.node_selector is not None:
            yield slice_.reach.node_selector
        if slice_.per_device_node_selection:
            yield from (s for device in slice_.devices if (s := device.reach.node_selector) is not None)


def _of_volumes(snapshot: Snapshot) -> Iterator[NodeSelector]:
    yield from (s for volume in snapshot.volumes.values() if (s := volume.node_affinity) is not None)
    yield from (s for found in snapshot.storage_classes.values() if (s := found.topologies) is not None)


def _keys(selector: NodeSelector | None) -> Iterator[str]:
    for term in selector.terms if selector else ():
        yield from (requirement.key for requirement in term.match_expressions)
