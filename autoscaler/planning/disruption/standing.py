"""Which answers of tried moves still stand: a node is worth another try only if its pods may have more room.

While other nodes only become fuller, no move becomes possible or cheaper. A try is repeated at once if a node on which
one of its pods may fit has more room, or stays for other pods now. A pod may fit if amounts and the number of devices
allow it; which devices they are is not looked at.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Final

from autoscaler.model.pod import Pod, WhenUnsatisfiable
from autoscaler.model.provisioned_node import ProvisionedNode
from autoscaler.model.reason import Code, Reason
from autoscaler.model.resource_claim import DeviceRequest, ResourceClaim
from autoscaler.model.snapshot import Snapshot
from autoscaler.planning.demand.demand import claim_keys
from autoscaler.planning.disruption.without_nodes import as_pending
from autoscaler.scheduling.resources import pod_requests, units
from instance_catalog.dataclass import dataclass, replace
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.quantity import Quantity
from instance_catalog.kubernetes.resource_slice import ResourceSlice
from instance_catalog.types.catalog import Catalog

_ANY: Final = 1 << 62  # of devices that several claims can share


@dataclass(frozen=True, slots=True)
class Occupancy:
    """A node as moves see it: its `pods` by uid, its amounts and devices, and in `state` what else decides which pods
    fit. Pods that every node has do not count."""

    pods: frozenset[str]
    allocatable: FrozenMap[str, Quantity]
    slices: tuple[ResourceSlice, ...]
    state: tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Outline:
    """The nodes by name, and the `sources` on which every answer depends."""

    nodes: FrozenMap[str, Occupancy]
    sources: tuple[object, ...]


NO_OUTLINE: Final = Outline(FrozenMap(), ())


@dataclass(frozen=True, slots=True)
class Needs:
    """The least that a node must have for a pod: amounts in `units` by resource, and a number of devices."""

    amounts: tuple[tuple[str, int], ...]
    devices: int


@dataclass(frozen=True, slots=True)
class Standing:
    """The answer for a node (`node_name`): what its pods need; None if pods elsewhere decide where they fit. `limited`:
    a pod had no place at all, perhaps because of a limit."""

    node_name: str
    needs: tuple[Needs, ...] | None
    limited: bool


def outline_of(
    snapshot: Snapshot, pods: Mapping[str, Sequence[Pod]], closed: frozenset[str], catalog: Catalog, now: datetime
) -> Outline:
    """`pods`: by name of their node. `closed`: nodes that nothing moves to."""
    sources = (snapshot.pools, snapshot.blocks, snapshot.classes, snapshot.taint_rules, catalog.digest)
    slices: dict[str, list[ResourceSlice]] = {}
    for slice_ in snapshot.slices:
        if slice_.reach.node_name is not None:
            slices.setdefault(slice_.reach.node_name, []).append(slice_)
    nodes = {
        node.name: Occupancy(
            frozenset(pod.uid or pod.key for pod in pods.get(node.name, ())),
            node.allocatable,
            tuple(slices.get(node.name, ())),
            (node.unschedulable, node.taints, node.ready, node.labels, node.name in closed),
        )
        for node in snapshot.nodes
    }
    return Outline(FrozenMap(nodes), (*sources, *_avoided(snapshot, now)))


def with_answers(
    standing: FrozenMap[str, Standing],
    tried: Sequence[ProvisionedNode],
    answers: Mapping[str, Reason],
    pods: Mapping[str, Sequence[Pod]],
    claims: Mapping[str, ResourceClaim],
) -> FrozenMap[str, Standing]:
    """With the new answers for nodes that were `tried`, where a plan would leave the node for reasons of its own."""
    found = {
        node.name: Standing(node.node_name, _needs_of(own, claims), answers[node.name].code is Code.NO_OTHER_PLACE)
        for node in tried
        if _of_these(answers[node.name], own := pods[node.node_name])
    }
    return without_answers(standing, {node.name for node in tried}).with_items(found)


def without_answers(standing: FrozenMap[str, Standing], names: Collection[str]) -> FrozenMap[str, Standing]:
    """Without the answers for these ProvisionedNodes."""
    return FrozenMap({name: answer for name, answer in standing.items() if name not in names})


def still_standing(
    answers: FrozenMap[str, Standing],
    before: Outline,
    after: Outline,
    pods: Mapping[str, Sequence[Pod]],
    claims: Mapping[str, ResourceClaim],
) -> FrozenMap[str, Standing]:
    """Those of the answers that a try would give again."""
    if before.sources != after.sources:
        return FrozenMap()
    changed = {name for name, found in after.nodes.items() if before.nodes.get(name) != found}
    ended = not before.nodes.keys() <= after.nodes.keys()
    if not changed and not ended:
        return answers
    grown = [name for name in changed if _grew(before.nodes.get(name), after.nodes[name])]
    rooms = [_room(after.nodes[name], pods.get(name, ()), claims) for name in grown]
    return FrozenMap(
        {
            name: answer
            for name, answer in answers.items()
            if answer.node_name not in changed and not (ended and answer.limited)
            if answer.needs is not None and not any(_fits(one, room) for room in rooms for one in answer.needs)
        }
    )


def _avoided(snapshot: Snapshot, now: datetime) -> Iterator[object]:
    """The shortages and quarantines in force: their records stay after their end."""
    yield from (backoff for backoff in snapshot.backoffs if backoff.until > now)
    yield from (found for found in snapshot.quarantines if found.until is None or found.until > now)


def _grew(before: Occupancy | None, after: Occupancy) -> bool:
    """True if more pods may fit, or if the node stays now for pods that it did not have."""
    if before is None or replace(before, pods=after.pods) != after:
        return True
    return not before.pods or not before.pods <= after.pods


def _depends_on_others(pod: Pod, claims: Mapping[str, ResourceClaim]) -> bool:
    """True if pods elsewhere, when they come, can make room for it, or if it shares a claim."""
    spread = any(one.when_unsatisfiable is WhenUnsatisfiable.DO_NOT_SCHEDULE for one in pod.topology_spread)
    shared = any(len(claims[key].reserved_for) > 1 for key in claim_keys(pod) if key in claims)
    return bool(pod.pod_affinity) or spread or shared


def _of_these(answer: Reason, pods: Iterable[Pod]) -> bool:
    """True unless pods that wait elsewhere, or marks on the node, decide."""
    if answer.code is Code.NO_OTHER_PLACE:
        return any(pod.key == answer.detail["pod"] for pod in pods)
    return answer.code is Code.NOT_CHEAPER


def _needs_of(pods: Sequence[Pod], claims: Mapping[str, ResourceClaim]) -> tuple[Needs, ...] | None:
    coupled = any(_depends_on_others(pod, claims) for pod in pods)
    return None if coupled else tuple(dict.fromkeys(_needs(pod, claims) for pod in pods))


def _needs(pod: Pod, claims: Mapping[str, ResourceClaim]) -> Needs:
    devices = sum(_least_devices(claims[key]) for key in claim_keys(pod) if key in claims)
    return Needs(tuple(item for item in pod_requests(as_pending(pod)).items() if item[1]), devices)


def _least_devices(claim: ResourceClaim) -> int:
    return sum(min(map(_devices, request.alternatives), default=0) for request in claim.requests)


def _devices(request: DeviceRequest) -> int:
    if request.admin_access:
        return 0
    return request.count if request.allocation_mode == "ExactCount" else 1


def _room(node: Occupancy, pods: Sequence[Pod], claims: Mapping[str, ResourceClaim]) -> tuple[dict[str, int], int]:
    """At most what is free: amounts by resource, and the number of devices."""
    free = {name: units(name, amount) for name, amount in node.allocatable.items()}
    for name, amount in (asked for pod in pods for asked in pod_requests(pod).items()):
        if name in free:
            free[name] -= amount
    devices = [device for slice_ in node.slices for device in slice_.devices]
    if any(device.allow_multiple_allocations for device in devices):
        return free, _ANY
    return free, len(devices) - _used(pods, claims)


def _used(pods: Iterable[Pod], claims: Mapping[str, ResourceClaim]) -> int:
    keys = {key for pod in pods for key in claim_keys(pod)}
    held = (claims[key].allocation for key in keys if key in claims)
    return sum(not device.admin_access for found in held if found is not None for device in found.devices)


def _fits(needs: Needs, room: tuple[dict[str, int], int]) -> bool:
    free, devices = room
    return needs.devices <= devices and all(amount <= free[name] for name, amount in needs.amounts if name in free)
