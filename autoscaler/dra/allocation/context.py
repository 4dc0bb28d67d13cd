"""The input of one allocation: a node with its pools, and the devices in use there."""

from __future__ import annotations

from collections.abc import Iterator

from autoscaler.dra.inventory.allocated import AllocatedState, PoolUse
from autoscaler.dra.inventory.counters import Draw
from autoscaler.dra.inventory.devices import ClusterDevices
from autoscaler.dra.inventory.pools import NodePool, NodePools
from autoscaler.dra.inventory.selectable import SelectorMemo
from autoscaler.model.node import Node
from instance_catalog.dataclass import dataclass
from instance_catalog.kubernetes.profile import KubernetesProfile


@dataclass(frozen=True, slots=True)
class AllocationContext:
    """The input of an allocation that stays fixed while claims are allocated on a node."""

    node: Node
    pools: NodePools
    memo: SelectorMemo
    devices: ClusterDevices
    allocated: AllocatedState

    @staticmethod
    def of(node: Node, devices: ClusterDevices, allocated: AllocatedState) -> AllocationContext:
        """Gather the node's pools. Raises FatalError."""
        pools, memo = devices.pools_of(node)
        return AllocationContext(node, pools, memo, devices, allocated)

    @property
    def profile(self) -> KubernetesProfile:
        return self.devices.profile

    def uses(self) -> Iterator[PoolUse]:
        """The devices and shares in use in each pool of the node."""
        return (self.allocated.use_of(pool.driver, pool.name) for pool in self.pools.pools)

    def exclusively_allocated(self) -> list[bool]:
        """By device of the node, in search order: True if a claim has it exclusively.

        Without the gate DRAConsumableCapacity a share counts as the whole device.
        """
        found: list[bool] = []
        for pool, devices in self.pools.offered():
            held = self._held(pool)
            found += [device.name in held for device in devices] if held else [False] * len(devices)
        return found

    def _held(self, pool: NodePool) -> frozenset[str]:
        use = self.allocated.use_of(pool.driver, pool.name)
        shares_count = use.shares and not self.profile.gates.consumable_capacity
        return use.exclusive.union(name for name, _ in use.shares) if shares_count else use.exclusive

    def drawn(self, pool: NodePool) -> Iterator[tuple[Draw, ...]]:
        """The draws of allocated devices from a pool's counters; those of shared devices count from v0.36.2 on."""
        use = self.allocated.use_of(pool.driver, pool.name)
        names = set(use.exclusive)
        if self.profile.allocator.counters_of_shared_devices:
            names.update(use.consumed, (name for name, _ in use.shares))
        for name in names:
            yield from pool.draws_by_device.get(name, ())
