"""Disruption budgets of pools: the number of nodes that may be removed at the same time."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from autoscaler.lifecycle.provisioned_node import counts_against_limits, is_leaving
from autoscaler.lifecycle.slices import slice_of
from autoscaler.model.provisioned_node import ProvisionedNode
from autoscaler.model.snapshot import Snapshot
from autoscaler.planning.disruption.baseline import is_open


@dataclass(slots=True)
class Budgets:
    """The remaining disruptions of each pool. A slice counts as one disruption, whatever the number of its hosts."""

    _left: dict[str, int]
    _taken: dict[str, bool]

    def __init__(self, snapshot: Snapshot, now: datetime) -> None:
        self._left, self._taken = {}, {}
        for pool in snapshot.pools:
            alive = [n for n in snapshot.provisioned if n.pool == pool.name and counts_against_limits(n)]
            going = sum(1 for n in alive if is_leaving(n))
            allowed = [
                _amount(b.nodes, len(alive))
                for b in pool.disruption.budgets
                if is_open(b.schedule, "UTC", now, unreadable=True)
            ]
            if allowed:
                self._left[pool.name] = max(0, min(allowed) - going)

    def take(self, node: ProvisionedNode) -> bool:
        """Use one disruption of the node's pool; False if there is none left."""
        whole = slice_of(node)
        if node.pool not in self._left or whole in self._taken:
            return self._taken.get(whole, True)
        self._left[node.pool] -= 1
        allowed = self._left[node.pool] >= 0
        if whole:
            self._taken[whole] = allowed
        return allowed

    def allow(self, node: ProvisionedNode) -> bool:
        """True if the node's pool has a disruption left. None is used."""
        return self._left.get(node.pool, 1) > 0


def _amount(text: str, nodes: int) -> int:
    """The number of nodes for "3" or "10%", rounded up like Karpenter, so that a small pool has at least one."""
    if text.endswith("%"):
        return -(-nodes * int(text[:-1]) // 100)
    return int(text)
