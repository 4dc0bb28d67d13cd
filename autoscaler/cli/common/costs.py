"""--cost-by: what a plan costs by namespace, workload or label."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from autoscaler.cli.common.decided import Decided
from autoscaler.cli.common.output import markdown_table, markdown_text, print_table
from autoscaler.report.plan_costs import USAGE, cost_key, costs_document, costs_table

Command = TypeVar("Command", bound=Callable[..., Any])


def cost_option(command: Command) -> Command:

    def checked(_: click.Context, __: click.Parameter, value: str) -> str:
        if value and cost_key(value) is None:
            raise click.BadParameter(f"{value!r} is none of {USAGE}")
        return value

    return click.option(
        "--cost-by",
        default="",
        metavar="WHAT",
        callback=checked,
        help=f"Divide the cost of new nodes by {USAGE} of pods.",
    )(command)


def costs_of(found: Decided, by: str) -> dict[str, Any] | None:
    """The groups as data; None where nobody asked."""
    key = cost_key(by) if by else None
    return None if key is None else costs_document(found.plan, found.snapshot, by, key)


def print_costs(found: Decided, by: str, output: str) -> None:
    """The groups as a table, in Markdown with `output` markdown; nothing where nobody asked."""
    costs = costs_of(found, by)
    if costs is not None:
        table = costs_table(costs)
        click.echo("")
        if output == "markdown":
            click.echo(f"### {markdown_text(table.title)}\n")
            click.echo("\n".join(markdown_table(table.columns, table.rows)))
            return
        print_table(table.columns, table.rows, title=table.title)
