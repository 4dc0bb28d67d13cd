"""--why TYPE and --why-not TYPE: the steps of the decision about an instance type, for pods of a plan."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import click

from autoscaler.cli.common.choices import chosen_type
from autoscaler.cli.common.commands import Command
from autoscaler.cli.common.decided import Decided
from autoscaler.cli.common.output import print_data
from autoscaler.model.pod import Pod
from autoscaler.report.printable import one_line

_OF_PLANS = ("name", "markdown")  # forms of a plan alone
_MOST = 5  # groups of equal pods that are answered for


def why_option(command: Command) -> Command:
    """The option under both names: the answer is the same."""
    return click.option(
        "--why",
        "--why-not",
        "why",
        default="",
        metavar="TYPE",
        help="Explain why this instance type is chosen or not: each step of the decision, with facts and sources.",
    )(command)


def type_answers(name: str, found: Decided, pods: Sequence[Pod]) -> Iterator[dict[str, Any]]:
    """One answer for each pod. Raises BadInputError for a type that is not in the catalog."""
    from autoscaler.advice.type_question import ask_type
    from autoscaler.report.type_answer import type_answer_document

    instance_type = chosen_type(name, found.catalog)
    for pod in pods:
        yield type_answer_document(
            ask_type(instance_type, pod, found.snapshot, found.catalog, found.plan, found.policy, found.now)
        )


def refuse_unused(why: str, questions: Sequence[str], options: Mapping[str, object], *, output: str) -> None:
    """Raises UsageError if --why or --what-if prints its answer instead of the plan that `options` ask for."""
    instead = "--why" if why else "--what-if"
    asked = {"--what-if": why and questions, **options, f"-o {output}": output in _OF_PLANS}
    unused = [name for name, given in asked.items() if given]
    if unused and (why or questions):
        raise click.UsageError(f"{instead} prints its answer instead of the plan: leave out {' and '.join(unused)}.")


def print_type_answers(answers: Sequence[dict[str, Any]], output: str) -> None:
    """Prints the answers as data if the output is JSON or YAML, else as text with blank lines between them."""
    from autoscaler.report.type_answer import type_answer_lines

    if output in ("json", "yaml"):
        print_data(answers, output)
        return
    for position, answer in enumerate(answers):
        if position:
            click.echo("")
        for line in type_answer_lines(answer):
            click.echo(one_line(line))


def samples(found: Decided) -> list[Pod]:
    """One pod of each group of equal pods that the plan decided about, those without a place first."""
    pods = {pod.key: pod for pod in found.snapshot.pods}
    left = {entry.pod for entry in found.plan.left_out}
    groups = sorted((d.pods for d in found.plan.demands if d.pods), key=lambda keys: keys[0] not in left)
    chosen = [pods[keys[0]] for keys in groups if keys[0] in pods]
    if not chosen:
        ignored = "; the pods are ignored, `foreslice explain POD` says why" if found.plan.outside else ""
        click.echo(f"no pod waits for a node{ignored}", err=True)
    if len(chosen) > _MOST:
        click.echo(
            f"{len(chosen) - _MOST} more groups of pods: `foreslice explain POD --why TYPE` asks for one", err=True
        )
    return chosen[:_MOST]
