"""Volumes that tie a pod to a place (volumebinding, volumezone of k8s.io/kubernetes v1.36), as far as the API says.

Attach limits of a node that does not exist are not known; below `SAFE_VOLUMES` no CSI driver of AWS or GCP refuses.
"""

from __future__ import annotations

from autoscaler.model.pod import Pod
from autoscaler.model.reason import Code, Reason
from autoscaler.model.storage import PersistentVolume, PersistentVolumeClaim
from autoscaler.scheduling.node_state import NodeState
from autoscaler.scheduling.world import World
from instance_catalog import labels
from instance_catalog.node_selector import BadSelectorError, NodeSelector, matches

# The smallest per-node limits in the field are 15 (GCE PD on shared-core) and 25 or more (EBS on Nitro).
SAFE_VOLUMES = 12
NO_PROVISIONER = "kubernetes.io/no-provisioner"


def volume_binding(pod: Pod, state: NodeState, world: World) -> tuple[Reason, ...]:
    """VolumeBinding: bound volumes must reach the node, unbound ones must be able to be made there."""
    for name in pod.volumes:
        claim = world.volume_claim(f"{pod.namespace}/{name}")
        reason = _missing(pod, name) if claim is None else _binding(pod, claim, state, world)
        if reason is not None:
            return (reason,)
    return ()


def volume_zone(pod: Pod, state: NodeState, world: World) -> tuple[Reason, ...]:
    """VolumeZone: the zone labels of bound volumes must contain the node's zone."""
    for name in pod.volumes:
        volume = _volume_of(world.volume_claim(f"{pod.namespace}/{name}"), world)
        zone = state.node.labels.get(labels.ZONE)
        if volume is not None and volume.zones and zone is not None and zone not in volume.zones:
            return (Reason.of(Code.VOLUME_ZONE_CONFLICT, f"volume {volume.name}", zones=volume.zones, node_zone=zone),)
    return ()


def volume_limits(pod: Pod, state: NodeState, _: World) -> tuple[Reason, ...]:
    """NodeVolumeLimits: unknown above a number that every CSI driver allows."""
    volumes = {(p.namespace, v) for p in (*state.pods, pod) for v in p.volumes}
    if pod.volumes and len(volumes) > SAFE_VOLUMES:
        return (Reason.of(Code.UNSUPPORTED, f"pod {pod.key}", feature="volume attach limits", volumes=len(volumes)),)
    return ()


def _binding(pod: Pod, claim: PersistentVolumeClaim, state: NodeState, world: World) -> Reason | None:
    if claim.volume is not None:
        volume = world.volume(claim.volume)
        if volume is None:
            return Reason.of(Code.VOLUME_UNBOUND, f"pod {pod.key}", claim=claim.key, missing_volume=claim.volume)
        return None if _reaches(volume.node_affinity, state) else _elsewhere(volume.name, state)
    storage_class = world.storage_class(claim.storage_class)
    if storage_class is None or storage_class.binding_mode != "WaitForFirstConsumer":
        return Reason.of(Code.VOLUME_UNBOUND, f"pod {pod.key}", claim=claim.key, immediate=True)
    if storage_class.provisioner == NO_PROVISIONER:
        return Reason.of(Code.VOLUME_UNBOUND, f"pod {pod.key}", claim=claim.key, static_provisioning=True)
    return None if _reaches(storage_class.topologies, state) else _elsewhere(claim.key, state)


def _volume_of(claim: PersistentVolumeClaim | None, world: World) -> PersistentVolume | None:
    return world.volume(claim.volume) if claim is not None and claim.volume is not None else None


def _reaches(selector: NodeSelector | None, state: NodeState) -> bool:
    if selector is None:
        return True
    try:
        return matches(selector, name=state.node.name, labels=state.node.labels)
    except BadSelectorError:
        return False


def _missing(pod: Pod, name: str) -> Reason:
    return Reason.of(Code.VOLUME_UNBOUND, f"pod {pod.key}", claim=f"{pod.namespace}/{name}", missing_claim=True)


def _elsewhere(what: str, state: NodeState) -> Reason:
    return Reason.of(Code.VOLUME_ZONE_CONFLICT, f"volume {what}", node_zone=state.node.labels.get(labels.ZONE, ""))
