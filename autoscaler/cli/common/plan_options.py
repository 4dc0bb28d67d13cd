"""The output of `plan` besides the plan: another plan with a change (--what-if), and costs by group (--cost-by)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from autoscaler.cli.common.commands import Command
from autoscaler.cli.common.decided import Decided
from autoscaler.cli.common.output import markdown_table, markdown_text, print_data, print_table
from autoscaler.cli.common.plan_output import print_notes
from autoscaler.report.plan_costs import USAGE, cost_key, costs_document, costs_table
from autoscaler.report.words import counted
from instance_catalog.dataclass import replace

_SHOWN = 3


def what_if_option(command: Command) -> Command:
    """The option, which may be given several times; all changes are made together."""
    return click.option(
        "--what-if",
        "questions",
        multiple=True,
        metavar="CHANGE",
        help="Plan again with a change and show the difference: 'spot', 'region us-east4', "
        "'price p5.48xlarge=40', 'without p5.48xlarge', 'block +4'. May be repeated; "
        "the changes are then made together.",
    )(command)


def print_what_if(found: Decided, questions: Sequence[str], output: str) -> bool:
    """Prints the difference that the changes make. Returns True if every pod that has a place keeps one."""
    from autoscaler.advice.what_if import Inputs, changed
    from autoscaler.lint.advice import blocks_beyond_limits
    from autoscaler.planning.planner import plan_for
    from autoscaler.report.plan_diff import PlanFacts, diff_document, diff_summary, diff_tables, lost_places
    from autoscaler.report.plan_document import document_of
    from autoscaler.report.tables.plan_summary import left_out_lines

    inputs = changed(Inputs(found.snapshot, found.catalog, found.policy), questions)
    plan = plan_for(inputs.snapshot, inputs.catalog, inputs.policy, found.now)
    print_notes(replace(found, snapshot=inputs.snapshot, catalog=inputs.catalog, plan=plan, policy=inputs.policy))
    for one in blocks_beyond_limits(inputs.snapshot):
        click.echo(f"note: {one.subject} {one.message}: {one.next_step}", err=True)
    before, after = (PlanFacts.of(document_of(one)) for one in (found.plan, plan))
    difference = diff_document(before, after)
    if output in ("json", "yaml"):
        print_data({"whatIf": list(questions), **difference}, output)
        return not lost_places(difference)
    click.echo(f"What if: {', '.join(questions)}")
    for table in diff_tables(difference):
        if table.rows:
            print_table(table.columns, table.rows, title=table.title)
            click.echo("")
    unchanged = "" if difference["nodes"] or difference["pods"] else ": the nodes and pods of the plan stay the same"
    click.echo(f"{diff_summary(difference)}{unchanged}")
    never = {left.pod for left in found.plan.left_out} & {left.pod for left in plan.left_out}
    if never:
        text = counted(len(never), "pod")
        click.echo(f"{text} cannot be placed, before or after: without --what-if the plan says why")
    lost = lost_places(difference)
    # These are pods of one change: a few reasons are enough for all of them.
    for entry in [left for left in plan.left_out if left.pod in lost][:_SHOWN]:
        click.echo(f"{entry.pod} is no longer placed:")
        for line in left_out_lines(entry):
            click.echo(f"  {line}")
    return not lost_places(difference)


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
        help=f"Show the cost of new nodes for each {USAGE} of pods.",
    )(command)


def costs_of(found: Decided, by: str) -> dict[str, Any] | None:
    """The groups as data; None if --cost-by is not set."""
    key = cost_key(by) if by else None
    return None if key is None else costs_document(found.plan, found.snapshot, by, key)


def print_costs(found: Decided, by: str, output: str) -> None:
    """Prints the groups as a table, in Markdown with `output` markdown; nothing if --cost-by is not set."""
    costs = costs_of(found, by)
    if costs is not None:
        table = costs_table(costs)
        click.echo("")
        if output == "markdown":
            click.echo(f"### {markdown_text(table.title)}\n")
            click.echo("\n".join(markdown_table(table.columns, table.rows)))
            return
        print_table(table.columns, table.rows, title=table.title)
