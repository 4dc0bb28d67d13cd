"""The claims that kube-controller-manager binds to existing volumes, without kube-scheduler.

Upstream: pkg/controller/volume/persistentvolume (syncUnboundClaim) and FindMatchingVolume of component-helpers,
v1.36.3: the smallest volume that suits the claim.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from itertools import pairwise
from typing import Final

from autoscaler.model.storage import DELAYED, UNKNOWN_BINDING, PersistentVolume, PersistentVolumeClaim
from autoscaler.scheduling.volumes import Volumes
from instance_catalog.dataclass import replace

_NO_CLASS: Final = ""


def bound_by_controller(volumes: Volumes) -> Mapping[str, PersistentVolume]:
    """Volumes by the claims that get them, whatever the order in which the controller sees the claims.

    That is certain if each claim of a class has another smallest volume; else no claim of that class is bound.
    """
    named = {claim.volume for claim in volumes.claims.values() if claim.volume is not None}
    of_class: defaultdict[str, list[tuple[PersistentVolumeClaim, tuple[PersistentVolume, ...]]]] = defaultdict(list)
    for claim in volumes.claims.values():
        if claim.volume is None and not claim.lost and not claim.deleting:
            name = claim.storage_class or _NO_CLASS
            of_class[name].append((claim, volumes.suiting(claim, name, taken=named)))
    found: dict[str, PersistentVolume] = {}
    for name, wanted in of_class.items():
        best = {claim.key: volume for claim, suiting in wanted if (volume := _smallest(suiting)) is not None}
        distinct = len({volume.name for volume in best.values()}) == len(best)
        if distinct and len(best) == sum(bool(suiting) for _, suiting in wanted):
            found |= {key: volume for key, volume in best.items() if _binds(name, volume, volumes)}
    return found


def _smallest(suiting: tuple[PersistentVolume, ...]) -> PersistentVolume | None:
    """None if there are none, or two of that size."""
    ordered = sorted(suiting, key=lambda volume: volume.capacity)
    if any(first.capacity == second.capacity for first, second in pairwise(ordered[:2])):
        return None
    return ordered[0] if ordered else None


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
