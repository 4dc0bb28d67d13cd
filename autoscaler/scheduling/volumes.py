"""Volumes in a simulated cluster: the ones that claims have, and the ones that they get once their pods run somewhere.

Upstream: component-helpers storage/volume/pv_helpers.go and kube-scheduler's plugin volumebinding, v1.36.3. A volume
that has to be created counts as one in the zone of its pod's node, as for zonal disks. Volumes of node-local drivers
are restricted more, those of file systems less.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cached_property
from typing import Final, TypeAlias

from autoscaler.model.node import Node
from autoscaler.model.pod import Pod
from autoscaler.model.snapshot import Snapshot
from autoscaler.model.storage import (
    PersistentVolume,
    PersistentVolumeClaim,
    StorageCapacity,
    StorageClass,
    VolumeAttachment,
)
from instance_catalog.dataclass import dataclass, field, replace
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes import labels
from instance_catalog.kubernetes.node_selector import (
    BadSelectorError,
    NodeSelector,
    NodeSelectorTerm,
    Requirement,
    matches,
)

NO_PROVISIONER: Final = "kubernetes.io/no-provisioner"
_IN_TREE: Final = "kubernetes.io/"


_Place: TypeAlias = tuple[str, str] | None  # a label of nodes with its value; None: any node


@dataclass(frozen=True)
class _Free:
    """Volumes that claims may get and that differ in size, place, access modes and labels only.

    Clusters have local volumes by the thousand, each for one node: looking at all of them for each claim and node takes
    seconds. `ranks` are the positions in `volumes`, which start with the smallest, by a label that the node must have.
    """

    volumes: tuple[PersistentVolume, ...]
    ranks: Mapping[_Place, tuple[int, ...]]
    keys: tuple[str, ...]

    @staticmethod
    def of(volumes: Iterable[PersistentVolume]) -> _Free:
        ranked = tuple(sorted(volumes, key=lambda volume: volume.capacity))
        sharing = Counter(place for volume in ranked for term in _terms(volume) for place in _places(term))
        ranks: defaultdict[_Place, list[int]] = defaultdict(list)
        for rank, volume in enumerate(ranked):
            for place in dict.fromkeys(place for term in _terms(volume) for place in _least_shared(term, sharing)):
                ranks[place].append(rank)
        keys = dict.fromkeys(place[0] for place in ranks if place is not None)
        return _Free(ranked, {place: tuple(found) for place, found in ranks.items()}, tuple(keys))

    def suiting(self, claim: PersistentVolumeClaim, taken: Collection[str]) -> Iterator[PersistentVolume]:
        """All that suit the claim, the smallest first."""
        for rank in range(self._first(claim), len(self.volumes)):
            if self._suits(rank, claim, taken):
                yield self.volumes[rank]

    def smallest(self, claim: PersistentVolumeClaim, node: Node, taken: Collection[str]) -> PersistentVolume | None:
        """The first of the smallest that suit the claim and reach the node."""
        first, best = self._first(claim), len(self.volumes)
        for place in (None, *((key, node.labels[key]) for key in self.keys if key in node.labels)):
            ranks = self.ranks.get(place, ())
            for position in range(bisect_left(ranks, first), len(ranks)):
                rank = ranks[position]
                if rank >= best:
                    break
                if self._suits(rank, claim, taken) and reaches(self.volumes[rank].node_affinity, node):
                    best = rank
        return self.volumes[best] if best < len(self.volumes) else None

    def _first(self, claim: PersistentVolumeClaim) -> int:
        return bisect_left(self.volumes, claim.capacity, key=lambda volume: volume.capacity)

    def _suits(self, rank: int, claim: PersistentVolumeClaim, taken: Collection[str]) -> bool:
        volume = self.volumes[rank]
        return volume.name not in taken and _suits(volume, claim)


@dataclass(frozen=True)
class KnownVolumes:
    """Volumes by name, and those that claims may get; these are sorted when a claim first looks for one."""

    by_name: Mapping[str, PersistentVolume]

    @cached_property
    def reserved(self) -> Mapping[str, tuple[PersistentVolume, ...]]:
        """By key of a claim, the volumes that name it."""
        found: defaultdict[str, list[PersistentVolume]] = defaultdict(list)
        for volume in self.by_name.values():
            if volume.claim and not volume.deleting:
                found[volume.claim].append(volume)
        return {key: tuple(volumes) for key, volumes in found.items()}

    def free(self, claim: PersistentVolumeClaim, storage_class: str) -> _Free:
        """The volumes of the class, of the claim's volume mode and attributes class, that no claim has."""
        return self._free.get((storage_class, claim.block, claim.attributes_class), _NONE_FREE)

    @cached_property
    def _free(self) -> Mapping[tuple[str, bool, str], _Free]:
        found: defaultdict[tuple[str, bool, str], list[PersistentVolume]] = defaultdict(list)
        for volume in self.by_name.values():
            if volume.available and not volume.claim and not volume.deleting:
                found[volume.storage_class, volume.block, volume.attributes_class].append(volume)
        return {kind: _Free.of(volumes) for kind, volumes in found.items()}


