"""VolumeBinding: bound volumes must reach the node; for unbound claims a volume must exist there or be made there.

Upstream: plugin volumebinding of k8s.io/kubernetes v1.36.3 (binder.go), component-helpers storage/volume/pv_helpers.go.
It must not know the capacity that CSI drivers track: drivers that do so are out (docs/fidelity.md).
"""

from __future__ import annotations

from collections.abc import Iterable

from autoscaler.model.pod import Pod
from autoscaler.model.reason import Code, Reason
from autoscaler.model.storage import PersistentVolume, PersistentVolumeClaim
from autoscaler.scheduling.node_state import NodeState
from autoscaler.scheduling.volume_filters import DELAYED, NO_PROVISIONER, missing_claims
from autoscaler.scheduling.world import World
from instance_catalog import labels
from instance_catalog.node_selector import BadSelectorError, NodeSelector, matches


def volume_binding(pod: Pod, state: NodeState, world: World) -> tuple[Reason, ...]:
    """VolumeBinding."""
    missing = missing_claims(pod, world)
    if missing:
        return missing
    claims = [claim for name in pod.volumes if (claim := world.volume_claim(f"{pod.namespace}/{name}")) is not None]
    reason = _hopeless(pod, claims, world) or _bound(pod, claims, state, world)
    if reason is None:
        reason = _unbound(pod, [claim for claim in claims if claim.volume is None], state, world)
    return () if reason is None else (reason,)


def _hopeless(pod: Pod, claims: Iterable[PersistentVolumeClaim], world: World) -> Reason | None:
    """What keeps the pod from every node: a claim that is going away, or one that somebody else has to bind first."""
    for claim in claims:
        if claim.lost or claim.deleting:
            return Reason.of(Code.VOLUME_UNBOUND, f"pod {pod.key}", claim=claim.key, going_away=True)
        if claim.volume is None:
            storage_class = world.storage_class(claim.storage_class)
            if storage_class is None or storage_class.binding_mode != DELAYED:
                return Reason.of(Code.VOLUME_UNBOUND, f"pod {pod.key}", claim=claim.key, immediate=True)
    return None


def _bound(pod: Pod, claims: Iterable[PersistentVolumeClaim], state: NodeState, world: World) -> Reason | None:
    for claim in claims:
        if claim.volume is None:
            continue
        volume = world.volume(claim.volume)
        if volume is None:
            return Reason.of(Code.VOLUME_UNBOUND, f"pod {pod.key}", claim=claim.key, missing_volume=claim.volume)
        if not _reaches(volume.node_affinity, state):
            return _elsewhere(volume.name, state)
    return None


def _unbound(pod: Pod, claims: list[PersistentVolumeClaim], state: NodeState, world: World) -> Reason | None:
    """Smaller claims choose among the free volumes first; what is left must be made for the node."""
    chosen: set[str] = set()
    for claim in sorted(claims, key=lambda claim: claim.capacity):
        if claim.selected_node and claim.selected_node != state.node.name:
            return _elsewhere(claim.key, state)
        volume = None if claim.selected_node else _free_volume(claim, chosen, state, world)
        if volume is not None:
            chosen.add(volume.name)
            continue
        storage_class = world.storage_class(claim.storage_class)
        if storage_class is None or storage_class.provisioner in ("", NO_PROVISIONER):
            return Reason.of(Code.VOLUME_UNBOUND, f"pod {pod.key}", claim=claim.key, static_provisioning=True)
        if not _reaches(storage_class.topologies, state):
            return _elsewhere(claim.key, state)
    return None


def _free_volume(
    claim: PersistentVolumeClaim, taken: set[str], state: NodeState, world: World
) -> PersistentVolume | None:
    """The volume reserved for the claim, else the smallest that suits it (FindMatchingVolume)."""
    storage_class = world.storage_class(claim.storage_class)
    smallest: PersistentVolume | None = None
    for volume in world.snapshot.volumes.values():
        if volume.name in taken or storage_class is None or volume.storage_class != storage_class.name:
            continue
        if volume.claim not in ("", claim.key) or volume.deleting or volume.capacity < claim.capacity:
            continue
        if (volume.block, volume.attributes_class) != (claim.block, claim.attributes_class):
            continue
        reaches = _reaches(volume.node_affinity, state)
        if volume.claim:
            return volume if reaches else None
        if reaches and _suits(volume, claim) and (smallest is None or volume.capacity < smallest.capacity):
            smallest = volume
    return smallest


def _suits(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    selected = claim.selector is None or claim.selector.matches(volume.labels)
    return volume.available and selected and set(claim.access_modes) <= set(volume.access_modes)


def _reaches(selector: NodeSelector | None, state: NodeState) -> bool:
    if selector is None:
        return True
    try:
        return matches(selector, name=state.node.name, labels=state.node.labels)
    except BadSelectorError:
        return False


def _elsewhere(what: str, state: NodeState) -> Reason:
    return Reason.of(Code.VOLUME_ZONE_CONFLICT, f"volume {what}", node_zone=state.node.labels.get(labels.ZONE, ""))
