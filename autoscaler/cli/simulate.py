"""`foreslice simulate`: computes the costs and waits of a workload of days under several policies."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Final

import click

from autoscaler.catalog_refresh.atomic_write import ensure_writable, replace_file
from autoscaler.cli.common.choices import chosen_catalog
from autoscaler.cli.common.commands import catalog_option
from autoscaler.cli.common.files import problems_text
from autoscaler.cli.common.output import output_option, print_data, print_table
from autoscaler.cli.common.terminal import show_progress
from autoscaler.cluster.api import Object
from autoscaler.cluster.resources import BY_KIND, CAPACITY_POOLS
from autoscaler.errors import BadInputError
from autoscaler.kube.custom.schema import duration_text
from autoscaler.manifests.document import Document, UnreadableError
from autoscaler.manifests.load import load
from autoscaler.manifests.sources import STDIN, Source, read_sources
from autoscaler.manifests.yaml_documents import read_yaml
from autoscaler.model.capacity import Mode
from autoscaler.report.study.gap import Gap, study_document
from autoscaler.report.study.outcome import Outcome
from autoscaler.report.study.page import study_page
from autoscaler.report.study.table import COLUMNS, outcome_rows, summary_lines
from autoscaler.simulation.study.numbers import span
from autoscaler.simulation.study.objects import product_names
from autoscaler.simulation.study.prepared import Prepared, prepare
from autoscaler.simulation.study.run import run_all
from autoscaler.simulation.study.scenario_file import KIND, is_simulation, read_scenario
from autoscaler.simulation.study.task import POLICIES, Study, Variant
from autoscaler.simulation.study.trace_file import MEANINGS, TraceOptions, parse_columns, read_trace
from instance_catalog.dataclass import replace
from instance_catalog.diagnostic import Diagnostic
from instance_catalog.spelling import did_you_mean
from instance_catalog.types.catalog import Catalog

_CSV: Final = ".csv"
_STEP: Final = 20  # the number of progress lines of a run


@click.command()
@click.argument("workload", metavar="FILE")
@click.option(
    "-f", "--filename", "paths", multiple=True, metavar="PATH", help="Manifests of the cluster: pools, classes."
)
@click.option("--columns", default="", metavar="M=C,…", help="With a CSV: the columns, as MEANING=COLUMN,….")
@click.option(
    "--gpu-model",
    "models",
    multiple=True,
    metavar="NAME=MODEL",
    help="With a CSV: the accelerators that a name in the trace means, as G2=A10G or V100=V100|A100.",
)
@click.option(
    "--policy", default="greedy,foreslice", show_default=True, help=f"Policies to compare: {', '.join(POLICIES)}."
)
@click.option(
    "--keep-alive",
    default="",
    metavar="TIMES",
    help="How long empty nodes stay, such as 0s,1m,5m,10m,30m: each is a separate run.  [default: as the pools say]",
)
@click.option(
    "--boot",
    default="",
    metavar="TIME",
    help="Time from a launch to the registration of the node.  [default: the scenario's, or 150s]",
)
@click.option(
    "--checkpoint",
    default="",
    metavar="TIME",
    help="Tasks of a trace lose at most so much of their work when they are moved.  [default: they cannot be moved]",
)
@click.option("--known-durations", is_flag=True, help="Pods say how long they run (foreslice.dev/expected-duration).")
@click.option("--first", type=click.IntRange(min=1), metavar="N", help="Only the first N tasks.")
@click.option("--skip-unplaceable", is_flag=True, help="Leave out tasks that no pool can ever place, and list them.")
@click.option(
    "--processes",
    type=click.IntRange(min=1),
    metavar="N",
    help="Runs in parallel.  [default: as many as there are CPUs]",
)
@click.option(
    "--html",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Also write an HTML page with charts.",
)
@catalog_option
@output_option()
def simulate(
    *,
    workload: str,
    paths: tuple[str, ...],
    columns: str,
    models: tuple[str, ...],
    policy: str,
    keep_alive: str,
    boot: str,
    checkpoint: str,
    known_durations: bool,
    first: int | None,
    skip_unplaceable: bool,
    processes: int | None,
    html: Path | None,
    directories: tuple[Path, ...],
    output: str,
) -> None:
    """FILE is a scenario in YAML or a trace in CSV. Its tasks arrive, run and end in a simulated cluster and cloud. The
    controller's own code decides which nodes to launch, keep and remove, in virtual time. Nothing is launched.

    Each combination of a policy and a --keep-alive time is one run, which starts with an empty cluster. `greedy` plans
    for one pod at a time and takes the cheapest node for this pod; `foreslice` plans for all pending pods together;
    `closing` also lets no pods onto a node but those that it was bought for (disruption.consolidate: Close); `cheaper`
    moves running pods to where they cost less, if they may be moved (disruption.consolidate: Cheaper).

    \b
    A trace needs the columns arrival, gpus, and duration or end; others are optional:
      name, gpu-model, cpu, cpu-milli, memory-gib, memory-mib, replicas (a gang)
    Times are seconds or RFC 3339. Give the pools with -f.

    \b
    Try:
      foreslice simulate docs/examples/simulate/day.yaml
      foreslice simulate docs/examples/simulate/day.yaml --keep-alive 0s,5m,30m --html result.html
      foreslice simulate trace.csv -f pool.yaml --columns arrival=submit_time,end=end_time,gpus=num_gpu
      foreslice simulate trace.csv -f pool.yaml --gpu-model G2=A10G --skip-unplaceable -o json
      foreslice simulate docs/examples/simulate/services.yaml --policy foreslice,cheaper
      foreslice simulate docs/examples/simulate/day.yaml -f docs/examples/simulate/block.yaml

    Exit code 0: every task has started, and none was interrupted; 3: some tasks never started, or were interrupted when
    their machine ended; 1: the input cannot be used.
    """
    variants = _variants(policy, keep_alive)
    if html is not None:
        ensure_writable(html)
    catalog = chosen_catalog(directories)
    study = _study(workload, paths, columns, models, catalog)
    study = _changed(study, boot, first, checkpoint)
    if known_durations:
        study = replace(study, tasks=tuple(replace(task, says_duration=True) for task in study.tasks))
    prepared = prepare(study, catalog, skip=skip_unplaceable)
    for pool in _observing(prepared.study):
        click.echo(f"note: pool {pool} has mode Observe; here it launches as in mode Act", err=True)
    for line in prepared.notes:
        click.echo(f"note: {line}", err=True)
    for line in prepared.left_out:
        click.echo(f"left out: {line}", err=True)
    progress = _Progress()
    width = processes or os.cpu_count() or 1
    outcomes = run_all(prepared.study, variants, prepared.catalog, processes=width, on_progress=progress.say)
    progress.end()
    _print(prepared, outcomes, output, html)
    if not all(outcome.complete for outcome in outcomes):
        sys.exit(3)


def _observing(study: Study) -> list[str]:
    """The pools that would launch nothing in a cluster."""
    pools = [manifest for manifest in study.objects if manifest["kind"] == CAPACITY_POOLS.kind]
    return [pool["metadata"]["name"] for pool in pools if pool["spec"].get("mode") != Mode.ACT.value]


def _changed(study: Study, boot: str, first: int | None, checkpoint: str) -> Study:
    """The study as the options change it."""
    if boot:
        study = replace(study, boot=_span("--boot", boot))
    if first is not None:
        study = replace(study, tasks=study.tasks[:first])
    if not checkpoint:
        return study
    interval = _span("--checkpoint", checkpoint)
    tasks = tuple(replace(t, checkpoint=interval if t.checkpoint is None else t.checkpoint) for t in study.tasks)
    return replace(study, tasks=tasks)


def _print(prepared: Prepared, outcomes: Sequence[Outcome], output: str, html: Path | None) -> None:
    """The outcomes as a table or as data, and as a page in the file `html`."""
    name, gap = prepared.study.name, Gap.of(prepared.at_least, outcomes)
    if output == "table":
        print_table(COLUMNS, outcome_rows(outcomes, gap))
        click.echo("")
        for line in summary_lines(name, outcomes, gap):
            click.echo(line)
    else:
        print_data(study_document(name, outcomes, gap, prepared.left_out), output)
    if html is not None:
        replace_file(html, study_page(name, outcomes, gap, prepared.left_out))
        click.echo(f"{html} is written; open it in a browser", err=True)


def _variants(policies: str, keep_alive: str) -> tuple[Variant, ...]:
    names = [part.strip() for part in policies.split(",") if part.strip()]
    for name in names:
        if name not in POLICIES:
            step = did_you_mean(name, list(POLICIES), f"choose from {', '.join(POLICIES)}")
            raise BadInputError(f"--policy: unknown policy {name!r}", next_step=step)
    if not names:
        raise BadInputError("--policy: there is none", next_step=f"choose from {', '.join(POLICIES)}")
    times: list[timedelta | None] = [_span("--keep-alive", part) for part in keep_alive.replace(",", " ").split()]
    return tuple(Variant(name, alive) for name in dict.fromkeys(names) for alive in dict.fromkeys(times or [None]))


def _span(option: str, text: str) -> timedelta:
    try:
        return span(text)
    except ValueError as error:
        raise BadInputError(f"{option}: {error}", next_step="write it like 0s, 90s or 5m") from None


def _study(workload: str, paths: Sequence[str], columns: str, models: Sequence[str], catalog: Catalog) -> Study:
    if workload == STDIN:
        raise BadInputError("the scenario or trace is read twice, so not from a pipe", next_step="write it to a file")
    known = product_names(catalog)
    sources = list(read_sources([workload], sys.stdin))
    found = sources[0]
    if isinstance(found, Diagnostic) or len(sources) != 1:
        wrong = found.block if isinstance(found, Diagnostic) else f"{workload}: {len(sources)} files, expected one"
        raise BadInputError(wrong, next_step="give one file: a scenario in YAML or a trace in CSV")
    if Path(workload).suffix.lower() == _CSV or columns:
        options = TraceOptions(parse_columns(columns), _meant(models), known)
        tasks = read_trace(found.text.splitlines(), found.file, options)
        return Study(Path(workload).name, tasks, tuple(_objects(paths, catalog)))
    if models:
        step = "in a scenario, gpuModel names the catalog's accelerators"
        raise BadInputError("--gpu-model belongs to a CSV trace", next_step=step)
    scenarios = [document for document in _documents(found) if is_simulation(document)]
    if len(scenarios) != 1:
        step = f"write one; for a CSV trace give --columns MEANING=COLUMN with {', '.join(MEANINGS)}"
        raise BadInputError(f"{workload}: {len(scenarios)} objects of kind Simulation, expected one", next_step=step)
    return replace(read_scenario(scenarios[0], known), objects=tuple(_objects([workload, *paths], catalog)))


def _meant(models: Sequence[str]) -> dict[str, tuple[str, ...]]:
    found = {}
    for text in models:
        name, separator, meant = text.partition("=")
        if not separator or not meant.strip():
            raise BadInputError(f"--gpu-model: {text!r} says nothing", next_step="write NAME=MODEL, such as G2=A10G")
        found[name.strip()] = tuple(part.strip() for part in meant.split("|"))
    return found


def _documents(source: Source) -> Iterator[Document]:
    try:
        for document in read_yaml(source.text, source.file):
            for twice in document.twice:
                raise BadInputError(f"{twice.place}: {twice.message}", next_step="keep one of the two")
            yield document
    except UnreadableError as error:
        raise BadInputError(f"{source.file}:{error.line}: {error}", next_step=error.next_step) from error


def _objects(paths: Sequence[str], catalog: Catalog) -> Iterator[Object]:
    """The manifests, checked as `plan` checks them, with the same warnings."""
    if not paths:
        return
    loaded = load(paths, stdin=sys.stdin, drivers=catalog.drivers.values(), skip_unknown=True)
    if not loaded.ok:
        problems = loaded.error_text
        raise BadInputError(f"the manifests cannot be used\n{problems}")
    # The scenario itself is read elsewhere, so that it is none of the cluster's objects is no problem.
    others = tuple(one for one in loaded.problems if one.about.partition(" ")[0] != KIND)
    if others:
        click.echo(problems_text(replace(loaded, problems=others)), err=True)
    for document in loaded.documents:
        if document.value["kind"] not in BY_KIND:
            step = "leave it out: the simulated cluster does not have it"
            raise BadInputError(f"{document.file}:{document.line}: {document.name} is not simulated", next_step=step)
        yield document.value


class _Progress:
    """The progress of the runs, on stderr: one changing line on a terminal, else a line for each finished run."""

    def __init__(self) -> None:
        self._terminal = sys.stderr.isatty()
        self._last: dict[Variant, int] = {}

    def say(self, variant: Variant, arrived: int, total: int) -> None:
        """Called at every step; most of them print nothing."""
        step = arrived * _STEP // total
        if self._last.get(variant) == step:
            return
        self._last[variant] = step
        alive = "" if variant.keep_alive is None else f", keep-alive {duration_text(variant.keep_alive)}"
        if self._terminal:
            show_progress(f"{variant.policy}{alive}: {100 * arrived // total} % of the tasks have arrived")
        elif arrived == total:
            click.echo(f"{variant.policy}{alive}: all tasks have arrived", err=True)

    def end(self) -> None:
        """Clear the line."""
        if self._terminal:
            show_progress("")
