"""From the optimizer's answer to planned nodes: names, replay, placements.

The chosen nodes get their names and slices, all of them join the world, and every bundle is placed again through `fit`,
now with everything else in sight. What does not hold in that replay is not in the plan.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from autoscaler.model.plan import PlannedNode, Target
from autoscaler.model.provisioned_node import OfferingRef, Prediction
from autoscaler.model.reason import Reason
from autoscaler.model.snapshot import Snapshot
from autoscaler.model.verdict import Fits
from autoscaler.planning.bundles import Bundle
from autoscaler.planning.candidates import Candidate
from autoscaler.planning.existing import Placed
from autoscaler.planning.hypothetical import Hypothetical, hypothetical
from autoscaler.planning.units import DeviceUnits, devices_of
from autoscaler.scheduling.fit import fit
from autoscaler.scheduling.world import World
from instance_catalog.prediction.concrete import for_node
from instance_catalog.prediction.predict import PLACEHOLDER_NODE
from instance_catalog.resource_slice import ResourceSlice

_LONGEST_PREFIX = 48  # a DNS label has 63 characters


@dataclass(frozen=True, slots=True)
class Purchase:
    """A node to buy: the candidate, the bundles it is for, further offerings that take the same bundles."""

    candidate: Candidate
    bundles: tuple[Bundle, ...]
    alternates: tuple[OfferingRef, ...] = ()
    reasons: tuple[Reason, ...] = ()


@dataclass(frozen=True, slots=True)
class Launches:
    """The planned nodes, what they take, the bundles that did not fit in the replay, and the world with all of it."""

    nodes: tuple[PlannedNode, ...]
    placed: tuple[Placed, ...]
    failed: tuple[Bundle, ...]
    world: World


def launch(purchases: Sequence[Purchase], world: World, snapshot: Snapshot, catalog_digest: str) -> Launches:
    """Replay the purchases in the world."""
    taken = {*world.nodes, *(node.node_name for node in snapshot.provisioned)}
    names: list[str] = []
    futures: list[Hypothetical] = []
    for purchase in purchases:
        name = node_name(purchase, taken)
        taken.add(name)
        names.append(name)
        futures.append(hypothetical(purchase.candidate, snapshot, name=name))
        world = futures[-1].added_to(world)
    placed: list[Placed] = []
    failed: list[Bundle] = []
    # The scheduler's order: more important pods first, whatever node they go to.
    queue = sorted(
        ((bundle, name) for purchase, name in zip(purchases, names, strict=True) for bundle in purchase.bundles),
        key=lambda entry: -entry[0].priority,
    )
    for bundle, name in queue:
        verdict = fit(bundle.pods, name, world)
        if isinstance(verdict, Fits):
            world = world.placed(bundle.pods, name, verdict)
            placed.append(Placed(bundle, name, Target.NEW, verdict))
        else:
            failed.append(bundle)
    nodes = tuple(
        _planned(purchase, future, [p for p in placed if p.node == name], catalog_digest)
        for purchase, future, name in zip(purchases, futures, names, strict=True)
    )
    return Launches(nodes, tuple(placed), tuple(failed), world)


def node_name(purchase: Purchase, taken: Iterable[str]) -> str:
    """A name that follows from the pool, the offering and the pods: the same plan again has the same names."""
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
    prefix = purchase.candidate.pool.name[:_LONGEST_PREFIX].rstrip("-.")
    names = set(taken)
    for attempt in range(len(names) + 1):
        digest = hashlib.sha256("\n".join([*facts, str(attempt)]).encode()).hexdigest()
        if (name := f"{prefix}-{digest[:10]}") not in names:
            return name
    return f"{prefix}-{len(names)}"


def _planned(purchase: Purchase, future: Hypothetical, placed: Sequence[Placed], catalog_digest: str) -> PlannedNode:
    candidate = purchase.candidate
    units = DeviceUnits(future.slices)
    used = [d for d in devices_of(a for p in placed for a in p.verdict.allocations.values()) if d in units.by_device]
    return PlannedNode(
        name=future.node.name,
        pool=candidate.pool.name,
        drivers=candidate.profiles,
        offerings=(candidate.offering, *purchase.alternates),
        node=future.node,
        slices=future.slices,
        pods=tuple(pod.key for p in placed for pod in p.bundle.pods),
        devices_used=tuple(sorted(set(used))),
        devices_total=units.total(device.driver for device in used),
        usd_per_hour=candidate.usd_per_hour,
        prediction=Prediction(
            instance_type=candidate.instance_type.name,
            drivers=candidate.profiles,
            catalog_digest=catalog_digest,
            slices_digest=digest_of(future.slices),
        ),
        reasons=purchase.reasons,
    )


def digest_of(slices: Iterable[ResourceSlice]) -> str:
    """Identifies what was predicted, whatever the node is called: nodes alike in it are launched together."""
    return hashlib.sha256(repr(for_node(slices, PLACEHOLDER_NODE)).encode()).hexdigest()[:16]
