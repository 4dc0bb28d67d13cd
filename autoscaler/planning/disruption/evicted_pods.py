"""A simulated cluster in which some running pods have left their node.

Claims that no other pod uses lose their devices, as the ResourceClaim controller releases them after the pods are gone.
Volumes stay attached: a pod that would need a volume at once on another node counts as not movable.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property

from autoscaler.dra.inventory.allocated import AllocatedState, PoolKey
from autoscaler.model.pod import Pod
from autoscaler.model.resource_claim import ResourceClaim
from autoscaler.planning.demand.demand import claim_keys
from autoscaler.planning.disruption.kinds import as_asked
from autoscaler.scheduling.node_state import NodeState
from autoscaler.scheduling.world import World
from instance_catalog.dataclass import dataclass, replace


@dataclass(frozen=True)
class PodRemoval:
    """A simulated cluster with indexes for removing pods: the users of each claim, and the claims of each pool."""

    world: World

    @cached_property
    def _users(self) -> Mapping[str, frozenset[str]]:
        """By key of a claim, the keys of the bound pods that name it."""
        found: dict[str, set[str]] = {}
        for state in self.world.states():
            for pod in state.pods:
                for key in claim_keys(pod):
                    found.setdefault(key, set()).add(pod.key)
        return {key: frozenset(pods) for key, pods in found.items()}

    @cached_property
    def _made_for(self) -> Mapping[str, tuple[str, ...]]:
        """By uid of a pod, the keys of the claims that were made for it."""
        found: dict[str, tuple[str, ...]] = {}
        for key, claim in self.world.claims.items():
            if claim.controller:
                found[claim.controller] = (*found.get(claim.controller, ()), key)
        return found

    @cached_property
    def _holders(self) -> Mapping[PoolKey, tuple[str, ...]]:
        """By pool, the keys of the claims with devices of it."""
        found: dict[PoolKey, dict[str, None]] = {}
        for key, claim in self.world.claims.items():
            for pool in _pools_of(claim):
                found.setdefault(pool, {})[key] = None
        return {pool: tuple(keys) for pool, keys in found.items()}

    def without(self, pods: Sequence[Pod], node: str) -> World:
        """The cluster after these pods have left the node and are pending again."""
        world, keys = self.world, {pod.key for pod in pods}
        named = {key for pod in pods for key in claim_keys(pod) if key in world.claims}
        made = {key for pod in pods if pod.uid for key in self._made_for.get(pod.uid, ())}
        # Whoever owns a claim, its users decide: its author may name any pod as its owner.
        freed = {key for key in named | made if self._users.get(key, frozenset()) <= keys}
        claims = {**world.claims, **{key: as_asked(world.claims[key]) for key in freed}}
        for key in freed - named:  # for an extended resource: made again on the pod's next node
            del claims[key]
        state = world.nodes[node]
        left = NodeState.of(state.node, tuple(pod for pod in state.pods if pod.key not in keys))
        return replace(
            world,
            nodes={**world.nodes, node: left},
            claims=claims,
            allocated=self._allocated(freed, claims),
        )

    def _allocated(self, freed: Iterable[str], claims: Mapping[str, ResourceClaim]) -> AllocatedState:
        touched = {pool for key in freed for pool in _pools_of(self.world.claims[key])}
        holders = dict.fromkeys(key for pool in touched for key in self._holders[pool])
        fresh = AllocatedState.of(claims[key] for key in holders if key in claims)
        pools = {key: use for key, use in self.world.allocated.pools.items() if key not in touched}
        return AllocatedState({**pools, **{key: fresh.pools[key] for key in touched if key in fresh.pools}})


def cordoned(world: World, names: Iterable[str]) -> World:
    """The cluster in which these nodes get no new pods."""
    closed = {
        name: replace(world.nodes[name], node=replace(world.nodes[name].node, unschedulable=True))
        for name in names
        if name in world.nodes
    }
    return replace(world, nodes={**world.nodes, **closed})


def uncordoned(world: World, before: World) -> World:
    """The cluster with its nodes as before and the pods that they have now."""
    opened = {
        name: state if state.node is before.nodes[name].node else replace(state, node=before.nodes[name].node)
        for name, state in world.nodes.items()
    }
    return replace(world, nodes=opened)


def _pools_of(claim: ResourceClaim) -> frozenset[PoolKey]:
    devices = claim.allocation.devices if claim.allocation is not None else ()
    return frozenset((result.driver, result.pool) for result in devices if not result.admin_access)
