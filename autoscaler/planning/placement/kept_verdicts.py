"""Caches the verdicts of existing nodes about pods with equal requests, from one plan to the next.

Pending pods check every node with room, and few nodes change between two reconciles. A cached verdict is valid while
everything that decided it is unchanged: the node with its pods, the slices around it, and their devices in use. Only
pods whose verdict depends on nothing else are cached: not those with terms about other pods, volumes, host ports, or
extended resources that a class serves. A restart empties the cache.
"""

from __future__ import annotations

from collections.abc import Hashable
from contextlib import suppress
from typing import Final

from autoscaler.dra.inventory.allocated import UNUSED, PoolKey, PoolUse
from autoscaler.dra.outcome import FatalError
from autoscaler.model.reason import Code
from autoscaler.model.verdict import DoesNotFit, Fits, Verdict
from autoscaler.planning.demand.bundles import Bundle
from autoscaler.planning.placement.device_states import claims_apart
from autoscaler.scheduling.node_state import NodeState
from autoscaler.scheduling.world import World
from instance_catalog.dataclass import dataclass, field
from instance_catalog.drivers.facts import prepare_rules

REFUSED: Final = -1
_MOST: Final = 100_000  # verdicts of a few hundred bytes each
_PATIENCE: Final = 16  # assignments without such a pod; a reconcile has one or several


@dataclass(frozen=True, slots=True)
class _Kept:
    """`found`: the preference of the node for a pod that it takes, or REFUSED."""

    state: NodeState
    around: object  # its pools and their cache, one object until a slice changes; None if no claim reads them
    uses: tuple[tuple[PoolKey, PoolUse], ...]
    found: int


@dataclass(slots=True)
class KeptVerdicts:
    """By question and name of the node. The rules of one cluster at a time: other rules empty the cache.

    It belongs to one series of plans, and only one thread may use it at a time.
    """

    _rules: tuple[object, ...] = ()
    _known: dict[Hashable, dict[str, _Kept]] = field(default_factory=dict)
    _asked: dict[Hashable, int] = field(default_factory=dict)  # the assignment that used it last
    _assignments: int = 0

    def begin(self, world: World) -> None:
        """Start an assignment to the nodes of this cluster, and remove useless entries: those of nodes that are
        gone, and questions that were not used for some time."""
        self._assignments += 1
        rules = rules_of(world)
        if rules != self._rules or len(self) > _MOST:
            self._rules, self._known, self._asked = rules, {}, {}
        nodes = world.nodes
        for asked in list(self._known):
            found = self._known[asked]
            for name in [name for name in found if name not in nodes]:
                del found[name]
            if not found or self._asked[asked] < self._assignments - _PATIENCE:
                del self._known[asked], self._asked[asked]

    def about(self, bundle: Bundle, world: World) -> AboutNodes | None:
        """The cached verdicts for such a bundle; None if its verdicts must not be cached."""
        if (asked := question(bundle, world)) is None:
            return None
        self._asked[asked] = self._assignments
        return AboutNodes(self._known.setdefault(asked, {}), bool(bundle.pods[0].claims))

    def forget(self) -> None:
        self._known, self._asked = {}, {}

    def __len__(self) -> int:
        return sum(map(len, self._known.values()))


@dataclass(frozen=True, slots=True)
class AboutNodes:
    """Verdicts of nodes, by name, about one question; `claims`: whether it is about devices."""

    nodes: dict[str, _Kept]
    claims: bool

    def of(self, name: str, world: World) -> int | None:
        """The preference of the node for such a pod, or REFUSED; None if no valid verdict is cached."""
        found = self.nodes.get(name)
        if found is None or found.state is not (state := world.nodes[name]):
            return None
        pools = world.allocated.pools
        for key, use in found.uses:
            now = pools.get(key, UNUSED)
            if now is not use and now != use:
                return None
        if found.around is not None:
            try:
                return found.found if world.devices.pools_of(state.node) is found.around else None
            except FatalError:
                return None
        return found.found

    def keep(self, name: str, world: World, verdict: Verdict) -> None:
        """Cache the node's verdict, if only the node and the question decided it."""
        if isinstance(verdict, Fits):
            rules = [prepare_rules(d.driver, world.drivers) for a in verdict.allocations.values() for d in a.devices]
            if any(rule.one_compute_domain_per_node or rule.one_value_on_node for rule in rules):
                return  # the driver reads the claims of others
            found = verdict.preference
        elif isinstance(verdict, DoesNotFit) and all(r.code is not Code.PREPARE_REFUSED for r in verdict.reasons):
            found = REFUSED
        else:
            return
        state = world.nodes[name]
        if not self.claims:
            self.nodes[name] = _Kept(state, None, (), found)
            return
        with suppress(FatalError):
            around = world.devices.pools_of(state.node)
            keys = [(pool.driver, pool.name) for pool in around[0].pools]
            uses = tuple((key, world.allocated.use_of(*key)) for key in keys)
            if not any(use.shares or use.consumed for _, use in uses):
                self.nodes[name] = _Kept(state, around, uses, found)


def rules_of(world: World) -> tuple[object, ...]:
    """The rules of the cluster that decide about pods on nodes."""
    return world.profile, world.devices.taint_rules, world.drivers


def question(bundle: Bundle, world: World) -> Hashable | None:
    """Everything that decides about the bundle on a node beside the node itself; None if there is more that decides.

    Quantities compare by value, but upstream's arithmetic depends on how they are written: requests for an amount of a
    device are not cached.
    """
    pod = bundle.pods[0]
    related = pod.pod_affinity or pod.pod_anti_affinity or pod.topology_spread
    if related or world.repellers or (apart := claims_apart(bundle, world, {})) is None:
        return None
    if any(resource in world.contested for resource in apart.amounts):
        return None
    requests = [one for claim in apart.claims for one in claim.exact_requests]
    if any(request.capacity for request in requests):
        return None
    return (
        pod.namespace,
        tuple((claim.spec_key(), claim.deleting) for claim in apart.claims),
        tuple(world.devices.classes.get(request.device_class) for request in requests),
        (pod.node_name, pod.node_selector, pod.affinity, pod.tolerations, pod.node_features),
        tuple(sorted(apart.amounts.items())),
    )
