"""Updates nodes and blocks to the observed state before any decision.

Pure. The loop gathers a `World`; the result is a snapshot whose ProvisionedNodes and CapacityBlocks are up to date.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime, timedelta
from typing import Final

from autoscaler.lifecycle.absence import absence
from autoscaler.lifecycle.ownership import OwnNodes
from autoscaler.lifecycle.provisioned_node import (
    MachineState,
    Observation,
    advance,
    awaits_machine,
    awaits_node,
    is_stopped,
)
from autoscaler.lifecycle.recreation import SeenMachine, compared
from autoscaler.model.capacity import CapacityBlock
from autoscaler.model.node import Node
from autoscaler.model.pod import Pod
from autoscaler.model.provisioned_node import Phase, ProvisionedNode
from autoscaler.model.snapshot import Snapshot
from instance_catalog.dataclass import dataclass, field, replace
from instance_catalog.frozen_map import EMPTY, FrozenMap
from instance_catalog.kubernetes.resource_slice import ResourceSlice

# A machine that still runs this long after the end in its notice was not taken.
_OUTLIVED: Final = timedelta(minutes=30)


@dataclass(frozen=True, slots=True)
class SeenReservation:
    """A reservation in the provider's description; `over` if nothing can be launched into it ever again.

    `note` is the provider's: the reason why it cannot be used now, or its impaired part.
    """

    id: str
    instance_type: str
    zone: str
    available: int
    ends_at: datetime | None = None
    reclaim_at: datetime | None = None
    over: bool = False
    tags: FrozenMap[str, str] = EMPTY
    note: str = ""


@dataclass(frozen=True, slots=True)
class World:
    """The observations of a reconcile.

    `machines` are by ProvisionedNode.provider_id, and so is `known_as`, the ids of the machines. Only providers in
    `windows` (by name, with their consistency window) answered completely: nothing follows from the lists of others.
    `expected_drivers`, by name of a ProvisionedNode, are the drivers that publish on it; a node without an entry
    expects one complete pool of any driver. `reclaims` are the times at which providers currently announce to take
    single machines; `notices` are ends that they announced once and do not repeat. `places` are the account/region that
    each provider calls, by its name. `reservations` None: not read this time. `reserving` are the kinds of node
    templates whose providers list every existing reservation. `batches` are the names of the existing LaunchBatches;
    None: nothing is concluded from a missing one. `launched` are the batches of which a provider lists a machine that
    has not ended; None: not all providers answered.
    """

    snapshot: Snapshot
    machines: Mapping[str, MachineState] = field(default_factory=dict)
    windows: Mapping[str, timedelta] = field(default_factory=dict)
    expected_drivers: Mapping[str, frozenset[str]] = field(default_factory=dict)
    reclaims: Mapping[str, datetime] = field(default_factory=dict)
    notices: Mapping[str, datetime] = field(default_factory=dict)
    places: Mapping[str, str] = field(default_factory=dict)
    reservations: tuple[SeenReservation, ...] | None = None
    reserving: frozenset[str] = frozenset()
    batches: frozenset[str] | None = None
    launched: frozenset[str] | None = None
    known_as: Mapping[str, SeenMachine] = field(default_factory=dict)


def reflect(world: World, now: datetime) -> Snapshot:
    """The snapshot with nodes and blocks in their observed state."""
    snapshot = world.snapshot
    nodes = OwnNodes(snapshot.nodes)
    missing = absence(snapshot.provisioned, nodes, listed=world.machines.keys(), windows=world.windows, now=now)
    complete = _awaited_drivers(snapshot, nodes)
    occupied = occupied_nodes(snapshot.pods)
    moved = []
    for provisioned in snapshot.provisioned:
        if provisioned.phase_since is None:
            provisioned = replace(provisioned, phase_since=now)  # its creator ended before it wrote this
        provisioned = _with_stop(provisioned, world, now)
        node = nodes.of(provisioned)
        name = node.name if node else provisioned.node_name
        seen = observe(provisioned, node, world, drivers=complete.get(name, frozenset()), gone=missing.gone, now=now)
        # Some clouds name nodes themselves. Pods, slices and claims use that name, so everything after this does.
        after = _with_health(advance(provisioned, seen, now), node, now)
        after = after if after.node_name == name else replace(after, node_name=name)
        after = _with_idleness(after, empty=name not in occupied, now=now)
        after = compared(after, world.known_as.get(after.provider_id), world.windows.get(after.provider), now)
        moved.append(_with_place(_with_reclaim(after, world, now), world))
    known = {pool.name for pool in snapshot.pools if pool.node_template.kind in world.reserving}
    blocks = tuple(
        _with_reservation(block, world.reservations, now, known=block.pool in known) for block in snapshot.blocks
    )
    return replace(snapshot, provisioned=tuple(moved), blocks=blocks)


def observe(
    provisioned: ProvisionedNode,
    node: Node | None,
    world: World,
    *,
    drivers: frozenset[str],
    gone: Collection[str],
    now: datetime,
) -> Observation:
    """The observation of one node. `drivers` have published complete pools on it, if it waits for them; `gone` are the
    provider ids of machines that count as gone because they are not listed."""
    expected = world.expected_drivers.get(provisioned.name)
    return Observation(
        machine=MachineState.ABSENT if provisioned.provider_id in gone else world.machines.get(provisioned.provider_id),
        registered=node is not None and not node.deleting,
        slices_complete=bool(drivers) if expected is None else expected <= drivers,
        ready=node is not None and node.ready and not _starting(node, provisioned, world.snapshot),
        batch_lost=_batch_lost(provisioned, world, now),
    )


def _awaited_drivers(snapshot: Snapshot, nodes: OwnNodes) -> Mapping[str, frozenset[str]]:
    """The complete drivers of nodes that wait for them: on all others, slices decide on no phase."""
    waiting = [node for node in snapshot.provisioned if awaits_node(node)]
    if not waiting:
        return {}
    names = {found.name if (found := nodes.of(node)) else node.node_name for node in waiting}
    return complete_drivers(slice_ for slice_ in snapshot.slices if slice_.reach.node_name in names)


def complete_drivers(slices: Iterable[ResourceSlice]) -> Mapping[str, frozenset[str]]:
    """By node name: the drivers whose pools on that node are all complete in their newest generation."""
    pools: dict[tuple[str, str, str], list[ResourceSlice]] = {}
    for found in slices:
        if found.reach.node_name is not None:
            pools.setdefault((found.reach.node_name, found.driver, found.pool.name), []).append(found)
    verdicts: dict[str, dict[str, bool]] = {}
    for (node, driver, _), members in pools.items():
        newest = max(member.pool.generation for member in members)
        current = [member for member in members if member.pool.generation == newest]
        whole = len(current) == current[0].pool.slice_count
        by_driver = verdicts.setdefault(node, {})
        by_driver[driver] = by_driver.get(driver, True) and whole
    return {node: frozenset(d for d, whole in by.items() if whole) for node, by in verdicts.items()}


def occupies(pod: Pod) -> bool:
    """True if a pod keeps its node from being empty: bound, not finished, and not of a kind that every node has."""
    return pod.bound and not pod.owner.startswith(("DaemonSet/", "Node/"))


def occupied_nodes(pods: Iterable[Pod]) -> frozenset[str]:
    """The names of nodes that are not empty. One pod decides on a node: others are not checked."""
    found: set[str] = set()
    for pod in pods:
        name = pod.node_name
        if name is not None and name not in found and occupies(pod):
            found.add(name)
    return frozenset(found)


def _starting(node: Node, provisioned: ProvisionedNode, snapshot: Snapshot) -> bool:
    """True if the node still has a startup taint of its pool: the component that removes it is not ready yet."""
    if not node.taints:
        return False
    pool = next((pool for pool in snapshot.pools if pool.name == provisioned.pool), None)
    startup = {(taint.key, taint.effect) for taint in pool.startup_taints} if pool else set()
    return any((taint.key, taint.effect) in startup for taint in node.taints)


def _batch_lost(provisioned: ProvisionedNode, world: World, now: datetime) -> bool:
    """True if the node will never get a machine: its batch was deleted, and no call of it has left a machine.

    The sweep for machines without an object adopts or ends listed machines; until then the node waits.
    """
    if provisioned.phase_since is None or not awaits_machine(provisioned) or not world.windows:
        return False
    if world.batches is None or provisioned.batch in world.batches:
        return False
    if world.launched is None or provisioned.batch in world.launched:
        return False
    return now >= provisioned.phase_since + max(world.windows.values())


def _with_idleness(provisioned: ProvisionedNode, *, empty: bool, now: datetime) -> ProvisionedNode:
    if not empty or provisioned.phase is not Phase.READY or is_stopped(provisioned):
        return provisioned if provisioned.empty_since is None else replace(provisioned, empty_since=None)
    return provisioned if provisioned.empty_since is not None else replace(provisioned, empty_since=now)


def _with_health(provisioned: ProvisionedNode, node: Node | None, now: datetime) -> ProvisionedNode:
    if provisioned.phase is not Phase.READY or node is None or node.ready or is_stopped(provisioned):
        return provisioned if provisioned.unhealthy_since is None else replace(provisioned, unhealthy_since=None)
    return provisioned if provisioned.unhealthy_since is not None else replace(provisioned, unhealthy_since=now)


def _with_stop(provisioned: ProvisionedNode, world: World, now: datetime) -> ProvisionedNode:
    """The node with the time since when its machine is stopped. After a new start, the time to boot begins again. If
    the provider did not answer, nothing changes."""
    state = world.machines.get(provisioned.provider_id)
    if state is MachineState.STOPPED:
        return provisioned if is_stopped(provisioned) else replace(provisioned, stopped_since=now)
    if state is None or not is_stopped(provisioned):
        return provisioned
    return replace(provisioned, stopped_since=None, phase_since=now)


def _with_reclaim(provisioned: ProvisionedNode, world: World, now: datetime) -> ProvisionedNode:
    """The node with the end that its provider announced: the current one, which may change or be cancelled, or one that
    was announced once, to this or an earlier leader; the earlier of both. Without an answer, nothing changes."""
    if provisioned.provider not in world.windows:
        return provisioned
    noticed = _earliest(provisioned.noticed_at, world.notices.get(provisioned.provider_id))
    if noticed is not None and now >= noticed + _OUTLIVED:
        noticed = None
    announced = _earliest(noticed, world.reclaims.get(provisioned.provider_id))
    if (announced, noticed) == (provisioned.reclaim_at, provisioned.noticed_at):
        return provisioned
    return replace(provisioned, reclaim_at=announced, noticed_at=noticed)


def _with_place(provisioned: ProvisionedNode, world: World) -> ProvisionedNode:
    """The node with the place of its machine, which its provider lists there, if no place was recorded at the
    launch."""
    place = world.places.get(provisioned.provider, "")
    if len(place) <= len(provisioned.place) or provisioned.provider_id not in world.machines:
        return provisioned
    return replace(provisioned, place=place)


def _earliest(one: datetime | None, other: datetime | None) -> datetime | None:
    if one is None or other is None:
        return other if one is None else one
    return min(one, other)


def _with_reservation(
    block: CapacityBlock, reservations: tuple[SeenReservation, ...] | None, now: datetime, *, known: bool
) -> CapacityBlock:
    """The block with the end, the stock and the note of its provider. One that is over before its time ends now.

    `known`: its provider listed all reservations, so that a missing one does not exist.
    """
    if reservations is None:
        return block
    matching = [found for found in reservations if _matches(block, found)]
    if len(matching) != 1:
        lacks = known and now < block.reclaimed
        return replace(block, note=_unmatched(block, len(matching))) if lacks else block
    (found,) = matching
    seen = replace(
        block,
        reservation=found.id,
        ends_at=found.ends_at or block.ends_at,
        reclaim_at=found.reclaim_at,
        available=found.available,
        note=found.note,
    )
    return replace(seen, reclaim_at=min(seen.reclaimed, now), available=0) if found.over else seen


def _unmatched(block: CapacityBlock, matching: int) -> str:
    if block.reservation:
        return f"the provider has no reservation {block.reservation}: check the id and the region"
    if matching:
        return f"{matching} reservations carry spec.reservationTags: add a tag that only one of them has"
    return "no reservation of this type and zone carries spec.reservationTags: check the tags and the region"


def _matches(block: CapacityBlock, found: SeenReservation) -> bool:
    if block.reservation:
        return found.id == block.reservation
    same = (found.instance_type, found.zone) == (block.instance_type, block.zone)
    return same and not found.over and block.reservation_tags.items() <= found.tags.items()
