"""The future nodes of a pool: the input of the checks of drivers and device plugins."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from autoscaler.model.capacity import CapacityPool
from autoscaler.model.node import Node
from autoscaler.model.plan import Plan
from autoscaler.model.snapshot import NO_DRIVERS, DaemonSet, Snapshot
from autoscaler.planning.supply.candidates import Candidate
from autoscaler.planning.supply.drivers import readable
from autoscaler.planning.supply.hypothetical import future_node
from autoscaler.planning.supply.remembered import LastAnswers, Same
from instance_catalog.dataclass import dataclass, replace
from instance_catalog.drivers.profile import DriverSet
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.labels import NVIDIA_DEPLOY_PREFIX
from instance_catalog.prediction.predict import PLACEHOLDER_NODE
from instance_catalog.types.catalog import Catalog


@dataclass(frozen=True, slots=True)
class NodeToBe:
    """A node that the pool would launch, with the drivers it is predicted with."""

    instance_type: str
    node: Node
    drivers: DriverSet


def planned_nodes(pool: CapacityPool, plan: Plan, catalog: Catalog) -> tuple[NodeToBe, ...]:
    return tuple(
        NodeToBe(
            launch.offering.instance_type,
            launch.node,
            readable(launch.drivers, custom=catalog.drivers) or NO_DRIVERS,
        )
        for launch in plan.launches
        if launch.pool == pool.name
    )


_POSSIBLE: Final = LastAnswers[tuple[NodeToBe, ...]]()


def possible_nodes(pool: CapacityPool, candidates: tuple[Candidate, ...]) -> tuple[NodeToBe, ...]:
    """One node for each set of drivers and device kind that the pool may launch, in the pool's order."""
    return _POSSIBLE.of((pool, Same(candidates)), lambda: tuple(_possible(pool, candidates)))


def _possible(pool: CapacityPool, candidates: Iterable[Candidate]) -> Iterator[NodeToBe]:
    seen: set[object] = set()
    for candidate in candidates:
        accelerator = candidate.instance_type.accelerator
        kind = (candidate.drivers, accelerator.vendor if accelerator else "", candidate.block is None)
        if candidate.pool.name == pool.name and kind not in seen:
            seen.add(kind)
            node = future_node(candidate, PLACEHOLDER_NODE, allocatable=FrozenMap({}))
            yield NodeToBe(candidate.instance_type.name, node, candidate.drivers)


def as_labelled(node: Node, daemon_set: DaemonSet) -> Node:
    """The node after the GPU Operator has labelled it for its DaemonSets, as far as the pool does not forbid it."""
    added = {
        key: value
        for key, value in daemon_set.pod.node_selector.items()
        if key.startswith(NVIDIA_DEPLOY_PREFIX) and key not in node.labels
    }
    return replace(node, labels=FrozenMap({**node.labels, **added})) if added else node


def daemon_sets_of(profile: str, snapshot: Snapshot) -> tuple[DaemonSet, ...]:
    """The DaemonSets that run a driver profile such as "nvidia"."""
    return tuple(found for found in snapshot.daemon_sets if found.drivers.profile(profile))
