"""What Foreslice has in a cluster, as entries for programs and tables for people: pools, nodes, capacity blocks.

It reads a snapshot; where that came from and how it is printed is the business of others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from autoscaler.lifecycle.capacity_block import BlockPhase, phase_of
from autoscaler.model.capacity import CapacityBlock
from autoscaler.model.provisioned_node import Phase
from autoscaler.model.snapshot import Snapshot
from autoscaler.report.plan_tables import Table

_OVER = frozenset({Phase.GONE, Phase.FAILED})


def block_entries(snapshot: Snapshot, now: datetime) -> list[dict[str, Any]]:
    """One entry per CapacityBlock, by name; moments as RFC 3339."""
    return [_block(block, snapshot, now) for block in snapshot.blocks]


def _block(block: CapacityBlock, snapshot: Snapshot, now: datetime) -> dict[str, Any]:
    held = [n for n in snapshot.provisioned if n.offering.block == block.name and n.phase not in _OVER]
    phase = phase_of(block, now)
    moment = block.starts_at if phase is BlockPhase.PENDING else block.reclaimed
    return {
        "name": block.name,
        "phase": phase.value,
        "instanceType": block.instance_type,
        "zone": block.zone,
        "count": block.count,
        "nodes": len(held),
        "hold": block.hold,
        "pool": block.pool,
        "reservation": block.reservation,
        "startsAt": block.starts_at.isoformat(),
        "drainStartsAt": block.drain_starts.isoformat(),
        "reclaimedAt": block.reclaimed.isoformat(),
        "left": age_text(moment - now),
    }


def blocks_table(entries: Iterable[Mapping[str, Any]]) -> Table:
    """`left` is the time to the start of a block that has not begun, else to the moment its machines are taken."""
    columns = ("name", "phase", "type", "zone", "nodes", "hold", "left", "reservation")
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
        )
        for entry in entries
    )
    return Table("", columns, rows)


def age_text(span: timedelta) -> str:
    """ "3d4h", "5h7m", "12m5s", "40s": the two largest units, as kubectl shortens ages; "0s" for what has passed."""
    seconds = max(int(span.total_seconds()), 0)
    units: Sequence[tuple[str, int]] = (("d", 86400), ("h", 3600), ("m", 60), ("s", 1))
    parts: list[str] = []
    for unit, size in units:
        amount, seconds = divmod(seconds, size)
        if amount or parts:
            parts.append(f"{amount}{unit}" if amount else "")
        if len(parts) == 2:
            break
    return "".join(parts) or "0s"
