"""Tasks from a CSV trace: the caller assigns the columns, and errors have their place, `FILE:LINE: COLUMN: why`."""

from __future__ import annotations

import csv
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from itertools import islice
from typing import Final, TypeVar

from autoscaler.errors import BadInputError
from autoscaler.simulation.study.numbers import MOST_PODS, amount, count, instant, span
from autoscaler.simulation.study.task import Shape, Task
from instance_catalog.dataclass import dataclass
from instance_catalog.spelling import did_you_mean

V = TypeVar("V")

MEANINGS: Final = {
    "name": "the task's name; without it, tasks are numbered",
    "arrival": "when it arrives: seconds, or RFC 3339",
    "duration": "how long it runs: seconds, or 1h30m",
    "end": "when it ended, instead of a duration",
    "gpus": "how many devices each pod asks for",
    "gpu-model": "which accelerators will do, separated by |; empty: any",
    "cpu": "CPUs of each pod",
    "cpu-milli": "CPUs of each pod, in thousandths",
    "memory-gib": "memory of each pod in GiB",
    "memory-mib": "memory of each pod in MiB",
    "replicas": "how many equal pods start together, as a gang",
}
_MOST_REPLICAS: Final = 10_000


@dataclass(frozen=True, slots=True)
class TraceOptions:
    """`columns`: the column of each meaning. `models`: the accelerators of each name in the trace; `known` are the
    accelerators that claims can request."""

    columns: Mapping[str, str]
    models: Mapping[str, tuple[str, ...]]
    known: Collection[str]


def parse_columns(text: str) -> dict[str, str]:
    """ "arrival=submit,gpus=n" as a mapping. Raises BadInputError for meanings that there are not."""
    found: dict[str, str] = {}
    for part in filter(None, (piece.strip() for piece in text.split(","))):
        meaning, separator, column = (piece.strip() for piece in part.partition("="))
        if meaning in found:
            step = "say once which column it is"
            raise BadInputError(f"--columns: {meaning} is there twice", next_step=step)
        if not separator or not column:
            raise BadInputError(
                f"--columns: {part!r} has no column", next_step="write MEANING=COLUMN, such as arrival=t"
            )
        if meaning not in MEANINGS:
            step = did_you_mean(meaning, list(MEANINGS), f"choose from {', '.join(MEANINGS)}")
            raise BadInputError(f"--columns: unknown meaning {meaning!r}", next_step=step)
        found[meaning] = column
    return found


def read_trace(lines: Iterable[str], file: str, options: TraceOptions) -> tuple[Task, ...]:
    """The tasks of a trace; the first arrives at 0. Raises BadInputError."""
    reader = csv.DictReader(lines, strict=True)
    try:
        columns = _columns(reader.fieldnames or (), file, options)
        rows = [_Row(file, reader.line_num, found, columns) for found in islice(reader, MOST_PODS)]
        more = next(reader, None) is not None
    except csv.Error as error:
        raise BadInputError(f"{file}:{reader.line_num}: {error}", next_step="save the trace as CSV text") from error
    for row in rows:
        if None in row.cells:  # DictReader's key for what stands behind the last column
            step = "quote a value that has a comma in it"
            raise BadInputError(f"{file}:{row.line}: the line has more values than the head line", next_step=step)
    if not rows:
        raise BadInputError(
            f"{file}:1: the trace has no tasks", next_step="give a CSV with a head line and a row a task"
        )
    _refuse_unknown_models(rows, options)
    tasks = tuple(_tasks(rows, options))
    if more or sum(task.replicas for task in tasks) > MOST_PODS:
        step = "simulate a part of it"
        raise BadInputError(f"{file}: the trace has more than {MOST_PODS:,} pods", next_step=step)
    return tasks


def _columns(header: Sequence[str], file: str, options: TraceOptions) -> dict[str, str]:
    """The given columns, and those of the file that are called like their meaning."""
    columns = {meaning: meaning for meaning in MEANINGS if meaning in header} | dict(options.columns)
    twice = sorted({column for column in columns.values() if header.count(column) > 1})
    if twice:
        step = "give each column a name of its own"
        raise BadInputError(f"{file}:1: the column {twice[0]!r} is there twice", next_step=step)
    there = f"the file has {', '.join(header) or 'no head line'}"
    if len(header) == 1 and {";", "\t"}.intersection(header[0]):
        there += ": separate its columns by commas"
    for meaning, column in columns.items():
        if column not in header:
            step = did_you_mean(column, list(header), there)
            raise BadInputError(f"{file}:1: there is no column {column!r} for {meaning}", next_step=step)
    for needed in ("arrival", "gpus"):
        if needed not in columns:
            step = f"say which column it is: --columns {needed}=COLUMN; {there}"
            raise BadInputError(f"{file}:1: no column for {needed} ({MEANINGS[needed]})", next_step=step)
    if ("duration" in columns) == ("end" in columns):
        step = f"say --columns duration=COLUMN or --columns end=COLUMN; {there}"
        raise BadInputError(f"{file}:1: either a duration or an end is needed, and not both", next_step=step)
    return columns


