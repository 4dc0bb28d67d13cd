"""The tables of `foreslice plan`: nodes to launch, pods, and the offerings considered.

Tables are values (columns and rows of text); cli/output decides how they look. Equal nodes, and pods on equal nodes,
share a row; `wide` shows each by itself.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from autoscaler.model.plan import Considered, ConsideredOutcome, Demand, Placement, Plan, PlannedNode, Target
from autoscaler.model.provisioned_node import OfferingRef
from autoscaler.model.reason import NO_SUBJECT, Code, Subject
from autoscaler.planning.supply.units import DeviceUnits
from autoscaler.report.reasons import texts_of
from autoscaler.report.words import counted, few, money
from instance_catalog.dataclass import dataclass, replace
from instance_catalog.drivers.opaque import CHANNEL_DRIVER

SHOWN_OFFERINGS: Final = 5  # per demand, without -o wide: the chosen one and the next best
SHOWN_DEMANDS: Final = 3
SHOWN_ROWS: Final = 30  # of one table, without -o wide
_OUTCOME_ORDER = {outcome: rank for rank, outcome in enumerate(ConsideredOutcome)}
_NUMBERED: Final = re.compile(r"[-.]?\d+\Z")


@dataclass(frozen=True, slots=True)
class Table:
    """Columns and rows of text under a title, and lines below them."""

    title: str
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    notes: tuple[str, ...] = ()


def tables_of(plan: Plan, *, wide: bool = False) -> list[Table]:
    """The tables that have content, in reading order."""
    groups = [[node] for node in plan.launches] if wide else _alike(plan.launches)
    tables = [_launches(groups, wide=wide), _placements(plan, groups, wide=wide), _nodes(plan)]
    tables += _considerations(plan.demands, wide=wide)
    return [_cut(table, wide=wide) for table in tables if table.rows]


def _cut(table: Table, *, wide: bool) -> Table:
    rest = len(table.rows) - SHOWN_ROWS
    if wide or rest <= 1:
        return table
    note = f"and {counted(rest, 'row')} more; -o wide shows all"
    return Table(table.title, table.columns, table.rows[:SHOWN_ROWS], (note, *table.notes))


def _alike(nodes: Iterable[PlannedNode]) -> list[list[PlannedNode]]:
    """Groups of nodes that differ only in their names and those of their pods."""
    groups: dict[tuple[object, ...], list[PlannedNode]] = {}
    for node in nodes:
        devices = (len(node.devices_used), node.devices_total, node.handed_out)
        key = (node.pool, node.offering, node.publishing, node.usd_per_hour, len(node.pods), devices, node.reasons)
        groups.setdefault(key, []).append(node)
    return list(groups.values())


def _names(group: Sequence[PlannedNode]) -> str:
    """A node's name; "new-node-1 … 73" for numbered nodes, "pool-1b2c and 72 more" for others."""
    first, last = group[0].name, group[-1].name
    if len(group) == 1:
        return first
    numbers = [int(node.name.rpartition("-")[2]) for node in group if node.name.startswith("new-node-")]
    if numbers and numbers == list(range(numbers[0], numbers[0] + len(group))):
        return f"{first} … {last.rpartition('-')[2]}"
    return few([node.name for node in group], 1)


def _launches(groups: Sequence[Sequence[PlannedNode]], *, wide: bool) -> Table:
    columns = ("nodes", "name", "place", "capacity", "$/h", "pods", "used/free", "why")
    rows = tuple(_launch(group) for group in groups)
    if wide:
        drivers = (", ".join(group[0].publishing) for group in groups)
        rows = tuple((*row[:-1], shown, row[-1]) for row, shown in zip(rows, drivers, strict=True))
        return Table("Nodes to launch", (*columns[:-1], "drivers", "why"), rows)
    return Table("Nodes to launch", columns, rows, tuple(_drivers(groups)))


