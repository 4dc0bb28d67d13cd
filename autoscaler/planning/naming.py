"""Names of planned nodes: the name of the pool and a digest that makes them unique."""

from __future__ import annotations

from collections.abc import Iterable

from autoscaler.model.capacity import CapacityPool

_LONGEST = 48  # a DNS label has 63 characters


def prefix_of(pool: CapacityPool) -> str:
    """The start of the names of the pool's nodes."""
    return pool.name[:_LONGEST].rstrip("-.") + "-"


def named_like_ours(node: str, pools: Iterable[CapacityPool]) -> bool:
    """True if a node of one of the pools can have this name, also a node that is gone."""
    return node.startswith(tuple(prefix_of(pool) for pool in pools))
