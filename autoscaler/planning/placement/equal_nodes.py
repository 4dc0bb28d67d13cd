"""Schedules equal new nodes with equal pods once: the others get the same devices under their own names.

Only for pods that are decided separately (device_states.claims_apart), that do not depend on the name of a node, and
whose claims use devices of the node itself. Pods are equal as well if their claims match the same devices of every
machine, as far as the packing knows.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

from autoscaler.dra.allocation.results import owner_of_shares, with_shares_of
from autoscaler.model.resource_claim import Allocation
from autoscaler.model.verdict import Fits
from autoscaler.planning.demand.bundles import Bundle
from autoscaler.planning.placement.device_states import PodApart, claims_apart
from autoscaler.planning.placement.trial import PackingOracle
from autoscaler.planning.supply.candidates import Candidate
from autoscaler.scheduling.node_state import NodeState
from autoscaler.scheduling.world import World
from instance_catalog.dataclass import dataclass, replace
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes import labels
from instance_catalog.kubernetes.node_selector import NodeSelector


@dataclass(frozen=True, slots=True)
class _Scheduled:
    """A scheduled node: its name, its pods, their allocations, and the amounts that were free before."""

    node: str
    pods: tuple[PodApart, ...]
    verdicts: tuple[Fits, ...]
    free: Mapping[str, int]


class EqualNodes:
    """Allocations on nodes of a candidate, by the requests of their pods. `world`: before anything was placed.

    `trials` was asked about these pods.
    """

    def __init__(self, world: World, trials: PackingOracle | None = None) -> None:
        self._world = world
        self._trials = trials
        self._numbers: dict[Hashable, int] = {} if trials is None else trials.numbers
        self._scheduled: dict[Hashable, _Scheduled] = {}

    def apart(self, bundles: Sequence[Bundle]) -> tuple[PodApart, ...] | None:
        """The pods of the bundles, if each of them is decided by itself."""
        found: list[PodApart] = []
        for bundle in bundles:
            pod = claims_apart(bundle, self._world, self._numbers)
            if pod is None or pod.pod.affinity or pod.pod.node_name or labels.HOSTNAME in pod.pod.node_selector:
                return None
            found.append(pod)
        return tuple(found)

    def remember(
        self, candidate: Candidate, pods: tuple[PodApart, ...], node: NodeState, verdicts: Sequence[Fits]
    ) -> bool:
        """Cache the allocations of the pods on the new node, if they use only the node's own devices: no other node
        can use these. False if they are not cached."""
        name, here = node.node.name, NodeSelector.for_node(node.node.name)
        allocations = [allocation for verdict in verdicts for allocation in verdict.allocations.values()]
        own = all(a.node_selector in (None, here) and all(d.pool == name for d in a.devices) for a in allocations)
        if not own or len(verdicts) != len(pods):
            return False
        free = {resource: node.free(resource) for resource in node.allocatable}
        self._scheduled[self._key(candidate, pods)] = _Scheduled(name, pods, tuple(verdicts), free)
        return True

    def repeated(self, candidate: Candidate, pods: tuple[PodApart, ...], node: str) -> list[Fits] | None:
        """The allocations of the pods on another node of the candidate; None if no such pods were scheduled on one.

        Only their claims must be equal: their other amounts are compared with those of a new node.
        """
        known = self._scheduled.get(self._key(candidate, pods))
        if known is None or not _suffices(known.free, pods):
            return None
        found, here = list[Fits](), NodeSelector.for_node(node)
        for old, new, verdict in zip(known.pods, pods, known.verdicts, strict=True):
            pairs = zip(old.claims, new.claims, strict=True)
            allocations = {
                mine.key: with_shares_of(owner_of_shares(mine), _moved(verdict.allocations[theirs.key], here, node))
                for theirs, mine in pairs
            }
            found.append(Fits(FrozenMap(allocations), verdict.preference))
        return found

    def _key(self, candidate: Candidate, pods: Sequence[PodApart]) -> Hashable:
        """Uses the identity of candidates, which live as long as the plan is made."""
        if self._trials is None:
            return id(candidate), tuple((pod.wants, pod.selects) for pod in pods)
        return id(candidate), tuple(map(self._trials.alike, pods))


def _suffices(free: Mapping[str, int], pods: Sequence[PodApart]) -> bool:
    """True if the free amounts are enough for all pods together."""
    wanted: dict[str, int] = {}
    for pod in pods:
        for resource, amount in pod.amounts.items():
            wanted[resource] = wanted.get(resource, 0) + amount
    return all(amount <= free.get(resource, 0) for resource, amount in wanted.items())


def _moved(allocation: Allocation, here: NodeSelector, node: str) -> Allocation:
    devices = tuple(replace(device, pool=node) for device in allocation.devices)
    return Allocation(devices, here if allocation.node_selector else None, None)
