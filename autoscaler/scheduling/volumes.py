"""Volumes in a simulated cluster: the ones that claims have, and the ones that they get once their pods run somewhere.

Upstream: component-helpers storage/volume/pv_helpers.go and kube-scheduler's plugin volumebinding, v1.36.3. A volume
that has to be created counts as one in the zone of its pod's node, as for zonal disks. Volumes of node-local drivers
are restricted more, those of file systems less.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Final

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
from instance_catalog.dataclass import dataclass, replace
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


@dataclass(frozen=True, slots=True)
class Volumes:
    """Volumes and classes by name, claims by namespace/name."""

    volumes: Mapping[str, PersistentVolume]
    claims: Mapping[str, PersistentVolumeClaim]
    classes: Mapping[str, StorageClass]
    attachments: tuple[VolumeAttachment, ...] = ()
    capacities: tuple[StorageCapacity, ...] = ()
    capacity_trackers: frozenset[str] = frozenset()

    @staticmethod
    def of(snapshot: Snapshot) -> Volumes:
        """The volumes of the snapshot."""
        return Volumes(
            snapshot.volumes,
            snapshot.volume_claims,
            snapshot.storage_classes,
            snapshot.attachments,
            snapshot.storage_capacities,
            snapshot.capacity_trackers,
        )

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
        suiting = self.suiting(claim, storage_class.name, taken=taken)
        at_hand = (volume for volume in suiting if reaches(volume.node_affinity, node))
        return min(at_hand, key=lambda volume: volume.capacity, default=None)

    def suiting(
        self, claim: PersistentVolumeClaim, storage_class: str, *, taken: Collection[str] = ()
    ) -> tuple[PersistentVolume, ...]:
        """The volume of the class that is reserved for the claim, else all that suit it, wherever they are."""
        found = [
            volume
            for volume in self.volumes.values()
            if volume.storage_class == storage_class
            and volume.name not in taken
            and (not volume.claim or _is_for(volume, claim))
            and not volume.deleting
            and volume.capacity >= claim.capacity
            and (volume.block, volume.attributes_class) == (claim.block, claim.attributes_class)
        ]
        reserved = next((volume for volume in found if volume.claim), None)
        return (reserved,) if reserved is not None else tuple(volume for volume in found if _suits(volume, claim))

    def after(self, pods: Iterable[Pod], node: Node) -> Volumes:
        """The volumes once the pods run on the node: their claims have free volumes, or new ones in its zone."""
        found = self
        for pod in pods:
            keys = (f"{pod.namespace}/{name}" for name in pod.volumes)
            unbound = [claim for key in keys if (claim := found.claims.get(key)) is not None and claim.volume is None]
            for claim in sorted(unbound, key=lambda claim: claim.capacity):
                volume = None if claim.selected_node else found.free_for(claim, node)
                volume = replace(volume, claim=claim.key) if volume is not None else found._made_for(claim, node)
                found = replace(
                    found,
                    volumes={**found.volumes, volume.name: volume},
                    claims={**found.claims, claim.key: replace(claim, volume=volume.name)},
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
    return volume.available and selected and set(claim.access_modes) <= set(volume.access_modes)
