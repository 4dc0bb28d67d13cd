"""The kinds of pods that use devices, running or pending; equal pods are one kind."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from autoscaler.lifecycle.reflect import occupies
from autoscaler.model.pod import Pod
from autoscaler.model.resource_claim import ResourceClaim
from autoscaler.model.virtual_pods import is_virtual
from autoscaler.planning.demand.bundles import Bundle, BundleClass, bundles_of, classes_of
from autoscaler.planning.demand.demand import claim_keys, pending_pods
from autoscaler.planning.demand.scope import requested_resources
from autoscaler.planning.disruption.free_units import accelerator_of
from autoscaler.planning.disruption.without_nodes import as_pending
from autoscaler.scheduling.world import World
from instance_catalog.dataclass import dataclass, replace
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.resource_slice import DeviceId


@dataclass(frozen=True, slots=True)
class Kind:
    """`sample` is a pending pod that represents `pods` pods; `claims` are its own, by key, not allocated.

    `accelerators`: those that some of these pods have.
    """

    sample: Bundle
    pods: int
    claims: Mapping[str, ResourceClaim]
    accelerators: frozenset[str]


def kinds_of(world: World, most: int) -> tuple[Kind, ...]:
    """At most `most` kinds, those with the most pods."""
    snapshot = world.snapshot
    pods = [_waiting(pod) for pod in (*filter(occupies, snapshot.pods), *pending_pods(snapshot)) if _uses(pod, world)]
    named = {key for pod in pods for key in claim_keys(pod) if key in world.claims}
    claims = {key: as_asked(world.claims[key]) for key in named}
    alone = replace(snapshot, pods=tuple(pods), claims=FrozenMap(claims))
    classes = classes_of(bundles_of(pods, claims), alone)
    counted = sorted(classes, key=lambda found: (-_pods(found), found.sample.key))[:most]
    models = dict(_models(world))
    return tuple(
        Kind(
            sample=found.sample,
            pods=_pods(found),
            claims={key: claims[key] for pod in found.sample.pods for key in claim_keys(pod) if key in claims},
            accelerators=frozenset(_held(found, world, models)),
        )
        for found in counted
    )


def as_asked(claim: ResourceClaim) -> ResourceClaim:
    """The claim before its allocation."""
    return replace(claim, allocation=None, reserved_for=(), device_conditions=FrozenMap())


def uses_devices(pod: Pod, world: World) -> bool:
    """True if it has claims, or extended resources that a DeviceClass serves."""
    served = world.extended_resources
    return any(entry.claim for entry in pod.claims) or any(name in served for name in requested_resources(pod))


def _uses(pod: Pod, world: World) -> bool:
    return not is_virtual(pod.key) and not pod.deleting and uses_devices(pod, world)


def _waiting(pod: Pod) -> Pod:
    """The pod before it ran, without its volumes: they would keep it on its node, and an equal pod has volumes of
    its own."""
    return pod if pod.node_name is None else replace(as_pending(pod), volumes=())


def _pods(found: BundleClass) -> int:
    return sum(len(bundle.pods) for bundle in found.members)


def _models(world: World) -> Iterator[tuple[DeviceId, str]]:
    for slice_ in world.snapshot.slices:
        for device in slice_.devices:
            yield DeviceId(slice_.driver, slice_.pool.name, device.name), accelerator_of(device)


def _held(found: BundleClass, world: World, models: Mapping[DeviceId, str]) -> Iterable[str]:
    keys = (key for bundle in found.members for pod in bundle.pods for key in claim_keys(pod))
    allocations = (world.claims[key].allocation for key in keys if key in world.claims)
    for allocation in allocations:
        for result in allocation.devices if allocation is not None else ():
            model = models.get(DeviceId(result.driver, result.pool, result.device), "")
            if model and not result.admin_access:
                yield model
