"""The cluster as the filters see it, including hypothetical nodes: an immutable value with cheap copies.

Planning simulates thousands of changes, so a World is never modified: `with_node` and `placed` return a new one that
shares all unchanged parts.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence

from autoscaler.dra.allocation.allocator import AllocatedState, ClusterDevices
from autoscaler.dra.claims.extended_resources import contested_resources, extended_resource_classes
from autoscaler.dra.claims.finished_consumers import will_not_run
from autoscaler.dra.claims.kept_claims import ClaimMemory
from autoscaler.dra.claims.node_allocatable import ClaimShare, amounts_of, shares_of
from autoscaler.dra.claims.pod_groups import consumer_of
from autoscaler.dra.inventory.devices import SliceMemory, node_memory
from autoscaler.model.device_class import DeviceClass
from autoscaler.model.node import Node
from autoscaler.model.pod import FINISHED, Pod
from autoscaler.model.requests import NOTHING
from autoscaler.model.resource_claim import Allocation, Consumer, ResourceClaim
from autoscaler.model.snapshot import Snapshot
from autoscaler.model.verdict import Fits
from autoscaler.scheduling.node_state import AddedMemory, AddedNode, DomainCounts, NodeState, StateMemory
from autoscaler.scheduling.volumes import Volumes
from instance_catalog.dataclass import dataclass, field, replace
from instance_catalog.drivers.custom import CustomDriver
from instance_catalog.frozen_map import EMPTY, FrozenMap
from instance_catalog.kubernetes.profile import KubernetesProfile
from instance_catalog.kubernetes.quantity import Quantity
from instance_catalog.kubernetes.resource_slice import ResourceSlice


@dataclass(frozen=True, slots=True)
class WorldMemory:
    """The slices, nodes and claims of the previous snapshot. It belongs to one series of plans."""

    slices: SliceMemory = field(default_factory=SliceMemory)
    states: StateMemory = field(default_factory=StateMemory)
    added: AddedMemory = field(default_factory=AddedMemory)
    claims: ClaimMemory = field(default_factory=ClaimMemory)


@dataclass(frozen=True, slots=True)
class World:
    """Nodes with their pods, claims with their allocations, all devices, and volumes.

    `repellers` names the nodes with pods that have anti-affinity: these are checked for every node, and most pods have
    none.
    """

    snapshot: Snapshot
    nodes: Mapping[str, NodeState]
    claims: Mapping[str, ResourceClaim]  # by namespace/name
    devices: ClusterDevices
    allocated: AllocatedState
    extended_resources: Mapping[str, DeviceClass]  # resource name -> the class that serves it
    volumes: Volumes
    contested: frozenset[str] = frozenset()  # extended resources of which it is unknown if their class serves them
    drivers: tuple[CustomDriver, ...] = ()
    repellers: tuple[str, ...] = ()
    counts: DomainCounts = field(default_factory=DomainCounts, repr=False, compare=False)

    @staticmethod
    def of(snapshot: Snapshot, drivers: Iterable[CustomDriver] = (), *, kept: WorldMemory | None = None) -> World:
        """The world of the snapshot; `drivers` are described in the catalog. `kept`: the memory of earlier worlds."""
        kept = WorldMemory() if kept is None else kept
        memory = node_memory(snapshot.profile)
        kept.added.begin()
        memory.keep((*snapshot.nodes, *kept.added.nodes()))
        kept.slices.keep(snapshot.nodes)
        pods, done = _by_node(snapshot)
        groups = snapshot.gangs if snapshot.profile.gates.workload_resource_claims else {}
        claims, allocated = kept.claims.of(snapshot.claims, done, groups)
        states = kept.states.of(snapshot.nodes, pods)
        return World(
            snapshot=snapshot,
            nodes=states,
            claims=claims,
            devices=ClusterDevices.of(
                snapshot.slices,
                snapshot.classes,
                snapshot.taint_rules,
                snapshot.profile,
                memory=memory,
                kept=kept.slices,
            ),
            allocated=allocated,
            extended_resources=extended_resource_classes(snapshot.classes)
            if snapshot.profile.gates.extended_resource
            else {},
            volumes=Volumes.of(snapshot),
            contested=contested_resources(snapshot.classes)
            if snapshot.profile.gates.extended_resource
            else frozenset(),
            drivers=tuple(drivers),
            repellers=tuple(name for name, state in states.items() if state.repelling),
            counts=DomainCounts(states),
        )

    @property
    def profile(self) -> KubernetesProfile:
        """The profile of the cluster's Kubernetes version."""
        return self.snapshot.profile

    def with_node(self, node: Node, slices: tuple[ResourceSlice, ...], *, daemon_pods: Sequence[Pod] = ()) -> World:
        """The world with one more node, the slices of its drivers and its DaemonSet pods."""
        return self.with_added((AddedNode(NodeState.of(node, tuple(daemon_pods)), slices),))

    def with_added(self, added: Sequence[AddedNode]) -> World:
        """The same with several, at the cost of one copy; one with the name of a node is in its place."""
        slices = [slice_ for each in added for slice_ in each.slices]
        states = {each.state.node.name: each.state for each in added}
        repelling = (name for name, state in states.items() if state.repelling and name not in self.repellers)
        return replace(
            self,
            nodes={**self.nodes, **states},
            devices=self.devices.with_slices(slices) if slices else self.devices,
            repellers=(*self.repellers, *repelling),
        )

    def without_node(self, name: str) -> World:
        """The world without a node; its slices stay but apply to no node."""
        return replace(self, nodes={key: state for key, state in self.nodes.items() if key != name})

    def placed(self, pods: Sequence[Pod], node_name: str, verdict: Fits) -> World:
        """The world after `pods` and their volumes were bound to the node, their claims allocated by `verdict`."""
        booked, node = self.booked(pods, verdict), self.nodes[node_name].node
        bound = tuple(replace(pod, node_name=node_name, claim_amounts=booked.claim_amounts(pod, node)) for pod in pods)
        return replace(
            booked,
            nodes={**self.nodes, node_name: self.nodes[node_name].plus(bound)},
            volumes=self.volumes.after(pods, node),
            repellers=self._repellers_with(node_name, pods),
        )

    @property
    def claims_take_amounts(self) -> bool:
        """True if claims may take of a node's own amounts, on existing nodes or on those that could be launched."""
        counted = self.profile.devices_take_node_amounts
        described = (device for driver in self.drivers for device in driver.devices)
        return counted and (self.devices.take_node_amounts or any(device.node_allocatable for device in described))

    def claim_shares(self, pod: Pod, node: Node) -> tuple[ClaimShare, ...]:
        """The shares of the node's own amounts that the allocated claims of a pod take there."""
        if not self.profile.devices_take_node_amounts:
            return ()
        keys = dict.fromkeys(f"{pod.namespace}/{entry.claim}" for entry in pod.claims if entry.claim)
        mine = [self.claims[key] for key in keys if key in self.claims]
        return shares_of(pod, node, [(one, one.allocation) for one in mine if one.allocation], self.devices)

    def claim_amounts(self, pod: Pod, node: Node) -> FrozenMap[str, Quantity]:
        """The same for all claims together."""
        shares = self.claim_shares(pod, node)
        return FrozenMap(amounts_of(shares)) if shares else NOTHING

    def booked(self, pods: Sequence[Pod], verdict: Fits) -> World:
        """The world after the claims of `pods` were allocated by `verdict`, on a node that is not in it."""
        return self.booked_each(((pods, verdict),))

    def booked_each(self, bookings: Iterable[tuple[Sequence[Pod], Fits]]) -> World:
        """The same for several, one after the other, at the cost of one copy of the devices in use."""
        claims = dict(self.claims)
        taken: list[Allocation] = []
        for pods, verdict in bookings:
            for key, allocation in verdict.allocations.items():
                if key in claims:
                    claims[key] = replace(claims[key], allocation=allocation)
            for pod in pods:
                for entry in pod.claims:
                    key = f"{pod.namespace}/{entry.claim}"
                    if entry.claim and key in claims:
                        consumer = consumer_of(pod, entry, self.snapshot.gangs, self.profile)
                        claims[key] = _reserved(claims[key], consumer)
            taken.extend(verdict.allocations.values())
        return replace(self, claims=claims, allocated=self.allocated.plus(taken))

    def _repellers_with(self, node_name: str, pods: Sequence[Pod]) -> tuple[str, ...]:
        if node_name in self.repellers or not _repel(pods):
            return self.repellers
        return (*self.repellers, node_name)

    def states(self) -> Iterable[NodeState]:
        """All nodes with their pods."""
        return self.nodes.values()

    def served_by_dra(self, resource: str) -> bool:
        """True if a DeviceClass serves this extended resource."""
        return resource in self.extended_resources

    def namespace_labels(self, name: str) -> Mapping[str, str]:
        """Labels of a namespace; every namespace has its own name as a label."""
        return self.snapshot.namespaces.get(name, EMPTY.with_items({"kubernetes.io/metadata.name": name}))


