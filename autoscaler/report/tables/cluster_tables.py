"""Foreslice's objects in a cluster, as entries for programs and tables for people: pools, nodes, capacity blocks.

It reads a snapshot, and does not depend on its origin or on the output format.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any

from autoscaler.checks.pool_condition import PoolCondition
from autoscaler.lifecycle.capacity_block import BlockPhase, phase_of
from autoscaler.lifecycle.provisioned_node import counts_against_limits, last_edge
from autoscaler.lifecycle.spending import spent_today
from autoscaler.model.capacity import CapacityBlock, CapacityPool
from autoscaler.model.plan import Plan
from autoscaler.model.provisioned_node import ProvisionedNode
from autoscaler.model.snapshot import Snapshot
from autoscaler.report.checks_text import verdict_of
from autoscaler.report.events import offering_text
from autoscaler.report.reasons import texts_of
from autoscaler.report.tables.plan_tables import Table
from autoscaler.report.words import age_text, counted, money, waiting_text


def block_entries(snapshot: Snapshot, now: datetime) -> list[dict[str, Any]]:
    """One entry per CapacityBlock, by name; times as RFC 3339."""
    return [_block(block, snapshot, now) for block in snapshot.blocks]


def _block(block: CapacityBlock, snapshot: Snapshot, now: datetime) -> dict[str, Any]:
    held = [n for n in snapshot.provisioned if n.offering.block == block.name and counts_against_limits(n)]
    phase = phase_of(block, now)
    moment = block.starts_at if phase is BlockPhase.PENDING else block.reclaimed
    return {
        "name": block.name,
        "phase": phase.value,
        "instanceType": block.instance_type,
        "zone": block.zone,
        "count": block.count,
        "nodes": len(held),
        "hold": block.hold.value,
        "pool": block.pool,
        "reservation": block.reservation,
        "note": block.note,
        "startsAt": block.starts_at.isoformat(),
        "drainStartsAt": block.drain_starts.isoformat(),
        "reclaimedAt": block.reclaimed.isoformat(),
        "left": age_text(moment - now),
    }


def blocks_table(entries: Iterable[Mapping[str, Any]]) -> Table:
    """The table. `left` is the time to the start of a block that has not begun, else to the end of its machines."""
    columns = ("name", "phase", "type", "zone", "nodes", "hold", "left", "reservation", "note")
    rows = tuple(
        (
            entry["name"],
            entry["phase"],
            entry["instanceType"],
            entry["zone"],
            f"{entry['nodes']}/{entry['count']}",
            entry["hold"],
            entry["left"],
            entry["reservation"],
            entry["note"],
        )
        for entry in entries
    )
    return Table("", columns, rows)


def node_entries(snapshot: Snapshot, now: datetime) -> list[dict[str, Any]]:
    """One entry per ProvisionedNode, by name."""
    return [_node(node, snapshot, now) for node in snapshot.provisioned]


def _node(node: ProvisionedNode, snapshot: Snapshot, now: datetime) -> dict[str, Any]:
    first = node.history[0].at if node.history else node.phase_since
    pods = [pod.key for pod in snapshot.pods if pod.bound and pod.node_name == node.node_name]
    held = snapshot.waiting.get(node.name)
    return {
        "name": node.name,
        "node": node.node_name,
        "phase": node.phase.value,
        "since": node.phase_since.isoformat() if node.phase_since else None,
        "age": age_text(now - first) if first else "",
        "pool": node.pool,
        "instanceType": node.offering.instance_type,
        "zone": node.offering.zone,
        "capacityType": node.offering.capacity_type.value,
        "block": node.offering.block,
        "usdPerHour": None if node.offering.usd_per_hour is None else str(node.offering.usd_per_hour),
        "pods": pods,
        "boughtFor": list(node.pods),
        "waitingSince": held.isoformat() if held else None,
        "why": waiting_text(now - held) if held else texts_of(node.reasons) or last_edge(node),
    }


def nodes_table(entries: Iterable[Mapping[str, Any]]) -> Table:
    """The table. `why` is the reason of the last change, or that the provider holds the request."""
    columns = ("name", "phase", "age", "pool", "type", "zone", "capacity", "$/h", "pods", "why")
    rows = tuple(
        (
            entry["name"],
            entry["phase"],
            entry["age"],
            entry["pool"],
            entry["instanceType"],
            entry["zone"],
            f"{entry['capacityType']} {entry['block']}".rstrip(),
            money(entry["usdPerHour"], "?"),
            str(len(entry["pods"])),
            entry["why"],
        )
        for entry in entries
    )
    return Table("", columns, rows)


def status_entry(snapshot: Snapshot, plan: Plan, found: Iterable[PoolCondition], now: datetime) -> dict[str, Any]:
    """The pools with their nodes, proposals and problems; the spending; the number of pending pods."""
    conditions = tuple(found)
    return {
        "pools": [
            _pool(pool, snapshot, plan, [c for c in conditions if c.pool == pool.name]) for pool in snapshot.pools
        ],
        "podsPlaced": len(plan.placements),
        "podsLeftOut": len(plan.left_out),
        "podsOutOfScope": len(plan.outside),
        "nodesWaiting": len(snapshot.waiting),
        "usdSpentToday": str(round(spent_today(snapshot.spending, now), 2)),
        "bindingGuards": list(snapshot.spending.binding) if snapshot.spending else [],
    }


def _pool(pool: CapacityPool, snapshot: Snapshot, plan: Plan, conditions: Sequence[PoolCondition]) -> dict[str, Any]:
    nodes = [node for node in snapshot.provisioned if node.pool == pool.name and counts_against_limits(node)]
    launches = [launch for launch in plan.launches if launch.pool == pool.name]
    return {
        "name": pool.name,
        "mode": pool.mode.value,
        "acts": pool.acts and not any(condition.stops for condition in conditions),
        "nodes": len(nodes),
        "usdPerHour": str(sum((node.offering.usd_per_hour or Decimal(0) for node in nodes), Decimal(0))),
        "proposed": [
            {
                "offering": offering_text(launch.offering),
                "usdPerHour": None if launch.usd_per_hour is None else str(launch.usd_per_hour),
                "pods": list(launch.pods),
            }
            for launch in launches
        ],
        "proposedUsdPerHour": str(sum((launch.usd_per_hour or Decimal(0) for launch in launches), Decimal(0))),
        "conditions": [_condition(condition) for condition in conditions if not condition.good],
    }


def _condition(condition: PoolCondition) -> dict[str, str]:
    _, reason, message = verdict_of(condition)
    return {"condition": condition.type.value, "reason": reason, "message": message}


def status_tables(found: Mapping[str, Any]) -> list[Table]:
    """Pools, their proposed launches, and the conditions that keep them from acting."""
    pools = tuple(
        (
            pool["name"],
            pool["mode"] if pool["acts"] or pool["mode"] == "Observe" else f"{pool['mode']}, held back",
            str(pool["nodes"]),
            money(pool["usdPerHour"]),
            str(len(pool["proposed"])),
            money(pool["proposedUsdPerHour"]),
        )
        for pool in found["pools"]
    )
    proposed = tuple(
        (pool["name"], entry["offering"], money(entry["usdPerHour"], "?"), str(len(entry["pods"])))
        for pool in found["pools"]
        for entry in pool["proposed"]
    )
    wrong = tuple(
        (pool["name"], entry["condition"], entry["message"]) for pool in found["pools"] for entry in pool["conditions"]
    )
    tables = [
        Table("Pools", ("pool", "mode", "nodes", "$/h", "to launch", "$/h more"), pools),
        Table("To launch", ("pool", "offering", "$/h", "pods"), proposed),
        Table("To correct", ("pool", "condition", "what"), wrong),
    ]
    return [table for table in tables if table.rows]


def status_lines(found: Mapping[str, Any]) -> Iterator[str]:
    """The lines below the tables."""
    if not found["pools"]:
        yield "no CapacityPools; `foreslice plan --live` shows what the pending pods need"
    yield (
        f"pending pods: {found['podsPlaced']} placeable, {found['podsLeftOut']} unplaceable, "
        f"{found['podsOutOfScope']} ignored; `foreslice explain NAMESPACE/POD` says why"
    )
    if found["nodesWaiting"]:
        yield (
            f"{counted(found['nodesWaiting'], 'node')} requested that the provider starts when it has capacity; "
            "nothing is charged until then; `foreslice nodes` shows since when"
        )
    guards = f"; launches stopped by {', '.join(found['bindingGuards'])}" if found["bindingGuards"] else ""
    yield f"spent today (UTC): {found['usdSpentToday']} ${guards}"
