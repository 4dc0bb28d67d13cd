"""Which moves would be refused again: a node is worth another try only if its pods may have more room.

While other nodes only become fuller, no move becomes possible or cheaper. A try is repeated soon if a node on which
one of its pods may fit has more room, or stays for other pods now. A pod may fit if amounts and the number of devices
allow it; which devices they are is not looked at. Where more than one node decides, any change repeats the try.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from math import ceil
from typing import Final

from autoscaler.model.node import Node
from autoscaler.model.plan import Plan, Target
from autoscaler.model.pod import Pod, WhenUnsatisfiable
from autoscaler.model.provisioned_node import ProvisionedNode
from autoscaler.model.reason import Code, Reason
from autoscaler.model.resource_claim import DeviceRequest, ResourceClaim
from autoscaler.model.snapshot import Snapshot
from autoscaler.planning.demand.demand import claim_keys
from autoscaler.planning.disruption.running import remaining
from autoscaler.planning.disruption.without_nodes import as_pending
from autoscaler.planning.policy import Policy
from autoscaler.planning.supply.limits import Limit, limits_of
from autoscaler.scheduling.resources import pod_requests, units
from instance_catalog.dataclass import dataclass, replace
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes import labels
from instance_catalog.kubernetes.quantity import Quantity
from instance_catalog.kubernetes.resource_slice import ResourceSlice
from instance_catalog.types.catalog import Catalog

_ANY: Final = 1 << 62  # of devices that several claims can share
_NO_LIMITS: Final[FrozenMap[Limit, Decimal]] = FrozenMap()
_MUCH: Final = Decimal("inf")
_BEYOND: Final = ""  # in place of the name of a node, for devices that are of no single node


@dataclass(frozen=True, slots=True)
class Occupancy:
    """A node as moves see it: its `pods`, its amounts and devices, and in `state` what else decides which pods fit.
    `held` is what takes room beside the pods: the places of waiting pods, volumes that are still attached, and claims
    that are still allocated after their pods ended. `idle`: no pod needs the node; those that every node has do not
    count."""

    pods: tuple[Pod, ...]
    held: frozenset[object]
    idle: bool
    allocatable: FrozenMap[str, Quantity]
    slices: tuple[ResourceSlice, ...]
    state: tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Outline:
    """The nodes by name, and the `sources` on which every answer depends. `shared`: there are devices that several
    nodes can use. `scarce`: what is left of limits that the launches of a move may reach."""

    nodes: FrozenMap[str, Occupancy]
    sources: tuple[object, ...]
    shared: bool = False
    scarce: FrozenMap[Limit, Decimal] = _NO_LIMITS


NO_OUTLINE: Final = Outline(FrozenMap(), ())


@dataclass(frozen=True, slots=True)
class Needs:
    """The least that a node must have for a pod: amounts in `units` by resource, and a number of devices."""

    amounts: tuple[tuple[str, int], ...]
    devices: int


@dataclass(frozen=True, slots=True)
class RefusedMove:
    """The answer for a node (`node_name`): what its pods need; None if more than one node decides where they fit.
    `limited`: a pod had no place at all, perhaps because of a limit. `until`: when its pods should have ended, or will
    have run for so long that the saving is enough."""

    node_name: str
    needs: tuple[Needs, ...] | None
    limited: bool
    until: datetime | None = None


def outline_of(
    snapshot: Snapshot,
    plan: Plan,
    moving: Mapping[str, Sequence[Pod]],
    closed: frozenset[str],
    catalog: Catalog,
    now: datetime,
    policy: Policy,
) -> Outline:
    """`plan`: of the present cluster. `moving`: pods that not every node has, by name of their node. `closed`: nodes
    that nothing moves to."""
    pods, slices, held = _by_node(snapshot.pods), dict[str | None, list[ResourceSlice]](), _held(snapshot, plan)
    for slice_ in snapshot.slices:
        slices.setdefault(slice_.reach.node_name, []).append(slice_)
    nodes = {
        node.name: Occupancy(
            tuple(pods.get(node.name, ())),
            frozenset(held.get(node.name, ())),
            node.name not in moving and node.name not in held,
            node.allocatable,
            tuple(slices.get(node.name, ())),
            (node.name in closed, *_state(node)),
        )
        for node in snapshot.nodes
    }
    wide = frozenset(pod.uid or pod.key for pod in snapshot.pods if pod.bound and _repels_widely(pod))
    beyond = tuple(slices.get(None, ())), frozenset(held.get(_BEYOND, ())), wide
    kinds = snapshot.pools, snapshot.blocks, snapshot.classes, snapshot.taint_rules, snapshot.daemon_sets
    sources = (*kinds, *beyond, catalog.digest, *_avoided(snapshot, now))
    shared = any(slice_.devices for slice_ in beyond[0])
    return Outline(
        FrozenMap(nodes), sources, shared, _scarce(snapshot, moving, limits_of(snapshot, catalog, policy, now), catalog)
    )


def _scarce(
    snapshot: Snapshot, moving: Mapping[str, Sequence[Pod]], limits: Iterable[Limit], catalog: Catalog
) -> FrozenMap[Limit, Decimal]:
    """Launches that replace a node are no more than its pods, and cost less than it."""
    nodes = max(map(len, moving.values()), default=0)
    largest = max((found.accelerator_count for found in catalog.types.values()), default=0)
    dearest = max((node.offering.usd_per_hour or Decimal(0) for node in snapshot.provisioned), default=Decimal(0))
    enough = {"accelerators": Decimal(nodes * ceil(largest)), "usdPerHour": dearest}
    few = (limit for limit in limits if limit.remaining < enough.get(limit.resource, nodes))
    return FrozenMap({replace(limit, remaining=Decimal(0)): limit.remaining for limit in few})


def _state(node: Node) -> tuple[object, ...]:
    return node.unschedulable, node.taints, node.ready, node.labels, node.volume_limits, node.declared_features


def _by_node(pods: Iterable[Pod]) -> dict[str, list[Pod]]:
    found: dict[str, list[Pod]] = {}
    for pod in pods:
        if pod.node_name is not None and not pod.finished:
            found.setdefault(pod.node_name, []).append(pod)
    return found


def _held(snapshot: Snapshot, plan: Plan) -> dict[str, set[object]]:
    """What takes room beside the pods, by node. The resource claim controller needs some seconds to release the devices
    of a pod that ended, the attach/detach controller those of its volumes."""
    found: dict[str, set[object]] = {}
    for placement in plan.placements:
        if placement.target is not Target.NEW:
            found.setdefault(placement.node, set()).add(placement.pod)
    for attachment in snapshot.attachments:
        found.setdefault(attachment.node, set()).add(attachment)
    running = {pod.uid for pod in snapshot.pods if pod.bound}
    pools = {(one.driver, one.pool.name): one.reach.node_name or _BEYOND for one in snapshot.slices}
    for key, claim in snapshot.claims.items():
        if claim.allocation is not None and not any(consumer.uid in running for consumer in claim.reserved_for):
            for device in claim.allocation.devices:
                found.setdefault(pools.get((device.driver, device.pool), _BEYOND), set()).add(key)
    return found


def with_refusals(
    refused: FrozenMap[str, RefusedMove],
    tried: Sequence[ProvisionedNode],
    answers: Mapping[str, Reason],
    pods: Mapping[str, Sequence[Pod]],
    claims: Mapping[str, ResourceClaim],
    *,
    outline: Outline,
    again: Mapping[str, datetime],
    now: datetime,
) -> FrozenMap[str, RefusedMove]:
    """With the new answers for nodes that were `tried`, where a plan would leave the node for reasons of its own.
    `again`: when the saving would be enough, by name of the node."""
    found: dict[str, RefusedMove] = {}
    for node in tried:
        own, answer = pods[node.node_name], answers[node.name]
        if _of_these(answer, own):
            left = remaining(own, now)
            needs = _needs_of(own, claims, shared=outline.shared)
            limited = answer.code is Code.NO_OTHER_PLACE
            until = [*([] if left is None else [now + left]), *(again[name] for name in [node.name] if name in again)]
            found[node.name] = RefusedMove(node.node_name, needs, limited, min(until, default=None))
    return without_refusals(refused, {node.name for node in tried}).with_items(found)


def without_refusals(refused: FrozenMap[str, RefusedMove], names: Collection[str]) -> FrozenMap[str, RefusedMove]:
    """Without the answers for these ProvisionedNodes."""
    return FrozenMap({name: answer for name, answer in refused.items() if name not in names})


def still_refused(
    answers: FrozenMap[str, RefusedMove],
    before: Outline,
    after: Outline,
    claims: Mapping[str, ResourceClaim],
    now: datetime,
) -> FrozenMap[str, RefusedMove]:
    """Those of the answers that a try would give again."""
    if before.sources != after.sources or any(after.scarce.get(x, _MUCH) > left for x, left in before.scarce.items()):
        return FrozenMap()
    answers = FrozenMap({name: one for name, one in answers.items() if one.until is None or now < one.until})
    changed = {name for name, found in after.nodes.items() if before.nodes.get(name) != found}
    ended = not before.nodes.keys() <= after.nodes.keys()
    if not changed and not ended:
        return answers
    grown = [after.nodes[name] for name in changed if _grew(before.nodes.get(name), after.nodes[name])]
    rooms = [_room(node, claims) for node in grown]
    asked = {one for answer in answers.values() for one in answer.needs or ()}  # most pods are of a few kinds
    fitting = {one for one in asked if any(_fits(one, room) for room in rooms)}
    return FrozenMap(
        {
            name: answer
            for name, answer in answers.items()
            if answer.node_name not in changed and not (ended and answer.limited)
            if answer.needs is not None and fitting.isdisjoint(answer.needs)
        }
    )


def _avoided(snapshot: Snapshot, now: datetime) -> Iterator[object]:
    """The shortages and quarantines in force: their records stay after their end."""
    yield from (backoff for backoff in snapshot.backoffs if backoff.until > now)
    yield from (found for found in snapshot.quarantines if found.until is None or found.until > now)


def _grew(before: Occupancy | None, after: Occupancy) -> bool:
    """True if more pods may fit, or if the node stays now for pods that it did not have."""
    if before is None or before.idle or not before.held <= after.held:
        return True
    if (before.allocatable, before.slices, before.state) != (after.allocatable, after.slices, after.state):
        return True
    there = {pod.uid or pod.key: pod for pod in after.pods}
    return any(there.get(pod.uid or pod.key) != pod for pod in before.pods)


def _depends_on_others(pod: Pod, claims: Mapping[str, ResourceClaim]) -> bool:
    """True if pods elsewhere, when they come or go, can make room for it on a third node, or if it shares a claim."""
    spread = any(one.when_unsatisfiable is WhenUnsatisfiable.DO_NOT_SCHEDULE for one in pod.topology_spread)
    shared = any(len(claims[key].reserved_for) > 1 for key in claim_keys(pod) if key in claims)
    return bool(pod.pod_affinity) or _repels_widely(pod) or spread or shared


def _repels_widely(pod: Pod) -> bool:
    """True if its anti-affinity is about more than a node."""
    return any(term.topology_key != labels.HOSTNAME for term in pod.pod_anti_affinity)


def _of_these(answer: Reason, pods: Iterable[Pod]) -> bool:
    """True unless pods that wait elsewhere, or marks on the node, decide."""
    if answer.code is Code.NO_OTHER_PLACE:
        return any(pod.key == answer.detail["pod"] for pod in pods)
    return answer.code is Code.NOT_CHEAPER


def _needs_of(pods: Sequence[Pod], claims: Mapping[str, ResourceClaim], *, shared: bool) -> tuple[Needs, ...] | None:
    """`shared`: there are devices that several nodes can use."""
    coupled = any(_depends_on_others(pod, claims) or (shared and pod.asks_for_devices) for pod in pods)
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


def _room(node: Occupancy, claims: Mapping[str, ResourceClaim]) -> tuple[dict[str, int], int]:
    """At most what is free: amounts by resource, and the number of devices.

    Where a node has none of an extended resource, a DeviceClass may serve it.
    """
    there = {name: units(name, amount) for name, amount in node.allocatable.items()}
    free = {name: amount for name, amount in there.items() if amount or "/" not in name}
    for name, amount in (asked for pod in node.pods for asked in pod_requests(pod).items()):
        if name in free:
            free[name] -= amount
    devices = {
        (slice_.driver, slice_.pool.name, device.name): device for slice_ in node.slices for device in slice_.devices
    }
    if any(device.allow_multiple_allocations for device in devices.values()):
        return free, _ANY
    return free, len(devices.keys() - _used(node.pods, claims))


def _used(pods: Iterable[Pod], claims: Mapping[str, ResourceClaim]) -> set[tuple[str, str, str]]:
    keys = {key for pod in pods for key in claim_keys(pod)}
    held = (claims[key].allocation for key in keys if key in claims)
    taken = (device for found in held if found is not None for device in found.devices)
    return {(device.driver, device.pool, device.device) for device in taken if not device.admin_access}


def _fits(needs: Needs, room: tuple[dict[str, int], int]) -> bool:
    free, devices = room
    return needs.devices <= devices and all(amount <= free[name] for name, amount in needs.amounts if name in free)
