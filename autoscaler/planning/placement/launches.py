"""Converts the optimizer's answer to planned nodes: names, replay, placements.

The chosen nodes get their names and slices and join the cluster. Then every bundle is placed again through `fit`, with
everything else present. Bundles that fail in this replay are not in the plan.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from datetime import timedelta
from itertools import count

from autoscaler.lifecycle.boot_times import boot_timeout
from autoscaler.model.node import Node
from autoscaler.model.plan import HandedOut, PlannedNode, Target
from autoscaler.model.pod import Pod
from autoscaler.model.provisioned_node import Prediction
from autoscaler.model.reason import Reason
from autoscaler.model.snapshot import Snapshot
from autoscaler.model.verdict import Fits, Verdict
from autoscaler.planning.demand.bundles import Bundle
from autoscaler.planning.naming import prefix_of
from autoscaler.planning.placement.equal_nodes import EqualNodes
from autoscaler.planning.placement.existing import Placed
from autoscaler.planning.placement.trial import PackingOracle
from autoscaler.planning.supply.candidates import Candidate
from autoscaler.planning.supply.hypothetical import Hypothetical, hypotheticals
from autoscaler.planning.supply.offering_labels import offering_keys, offering_labels
from autoscaler.planning.supply.units import DeviceUnits, devices_of
from autoscaler.scheduling.fit import fit
from autoscaler.scheduling.resources import pod_requests
from autoscaler.scheduling.world import World
from instance_catalog.dataclass import dataclass, replace
from instance_catalog.drivers.profile import DriverSet
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.resource_slice import ResourceSlice
from instance_catalog.prediction.concrete import for_node
from instance_catalog.prediction.device_plugins import driver_of_plugin, plugin_of
from instance_catalog.prediction.predict import PLACEHOLDER_NODE


@dataclass(frozen=True, slots=True)
class Purchase:
    """A node to buy: the candidate, its bundles, and further offerings that take the same bundles.

    `whole` names the slice of several hosts that it is a part of, which is bought as a whole or not at all.
    """

    candidate: Candidate
    bundles: tuple[Bundle, ...]
    alternates: tuple[Candidate, ...] = ()
    reasons: tuple[Reason, ...] = ()
    whole: str = ""


@dataclass(frozen=True, slots=True)
class Launches:
    """The planned nodes with their placements, the bundles that failed in the replay with reasons, and the cluster
    after it."""

    nodes: tuple[PlannedNode, ...]
    placed: tuple[Placed, ...]
    failed: tuple[tuple[Bundle, Verdict], ...]
    world: World


def launch(
    purchases: Sequence[Purchase],
    world: World,
    snapshot: Snapshot,
    *,
    catalog_digest: str,
    together: bool,
    trials: PackingOracle | None = None,
) -> Launches:
    """Replay the purchases. `together`: with all new nodes present, for pods with terms about other pods.

    Otherwise each new node is replayed alone beside the existing ones, with the earlier allocations. New nodes share no
    devices, and reading those of each other would cost the square of their number. `trials` chose the nodes.
    """
    futures = _named(purchases, world, snapshot)
    replay = _Replay(world)
    if together:
        for future in futures:
            replay.world = future.added_to(replay.world)
        pairs = [(bundle, f.node.name) for p, f in zip(purchases, futures, strict=True) for bundle in p.bundles]
        for bundle, name in _as_queued(pairs, snapshot):
            replay.place(bundle, name)
    else:
        equal_nodes = EqualNodes(world, trials)
        for purchase, future in zip(purchases, futures, strict=True):
            _place_alone(purchase, future, replay, equal_nodes)
        replay.settle()
    by_node: dict[str, list[Placed]] = {}
    for entry in replay.placed:
        by_node.setdefault(entry.node, []).append(entry)
    nodes: list[PlannedNode] = []
    used = {p.whole for p, future in zip(purchases, futures, strict=True) if future.node.name in by_node}
    alike = _Alike(catalog_digest)
    for purchase, future in zip(purchases, futures, strict=True):
        # A node is not bought if all of its bundles failed in the replay; held nodes have no bundles. Slices stay
        # whole.
        held = purchase.whole in used if purchase.whole else not purchase.bundles
        if future.node.name in by_node or held:
            nodes.append(_planned(purchase, future, by_node.get(future.node.name, []), alike))
    return Launches(tuple(nodes), tuple(replay.placed), tuple(replay.failed), replay.world)


def _as_queued(pairs: Iterable[tuple[Bundle, str]], snapshot: Snapshot) -> list[tuple[Bundle, str]]:
    """In the scheduler's order, on any node: otherwise a later pod that refuses others near it would take their
    places."""
    position = {pod.key: number for number, pod in enumerate(snapshot.pods)}
    return sorted(pairs, key=lambda pair: (pair[0].turn, position.get(pair[0].key, len(position))))


def _place_alone(purchase: Purchase, future: Hypothetical, replay: _Replay, equal_nodes: EqualNodes) -> None:
    """Place the bundles of one new node, without other new nodes."""
    name, pods = future.node.name, equal_nodes.apart(purchase.bundles)
    verdicts = equal_nodes.repeated(purchase.candidate, pods, name) if pods else None
    if verdicts is not None:
        for bundle, verdict in zip(purchase.bundles, verdicts, strict=True):
            replay.book(bundle, name, verdict)
        return
    if not pods:
        replay.settle()
    present, before = replay.world, len(replay.placed)
    replay.world = future.added_to(present)
    fresh = replay.world.nodes[name]
    for bundle in purchase.bundles:
        replay.place(bundle, name)
    after, placed = replay.world, replay.placed[before:]
    if pods and equal_nodes.remember(purchase.candidate, pods, fresh, [entry.verdict for entry in placed]):
        # No other node can use these devices, and copying what is in use takes longer with every node.
        replay.world = present
        replay.record(placed)
    else:
        replay.world = replace(present, claims=after.claims, allocated=after.allocated, volumes=after.volumes)


class _Replay:
    """A simulated cluster in which bundles are placed one after the other."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.placed: list[Placed] = []
        self.failed: list[tuple[Bundle, Verdict]] = []
        self._booked: list[tuple[Sequence[Pod], Fits]] = []

    def book(self, bundle: Bundle, name: str, verdict: Fits) -> None:
        """Record the bundle on a node that is not in the cluster, with its known verdict."""
        self.placed.append(Placed(bundle, name, Target.NEW, verdict))
        self.record(self.placed[-1:])

    def record(self, placed: Iterable[Placed]) -> None:
        """Record what these bundles use of a node that is not in the cluster."""
        self._booked += [(entry.bundle.pods, entry.verdict) for entry in placed]

    def settle(self) -> None:
        """Add the recorded bundles to the cluster, all at once, because each time everything in use is copied."""
        if self._booked:
            self.world = self.world.booked_each(self._booked)
            self._booked = []

    def place(self, bundle: Bundle, name: str) -> None:
        """Put the bundle onto the node if it fits now."""
        verdict = fit(bundle.pods, name, self.world)
        if isinstance(verdict, Fits):
            self.world = self.world.placed(bundle.pods, name, verdict)
            self.placed.append(Placed(bundle, name, Target.NEW, verdict))
        else:
            self.failed.append((bundle, verdict))


