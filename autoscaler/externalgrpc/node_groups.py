"""Node groups: the launchable nodes of the pools, in Cluster Autoscaler's terms. Pure.

A group is one kind of node: pool, instance type, capacity type, zone and driver set. Capacity blocks and reservations
are groups of their own. One zone each, because Cluster Autoscaler assumes that all nodes of a group are equal: it
decides about volumes and topology spread by the group's template, and balances groups that differ in their zone.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from itertools import zip_longest
from typing import Any, Final

from autoscaler.lifecycle.provisioned_node import counts_against_limits, has_come, has_failed, is_leaving, is_over
from autoscaler.model.capacity import CapacityPool
from autoscaler.model.pod import Pod
from autoscaler.model.provisioned_node import OfferingRef, ProvisionedNode
from autoscaler.model.snapshot import Snapshot
from autoscaler.model.verdict import Fits
from autoscaler.planning.demand.bundles import bundles_of, classes_of
from autoscaler.planning.demand.demand import claim_keys, pending, pending_pods
from autoscaler.planning.demand.scope import Scopes, as_if_ours
from autoscaler.planning.placement.packing_input import PackingInput, build_packing_input
from autoscaler.planning.policy import Policy
from autoscaler.planning.supply.candidates import Candidate
from autoscaler.planning.supply.limits import limits_of
from autoscaler.planning.work import Ledger
from autoscaler.scheduling.world import World
from instance_catalog.dataclass import dataclass, field, replace
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes import labels
from instance_catalog.kubernetes.taint import Taint
from instance_catalog.types.catalog import Catalog
from instance_catalog.types.instance_type import CapacityType
from instance_catalog.types.node_allocatable import node_allocatable

# Keeps pods away from Nodes that have no machine.
EXEMPLAR_TAINT: Final = Taint(labels.CA_STATUS_TAINT, "", "NoSchedule")
# One call adds no more than that: a LaunchBatch holds as many nodes.
MOST_AT_ONCE: Final = 100


@dataclass(frozen=True, slots=True)
class GroupKey:
    """The common properties of a group's nodes. `held` is the CapacityBlock, or the reservation of the provider."""

    pool: str
    instance_type: str
    capacity_type: CapacityType
    zone: str
    held: str
    drivers: tuple[str, ...]

    @property
    def id(self) -> str:
        """The same as long as the pool exists, also after a restart: pool/type/capacity type/zone[/held]/drivers."""
        digest = hashlib.sha256("\n".join(self.drivers).encode()).hexdigest()[:8]
        parts = (self.pool, self.instance_type, self.capacity_type, self.zone, self.held, digest)
        return "/".join(part for part in parts if part)


def key_of(pool: str, offering: OfferingRef, drivers: tuple[str, ...]) -> GroupKey:
    """The group of an offering. A block's reservation may be found later, and does not change its group."""
    held = offering.block or offering.reservation
    return GroupKey(pool, offering.instance_type, offering.capacity_type, offering.zone, held, drivers)


def key_of_node(node: ProvisionedNode) -> GroupKey:
    return key_of(node.pool, node.offering, node.prediction.drivers)


def key_of_candidate(candidate: Candidate) -> GroupKey:
    return key_of(candidate.pool.name, candidate.offering, candidate.profiles)


@dataclass(frozen=True, slots=True)
class Launchable:
    """The groups that can be launched now, as of a reconcile. `snapshot` has the pools that Cluster Autoscaler decides
    about.

    `candidates` are by the ids of their groups. `feasible` are ids of groups that fit a pending pod, the cheapest of
    each kind of pod first; `cheapest` is, by pod, the group with the lowest price.
    """

    now: datetime
    snapshot: Snapshot
    catalog: Catalog
    policy: Policy
    candidates: Mapping[str, Candidate] = field(default_factory=FrozenMap)
    feasible: tuple[str, ...] = ()
    cheapest: Mapping[str, str] = field(default_factory=FrozenMap)
    claims: bool = False  # true if one of these pods has a claim
    fearless: str = ""  # a pending pod with a claim that would be bound to an exemplar; "" if there is none
    batches: frozenset[str] = frozenset()  # names of the LaunchBatches that the account of the guards counts

    @property
    def pools(self) -> frozenset[str]:
        return frozenset(pool.name for pool in self.snapshot.pools)


