"""The devices and shares of all allocated claims, as an immutable value.

Upstream's AllocatedState (k8s.io/dynamic-resource-allocation structured/schedulerapi, v0.36): three sets over the whole
cluster. Here they are kept per pool, so that a change copies one pool's entry and a node reads only its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from autoscaler.model.resource_claim import AllocatedDevice, Allocation, ResourceClaim
from instance_catalog.dataclass import dataclass, field, replace
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.quantity import Quantity

PoolKey: TypeAlias = tuple[str, str]  # driver, pool name
Consumed: TypeAlias = FrozenMap[str, Quantity]

_NOTHING: Consumed = FrozenMap()


@dataclass(frozen=True, slots=True)
class PoolUse:
    """The use of one pool: devices by name; shares as (device, share id); consumed capacity by device, summed."""

    exclusive: frozenset[str] = frozenset()
    shares: frozenset[tuple[str, str]] = frozenset()
    consumed: FrozenMap[str, Consumed] = field(default_factory=FrozenMap)

    def shared(self, device: str) -> bool:
        return any(name == device for name, _ in self.shares)


UNUSED = PoolUse()


@dataclass(frozen=True, slots=True)
class AllocatedState:
    """Devices in use in the cluster. It is a set, as upstream: a device added twice and removed once is free."""

    pools: Mapping[PoolKey, PoolUse] = field(default_factory=dict)

    @staticmethod
    def of(claims: Iterable[ResourceClaim]) -> AllocatedState:
        """The state after the allocations of these claims; claims without one are ignored."""
        return AllocatedState().plus(c.allocation for c in claims if c.allocation is not None)

    def use_of(self, driver: str, pool: str) -> PoolUse:
        return self.pools.get((driver, pool), UNUSED)

    def plus(self, allocations: Iterable[Allocation]) -> AllocatedState:
        """The state after these allocations were made."""
        pools, taken = dict(self.pools), dict[PoolKey, set[str]]()
        for result in (result for allocation in allocations for result in allocation.devices):
            if result.admin_access:
                continue
            key = (result.driver, result.pool)
            if result.share_id is None:  # nearly all: one copy of the set for all of them
                taken.setdefault(key, set()).add(result.device)
            else:
                pools[key] = _add_share(pools.get(key, UNUSED), result, result.share_id)
        for key, names in taken.items():
            use = pools.get(key, UNUSED)
            pools[key] = PoolUse(use.exclusive | names, use.shares, use.consumed)
        return AllocatedState(pools)


def _add_share(use: PoolUse, result: AllocatedDevice, share: str) -> PoolUse:
    use = replace(use, shares=use.shares | {(result.device, share)})
    if result.consumed_capacity is None:
        return use
    total = added(use.consumed.get(result.device, _NOTHING), result.consumed_capacity)
    return replace(use, consumed=use.consumed.with_items({result.device: total}))


def added(left: Mapping[str, Quantity], right: Mapping[str, Quantity]) -> Consumed:
    """The sum per capacity name."""
    total = dict(left)
    for name, value in right.items():
        total[name] = total[name] + value if name in total else value
    return FrozenMap(total)
