"""The claims that kube-controller-manager binds to existing volumes, without kube-scheduler.

Upstream: pkg/controller/volume/persistentvolume (syncUnboundClaim) and FindMatchingVolume of component-helpers,
v1.36.3: the smallest volume that suits the claim, any of those of one size.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Hashable, Mapping, Sequence
from itertools import groupby
from typing import Final

from autoscaler.model.storage import PersistentVolume, PersistentVolumeClaim, VolumeBindingMode
from autoscaler.scheduling.volumes import Volumes
from instance_catalog.dataclass import replace
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.types.clouds import cloud_facts

_NO_CLASS: Final = ""


def bound_by_controller(volumes: Volumes) -> Mapping[str, PersistentVolume]:
    """Volumes by the claims that get them, whatever the order in which the controller sees the claims.

    That is certain if the smallest volumes of each claim are alike, and as many as claims have them for their smallest;
    else no claim of that class is bound. Claims get volumes that are alike in the order of names, as of a StatefulSet.
    """
    named = {claim.volume for claim in volumes.claims.values() if claim.volume is not None}
    of_class: defaultdict[str, defaultdict[Hashable, list[PersistentVolumeClaim]]]
    of_class = defaultdict(lambda: defaultdict(list))
    for claim in volumes.claims.values():
        name = claim.storage_class or _NO_CLASS
        if claim.volume is None and not claim.lost and not claim.deleting and not _waits(name, volumes):
            of_class[name][_wanted(claim, volumes)].append(claim)
    found: dict[str, PersistentVolume] = {}
    for name, groups in of_class.items():
        smallest = [(claims, _smallest(claims[0], name, volumes, named)) for claims in groups.values()]
        found |= {key: volume for key, volume in _matched(smallest).items() if _binds(name, volume, volumes)}
    return found


def _wanted(claim: PersistentVolumeClaim, volumes: Volumes) -> Hashable:
    """The same for claims of one class that the same volumes suit."""
    own = claim.key if claim.key in volumes.given.reserved else ""
    return claim.capacity, claim.access_modes, claim.selector, claim.block, claim.attributes_class, own


def _smallest(
    claim: PersistentVolumeClaim, storage_class: str, volumes: Volumes, taken: Collection[str]
) -> list[PersistentVolume]:
    """The smallest volumes that suit the claim, which are of one size."""
    by_size = groupby(volumes.suiting(claim, storage_class, taken=taken), key=lambda volume: volume.capacity)
    return next((list(volumes) for _, volumes in by_size), [])


def _matched(
    wanted: Sequence[tuple[Sequence[PersistentVolumeClaim], Sequence[PersistentVolume]]],
) -> dict[str, PersistentVolume]:
    """The volumes of claims of one class, by the claims' keys; nothing if their order decides."""
    by_labels = any(claim.selector is not None for claims, _ in wanted for claim in claims)
    keys: defaultdict[PersistentVolume, list[str]] = defaultdict(list)
    at_hand: dict[PersistentVolume, list[PersistentVolume]] = {}
    for claims, smallest in wanted:
        kinds = {_alike(volume, by_labels=by_labels) for volume in smallest}
        if len(kinds) > 1:
            return {}
        for kind in kinds:
            keys[kind].extend(claim.key for claim in claims)
            at_hand[kind] = sorted(smallest, key=lambda volume: volume.name)
    if any(len(names) > len(at_hand[kind]) for kind, names in keys.items()):
        return {}
    return {
        key: volume for kind, names in keys.items() for key, volume in zip(sorted(names), at_hand[kind], strict=False)
    }


def _alike(volume: PersistentVolume, *, by_labels: bool) -> PersistentVolume:
    """The same for volumes of which claims and nodes cannot tell one from another; `by_labels` for claims that select
    volumes by their labels."""
    same = replace(volume, name="", handle="")
    return same if by_labels else replace(same, labels=FrozenMap())


def _binds(name: str, volume: PersistentVolume, volumes: Volumes) -> bool:
    """True if the controller binds it, or nobody can tell the difference: if it is unknown whether the class waits for
    the pod, kube-scheduler would choose the same volume on every node, as long as every node reaches it."""
    found = volumes.classes.get(name)
    if found is not None and found.binding_mode == VolumeBindingMode.UNKNOWN:
        return volume.node_affinity is None and not volume.topology
    return True


def _waits(name: str, volumes: Volumes) -> bool:
    """True if claims of the class wait for their pods: kube-scheduler chooses their volumes."""
    found = volumes.classes.get(name)
    return found is not None and found.binding_mode == VolumeBindingMode.WAIT_FOR_FIRST_CONSUMER


def with_bound_claims(volumes: Volumes) -> Volumes:
    """The volumes once the controller has bound what it binds."""
    pairs = bound_by_controller(volumes)
    claims = {key: replace(volumes.claims[key], volume=volume.name) for key, volume in pairs.items()}
    taken = {volume.name: replace(volume, claim=key) for key, volume in pairs.items()}
    return replace(volumes, bound_volumes=taken, bound_claims=claims)


def with_made_volumes(volumes: Volumes) -> Volumes:
    """The volumes once the drivers whose new volumes select no nodes have made those of claims that wait for no pod.

    A class with allowedTopologies may give them a place, so its claims stay as they are.
    """
    unplaced = {driver for facts in cloud_facts().values() for driver in facts.unplaced_drivers}
    made: dict[str, PersistentVolume] = {}
    for key, claim in volumes.claims.items():
        found = volumes.class_of(claim)
        waits = claim.volume is None and not claim.lost and not claim.deleting and key not in volumes.bound_claims
        if (
            not waits
            or found is None
            or found.binding_mode in (VolumeBindingMode.WAIT_FOR_FIRST_CONSUMER, VolumeBindingMode.UNKNOWN)
        ):
            continue
        can_make = found.provisioner in unplaced and found.topologies is None
        if can_make and next(volumes.suiting(claim, found.name), None) is None:
            name = f"new {key}"
            made[key] = PersistentVolume(
                name, storage_class=found.name, claim=key, driver=found.provisioner, handle=name
            )
    return replace(
        volumes,
        bound_volumes={**volumes.bound_volumes, **{volume.name: volume for volume in made.values()}},
        bound_claims={
            **volumes.bound_claims,
            **{key: replace(volumes.claims[key], volume=volume.name) for key, volume in made.items()},
        },
    )
