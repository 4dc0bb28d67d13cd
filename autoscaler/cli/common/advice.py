"""The smallest change that would place each workload without a place, a list each, printed after a plan."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

import click

from autoscaler.cli.common.decided import Decided
from autoscaler.cli.common.output import folded, markdown_text
from autoscaler.cli.common.plan_output import WIDTH
from autoscaler.model.pod import Pod
from autoscaler.planning.demand.scope import IMPLICIT
from autoscaler.report.words import few

if TYPE_CHECKING:  # at runtime imported only where there is something to advise
    from autoscaler.advice.trial import Advice

_MOST = 3  # workloads; `explain` answers for every pod
_ALIKE = 4  # plans for a workload that lacks the same as one before
_THEN = 12  # plans for ignored pods, beside those that were spent before


def print_advice(found: Decided, helping: Mapping[str, Advice], output: str = "table") -> None:
    """Prints changes that help, each as a list below the pods that it places: all those of a workload; nothing if no
    change helps."""
    if not helping:
        return
    groups = list(_by_pods(found, helping))
    notes = [f"note: {text}" for text in (*_assumed_disk(found, helping), *_end_of_catalog(found, helping))]
    if output == "markdown":
        click.echo("\n### Smallest change that places it")
        for pods, lines in groups:
            _print_markdown_list(pods, lines)
        if notes:
            _print_markdown_list("", notes)
        return
    click.echo("")
    click.echo("Smallest change that places it")
    for pods, lines in groups:
        for text in (f"  {pods}:", *(f"    {line}" for line in lines)):
            _print_folded(text)
    for note in notes:
        _print_folded(f"  {note}")


def lines_by_pod(helping: Mapping[str, Advice]) -> dict[str, list[str]]:
    from autoscaler.report.advised.listed import advice_lines

    return {pod: advice_lines(advice) for pod, advice in helping.items()}


def _by_pods(found: Decided, helping: Mapping[str, Advice]) -> Iterator[tuple[str, list[str]]]:
    """The pods that a change places, and its lines."""
    alike, pods = _alike(found, helping), dict[tuple[str, ...], list[str]]()
    for pod, lines in lines_by_pod(helping).items():
        more = f" and {len(alike[pod]) - 1} more" if len(alike[pod]) > 1 else ""
        pods.setdefault(tuple(lines), []).append(f"{pod}{more}")
    for shown, names in pods.items():
        yield f"{few(names)}{' (the result is for one of them)' if len(names) > 1 else ''}", list(shown)


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
        if advice.result.launches
        and all(part.kind is not ChangeKind.ENLARGE_DISK for part in advice.change.parts or (advice.change,))
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


def _alike(found: Decided, helping: Iterable[str]) -> dict[str, list[str]]:
    """By pod: itself and the others of its workload that have no place; a launcher that any node runs is none."""
    from autoscaler.advice.situation import workload_of, worth_serving

    outside = {entry.pod for entry in found.plan.outside if worth_serving(entry)}
    groups = ({entry.pod for entry in found.plan.left_out}, outside)
    workloads = {pod.key: workload_of(pod, found.snapshot) for pod in found.snapshot.pods if not pod.bound}
    return {
        key: [each for keys in groups if key in keys for each in keys if workloads[each] == workloads[key]]
        for key in helping
    }


def print_further_obstacles(found: Decided, helping: Mapping[str, Advice]) -> None:
    """Prints why ignored pods for which no change was found would have no place in a pool that serves them, with the
    changes that would help there."""
    if not found.plan.outside:
        return
    from autoscaler.advice.ignored import as_if_served
    from autoscaler.report.advised.listed import advice_lines
    from autoscaler.report.tables.plan_summary import left_out_lines

    beside = {each for alike in _alike(found, helping).values() for each in alike}
    served = as_if_served(found.plan, found.snapshot, found.catalog, found.policy, found.now, beside=beside)
    if served is None:
        return
    groups: dict[tuple[str, ...], list[str]] = {}
    for entry in served.staying:
        lines = tuple(line.replace(entry.pod, "·") for line in left_out_lines(entry))
        groups.setdefault((entry.verdict, *lines), []).append(entry.pod)
    in_pool = Decided(served.snapshot, found.catalog, served.plan, found.now, found.policy)
    steps = helping_changes(in_pool, _THEN)
    click.echo("")
    click.echo("Ignored pods that would have no place in a pool that serves them either")
    for (verdict, *rest), pods in list(groups.items())[:_MOST]:
        why = [f"  {line.replace('·', pods[0])}" for line in rest]
        change = next((advice_lines(steps[pod]) for pod in pods if pod in steps), [])
        then = ["  smallest change then:", *(f"    {line}" for line in change)] if change else []
        for line in (f"{few(pods)}{_as_whole(found, pods[0])}: {verdict}", *why, *then):
            _print_folded(line)


def _as_whole(found: Decided, key: str) -> str:
    """The whole GPUs with which a pod that asks for parts of GPUs was planned; "" for others."""
    from autoscaler.lint.pods.gpu_shares import whole_instead

    asked = next(whole_instead(pod)[1] for pod in found.snapshot.pods if pod.key == key)
    return f" (with {asked}, for whole GPUs)" if asked else ""


def helping_changes(found: Decided, plans: int | None = None) -> dict[str, Advice]:
    """By pod. All share one number of plans, so that a plan with many problems takes hardly longer to print; pods that
    other pods left out for the same reasons have a few of their own, to try what helps those."""
    wanting = _first_of_each_workload(found)[:_MOST]
    if not wanting:
        return {}
    # Most plans place every pod, and the modules take a tenth of a second.
    from autoscaler.advice.advise import advise, like_before
    from autoscaler.advice.change import Change
    from autoscaler.advice.situation import Situation
    from autoscaler.advice.together import apart
    from autoscaler.advice.trial import Budget, Replanner

    budget = Budget() if plans is None else Budget(plans)
    helping: dict[str, Advice] = {}
    made: list[tuple[str, Change]] = []
    causes = dict[frozenset[object], Change]()
    for pod in wanting:
        asked = Situation.of(pod, found.snapshot, found.catalog, found.plan, found.policy.where)
        if asked is None:
            continue
        trials = Replanner(asked, found.policy, found.now)
        earlier = causes.get(asked.codes)
        same = like_before(earlier, trials, Budget(_ALIKE)) if earlier is not None else None
        advice = (
            (same,)
            if same is not None
            else advise(pod, found.snapshot, found.catalog, found.plan, found.policy, found.now, most=1, budget=budget)
        )
        for one in advice:
            causes.setdefault(asked.codes, one.change)
            beside = apart(one, made, trials)
            made.append((pod.key, beside.change))
            helping[pod.key] = beside
    return helping


def _first_of_each_workload(found: Decided) -> list[Pod]:
    from autoscaler.advice.situation import workload_of, worth_serving

    pods = {pod.key: pod for pod in found.snapshot.pods}
    first: dict[tuple[object, ...], Pod] = {}
    worth = (entry for entry in found.plan.outside if worth_serving(entry))
    for entry in (*found.plan.left_out, *worth):
        first.setdefault(workload_of(pods[entry.pod], found.snapshot), pods[entry.pod])
    return list(first.values())
