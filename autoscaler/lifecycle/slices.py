"""Nodes that are the hosts of one slice: none of them is of use without the others, so they end together.

A TPU slice of several hosts is launched by one LaunchBatch, all hosts or none. GKE creates and repairs it as a whole,
and cannot end less.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from autoscaler.lifecycle.leaving import may_evict
from autoscaler.lifecycle.provisioned_node import has_failed, is_leaving, is_over
from autoscaler.model.provisioned_node import Phase, ProvisionedNode


def slice_of(node: ProvisionedNode) -> str:
    """The name that the hosts of a slice share; "" for a node outside of slices."""
    return node.batch if node.hosts > 1 else ""


def other_hosts(node: ProvisionedNode, nodes: Iterable[ProvisionedNode]) -> Iterator[ProvisionedNode]:
    """The other hosts of its slice, in any phase."""
    whole = slice_of(node)
    return (one for one in nodes if whole and slice_of(one) == whole and one.name != node.name)


def is_lost(node: ProvisionedNode) -> bool:
    """True if a host will cease to exist: a drain that a pod would revert does not count."""
    ends = is_leaving(node) and (node.phase is Phase.TERMINATING or may_evict(node))
    return ends or has_failed(node) or is_over(node)