def _launch(group: Sequence[PlannedNode]) -> tuple[str, ...]:
    node = group[0]
    return (
        f"{len(group)} × {node.offering.instance_type}",
        _names(group),
        place_text(node.offering),
        node.offering.capacity_type,
        money(node.usd_per_hour),
        str(len(node.pods)),
        _used_and_free(node),
        texts_of(tuple(replace(reason, subject=NO_SUBJECT) for reason in node.reasons), abbreviated=True),
    )


def _used_and_free(node: PlannedNode) -> str:
    """ "1/7"; devices of several drivers and of device plugins are counted separately: "gpu 1/7, dra.net 1/5"."""
    if not node.handed_out:
        return _published(node)
    plugged = [(found.resource.rpartition("/")[2], f"{found.used}/{found.free}") for found in node.handed_out]
    claimed = _published(node) if node.devices_used else ""
    if claimed and " " not in claimed:
        claimed = f"{_driver_text(node.devices_used[0].driver)} {claimed}"
    if not claimed and len(plugged) == 1:
        return plugged[0][1]
    return ", ".join([*([claimed] if claimed else []), *(" ".join(found) for found in plugged)])


def _published(node: PlannedNode) -> str:
    """The same for devices that drivers publish."""
    used = Counter(device.driver for device in node.devices_used)
    if len(used) < 2:
        return f"{used.total()}/{max(node.devices_total - used.total(), 0)}"
    units = DeviceUnits(node.predicted)
    del used[CHANNEL_DRIVER]
    if len(used) == 1:
        ((driver, number),) = used.items()
        return f"{number}/{max(units.total([driver]) - number, 0)}"
    counts = ((driver, number, max(units.total([driver]) - number, 0)) for driver, number in sorted(used.items()))
    return ", ".join(f"{_driver_text(driver)} {number}/{free}" for driver, number, free in counts)


def _driver_text(driver: str) -> str:
    """ "gpu" for gpu.nvidia.com, and dra.net unchanged: its first word means nothing."""
    first, _, rest = driver.partition(".")
    return first if "." in rest and first != "dra" else driver


def _drivers(groups: Sequence[Sequence[PlannedNode]]) -> Iterator[str]:
    """The driver profiles of the nodes, which a pool must have if none is given."""
    names: dict[str, list[str]] = {}
    for group in groups:
        names.setdefault(", ".join(group[0].publishing), []).append(_names(group))
    if len(names) == 1:
        yield f"drivers: {next(iter(names)) or 'none'}"
        return
    for drivers, nodes in names.items():
        yield f"drivers of {few(nodes)}: {drivers or 'none'}"


def place_text(offering: OfferingRef) -> str:
    """The zone if it is known, else the region, else "any"."""
    return offering.region if offering.zone == "any" and offering.region else offering.zone


def _placements(plan: Plan, groups: Sequence[Sequence[PlannedNode]], *, wide: bool) -> Table:
    columns = ("pods", "go to", "devices", "why")
    if wide:
        return Table("Pods", columns, tuple(_placement([each], [each.node]) for each in plan.placements))
    group_of = {node.name: index for index, group in enumerate(groups) for node in group}
    rows: dict[tuple[object, ...], list[Placement]] = {}
    for placement in plan.placements:
        target: object = group_of.get(placement.node, placement.target)
        devices = tuple(len(allocation.devices) for allocation in placement.allocations.values())
        codes = tuple(reason.code for reason in placement.reasons)
        key = (_NUMBERED.sub("", placement.pod), target, devices, _alternatives(placement), codes)
        rows.setdefault(key, []).append(placement)
    shown = tuple(_placement(each, list(dict.fromkeys(p.node for p in each))) for each in rows.values())
    if not any(row[-1] for row in shown):
        return Table("Pods", columns[:-1], tuple(row[:-1] for row in shown))
    return Table("Pods", columns, shown)


