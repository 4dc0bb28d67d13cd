"""Passive first: move the states of nodes and blocks to what was seen, before anything is decided.

Pure. The loop gathers a `World`; the answer is a snapshot whose ProvisionedNodes and CapacityBlocks are up to date.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime, timedelta
from typing import Final

from autoscaler.lifecycle.absence import absence
from autoscaler.lifecycle.ownership import OwnNodes
from autoscaler.lifecycle.provisioned_node import MachineState, Observation, advance, awaits_machine, is_stopped
from autoscaler.lifecycle.recreation import SeenMachine, compared
from autoscaler.model.capacity import CapacityBlock
from autoscaler.model.node import Node
from autoscaler.model.pod import Pod
from autoscaler.model.provisioned_node import Phase, ProvisionedNode
from autoscaler.model.snapshot import Snapshot
from instance_catalog.dataclass import dataclass, field, replace
from instance_catalog.frozen_map import EMPTY, FrozenMap
from instance_catalog.kubernetes.resource_slice import ResourceSlice

# A machine that still runs so long after the end that a notice gave it was not taken.
_OUTLIVED: Final = timedelta(minutes=30)


@dataclass(frozen=True, slots=True)
class SeenReservation:
    """A reservation as its provider describes it; `over` when nothing can be launched into it any more, ever.

    `note` is the provider's: why it cannot be used now, or which part of it is impaired.
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

    `machines` are by ProvisionedNode.provider_id, and so is `known_as`: which machines they are. Only providers in
    `windows` (by name, with their consistency window) answered completely: nothing follows from what the others do not
    list. `expected_drivers` is by name of a ProvisionedNode: which drivers publish on it; a node without an entry
    expects one complete pool of any driver.
    `reclaims` is when providers take single machines, as far as they say so now; `notices` are ends that they said once
    and do not repeat. `places` are those that the providers call, by name: account/region.
    `reservations` None: not read this time.
    `reserving` are the kinds of node templates whose providers name every reservation there is.
    `batches` are the names of the LaunchBatches that are written down; None: nothing is concluded from one that is not.
    `launched` are the batches of which a provider lists a machine that has not ended; None: not every one has answered.
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
    """The snapshot with nodes and blocks moved to what was seen."""
    snapshot = world.snapshot
    nodes = OwnNodes(snapshot.nodes)
    missing = absence(snapshot.provisioned, nodes, listed=world.machines.keys(), windows=world.windows, now=now)
    names = {found.name if (found := nodes.of(node)) else node.node_name for node in snapshot.provisioned}
    complete = complete_drivers(piece for piece in snapshot.slices if piece.reach.node_name in names)
    occupied = occupied_nodes(snapshot.pods)
    moved = []
    for provisioned in snapshot.provisioned:
        if provisioned.phase_since is None:
            provisioned = replace(provisioned, phase_since=now)  # whoever created it died before it said so
        provisioned = _with_stop(provisioned, world, now)
        node = nodes.of(provisioned)
        name = node.name if node else provisioned.node_name
        seen = observe(provisioned, node, world, drivers=complete.get(name, frozenset()), gone=missing.gone, now=now)
        # Some clouds name nodes themselves. Pods, slices and claims speak of that name, so everything after this does.
        after = replace(_with_health(advance(provisioned, seen, now), node, now), node_name=name)
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
    """What the world shows of one node. `drivers` have published complete pools on it; `gone` are the provider ids of
    machines that are believed to be gone because they are not listed."""
    expected = world.expected_drivers.get(provisioned.name)
    return Observation(
        machine=MachineState.ABSENT if provisioned.provider_id in gone else world.machines.get(provisioned.provider_id),
        registered=node is not None and not node.deleting,
        slices_complete=bool(drivers) if expected is None else expected <= drivers,
        ready=node is not None and node.ready and not _starting(node, provisioned, world.snapshot),
        batch_lost=_batch_lost(provisioned, world, now),
    )


def complete_drivers(slices: Iterable[ResourceSlice]) -> Mapping[str, frozenset[str]]:
    """By node name: the drivers of which all pools bound to that node are complete in their newest generation."""
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
    """Whether a pod keeps its node from being empty: bound, not finished, and not there on every node."""
    return pod.bound and not pod.owner.startswith(("DaemonSet/", "Node/"))


def occupied_nodes(pods: Iterable[Pod]) -> frozenset[str]:
    """The names of nodes that are not empty. One pod decides about a node: others are not looked at."""
    found: set[str] = set()
    for pod in pods:
        name = pod.node_name
        if name is not None and name not in found and occupies(pod):
            found.add(name)
    return frozenset(found)


def _starting(node: Node, provisioned: ProvisionedNode, snapshot: Snapshot) -> bool:
    """Whether one of its pool's startup taints is still there: whoever removes it is not done yet."""
    pool = next((pool for pool in snapshot.pools if pool.name == provisioned.pool), None)
    startup = {(taint.key, taint.effect) for taint in pool.startup_taints} if pool else set()
    return any((taint.key, taint.effect) in startup for taint in node.taints)


def _batch_lost(provisioned: ProvisionedNode, world: World, now: datetime) -> bool:
    """Whether nobody will give the node a machine: somebody deleted its batch, and no call of it has left a machine.

    A machine that is listed is adopted or ended by the sweep for machines without an object; until then the node waits.
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
    """Since when its machine is stopped. Once it is started again its time to boot begins anew; a provider that did
    not answer says nothing."""
    state = world.machines.get(provisioned.provider_id)
    if state is MachineState.STOPPED:
        return provisioned if is_stopped(provisioned) else replace(provisioned, stopped_since=now)
    if state is None or not is_stopped(provisioned):
        return provisioned
    return replace(provisioned, stopped_since=None, phase_since=now)


def _with_reclaim(provisioned: ProvisionedNode, world: World, now: datetime) -> ProvisionedNode:
    """The end its provider announced: what it says now, which may move or be taken back, and what it said once, to us
    or to a leader before us, whichever is earlier. One that did not answer says nothing."""
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
    """Where its machine is, if that was not written down when it was launched: here, since it is known here."""
    place = world.places.get(provisioned.provider, "")
    if len(place) <= len(provisioned.place) or provisioned.provider_id not in world.machines:
        return provisioned
    return replace(provisioned, place=place)


def _earliest(*moments: datetime | None) -> datetime | None:
    return min((moment for moment in moments if moment is not None), default=None)


def _with_reservation(
    block: CapacityBlock, reservations: tuple[SeenReservation, ...] | None, now: datetime, *, known: bool
) -> CapacityBlock:
    """The block with the end, the stock and the note its provider has. One that is over before its time ends now.

    `known`: its provider named every reservation, so that one which is not among them does not exist.
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
