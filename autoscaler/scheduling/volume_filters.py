"""Volumes that bind a pod to a place, according to the API: restrictions, attach limits, zones.

Upstream: plugins volumerestrictions, nodevolumelimits and volumezone of k8s.io/kubernetes v1.36.3; volumebinding is in
volume_binding.py. Disks in a pod spec by the names of in-tree plugins are refused when pods are read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from autoscaler.model.pod import Pod
from autoscaler.model.reason import Code, Reason, Subject
from autoscaler.model.storage import PersistentVolume, PersistentVolumeClaim, VolumeBindingMode
from autoscaler.scheduling.node_state import NodeState
from autoscaler.scheduling.volumes import NO_PROVISIONER, is_in_tree
from autoscaler.scheduling.world import World
from instance_catalog.kubernetes import labels

# The smallest known limits per node are 15 (GCE PD on shared-core) and 25 or more (EBS on Nitro): if a node's CSI
# drivers have not published theirs, as on a node that does not exist, fewer volumes than that certainly fit.
SAFE_VOLUMES = 12
_SUCCESSOR = {labels.ZONE_BETA: labels.ZONE, labels.REGION_BETA: labels.REGION}
_TOPOLOGY = (*_SUCCESSOR, *_SUCCESSOR.values())
_ONE_POD = "ReadWriteOncePod"


class _Attached(NamedTuple):
    """A volume that takes one of a node's attachments; `driver` "" is one of a plugin that became a CSI driver."""

    driver: str
    handle: str


def volume_restrictions(pod: Pod, _: NodeState, world: World) -> tuple[Reason, ...]:
    """VolumeRestrictions: a claim with access mode ReadWriteOncePod has one pod in the whole cluster."""
    missing = missing_claims(pod, world)
    if missing:
        return missing
    for claim in claims_of((pod,), world):
        if _ONE_POD in claim.access_modes and any(_uses(other, claim) for s in world.states() for other in s.pods):
            return (Reason.of(Code.VOLUME_IN_USE, Subject("pod", pod.key), claim=claim.key),)
    return ()


def contends_for_volume(pods: Iterable[Pod], claims: Mapping[str, PersistentVolumeClaim]) -> bool:
    """True if several of the pods have a claim that is for one pod."""
    for_one = {key for key, claim in claims.items() if _ONE_POD in claim.access_modes}
    used = Counter(key for pod in pods for name in pod.volumes if (key := f"{pod.namespace}/{name}") in for_one)
    return any(count > 1 for count in used.values())


def volume_limits(pod: Pod, state: NodeState, world: World) -> tuple[Reason, ...]:
    """NodeVolumeLimits: the attach limits of the node's CSI drivers; without them, unknown above SAFE_VOLUMES."""
    if not pod.volumes:
        return ()
    missing = missing_claims(pod, world)
    if missing:
        return missing
    wanted, present = set(_attached((pod,), world)), set(_attached(state.pods, world))
    limits = state.node.volume_limits
    if limits is None:
        volumes = {(p.namespace, name) for p in (*state.pods, pod) for name in p.volumes}
        return _unknown(pod, len(volumes)) if wanted and len(volumes) > SAFE_VOLUMES else ()
    if limits and any(not volume.driver for volume in wanted | present):
        return _unknown(pod, len(wanted | present))
    taken = Counter(volume.driver for volume in present | set(_left_attached(state, world)))
    for driver, count in sorted(Counter(volume.driver for volume in wanted - present).items()):
        if driver in limits and taken[driver] + count > limits[driver]:
            total = taken[driver] + count
            reason = Reason.of(
                Code.VOLUME_LIMIT, Subject("pod", pod.key), driver=driver, limit=limits[driver], wanted=total
            )
            return (reason,)
    return ()


def not_waiting(pod: Pod, claim: PersistentVolumeClaim, world: World) -> Reason | None:
    """The reason why a claim gets no volume when the pod is scheduled; None if its class waits for the pod."""
    storage_class = world.volumes.class_of(claim)
    subject = Subject("pod", pod.key)
    if storage_class is not None and storage_class.binding_mode == VolumeBindingMode.UNKNOWN:
        return Reason.of(Code.UNSUPPORTED, subject, claim=claim.key, storage_class=storage_class.name)
    if storage_class is None or storage_class.binding_mode != VolumeBindingMode.WAIT_FOR_FIRST_CONSUMER:
        if world.snapshot.from_files:
            return _bound_before(subject, claim, world)
        return Reason.of(Code.VOLUME_UNBOUND, subject, claim=claim.key, immediate="does not wait for a pod")
    return None


