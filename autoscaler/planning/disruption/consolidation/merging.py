"""Finds nodes that are worth a try together: those of which one machine takes all pods, at less cost.

A plan without many nodes shows the machines that their pods would get. Most of these machines take pods of several
nodes, and some only exchange equal pods. So only the number of pods of each kind counts that a machine takes: the nodes
that run just these are worth a try, and a node whose pods would get an equal machine is not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Final

from autoscaler.model.plan import Plan, PlannedNode
from autoscaler.model.pod import Pod
from autoscaler.model.provisioned_node import ProvisionedNode
from autoscaler.model.snapshot import Snapshot
from autoscaler.planning.demand.bundles import bundles_of, classes_of
from autoscaler.planning.disruption.consolidation.moves import MoveContext
from autoscaler.planning.disruption.without_nodes import without_nodes
from instance_catalog.dataclass import dataclass

# The most sets that are tried, and the most nodes that one machine replaces.
_SETS: Final = 3
_NODES: Final = 16


@dataclass(frozen=True, slots=True)
class _Running:
    """A node with its price in USD per hour, and the number of its pods of each kind."""

    node: ProvisionedNode
    price: Decimal
    pods: Counter[int]


def dearest_first(
    nodes: Iterable[ProvisionedNode], prices: Mapping[str, Decimal], pods: Mapping[str, Sequence[Pod]]
) -> list[ProvisionedNode]:
    """Those that cost most for each of their pods first. `prices` by name of a ProvisionedNode, `pods` of a Node."""
    return sorted(nodes, key=lambda node: (-prices[node.name] / len(pods[node.node_name]), node.name))


def worth_a_try(nodes: Sequence[ProvisionedNode], context: MoveContext) -> list[tuple[ProvisionedNode, ...]]:
    """Sets of the nodes, those that may save most first."""
    pods = context.pods_of(nodes)
    without = without_nodes(context.snapshot, nodes, pods, context.first)
    kinds = dict(_kinds(without, {pod.key for pod in pods}))
    running = [
        _Running(node, context.prices[node.name], Counter(kinds[pod.key] for pod in context.pods[node.node_name]))
        for node in dearest_first(nodes, context.prices, context.pods)
    ]
    found = sorted(_replaced_by_one(running, kinds, context.attempt(without), context.known), key=lambda one: -one[0])
    return [nodes for _, nodes in found[:_SETS]]


def _kinds(without: Snapshot, keys: set[str]) -> Iterator[tuple[str, int]]:
    """The pods by key, with a number that is equal for equal pods."""
    pods = [pod for pod in without.pods if pod.key in keys]
    for number, kind in enumerate(classes_of(bundles_of(pods, without.claims), without)):
        yield from ((pod.key, number) for bundle in kind.members for pod in bundle.pods)


def _replaced_by_one(
    running: Sequence[_Running], kinds: Mapping[str, int], tried: Plan, known: Collection[str]
) -> Iterator[tuple[Decimal, tuple[ProvisionedNode, ...]]]:
    """What each launch saves per hour, with the nodes whose pods it takes; `known` are launches without any move."""
    takes = [
        (launch, Counter(kinds[key] for key in launch.pods if key in kinds))
        for launch in tried.launches
        if launch.name not in known and launch.usd_per_hour is not None
    ]
    left = list(running)
    changed = list[tuple[PlannedNode, Counter[int]]]()
    for launch, room in takes:
        equal = (one for one in left if _is_like(one.node, launch) and one.pods == room)
        same = next(equal, None)
        changed += [(launch, room)] if same is None else []
        left = [one for one in left if one is not same]
    for launch, room in sorted(changed, key=lambda one: (-one[1].total(), one[0].name)):
        chosen = list[_Running]()
        for one in left:
            if len(chosen) < _NODES and one.pods <= room:
                room -= one.pods
                chosen.append(one)
        left = [one for one in left if one not in chosen]
        saved = sum((one.price for one in chosen), -(launch.usd_per_hour or Decimal(0)))
        if len(chosen) > 1 and saved > 0:
            yield saved, tuple(one.node for one in chosen)


def _is_like(node: ProvisionedNode, launch: PlannedNode) -> bool:
    mine, other = node.offering, launch.offering
    return (mine.instance_type, mine.capacity_type) == (other.instance_type, other.capacity_type)
