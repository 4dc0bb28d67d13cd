"""The claims that kube-controller-manager binds to existing volumes, without kube-scheduler.

Upstream: pkg/controller/volume/persistentvolume (syncUnboundClaim) and FindMatchingVolume of component-helpers,
v1.36.3: the smallest volume that suits the claim, any of those of one size.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Final

from autoscaler.model.storage import DELAYED, UNKNOWN_BINDING, PersistentVolume, PersistentVolumeClaim
from autoscaler.scheduling.volumes import Volumes
from instance_catalog.dataclass import replace
from instance_catalog.frozen_map import FrozenMap

_NO_CLASS: Final = ""


def bound_by_controller(volumes: Volumes) -> Mapping[str, PersistentVolume]:
    """Volumes by the claims that get them, whatever the order in which the controller sees the claims.

    That is certain if the smallest volumes of each claim are alike, and as many as claims have them for their smallest;
    else no claim of that class is bound. Claims get volumes that are alike in the order of names, as of a StatefulSet.
    """
    named = {claim.volume for claim in volumes.claims.values() if claim.volume is not None}
    of_class: defaultdict[str, list[tuple[PersistentVolumeClaim, tuple[PersistentVolume, ...]]]] = defaultdict(list)
    for claim in volumes.claims.values():
        if claim.volume is None and not claim.lost and not claim.deleting:
            name = claim.storage_class or _NO_CLASS
            of_class[name].append((claim, volumes.suiting(claim, name, taken=named)))
    found: dict[str, PersistentVolume] = {}
    for name, wanted in of_class.items():
        found |= {key: volume for key, volume in _matched(wanted).items() if _binds(name, volume, volumes)}
    return found


def _matched(
    wanted: Sequence[tuple[PersistentVolumeClaim, tuple[PersistentVolume, ...]]],
) -> dict[str, PersistentVolume]:
    """The volumes of claims of one class, by the claims' keys; nothing if their order decides."""
    by_labels = any(claim.selector is not None for claim, _ in wanted)
    claims: defaultdict[PersistentVolume, list[str]] = defaultdict(list)
    at_hand: dict[PersistentVolume, list[str]] = {}
    by_name: dict[str, PersistentVolume] = {}
    for claim, suiting in wanted:
        least = min((volume.capacity for volume in suiting), default=None)
        smallest = {volume.name: volume for volume in suiting if volume.capacity == least}
        kinds = {_alike(volume, by_labels=by_labels) for volume in smallest.values()}
        if len(kinds) > 1:
            return {}
        for kind in kinds:
            claims[kind].append(claim.key)
            at_hand[kind] = sorted(smallest)
        by_name |= smallest
    if any(len(keys) > len(at_hand[kind]) for kind, keys in claims.items()):
        return {}
    pairs = (pair for kind, keys in claims.items() for pair in zip(sorted(keys), at_hand[kind], strict=False))
    return {key: by_name[name] for key, name in pairs}


def _alike(volume: PersistentVolume, *, by_labels: bool) -> PersistentVolume:
    """The same for volumes of which claims and nodes cannot tell one from another; `by_labels` for claims that select
    volumes by their labels."""
    same = replace(volume, name="", handle="")
    return same if by_labels else replace(same, labels=FrozenMap())


def _binds(name: str, volume: PersistentVolume, volumes: Volumes) -> bool:
    """True if the controller binds it, or nobody can tell the difference: if it is unknown whether the class waits for
    the pod, kube-scheduler would choose the same volume on every node, as long as every node reaches it."""
    found = volumes.classes.get(name)
    if found is not None and found.binding_mode == UNKNOWN_BINDING:
        return volume.node_affinity is None and not volume.topology
    return found is None or found.binding_mode != DELAYED


def with_bound_claims(volumes: Volumes) -> Volumes:
    """The volumes once the controller has bound what it binds."""
    pairs = bound_by_controller(volumes)
    claims = {key: replace(volumes.claims[key], volume=volume.name) for key, volume in pairs.items()}
    taken = {volume.name: replace(volume, claim=key) for key, volume in pairs.items()}
    return replace(volumes, volumes={**volumes.volumes, **taken}, claims={**volumes.claims, **claims})