def launchable_of(
    snapshot: Snapshot,
    catalog: Catalog,
    policy: Policy,
    now: datetime,
    *,
    most: int,
    batches: frozenset[str] = frozenset(),
) -> Launchable:
    """The offers of the pools that Cluster Autoscaler decides about, and up to `most` groups for pending pods."""
    ordered = tuple(pool for pool in snapshot.pools if pool.ordered)
    theirs = as_if_ours(replace(snapshot, pools=ordered))
    if not ordered:
        return Launchable(now, theirs, catalog, policy, batches=batches)
    own = tuple(pool for pool in snapshot.pools if pool.acts and not pool.ordered)
    packing = _packing(theirs, own, catalog, policy, now)
    candidates: dict[str, Candidate] = {}
    for candidate in packing.candidates:
        candidates.setdefault(key_of_candidate(candidate).id, candidate)
    found = [_feasible(packing, item, most) for item in range(len(packing.classes))]
    turns = (found_id for turn in zip_longest(*found) for found_id in turn if found_id is not None)
    cheapest = {
        pod.key: ids[0]
        for bundle_class, ids in zip(packing.classes, found, strict=True)
        for bundle in bundle_class.members
        for pod in (bundle.pods if ids else ())
    }
    feasible = tuple(dict.fromkeys(turns))[:most]
    claiming = [pod for pod in pending_pods(snapshot) if pod.claims]
    claims = any(pod.key in cheapest for pod in claiming)
    fearless = next((pod.key for pod in claiming if any(t.tolerates(EXEMPLAR_TAINT) for t in pod.tolerations)), "")
    return Launchable(now, theirs, catalog, policy, candidates, feasible, cheapest, claims, fearless, batches)


def _packing(
    snapshot: Snapshot, own: tuple[CapacityPool, ...], catalog: Catalog, policy: Policy, now: datetime
) -> PackingInput:
    """The pending pods and all offers of the pools. Present nodes are left out: the caller knows them.

    For pods that a pool in `own` serves the loop launches, and no group is listed: both would launch.
    """
    world = World.of(snapshot, catalog.drivers.values())
    scopes = Scopes.of(snapshot, pending_pods(snapshot), world.extended_resources)
    wanted: Sequence[Pod] = pending(snapshot, scopes).wanted
    if own:
        ours = Scopes.of(replace(snapshot, pools=own), wanted, world.extended_resources)
        wanted = [pod for pod in wanted if ours.refusals(pod)]
    classes = classes_of(bundles_of(wanted, snapshot.claims), snapshot)
    ledger = Ledger.of(classes, policy, now=now)
    return build_packing_input(classes, world, snapshot, catalog, scopes=scopes, policy=policy, now=now, ledger=ledger)


def _feasible(packing: PackingInput, item: int, most: int) -> list[str]:
    """Ids of the cheapest groups whose empty node takes the class."""
    found: dict[str, None] = {}
    for index in packing.by_cost:
        if len(found) == most or packing.trials.ledger.refused(item):
            break
        candidate = packing.candidates[index]
        # A group grows node by node, which a slice of several hosts does not.
        if not candidate.pool.acts or candidate.hosts > 1 or packing.bar(index, item) is not None:
            continue
        if isinstance(packing.trials.verdict(packing.shape_of[index], item), Fits):
            found.setdefault(key_of_candidate(candidate).id)
    return list(found)


@dataclass(frozen=True, slots=True)
class NodeGroup:
    """A group with its nodes. `candidate` None: none of its nodes can be launched any more. `most` is its largest
    size."""

    id: str
    candidate: Candidate | None
    nodes: tuple[ProvisionedNode, ...]
    most: int

    @property
    def size(self) -> int:
        """Its target size: nodes that failed count until they are deleted, leaving nodes do not."""
        return sum(map(is_counted, self.nodes))


def is_counted(node: ProvisionedNode) -> bool:
    """True if a node counts in its group's size."""
    return not (node.deleting or is_leaving(node) or is_over(node))


def is_running(node: ProvisionedNode) -> bool:
    """True if its Node has registered."""
    return has_come(node) and not has_failed(node)


def groups_of(
    launchable: Launchable, nodes: Iterable[ProvisionedNode], *, uncharged: int = 0
) -> Mapping[str, NodeGroup]:
    """All groups by id: those that can be launched, and those that only have nodes.

    `nodes` are all there are, of every pool. Of these `uncharged` were ordered and are not counted by the account of
    the guards yet."""
    provisioned = tuple(nodes)
    mine: dict[str, list[ProvisionedNode]] = {}
    for node in provisioned:
        if node.pool in launchable.pools and not is_over(node):
            mine.setdefault(key_of_node(node).id, []).append(node)
    room = _Room(launchable, provisioned, uncharged)
    found: dict[str, NodeGroup] = {}
    for name in (*launchable.candidates, *(name for name in mine if name not in launchable.candidates)):
        candidate, own = launchable.candidates.get(name), tuple(mine.get(name, ()))
        found[name] = NodeGroup(name, candidate, own, sum(map(is_counted, own)) + room.of(candidate))
    return found


