"""The devices in use, computed again only for pools of which a claim has changed since the previous snapshot."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from autoscaler.dra.inventory.allocated import AllocatedState, PoolKey
from autoscaler.model.resource_claim import ResourceClaim
from instance_catalog.dataclass import dataclass, field


@dataclass(slots=True)
class UseMemory:
    """The devices of the previous snapshot's claims. Claims are immutable, so the same object has the same devices.

    It belongs to one series of plans, and no two threads use it at once.
    """

    _claims: Mapping[str, ResourceClaim] = field(default_factory=dict)
    _state: AllocatedState = field(default_factory=AllocatedState)
    _holders: dict[PoolKey, set[str]] = field(default_factory=dict)  # keys of the claims with devices of the pool

    def of(self, claims: Mapping[str, ResourceClaim], changed: Collection[str]) -> AllocatedState:
        """The same as AllocatedState.of. `claims` by namespace/name, a mapping that never changes. `changed`: what
        `changed_keys` finds between the previous call and this one; more keys do no harm."""
        before = self._claims
        touched: set[PoolKey] = set()
        for key in changed:
            touched.update(self._moved(key, before.get(key), claims.get(key)))
        self._claims = claims
        if touched:
            self._state = self._with(touched, claims)
        return self._state

    def _moved(self, key: str, old: ResourceClaim | None, new: ResourceClaim | None) -> Iterator[PoolKey]:
        """The pools of the claim in both snapshots."""
        for pool in _pools_of(old):
            yield pool
            holders = self._holders.get(pool, set())
            holders.discard(key)
            if not holders:
                self._holders.pop(pool, None)
        for pool in _pools_of(new):
            yield pool
            self._holders.setdefault(pool, set()).add(key)

    def _with(self, touched: Collection[PoolKey], claims: Mapping[str, ResourceClaim]) -> AllocatedState:
        """The state with these pools computed again, in the order of the claims: it affects how sums are written."""
        keys = {key for pool in touched for key in self._holders.get(pool, ())}
        fresh = AllocatedState.of(claims[key] for key in claims if key in keys)
        pools = dict(self._state.pools)
        for pool in touched:
            if pool in fresh.pools:
                pools[pool] = fresh.pools[pool]
            else:
                pools.pop(pool, None)
        return AllocatedState(pools)


def changed_keys(before: Mapping[str, ResourceClaim], after: Mapping[str, ResourceClaim]) -> set[str]:
    """The keys of claims that came, went, or are another object."""
    changed = {key for key, claim in after.items() if before.get(key) is not claim}
    changed.update(before.keys() - after.keys())
    return changed


def _pools_of(claim: ResourceClaim | None) -> frozenset[PoolKey]:
    allocation = claim.allocation if claim is not None else None
    if allocation is None:
        return frozenset()
    return frozenset((result.driver, result.pool) for result in allocation.devices if not result.admin_access)
