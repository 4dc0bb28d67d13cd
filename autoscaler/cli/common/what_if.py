"""--what-if: a second plan with something changed, and how it differs from the first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

from autoscaler.cli.common.decided import Decided
from autoscaler.cli.common.output import print_data, print_table

_SHOWN = 3
Command = TypeVar("Command", bound=Callable[..., Any])


def what_if_option(command: Command) -> Command:
    """The option, which may be given several times; all changes are made together."""
    return click.option(
        "--what-if",
        "questions",
        multiple=True,
        metavar="CHANGE",
        help="Plan again with a change, and show the difference: 'spot', 'region us-east4', "
        "'price p5.48xlarge=40', 'without p5.48xlarge', 'block +4'. May be repeated; "
        "the changes are then made together.",
    )(command)


def print_what_if(found: Decided, questions: Sequence[str], output: str) -> bool:
    """Print the difference that the changes make; whether every pod that has a place keeps one."""
    from autoscaler.advice.what_if import Inputs, changed
    from autoscaler.planning.planner import plan_for
    from autoscaler.report.plan_diff import PlanFacts, diff_document, diff_summary, diff_tables, lost_places
    from autoscaler.report.plan_document import document_of
    from autoscaler.report.tables.plan_summary import left_out_lines

    inputs = changed(Inputs(found.snapshot, found.catalog, found.policy), questions)
    plan = plan_for(inputs.snapshot, inputs.catalog, inputs.policy, found.now)
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
    click.echo(diff_summary(difference))
    lost = lost_places(difference)
    # Those are pods of one change: a few reasons stand for all of them.
    for entry in [left for left in plan.left_out if left.pod in lost][:_SHOWN]:
        click.echo(f"{entry.pod} is no longer placed:")
        for line in left_out_lines(entry):
            click.echo(f"  {line}")
    return not lost_places(difference)