def with_claim_amounts(snapshot: Snapshot, keys: Collection[str]) -> Snapshot:
    """The snapshot in which the pods with these keys, just bound there, have the amounts of their claims."""
    if not snapshot.profile.devices_take_node_amounts:
        return snapshot
    world = World.of(snapshot)

    def bound(pod: Pod) -> Pod:
        state = world.nodes.get(pod.node_name or "") if pod.key in keys else None
        return pod if state is None else replace(pod, claim_amounts=world.claim_amounts(pod, state.node))

    return replace(snapshot, pods=tuple(map(bound, snapshot.pods)))


def _by_node(snapshot: Snapshot) -> tuple[Mapping[str, Sequence[Pod]], frozenset[str]]:
    """The pods on each node, and the uids of those that will not run any more."""
    pods, done = defaultdict[str, list[Pod]](list), set[str]()
    counted = snapshot.profile.gates.node_allocatable_resources
    for pod in snapshot.pods:
        name = pod.node_name
        if name is not None and pod.phase not in FINISHED:
            # Values from a time when the gate was on do not count.
            bare = counted or pod.claim_amounts is NOTHING or not pod.claim_amounts
            pods[name].append(pod if bare else replace(pod, claim_amounts=NOTHING))
        elif will_not_run(pod):
            done.add(pod.uid)
    return pods, frozenset(done)


def _repel(pods: Iterable[Pod]) -> bool:
    return any(pod.pod_anti_affinity for pod in pods)


def _reserved(claim: ResourceClaim, consumer: Consumer) -> ResourceClaim:
    if consumer in claim.reserved_for:
        return claim
    return replace(claim, reserved_for=(*claim.reserved_for, consumer))
