"""A plan on the terminal: the most important lines first, then tables of at most 120 columns; or one of the other
forms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import click

from autoscaler.cli.common.decided import Decided
from autoscaler.cli.common.output import fenced, folded, markdown_table, markdown_text, print_data, print_table
from autoscaler.cli.common.terminal import styled
from autoscaler.model.plan import Plan
from autoscaler.report.plan_document import document_of
from autoscaler.report.printable import one_line
from autoscaler.report.tables.given import Given
from autoscaler.report.tables.plan_summary import Line, left_out_table, summary_of
from autoscaler.report.tables.plan_tables import Table, tables_of
from autoscaler.report.words import money
from instance_catalog.types.instance_type import CapacityType

FORMS: Final = ("wide", "name", "markdown")
WIDTH: Final = 120
_TO_DO: Final = "  to do: "
_COLOURS: Final = {"good": "green", "warning": "yellow", "error": "red", "": ""}


def print_notes(found: Decided) -> None:
    """Prints to stderr what is special about the plan: the version of Kubernetes, capacity types that were asked for
    and that the catalog has no price of, and types without a price in the region that would make it cheaper."""
    if found.snapshot.profile.note:
        click.echo(f"note: {found.snapshot.profile.note}", err=True)
    asked = found.policy.where.capacity_types
    if not asked and not any(node.offering.region for node in found.plan.launches):
        return
    # Imported here because many plans do not need it, and it takes a while.
    from autoscaler.advice.prices import cheaper_at_list_prices, unpriced
    from autoscaler.advice.what_if import sync_command
    from autoscaler.report.advised.change_steps import change_steps

    for cloud, change in unpriced(found.plan, asked, found.catalog):
        kind = change.detail.get("sold_as", CapacityType.ON_DEMAND.value)
        missing = f"nothing is bought as {kind}, since the catalog has no such price of {cloud}"
        click.echo(f"note: {missing}: {'; '.join(change_steps(change))}", err=True)
    elsewhere = cheaper_at_list_prices(found.plan, found.snapshot, found.catalog, found.policy, found.now)
    if elsewhere is not None:
        nodes = " and ".join(f"{count} × {name}" for name, count in elsewhere.launches)
        missing = f"the catalog has no price of {' and '.join(elsewhere.types)} in {elsewhere.region}"
        cost = (
            f"at that of {' and '.join(elsewhere.regions)} the plan is {nodes} for {money(elsewhere.usd_per_hour)} $/h"
        )
        step = f"read the prices there with {sync_command(elsewhere.cloud, elsewhere.region)}, and give --catalog DIR"
        click.echo(f"note: {missing}; {cost}: {step}", err=True)


def print_plan(
    plan: Plan,
    output: str,
    given: Given,
    *,
    costs: dict[str, Any] | None = None,
) -> None:
    """Print the plan in a form of -o. `costs` join the document."""
    match output:
        case "json" | "yaml":
            print_data(document_of(plan) | ({"costBy": costs} if costs else {}), output)
        case "name":
            for node in plan.launches:
                click.echo(f"node/{node.name}")
            for left in plan.left_out:
                click.echo(f"pod/{left.pod}")
        case "markdown":
            _print_markdown(plan, summary_of(plan, given))
        case _:
            summary = summary_of(plan, given)
            _print_tables(plan, summary, wide=output == "wide")


def _print_tables(plan: Plan, summary: Sequence[Line], *, wide: bool) -> None:
    for line in summary:
        for text in (line.text, *([f"{_TO_DO}{line.step}"] if line.step else [])):
            for part in [one_line(text)] if wide else folded(text, WIDTH):
                styled(part, colour=_COLOURS[line.level])
    for table in _sections(plan, wide=wide):
        click.echo("")
        _print(table, wide=wide)


def _sections(plan: Plan, *, wide: bool) -> list[Table]:
    left_out = left_out_table(plan, wide=wide)
    return [*([left_out] if left_out else []), *tables_of(plan, wide=wide)]


def _print(table: Table, *, wide: bool) -> None:
    if table.columns:
        print_table(table.columns, table.rows, title=table.title, most=None if wide else WIDTH)
    else:
        styled(table.title, bold=True, colour="red")
    for note in table.notes:
        for line in [one_line(note)] if wide else folded(note, WIDTH):
            click.echo(line)


def _print_markdown(plan: Plan, summary: Sequence[Line]) -> None:
    for line in summary:
        click.echo(f"- {markdown_text(line.text)}")
        if line.step:
            click.echo(f"  - {markdown_text(_TO_DO.lstrip() + line.step)}")
    for table in _sections(plan, wide=False):
        click.echo(f"\n### {markdown_text(table.title)}\n")
        for text in markdown_table(table.columns, table.rows) if table.columns else ():
            click.echo(text)
        # A line directly below a table would be another row of it.
        notes = ["", *map(markdown_text, table.notes)] if table.columns else fenced(table.notes)
        for text in notes if table.notes else ():
            click.echo(text)
