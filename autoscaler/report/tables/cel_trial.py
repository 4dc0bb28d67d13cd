"""The output of `foreslice cel`, which evaluates a selector on devices: equal answers are one line."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from autoscaler.cel.common.outcome import CompileFailure, Evaluation, Outcome
from autoscaler.cel.program import Program
from autoscaler.lint.devices.effort import Effort
from autoscaler.lint.devices.offers import Specimen
from autoscaler.lint.devices.readings import readings
from autoscaler.report.tables.plan_tables import Table
from instance_catalog.dataclass import dataclass

_ORDER = (Outcome.TRUE, Outcome.ERROR, Outcome.UNKNOWN, Outcome.FALSE)
_SHOWN = 3
_LINE = 120  # characters shown of a line of an expression


@dataclass(frozen=True, slots=True)
class Tried:
    """Devices with the same answer. `values` are the values read, several if they differ; `places` are where the
    devices are.

    `cost` is the least and the greatest.
    """

    driver: str
    answer: Evaluation
    devices: int
    names: tuple[str, ...]
    places: tuple[str, ...]
    values: tuple[tuple[str, tuple[str, ...]], ...]
    cost: tuple[int, int]


def tried_apart(program: Program, devices: Iterable[Specimen]) -> tuple[Tried, ...]:
    """One entry for each distinct answer and set of values: for the devices of one node.

    Raises EffortExceededError.
    """
    return _tried_by(program, devices, lambda one, answer: (one.driver, answer, _read(program, one)))


def tried_together(program: Program, devices: Iterable[Specimen]) -> tuple[Tried, ...]:
    """One entry for each driver and kind of answer: for the whole catalog. Raises EffortExceededError."""
    return _tried_by(program, devices, lambda one, answer: (one.driver, answer.outcome, answer.message))


def _tried_by(
    program: Program, devices: Iterable[Specimen], key: Callable[[Specimen, Evaluation], object]
) -> tuple[Tried, ...]:
    groups: dict[object, list[Specimen]] = {}
    effort = Effort()
    for one in devices:
        groups.setdefault(key(one, effort.evaluate(program, one.view)), []).append(one)
    tried = [_tried(program, group) for group in groups.values()]
    return tuple(sorted(tried, key=lambda one: (_ORDER.index(one.answer.outcome), one.driver)))


def _read(program: Program, one: Specimen) -> tuple[tuple[str, str], ...]:
    """The values read, without the driver, which is shown anyway."""
    return readings(one.view, [path for path in program.reads or () if path[0] != "driver"])


def _tried(program: Program, group: Sequence[Specimen]) -> Tried:
    values: dict[str, dict[str, None]] = {}
    for one in group:
        for name, value in _read(program, one):
            values.setdefault(name, {})[value] = None
    costs = [program.evaluate(one.view).cost for one in group]
    return Tried(
        driver=group[0].driver,
        answer=program.evaluate(group[0].view),
        devices=sum(one.total for one in group),
        names=tuple(name for one in group for name in one.names),
        places=tuple(dict.fromkeys(offer.type for one in group for offer in one.counts)),
        values=tuple((name, tuple(sorted(found))) for name, found in values.items()),
        cost=(min(costs), max(costs)),
    )


def table_apart(tried: Sequence[Tried]) -> Table:
    """Devices by name."""
    return _table(tried, ("devices", "names"), lambda one: (str(one.devices), _span(one.names)))


def table_together(tried: Sequence[Tried]) -> Table:
    """Devices by instance type. Driver profiles of a type are not added up, because a node runs one of them."""
    return _table(tried, ("types", "for example"), lambda one: (str(len(one.places)), _several(one.places)))


def _table(tried: Sequence[Tried], names: tuple[str, str], cells: Callable[[Tried], tuple[str, str]]) -> Table:
    columns = ("result", "driver", *names, "cost", "values", "why")
    rows = (
        (one.answer.outcome.value, one.driver, *cells(one), _cost(one), _values(one), one.answer.message)
        for one in tried
    )
    return Table("", columns, tuple(rows))


def entries_of(tried: Sequence[Tried]) -> list[dict[str, Any]]:
    """Plain data, nothing shortened."""
    return [
        {
            "result": one.answer.outcome.value,
            "driver": one.driver,
            "devices": one.devices,
            "names": list(dict.fromkeys(one.names)),
            "instanceTypes": list(one.places),
            "cost": {"min": one.cost[0], "max": one.cost[1]},
            "values": {name: list(values) for name, values in one.values},
            "message": one.answer.message,
        }
        for one in tried
    ]


def pointed_at(failure: CompileFailure) -> str:
    """The compile error of an expression, with a caret below its position."""
    line = failure.expression.split("\n")[failure.line - 1].replace("\t", " ")
    start = max(failure.column - 1 - _LINE // 2, 0) if len(line) > _LINE else 0
    shown = f"{'…' if start else ''}{line[start : start + _LINE]}{'…' if start + _LINE < len(line) else ''}"
    caret = " " * (failure.column - 1 - start + bool(start))
    where = (
        f"line {failure.line}, column {failure.column}" if "\n" in failure.expression else f"column {failure.column}"
    )
    return f"the selector does not compile: {where}: {failure.message}\n  {shown}\n  {caret}^"


def _span(names: Sequence[str]) -> str:
    if len(names) > _SHOWN:
        return f"{names[0]} … {names[-1]}"
    return ", ".join(names)


def _several(texts: Sequence[str]) -> str:
    shown = ", ".join(texts[:_SHOWN])
    return f"{shown}, …" if len(texts) > _SHOWN else shown


def _cost(one: Tried) -> str:
    least, most = one.cost
    return str(least) if least == most else f"{least}–{most}"


def _values(one: Tried) -> str:
    return " ".join(f"{name}={values[0] if len(values) == 1 else _several(values)}" for name, values in one.values)
