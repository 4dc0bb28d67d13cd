"""The input of a plan, as far as its first lines speak of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from autoscaler.model.snapshot import Snapshot
from autoscaler.report.words import few
from instance_catalog.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Given:
    """The input of a plan, as far as its first lines speak of it.

    `pools`: True if there is a CapacityPool; `daemons`: True if there is a DaemonSet; `elsewhere`: pods on nodes that
    are not given; `incomplete`: the number of objects that look like patches.
    """

    pools: bool = True
    daemons: bool = False
    elsewhere: tuple[str, ...] = ()
    incomplete: int = 0


WITH_POOLS: Final = Given()


def given_of(snapshot: Snapshot, incomplete: int = 0) -> Given:
    """The pools, DaemonSets and pods of a snapshot. `incomplete`: see Given."""
    nodes = {None, *(node.name for node in snapshot.nodes)}
    elsewhere = tuple(pod.key for pod in snapshot.pods if pod.node_name not in nodes)
    return Given(bool(snapshot.pools), bool(snapshot.daemon_sets), elsewhere, incomplete)


def nothing_pending(given: Given) -> Iterator[str]:
    """What the input holds instead of pending pods, and what to give."""
    if given.elsewhere:
        have = "already has a node" if len(given.elsewhere) == 1 else "already have nodes"
        yield (
            f"there are no pending pods: {few(given.elsewhere)} {have} (spec.nodeName); to plan for a new copy, delete "
            "spec.nodeName and status, or give the workload that makes it"
        )
    else:
        yield "there are no pending pods: give pods, or workloads that make pods, with their claims"
    if given.daemons:
        yield "pods of a DaemonSet open no nodes: they run on those that others need"