@dataclass(frozen=True, slots=True)
class Volumes:
    """Volumes and classes by name, claims by namespace/name.

    `given` and `claims` are those of the cluster or of the files, `bound_volumes` and `bound_claims` what became of
    some of them once simulated pods ran: copying all of them for each pod would take too long.
    """

    given: KnownVolumes
    claims: Mapping[str, PersistentVolumeClaim]
    classes: Mapping[str, StorageClass]
    attachments: tuple[VolumeAttachment, ...] = ()
    capacities: tuple[StorageCapacity, ...] = ()
    capacity_trackers: frozenset[str] = frozenset()
    bound_volumes: Mapping[str, PersistentVolume] = field(default_factory=FrozenMap)
    bound_claims: Mapping[str, PersistentVolumeClaim] = field(default_factory=FrozenMap)

    @staticmethod
    def of(snapshot: Snapshot) -> Volumes:
        """The volumes of the snapshot."""
        return Volumes(
            KnownVolumes(snapshot.volumes),
            snapshot.volume_claims,
            snapshot.storage_classes,
            snapshot.attachments,
            snapshot.storage_capacities,
            snapshot.capacity_trackers,
        )

    def volume(self, name: str) -> PersistentVolume | None:
        """The volume of that name as it is now, one that is going to be made included."""
        found = self.bound_volumes.get(name)
        return self.given.by_name.get(name) if found is None else found

    def claim(self, key: str) -> PersistentVolumeClaim | None:
        """The claim as it is now, by namespace/name."""
        found = self.bound_claims.get(key)
        return self.claims.get(key) if found is None else found

    def class_of(self, claim: PersistentVolumeClaim) -> StorageClass | None:
        """The claim's StorageClass, the default one if it names none."""
        if claim.storage_class is not None:
            return self.classes.get(claim.storage_class)
        return next((found for found in self.classes.values() if found.default), None)

    def free_for(
        self, claim: PersistentVolumeClaim, node: Node, *, taken: Collection[str] = ()
    ) -> PersistentVolume | None:
        """The volume reserved for the claim, else the smallest that suits it and reaches the node."""
        storage_class = self.class_of(claim)
        if storage_class is None:
            return None
        taken = self._taken_with(taken)
        reserved = self._reserved(claim, storage_class.name, taken)
        if reserved is not None:
            return reserved if reaches(reserved.node_affinity, node) else None
        return self.given.free(claim, storage_class.name).smallest(claim, node, taken)

    def suiting(
        self, claim: PersistentVolumeClaim, storage_class: str, *, taken: Collection[str] = ()
    ) -> Iterator[PersistentVolume]:
        """The volume of the class that is reserved for the claim, else all that suit it, wherever they are: the
        smallest first."""
        taken = self._taken_with(taken)
        reserved = self._reserved(claim, storage_class, taken)
        return (
            iter((reserved,)) if reserved is not None else self.given.free(claim, storage_class).suiting(claim, taken)
        )

    def _taken_with(self, taken: Collection[str]) -> Collection[str]:
        """With the names of volumes that simulated pods have."""
        return {*self.bound_volumes, *taken} if taken else self.bound_volumes

    def _reserved(
        self, claim: PersistentVolumeClaim, storage_class: str, taken: Collection[str]
    ) -> PersistentVolume | None:
        wanted = (storage_class, claim.block, claim.attributes_class)
        for volume in self.given.reserved.get(claim.key, ()):
            offered = (volume.storage_class, volume.block, volume.attributes_class)
            large_enough = volume.capacity >= claim.capacity
            if offered == wanted and large_enough and _is_for(volume, claim) and volume.name not in taken:
                return volume
        return None

    def after(self, pods: Iterable[Pod], node: Node) -> Volumes:
        """The volumes once the pods run on the node: their claims have free volumes, or new ones in its zone."""
        found = self
        for pod in pods:
            keys = dict.fromkeys(f"{pod.namespace}/{name}" for name in pod.volumes)
            unbound = [claim for key in keys if (claim := found.claim(key)) is not None and claim.volume is None]
            for claim in sorted(unbound, key=lambda claim: claim.capacity):
                volume = None if claim.selected_node else found.free_for(claim, node)
                volume = replace(volume, claim=claim.key) if volume is not None else found._made_for(claim, node)
                found = replace(
                    found,
                    bound_volumes={**found.bound_volumes, volume.name: volume},
                    bound_claims={**found.bound_claims, claim.key: replace(claim, volume=volume.name)},
                )
        return found

    def can_be_made(self, claim: PersistentVolumeClaim, storage_class: StorageClass, node: Node) -> bool:
        """True if the class's driver has room for the claim on the node, or publishes no capacity (hasEnoughCapacity).

        The result is not reserved: like upstream, it does not subtract what other claims are about to use.
        """
        if storage_class.provisioner not in self.capacity_trackers:
            return True
        size = claim.capacity.ceil()
        return any(
            found.storage_class == storage_class.name
            and found.largest is not None
            and found.largest.ceil() >= size
            and found.nodes is not None
            and found.nodes.matches(node.labels)
            for found in self.capacities
        )

    def _made_for(self, claim: PersistentVolumeClaim, node: Node) -> PersistentVolume:
        zone = node.labels.get(labels.ZONE)
        here = NodeSelectorTerm((Requirement(labels.ZONE, "In", (zone,)),)) if zone is not None else None
        storage_class = self.class_of(claim)
        provisioner = storage_class.provisioner if storage_class is not None else ""
        return PersistentVolume(
            name=f"new {claim.key}",
            node_affinity=NodeSelector((here,)) if here is not None else None,
            claim=claim.key,
            driver="" if is_in_tree(provisioner) else provisioner,
            handle=f"new {claim.key}",
            in_tree=is_in_tree(provisioner),
        )