def _bound_before(subject: Subject, claim: PersistentVolumeClaim, world: World) -> Reason:
    """The reason for a claim that a cluster binds before its pod is scheduled, while files cannot tell to what."""
    storage_class = world.volumes.class_of(claim)
    provisioner = storage_class.provisioner if storage_class is not None else ""
    if provisioner not in ("", NO_PROVISIONER):
        return Reason.of(Code.UNSUPPORTED, subject, claim=claim.key, bound_to=f"a volume that {provisioner} makes")
    suiting = world.volumes.suiting(claim, storage_class.name if storage_class is not None else "")
    if any(True for _ in suiting):
        return Reason.of(Code.UNSUPPORTED, subject, claim=claim.key, bound_to="one of several that suit it")
    return Reason.of(Code.VOLUME_UNBOUND, subject, claim=claim.key, unsuited="in the files")


def volume_zone(pod: Pod, state: NodeState, world: World) -> tuple[Reason, ...]:
    """VolumeZone: zone and region labels of bound volumes must be those of a node that has any."""
    missing = missing_claims(pod, world)
    if missing:
        return missing
    volumes: list[PersistentVolume] = []
    for claim in claims_of((pod,), world):
        if claim.volume is None:
            reason = not_waiting(pod, claim, world)
            if reason is not None:
                return (reason,)
            continue
        volume = world.volumes.volume(claim.volume)
        if volume is None:
            return (
                Reason.of(Code.VOLUME_UNBOUND, Subject("pod", pod.key), claim=claim.key, missing_volume=claim.volume),
            )
        volumes.append(volume)
    node = state.node.labels
    if not any(key in node for key in _TOPOLOGY):
        return ()
    for volume in volumes:
        for key, values in volume.topology.items():
            found = node.get(key, node.get(_SUCCESSOR.get(key, key)))
            if found is None or found not in values:
                reason = Reason.of(
                    Code.VOLUME_ZONE_CONFLICT, Subject("volume", volume.name), zones=values, node_zone=found or ""
                )
                return (reason,)
    return ()


def missing_claims(pod: Pod, world: World) -> tuple[Reason, ...]:
    """A reason if a PersistentVolumeClaim of the pod does not exist: then all plugins for volumes refuse the pod."""
    for name in pod.volumes:
        key = f"{pod.namespace}/{name}"
        if world.volumes.claim(key) is None:
            return (Reason.of(Code.VOLUME_UNBOUND, Subject("pod", pod.key), claim=key, missing_claim="not there"),)
    return ()


def claims_of(pods: Iterable[Pod], world: World) -> Iterator[PersistentVolumeClaim]:
    """The claims of the pods that exist, in order."""
    for pod in pods:
        for name in pod.volumes:
            claim = world.volumes.claim(f"{pod.namespace}/{name}")
            if claim is not None:
                yield claim


def _uses(pod: Pod, claim: PersistentVolumeClaim) -> bool:
    return pod.namespace == claim.namespace and claim.name in pod.volumes


def _attached(pods: Iterable[Pod], world: World) -> Iterator[_Attached]:
    """The attached volumes of the pods: bound CSI volumes, and those that a provisioner is going to create."""
    for claim in claims_of(pods, world):
        volume = world.volumes.volume(claim.volume) if claim.volume is not None else None
        if volume is not None:
            if volume.driver and volume.handle:
                yield _Attached(volume.driver, volume.handle)
            elif volume.in_tree:
                yield _Attached("", volume.name)
            continue
        storage_class = world.volumes.class_of(claim)
        if storage_class is None:
            continue
        provisioner = storage_class.provisioner
        yield _Attached("" if is_in_tree(provisioner) else provisioner, f"new {claim.key}")


def _left_attached(state: NodeState, world: World) -> Iterator[_Attached]:
    """The volumes attached to the node according to the API: pods that use them may be gone."""
    for attachment in world.volumes.attachments:
        if attachment.node == state.node.name:
            volume = world.volumes.volume(attachment.volume)
            if volume is not None and volume.driver:
                yield _Attached(attachment.driver, volume.handle)


def _unknown(pod: Pod, volumes: int) -> tuple[Reason, ...]:
    return (Reason.of(Code.UNSUPPORTED, Subject("pod", pod.key), feature="volume attach limits", volumes=volumes),)
