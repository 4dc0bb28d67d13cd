"""Plan → the tables `foreslice plan` prints: nodes to launch, pods, what is left out, the offerings considered.

Tables are values (columns and rows of text); cli/output decides between rich and plain.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from autoscaler.model.plan import Considered, Demand, LeftOut, Placement, Plan, PlannedNode, Target
from autoscaler.model.reason import Code
from autoscaler.report.plan_document import dollars
from autoscaler.report.reasons import text_of, texts_of
from autoscaler.report.words import counted

SHOWN_OFFERINGS = 6  # per demand, without -o wide: the chosen one and the next best
_OUTCOME_ORDER = {"chosen": 0, "fits": 1, "unknown": 2, "fatal": 3, "does-not-fit": 4}


@dataclass(frozen=True, slots=True)
class Table:
    """Columns and rows of text under a title."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def tables_of(plan: Plan, *, wide: bool = False) -> list[Table]:
    """The tables that have something to say, in reading order."""
    tables = [_launches(plan), _placements(plan), _left_out(plan), _nodes(plan)]
    tables += [_considered(demand, wide) for demand in plan.demands]
    return [table for table in tables if table.rows]


def summary_of(plan: Plan) -> list[str]:
    """The closing lines."""
    nodes = len(plan.launches)
    lines = [
        f"{counted(nodes, 'node')} to launch, {_price(plan.usd_per_hour)} $/h; "
        f"{counted(len(plan.placements), 'pod')} placed, {len(plan.left_out)} left out"
    ]
    if plan.out_of_scope:
        lines.append(f"{counted(len(plan.out_of_scope), 'pod')} left to other autoscalers: {_few(plan.out_of_scope)}")
    lines += [f"warning: {text_of(warning)}" for warning in plan.warnings]
    return lines


def _launches(plan: Plan) -> Table:
    columns = ("node", "type", "zone", "capacity", "$/h", "drivers", "pods", "devices used/free", "why")
    return Table("Nodes to launch", columns, tuple(_launch(node) for node in plan.launches))


def _launch(node: PlannedNode) -> tuple[str, ...]:
    used = len(node.devices_used)
    offering = node.offering
    return (
        node.name,
        offering.instance_type,
        offering.zone,
        f"{offering.capacity_type} {offering.block}".rstrip(),
        _price(node.usd_per_hour),
        ", ".join(node.drivers),
        str(len(node.pods)),
        f"{used}/{max(node.devices_total - used, 0)}",
        texts_of(node.reasons),
    )


def _placements(plan: Plan) -> Table:
    return Table("Pods", ("pod", "goes to", "devices", "why"), tuple(_placement(p) for p in plan.placements))


def _placement(placement: Placement) -> tuple[str, ...]:
    where = placement.node if placement.target is Target.NEW else f"{placement.node} ({placement.target.value})"
    devices = [d.device for allocation in placement.allocations.values() for d in allocation.devices]
    return (placement.pod, where, _few(devices, 4), texts_of(placement.reasons))


def _left_out(plan: Plan) -> Table:
    rows: list[tuple[str, ...]] = []
    for entry in plan.left_out:
        rows.append((entry.pod, entry.verdict, texts_of(entry.reasons)))
        rows += _near_misses(entry)
    return Table("Cannot be placed", ("pod", "verdict", "why"), tuple(rows))


def _near_misses(entry: LeftOut) -> list[tuple[str, ...]]:
    return [
        (
            "",
            "nearest" if index == 0 else "",
            f"{counted(miss.types, 'type')}: {text_of(miss.reason)} (e.g. {miss.example})",
        )
        for index, miss in enumerate(entry.near_misses)
    ]


def _nodes(plan: Plan) -> Table:
    rows = tuple(
        (
            decision.provisioned_node,
            decision.action.value,
            decision.deadline.isoformat() if decision.deadline else "",
            texts_of(decision.reasons),
        )
        for decision in plan.nodes
    )
    return Table("Nodes of ours", ("node", "decision", "deadline", "why"), rows)


def _considered(demand: Demand, wide: bool) -> Table:
    entries = sorted(demand.considered, key=lambda e: _OUTCOME_ORDER.get(e.outcome, 9))
    shown = entries if wide else [e for e in entries if _worth_showing(e)][:SHOWN_OFFERINGS]
    hidden = len(entries) - len(shown)
    title = f"Offerings considered for {_few(demand.pods)}"
    if hidden:
        title += f" ({hidden} more; -o wide shows all)"
    columns = ("", "type", "zone", "capacity", "$/h", "drivers", "outcome")
    if len({entry.pool for entry in entries}) == 1:
        return Table(title, columns, tuple(map(_offering, shown)))
    # The same offering of several pools would look like one that is listed twice.
    rows = (_offering(entry) for entry in shown)
    with_pool = tuple((row[0], entry.pool, *row[1:]) for entry, row in zip(shown, rows, strict=True))
    return Table(title, ("", "pool", *columns[1:]), with_pool)


def _worth_showing(entry: Considered) -> bool:
    """Chosen, or fitting and for sale without further ado; reservations nobody declared are noise."""
    undeclared = any(reason.code is Code.NEEDS_RESERVATION for reason in entry.reasons)
    return entry.outcome in ("chosen", "fits") and not undeclared


def _offering(entry: Considered) -> tuple[str, ...]:
    chosen = entry.outcome == "chosen"
    outcome = entry.outcome + (f" x{entry.nodes}" if chosen and entry.nodes > 1 else "")
    if entry.reasons:
        outcome += f"{', but' if entry.outcome == 'fits' else ':'} {texts_of(entry.reasons)}"
    return (
        "*" if chosen else "",
        entry.offering.instance_type,
        entry.offering.zone,
        entry.offering.capacity_type,
        _price(entry.offering.usd_per_hour),
        ", ".join(entry.drivers),
        outcome,
    )


def _price(amount: Decimal | str | None) -> str:
    """Two to four decimals: nobody compares millionths of a dollar by eye."""
    if amount is None:
        return "no price"
    return dollars(round(Decimal(amount), 4)) or ""


def _few(names: Sequence[str], most: int = 3) -> str:
    rest = len(names) - most
    return ", ".join(names[:most]) + (f" and {rest} more" if rest > 0 else "")