@dataclass(frozen=True, slots=True)
class _Row:
    file: str
    line: int
    cells: Mapping[str | None, str | list[str] | None]
    columns: Mapping[str, str]

    def text(self, meaning: str) -> str:
        """The cell, "" if there is no such column."""
        column = self.columns.get(meaning)
        if column is None:
            return ""
        found = self.cells.get(column)
        if found is None:
            raise self.wrong(meaning, "the line is too short: there is no value")
        return str(found).strip()

    def read(self, meaning: str, convert: Callable[[str], V], default: V) -> V:
        """The converted cell; `default` without such a column. Raises BadInputError, also for empty cells."""
        if meaning not in self.columns:
            return default
        text = self.text(meaning)
        if not text:
            raise self.wrong(meaning, "the value is empty")
        try:
            return convert(text)
        except ValueError as error:
            raise self.wrong(meaning, str(error)) from None

    def wrong(self, meaning: str, why: str, *, step: str = "correct the line, or leave it out") -> BadInputError:
        return BadInputError(f"{self.file}:{self.line}: {self.columns.get(meaning, meaning)}: {why}", next_step=step)


def _refuse_unknown_models(rows: Sequence[_Row], options: TraceOptions) -> None:
    """All names at once, with the line of the first. A task without devices needs no model."""
    unknown: dict[str, _Row] = {}
    column = rows[0].columns.get("gpu-model")
    for row in rows if column else ():
        for name in _names(row) if row.cells.get(column) is not None else ():
            meant = options.models.get(name, (name,))
            if not all(model in options.known for model in meant) and row.read("gpus", count, 0):
                unknown.setdefault(name, row)
    if unknown:
        first = next(iter(unknown))
        step = f"say what each stands for, such as --gpu-model {first}=A10G; known: {', '.join(sorted(options.known))}"
        names = ", ".join(map(repr, unknown))
        raise unknown[first].wrong("gpu-model", f"the catalog has no NVIDIA accelerator {names}", step=step)


def _tasks(rows: Sequence[_Row], options: TraceOptions) -> Iterator[Task]:
    before, zero = rows[0], rows[0].read("arrival", instant, timedelta(0))
    last = zero
    for index, row in enumerate(rows):
        arrival = row.read("arrival", instant, timedelta(0))
        if arrival < last:
            why = f"{row.text('arrival')} after {before.text('arrival')} in the line before"
            step = "sort the trace by its arrivals"
            raise row.wrong("arrival", f"arrivals must not decrease: {why}", step=step)
        before, last = row, arrival
        yield Task(
            name=_name(row, index),
            arrives=arrival - zero,
            runs=_runs(row, arrival),
            shape=_shape(row, options),
            replicas=(replicas := _replicas(row)),
            gang=replicas > 1,
            place=f"{row.file}:{row.line}",
        )


def _name(row: _Row, index: int) -> str:
    """A name that an object may have and no other row has: the row's own in letters, digits and dashes, numbered."""
    plain = "".join(c if c.isascii() and c.isalnum() else "-" for c in row.text("name").lower()).strip("-")[:40]
    return f"{plain.strip('-') or 'task'}-{index + 1}"


def _replicas(row: _Row) -> int:
    found = row.read("replicas", count, 1)
    if not 1 <= found <= _MOST_REPLICAS:
        raise row.wrong("replicas", f"{found} is not between 1 and {_MOST_REPLICAS}")
    return found


def _runs(row: _Row, arrival: timedelta) -> timedelta:
    if "duration" in row.columns:
        return row.read("duration", span, timedelta(0))
    end = row.read("end", instant, timedelta(0))
    if end < arrival:
        raise row.wrong("end", f"it ends at {row.text('end')}, before it arrives at {row.text('arrival')}")
    return end - arrival


def _shape(row: _Row, options: TraceOptions) -> Shape:
    milli = row.read("cpu-milli", amount, 1000 * row.read("cpu", amount, 0.0))
    mib = row.read("memory-mib", amount, 1024 * row.read("memory-gib", amount, 0.0))
    gpus = row.read("gpus", count, 0)
    models = tuple(dict.fromkeys(_models(row, options))) if gpus else ()
    return Shape(gpus=gpus, models=models, cpu=round(milli), memory=round(mib))


def _models(row: _Row, options: TraceOptions) -> Iterator[str]:
    for name in _names(row):
        yield from options.models.get(name, (name,))


def _names(row: _Row) -> list[str]:
    return [name for part in row.text("gpu-model").split("|") if (name := part.strip())]