def reaches(selector: NodeSelector | None, node: Node) -> bool:
    """True if a node may use an object that is limited to `selector`. One that cannot be parsed selects no node.

    Only labels count: upstream checks a node without a name (CheckNodeAffinity).
    """
    if selector is None:
        return True
    try:
        return matches(selector, name="", labels=node.labels)
    except BadSelectorError:
        return False


def is_in_tree(provisioner: str) -> bool:
    """True if it is a provisioner of an in-tree plugin that became a CSI driver."""
    return provisioner.startswith(_IN_TREE) and provisioner != NO_PROVISIONER


def _is_for(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """True if the volume is reserved for this claim, not for an earlier one of its name (IsVolumeBoundToClaim)."""
    return volume.claim == claim.key and volume.claim_uid in ("", claim.uid)


def _suits(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    selected = claim.selector is None or claim.selector.matches(volume.labels)
    return selected and set(claim.access_modes) <= set(volume.access_modes)


def _terms(volume: PersistentVolume) -> tuple[NodeSelectorTerm, ...]:
    return _ANY_NODE.terms if volume.node_affinity is None else volume.node_affinity.terms


def _places(term: NodeSelectorTerm) -> Iterator[_Place]:
    for requirement in term.match_expressions:
        if requirement.operator == "In":
            yield from _values(requirement)


def _values(requirement: Requirement) -> Iterator[_Place]:
    for value in requirement.values:
        yield requirement.key, value


def _least_shared(term: NodeSelectorTerm, sharing: Mapping[_Place, int]) -> tuple[_Place, ...]:
    """Labels of which a node has one if the term matches it: those that the fewest volumes want, as host names are."""
    choices = [tuple(_values(found)) for found in term.match_expressions if found.operator == "In"]
    return min(choices, key=lambda places: sum(sharing[place] for place in places), default=(None,))


_ANY_NODE: Final = NodeSelector((NodeSelectorTerm(),))
_NONE_FREE: Final = _Free((), {}, ())