def _named(purchases: Sequence[Purchase], world: World, snapshot: Snapshot) -> list[Hypothetical]:
    """The planned nodes, each with its own name."""
    taken = {*world.nodes, *(name for node in snapshot.provisioned for name in (node.name, node.node_name))}
    # Names are predictable: pods that are bound to one already would run there before the pods that the node is for.
    taken |= {pod.node_name or "" for pod in snapshot.pods}
    named: list[tuple[Candidate, str]] = []
    numbers = count(1)
    for purchase in purchases:
        name = node_name(purchase, taken, numbers)
        taken.add(name)
        named.append((purchase.candidate, name))
    return hypotheticals(named, snapshot)


def node_name(purchase: Purchase, taken: Set[str], numbers: Iterator[int]) -> str:
    """A name derived from the pool, the offering and the pods: the same plan always has the same names.

    Without a CapacityPool nothing is launched, and the nodes are numbered: `numbers` are those that no node has yet.
    """
    if purchase.candidate.pool.implicit:
        return next(name for number in numbers if (name := f"new-node-{number}") not in taken)
    offering = purchase.candidate.offering
    pods = [pod.key for bundle in purchase.bundles for pod in bundle.pods]
    facts = [
        purchase.candidate.pool.name,
        offering.instance_type,
        offering.zone,
        offering.capacity_type,
        offering.block,
        *purchase.candidate.profiles,
        *pods,
    ]
    prefix = prefix_of(purchase.candidate.pool)
    attempt = 0
    while True:
        digest = hashlib.sha256("\n".join([*facts, str(attempt)]).encode()).hexdigest()
        if (name := f"{prefix}{digest[:10]}") not in taken:
            return name
        attempt += 1