def _placement(group: Sequence[Placement], nodes: Sequence[str]) -> tuple[str, ...]:
    first = group[0]
    where = few(nodes, 1) if len(nodes) > 1 else nodes[0]
    if first.target is not Target.NEW:
        where += f" ({first.target.value})"
    devices = [d.device for allocation in first.allocations.values() for d in allocation.devices]
    shown = few(devices, 4)
    if len(group) > 1 and devices:
        shown = f"{counted(len(devices), 'device')} each"
    if alternatives := _alternatives(first):
        shown += f" (alternative {', '.join(alternatives)})"
    return (few([p.pod for p in group], 1), where, shown, texts_of(first.reasons, abbreviated=True))


def _alternatives(placement: Placement) -> tuple[str, ...]:
    """The subrequests of firstAvailable that its claims get."""
    results = (device for allocation in placement.allocations.values() for device in allocation.devices)
    return tuple(dict.fromkeys(name for d in results if (name := d.request.partition("/")[2])))


def _nodes(plan: Plan) -> Table:
    rows = tuple(
        (
            decision.provisioned_node,
            decision.action.value,
            decision.deadline.isoformat() if decision.deadline else "",
            texts_of(decision.reasons, abbreviated=True),
        )
        for decision in plan.nodes
    )
    return Table("Managed nodes", ("node", "decision", "deadline", "why"), rows)


def _considerations(demands: Sequence[Demand], *, wide: bool) -> list[Table]:
    """A table for each demand; demands with the same considered offerings share one."""
    tables: dict[tuple[object, ...], tuple[Table, list[str]]] = {}
    for demand in demands:
        table = _considered(demand, wide=wide)
        if table.rows:
            tables.setdefault((table.columns, table.rows), (table, []))[1].extend(demand.pods)
    found = [
        Table(f"Offerings considered for {few(pods, 1)}{t.title}", t.columns, t.rows) for t, pods in tables.values()
    ]
    return found if wide else found[:SHOWN_DEMANDS]


def _considered(demand: Demand, *, wide: bool) -> Table:
    entries = sorted(demand.considered, key=lambda e: _OUTCOME_ORDER.get(e.outcome, 9))
    shown = entries if wide else [e for e in entries if _worth_showing(e)][:SHOWN_OFFERINGS]
    hidden = len(entries) - len(shown)
    title = f" ({hidden} more; -o wide shows all)" if hidden else ""
    optional: Mapping[str, Sequence[str]] = {
        # The same offering of several pools would look like a duplicate.
        "pool": [entry.pool for entry in shown],
        "drivers": [", ".join(entry.drivers) for entry in shown],
    }
    kept = [name for name, texts in optional.items() if len(set(texts)) > 1]
    rows = []
    for index, entry in enumerate(shown):
        row = _offering(entry)
        rows.append((*row[:-1], *(optional[name][index] for name in kept), row[-1]))
    return Table(title, ("", "type", "place", "capacity", "$/h", *kept, "outcome"), tuple(rows))


def _worth_showing(entry: Considered) -> bool:
    """True if the offering is chosen, or fits and its pool may buy it without a reservation that is not declared."""
    undeclared = any(reason.code in (Code.NEEDS_RESERVATION, Code.OVERFLOW_NEVER) for reason in entry.reasons)
    return entry.outcome.fits and not undeclared


def _offering(entry: Considered) -> tuple[str, ...]:
    chosen = entry.outcome is ConsideredOutcome.CHOSEN
    outcome = entry.outcome + (f" × {entry.nodes}" if chosen and entry.nodes > 1 else "")
    own = Subject("offering", entry.offering.instance_type)
    reasons = tuple(
        replace(reason, subject=NO_SUBJECT) if reason.subject == own else reason for reason in entry.reasons
    )
    if any(reason.code is Code.NO_PRICE for reason in reasons):
        outcome += ", but has no price"
    elif reasons:
        outcome += (
            f"{', but' if entry.outcome is ConsideredOutcome.FITS else ':'} {texts_of(reasons, abbreviated=True)}"
        )
    return (
        "*" if chosen else "",
        entry.offering.instance_type,
        place_text(entry.offering),
        entry.offering.capacity_type,
        money(entry.offering.usd_per_hour),
        outcome,
    )
