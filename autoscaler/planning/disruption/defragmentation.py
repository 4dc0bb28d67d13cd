"""Adds the fragmentation, and moves that would make room, to a plan. Users read them; the controller does not
execute them."""

from __future__ import annotations

from autoscaler.model.plan import Plan
from autoscaler.model.snapshot import Snapshot
from autoscaler.planning.disruption.fragmentation import fragmentation
from autoscaler.planning.disruption.making_room import room_made
from autoscaler.planning.placement.existing import present_nodes
from autoscaler.planning.policy import Policy
from autoscaler.scheduling.world import World
from instance_catalog.dataclass import replace
from instance_catalog.types.catalog import Catalog


def with_defragmentation(plan: Plan, snapshot: Snapshot, catalog: Catalog, policy: Policy) -> Plan:
    """The plan with both; unchanged if the cluster has no nodes."""
    if not snapshot.nodes:
        return plan
    present = present_nodes(snapshot, catalog, World.of(snapshot, catalog.drivers.values()))
    return replace(
        plan,
        fragmentation=fragmentation(present, policy),
        room=room_made(plan, present, snapshot, policy),
    )
