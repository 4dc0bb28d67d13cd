"""VolumeBinding: bound volumes must reach the node; for unbound claims a volume must exist or be created there.

Upstream: plugin volumebinding of k8s.io/kubernetes v1.36.3 (binder.go); volumes.py has the volumes for claims.
"""

from __future__ import annotations

from collections.abc import Iterable

from autoscaler.model.pod import Pod
from autoscaler.model.reason import Code, Reason, Subject
from autoscaler.model.storage import PersistentVolumeClaim, StorageClass
from autoscaler.scheduling.node_filters import requirements_of
from autoscaler.scheduling.node_state import NodeState
from autoscaler.scheduling.volume_filters import claims_of, missing_claims, not_waiting
from autoscaler.scheduling.volumes import NO_PROVISIONER, reaches
from autoscaler.scheduling.world import World
from instance_catalog.kubernetes import labels
from instance_catalog.kubernetes.node_selector import NodeSelector


def volume_binding(pod: Pod, state: NodeState, world: World) -> tuple[Reason, ...]:
    """VolumeBinding."""
    missing = missing_claims(pod, world)
    if missing:
        return missing
    claims = list(claims_of((pod,), world))
    reason = _hopeless(pod, claims, world) or _bound(pod, claims, state, world)
    if reason is None:
        reason = _unbound(pod, [claim for claim in claims if claim.volume is None], state, world)
    return () if reason is None else (reason,)


def _hopeless(pod: Pod, claims: Iterable[PersistentVolumeClaim], world: World) -> Reason | None:
    """The reason why no node can run the pod: a claim that is being deleted, or one that must be bound before."""
    for claim in claims:
        if claim.lost or claim.deleting:
            state = "being deleted" if claim.deleting else "lost: its PersistentVolume is gone"
            return Reason.of(Code.VOLUME_UNBOUND, Subject("pod", pod.key), claim=claim.key, going_away=state)
        if claim.volume is None:
            reason = not_waiting(pod, claim, world)
            if reason is not None:
                return reason
    return None


def _bound(pod: Pod, claims: Iterable[PersistentVolumeClaim], state: NodeState, world: World) -> Reason | None:
    for claim in claims:
        if claim.volume is None:
            continue
        volume = world.volumes.volume(claim.volume)
        if volume is None:
            return Reason.of(Code.VOLUME_UNBOUND, Subject("pod", pod.key), claim=claim.key, missing_volume=claim.volume)
        if not reaches(volume.node_affinity, state.node):
            return _elsewhere(volume.name, state, volume.node_affinity)
    return None


def _unbound(pod: Pod, claims: list[PersistentVolumeClaim], state: NodeState, world: World) -> Reason | None:
    """The reason why the claims get no volumes. Smaller claims choose among the free volumes first; for the rest
    volumes must be created for the node."""
    chosen: set[str] = set()
    for claim in sorted(claims, key=lambda claim: claim.capacity):
        if claim.selected_node and claim.selected_node != state.node.name:
            return _elsewhere(claim.key, state)
        volume = None if claim.selected_node else world.volumes.free_for(claim, state.node, taken=chosen)
        if volume is not None:
            chosen.add(volume.name)
            continue
        storage_class = world.volumes.class_of(claim)
        if storage_class is None or storage_class.provisioner in ("", NO_PROVISIONER):
            name = storage_class.name if storage_class is not None else ""
            return Reason.of(Code.VOLUME_UNBOUND, Subject("pod", pod.key), claim=claim.key, static_class=name)
        if not reaches(storage_class.topologies, state.node):
            return _elsewhere(claim.key, state, storage_class.topologies)
        if not world.volumes.can_be_made(claim, storage_class, state.node):
            return _no_room(pod, claim, storage_class, state)
    return None


def _no_room(pod: Pod, claim: PersistentVolumeClaim, storage_class: StorageClass, state: NodeState) -> Reason:
    """The reason why no volume can be created. On a node that does not exist yet, the driver's capacity is unknown."""
    driver = storage_class.provisioner
    if state.node.volume_limits is None:
        feature = f"storage that {driver} tracks on a node that does not exist yet"
        return Reason.of(Code.UNSUPPORTED, Subject("pod", pod.key), feature=feature)
    return Reason.of(Code.NO_STORAGE, Subject("pod", pod.key), claim=claim.key, driver=driver)


def _elsewhere(what: str, state: NodeState, selector: NodeSelector | None = None) -> Reason:
    """The volume reaches other nodes: those of the selector, or the one that was selected for it."""
    subject = Subject("volume", what)
    if selector is None:
        return Reason.of(Code.VOLUME_ZONE_CONFLICT, subject, node_zone=state.node.labels.get(labels.ZONE, ""))
    return Reason.of(Code.VOLUME_ZONE_CONFLICT, subject, wanted=requirements_of(selector)[1])