@dataclass(frozen=True, slots=True)
class _Published:
    """The predicted devices of a type with drivers: the same for all such nodes, whatever their names."""

    prediction: Prediction
    units: DeviceUnits
    devices: frozenset[tuple[str, str]]  # driver and name


class _Alike:
    """Cached properties that many nodes of a plan share."""

    def __init__(self, catalog_digest: str) -> None:
        self._catalog_digest = catalog_digest
        self._published: dict[tuple[str, DriverSet], _Published] = {}
        self._labels: dict[int, Mapping[str, str]] = {}  # by identity: candidates live as long as the plan is made

    def published(self, candidate: Candidate, slices: tuple[ResourceSlice, ...]) -> _Published:
        """`slices` are those of a node of the candidate, under any name."""
        key = (candidate.instance_type.name, candidate.drivers)
        if key not in self._published:
            prediction = Prediction(key[0], candidate.profiles, self._catalog_digest, digest_of(slices))
            devices = frozenset((slice_.driver, device.name) for slice_ in slices for device in slice_.devices)
            self._published[key] = _Published(prediction, DeviceUnits(slices), devices)
        return self._published[key]

    def labels(self, candidate: Candidate) -> Mapping[str, str]:
        """The labels that follow from its offering."""
        if id(candidate) not in self._labels:
            self._labels[id(candidate)] = offering_labels(candidate)
        return self._labels[id(candidate)]


def _planned(purchase: Purchase, future: Hypothetical, placed: Sequence[Placed], alike: _Alike) -> PlannedNode:
    candidate, published = purchase.candidate, alike.published(purchase.candidate, future.predicted)
    held = devices_of(a for p in placed for a in p.verdict.allocations.values())
    used = {d for d in held if d.pool == future.node.name and (d.driver, d.device) in published.devices}
    handed_out = tuple(_handed_out(candidate, future.node, placed))
    return PlannedNode(
        name=future.node.name,
        pool=candidate.pool.name,
        drivers=candidate.profiles,
        offerings=(candidate.offering, *(other.offering for other in purchase.alternates)),
        node=replace(future.node, labels=_common_labels(purchase, future, alike)),
        predicted=future.predicted,
        pods=tuple(pod.key for p in placed for pod in p.bundle.pods),
        devices_used=tuple(sorted(used)),
        devices_total=published.units.total(device.driver for device in used) if used or not handed_out else 0,
        usd_per_hour=candidate.usd_per_hour,
        prediction=published.prediction,
        reasons=purchase.reasons,
        boot_timeout=candidate.pool.boot_timeout or _boot_timeout(purchase),
        whole=purchase.whole,
        handed_out=handed_out,
    )


def _handed_out(candidate: Candidate, node: Node, placed: Sequence[Placed]) -> Iterator[HandedOut]:
    """The node's device plugin resources that the pods use."""
    used: dict[str, int] = {}
    for requests in (pod_requests(pod) for entry in placed for pod in entry.bundle.pods):
        for resource, amount in requests.items():
            if amount and resource in node.allocatable and driver_of_plugin(resource) is not None:
                used[resource] = used.get(resource, 0) + amount
    for resource, amount in sorted(used.items()):
        plugin = plugin_of(resource)
        profiles = (p.text for p in candidate.drivers.profiles if plugin and p.driver == plugin.driver)
        free = node.allocatable[resource].int64_value() - amount
        yield HandedOut(resource, amount, max(free, 0), next(profiles, ""))


def _common_labels(purchase: Purchase, future: Hypothetical, alike: _Alike) -> FrozenMap[str, str]:
    """The labels that are equal for all offerings of the launch."""
    found, keys = dict(future.node.labels), offering_keys(purchase.candidate.pool)
    for other in purchase.alternates:
        theirs = alike.labels(other)
        for key in keys & found.keys():
            if theirs.get(key) != found[key]:
                del found[key]
    return FrozenMap(found) if len(found) != len(future.node.labels) else future.node.labels


def _boot_timeout(purchase: Purchase) -> timedelta:
    """The longest timeout of the machines that may be obtained."""
    others = (boot_timeout(other.instance_type) for other in purchase.alternates)
    return max(boot_timeout(purchase.candidate.instance_type), *others, timedelta(0))


def digest_of(slices: Iterable[ResourceSlice]) -> str:
    """A digest of the predicted devices without the node's name: nodes with equal digests are launched together."""
    return hashlib.sha256(repr(for_node(slices, PLACEHOLDER_NODE)).encode()).hexdigest()[:16]