def listed(launchable: Launchable, groups: Mapping[str, NodeGroup], *, most: int) -> tuple[NodeGroup, ...]:
    """The groups that Cluster Autoscaler gets to see: all with nodes, and of the others up to `most` in all."""
    with_nodes = [group for group in groups.values() if group.nodes]
    feasible = (groups[name] for name in launchable.feasible if name in groups)
    others = [group for group in feasible if group.most and not group.nodes]
    return (*with_nodes, *others[: max(0, most - len(with_nodes))])


def awaits_claims(launchable: Launchable, group: NodeGroup) -> bool:
    """True if the group has no node, one may be launched, and pods with claims wait that such groups would fit.

    False while a pod waits that tolerates every taint: it would be bound to the exemplar, and never start.
    """
    candidate = group.candidate
    if candidate is None or not candidate.pool.acts or group.nodes or not group.most:
        return False
    return group.id in launchable.feasible and launchable.claims and not launchable.fearless


class _Room:
    """The number of further nodes that limits, guards and blocks admit."""

    def __init__(self, launchable: Launchable, provisioned: tuple[ProvisionedNode, ...], uncharged: int) -> None:
        now = replace(launchable.snapshot, provisioned=provisioned)
        alive = sum(map(counts_against_limits, provisioned))
        self._limits = (
            limits_of(now, launchable.catalog, launchable.policy, launchable.now)
            if alive or launchable.candidates
            else ()
        )
        self._uncharged = uncharged

    def of(self, candidate: Candidate | None) -> int:
        """For one group, if nothing is added to the others."""
        if candidate is None or candidate.barred is not None or not candidate.pool.acts:
            return 0
        most = MOST_AT_ONCE
        for limit in self._limits:
            use = limit.uses(candidate)
            left = limit.remaining - (self._uncharged if limit.guard and limit.resource == "nodes" else 0)
            if use:
                most = min(most, max(0, int(left // use)))
        return most


def price_of(group: NodeGroup) -> Decimal | None:
    """Dollars per hour of a node; prepaid ones cost nothing more. None: not known."""
    if group.candidate is not None:
        return group.candidate.usd_per_hour
    return group.nodes[0].offering.usd_per_hour if group.nodes else None


def described(group: NodeGroup) -> Iterator[str]:
    """The description of a group for users, in Cluster Autoscaler's log."""
    candidate = group.candidate
    if candidate is None:
        yield "the pool no longer offers it"
        return
    yield f"drivers {', '.join(candidate.profiles) or 'none'}"
    price = candidate.usd_per_hour
    yield "no price" if price is None else f"{price} USD/h"
    if candidate.barred is not None:
        yield f"not launched now: {candidate.barred.code.value}"


_SECONDS = 3600


def hours_of(asked: Mapping[str, Any]) -> float:
    """Hours from `startTimestamp` to `endTimestamp`, never negative."""
    start, end = (_seconds(asked.get(name, {})) for name in ("startTimestamp", "endTimestamp"))
    return max(0.0, end - start) / _SECONDS


def _seconds(timestamp: Mapping[str, int]) -> float:
    return float(timestamp.get("seconds", 0) + timestamp.get("nanos", 0) / 1e9)


def share_of(key: str, candidate: Candidate, snapshot: Snapshot) -> float:
    """The part of a node that a pod takes: the largest of its parts of CPU, memory and accelerators, at most 1."""
    pod = next((found for found in snapshot.pods if found.key == key), None)
    if pod is None:
        return 1.0
    shares = [0.0]
    allocatable = node_allocatable(candidate.instance_type, reserved=candidate.pool.kubelet_reserved)
    for resource in ("cpu", "memory"):
        asked = sum(float(box.requests[resource].value) for box in pod.containers if resource in box.requests)
        if resource in allocatable and allocatable[resource].sign > 0:
            shares.append(asked / float(allocatable[resource].value))
    if claim_keys(pod) and candidate.instance_type.accelerator_count > 0:
        claims = [snapshot.claims[name] for name in claim_keys(pod) if name in snapshot.claims]
        devices = sum(getattr(request, "count", 1) for claim in claims for request in claim.requests)
        shares.append(devices / float(candidate.instance_type.accelerator_count))
    return min(1.0, max(shares))
