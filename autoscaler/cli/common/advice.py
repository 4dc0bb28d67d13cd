"""The smallest change that would place each workload without a place, a list each, printed after a plan."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import click

from autoscaler.cli.common.created_files import objects_note
from autoscaler.cli.common.decided import Decided
from autoscaler.cli.common.output import folded, markdown_text
from autoscaler.cli.common.plan_output import WIDTH
from autoscaler.planning.demand.scope import IMPLICIT
from autoscaler.report.words import few

if TYPE_CHECKING:  # at runtime imported only where there is something to advise
    from autoscaler.advice.together import Helping
    from autoscaler.advice.trial import Advice

_MOST = 3  # groups of ignored pods; `explain` answers for every pod
_THEN = 12  # plans for ignored pods, beside those that were spent before


def print_advice(found: Decided, helping: Helping | None, output: str = "table") -> None:
    """Prints changes that help, each as a list below the pods that it places: all that need it; nothing if no change
    helps."""
    if helping is None or not helping.groups:
        return
    groups = list(_by_pods(helping))
    by_pod = helping.by_pod
    texts = (*_assumed_disk(found, by_pod), *_end_of_catalog(found, by_pod), *objects_note(found, by_pod))
    notes = [f"note: {text}" for text in texts]
    rest = list(_others(helping))
    if output == "markdown":
        click.echo("\n### Smallest change that places it")
        for pods, lines in groups:
            _print_markdown_list(pods, lines)
        if notes or rest:
            _print_markdown_list("", (*notes, *rest))
        return
    click.echo("")
    click.echo("Smallest change that places it")
    for pods, lines in groups:
        for text in (f"  {pods}:", *(f"    {line}" for line in lines)):
            _print_folded(text)
    for note in (*notes, *rest):
        _print_folded(f"  {note}")


def lines_by_pod(helping: Helping | None) -> dict[str, list[str]]:
    """By the first of the pods that need the change."""
    if helping is None:
        return {}
    from autoscaler.report.advised.listed import advice_lines

    return {pod: advice_lines(advice) for pod, advice in helping.by_pod.items()}


def _by_pods(helping: Helping) -> Iterator[tuple[str, list[str]]]:
    """The pods that a change places, and its lines."""
    lines = lines_by_pod(helping)
    for group in helping.groups:
        yield few(group.pods, 1), lines[group.pods[0]]


def _others(helping: Helping) -> Iterator[str]:
    """The pods without a place that no list names."""
    if helping.without:
        yield f"{few(helping.without, 1)}: no change that was tried places {_them(helping.without)}"
    if helping.untried:
        step = f"`foreslice explain {shlex.quote(helping.untried[0])}` tries some"
        yield f"{few(helping.untried, 1)}: no change was tried for {_them(helping.untried)}; {step}"


def _them(pods: Sequence[str]) -> str:
    return "them" if len(pods) > 1 else "it"


def _print_folded(text: str) -> None:
    for part in folded(text, WIDTH):
        click.echo(part)


def _print_markdown_list(head: str, lines: Iterable[str]) -> None:
    click.echo(f"\n{markdown_text(head)}:\n" if head else "")
    for line in lines:
        click.echo(f"- {markdown_text(line)}")


def _assumed_disk(found: Decided, helping: Mapping[str, Advice]) -> Iterator[str]:
    """The size of the root disks of a change's machines, if the change itself does not name it."""
    from autoscaler.advice.change import ChangeKind
    from autoscaler.lint.pods.disk_space import advised_disk

    silent = {
        pod: found.catalog.types.get(advice.result.launches[0][0].instance_type)
        for pod, advice in helping.items()
        if advice.result.launches and all(part.kind is not ChangeKind.ENLARGE_DISK for part in advice.change.steps)
    }
    if text := advised_disk(silent, found.snapshot):
        yield text


def _end_of_catalog(found: Decided, helping: Mapping[str, Advice]) -> Iterator[str]:
    """That the first CapacityPool ends the offer of the whole catalog, on which the pods with a place rely."""
    from autoscaler.report.advised.change_steps import CREATE_POOL, change_steps

    placed = [node for node in found.plan.launches if node.pool == IMPLICIT.name and node.pods]
    steps = (step for advice in helping.values() for step in change_steps(advice.change))
    if placed and any(step.startswith(CREATE_POOL) for step in steps):
        yield (
            "with a CapacityPool the whole catalog is no longer on offer: give the pods that have a place now, such as "
            f"{placed[0].pods[0]}, one as well"
        )


def print_further_obstacles(found: Decided, helping: Helping | None) -> None:
    """Prints why ignored pods for which no change was found, though some were tried, would have no place in a pool that
    serves them, with the changes that would help there."""
    if not found.plan.outside:
        return
    from autoscaler.advice.ignored import as_if_served
    from autoscaler.report.advised.listed import advice_lines
    from autoscaler.report.tables.plan_summary import left_out_lines

    pods = () if helping is None else (*(pod for group in helping.groups for pod in group.pods), *helping.untried)
    beside = frozenset(pods)
    served = as_if_served(found.plan, found.snapshot, found.catalog, found.policy, found.now, beside=beside)
    if served is None:
        return
    groups: dict[tuple[str, ...], list[str]] = {}
    for entry in served.staying:
        lines = tuple(line.replace(entry.pod, "·") for line in left_out_lines(entry))
        groups.setdefault((entry.verdict, *lines), []).append(entry.pod)
    in_pool = Decided(served.snapshot, found.catalog, served.plan, found.now, found.policy)
    further = helping_changes(in_pool, _THEN)
    steps = {pod: group.advice for group in further.groups for pod in group.pods} if further is not None else {}
    click.echo("")
    click.echo("Ignored pods that would have no place in a pool that serves them either")
    for (verdict, *rest), keys in list(groups.items())[:_MOST]:
        why = [f"  {line.replace('·', keys[0])}" for line in rest]
        change = next((advice_lines(steps[pod]) for pod in keys if pod in steps), [])
        then = ["  smallest change then:", *(f"    {line}" for line in change)] if change else []
        for line in (f"{few(keys)}{_as_whole(found, keys[0])}: {verdict}", *why, *then):
            _print_folded(line)


def _as_whole(found: Decided, key: str) -> str:
    """The whole GPUs with which a pod that asks for parts of GPUs was planned; "" for others."""
    from autoscaler.lint.pods.gpu_shares import whole_instead

    asked = next(whole_instead(pod)[1] for pod in found.snapshot.pods if pod.key == key)
    return f" (with {asked}, for whole GPUs)" if asked else ""


def helping_changes(found: Decided, plans: int | None = None) -> Helping | None:
    """The changes for the pods without a place; None if there are none. All share one number of plans, so that a plan
    with many problems takes hardly longer to print."""
    if not (found.plan.left_out or found.plan.outside):
        return None
    # Most plans place every pod, and the modules take a tenth of a second.
    from autoscaler.advice.together import helping_changes as search
    from autoscaler.advice.trial import Budget

    budget = Budget() if plans is None else Budget(plans)
    return search(found.plan, found.snapshot, found.catalog, found.policy, found.now, budget=budget)
