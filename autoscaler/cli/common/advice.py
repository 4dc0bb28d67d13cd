"""The smallest change that would place each workload without a place, one line each, printed after a plan."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

import click

from autoscaler.cli.common.decided import Decided
from autoscaler.cli.common.output import folded
from autoscaler.cli.common.plan_output import WIDTH
from autoscaler.model.pod import Pod
from autoscaler.planning.demand.scope import IMPLICIT
from autoscaler.report.words import few

_BOUGHT = re.compile(r"× (\S+)")  # the type of the machines that a change buys
_MOST = 3  # workloads; `explain` answers for every pod
_ALIKE = 4  # plans for a workload that lacks the same as one before
_THEN = 12  # plans for ignored pods, beside those that were spent before


def print_advice(found: Decided, helping: Mapping[str, str]) -> None:
    """Prints changes that help; nothing if none of them does. Each change places all pods of a workload."""
    if helping:
        click.echo("")
        click.echo("Smallest change that places it")
        alike, pods = _alike(found, helping), dict[str, list[str]]()
        for pod, line in helping.items():
            more = f" and {len(alike[pod]) - 1} more" if len(alike[pod]) > 1 else ""
            pods.setdefault(line, []).append(f"{pod}{more}")
        for line, names in pods.items():
            each = " (the result is for one of them)" if len(names) > 1 and "→" in line else ""
            for part in folded(f"  {few(names)}{each}: {line}", WIDTH):
                click.echo(part)
        _print_assumed(found, helping)
        _print_end_of_catalog(found, helping)


def _print_assumed(found: Decided, helping: Mapping[str, str]) -> None:
    """Prints the size of the root disks of a change's machines, if the change itself does not name it."""
    from autoscaler.lint.pods.disk_space import advised_disk

    bought = {pod: _BOUGHT.search(line.rpartition("→")[2]) for pod, line in helping.items()}
    types = {pod: found.catalog.types.get(name[1]) for pod, name in bought.items() if name}
    silent = {pod: found for pod, found in types.items() if "a root disk of" not in helping[pod]}
    if text := advised_disk(silent, found.snapshot):
        for part in folded(f"  {text}", WIDTH):
            click.echo(part)


def _print_end_of_catalog(found: Decided, helping: Mapping[str, str]) -> None:
    """That the first CapacityPool ends the offer of the whole catalog, on which the pods with a place rely."""
    from autoscaler.report.advice_text import CREATE_POOL

    placed = [node for node in found.plan.launches if node.pool == IMPLICIT.name and node.pods]
    if placed and any(CREATE_POOL in line for line in helping.values()):
        text = (
            "  with a CapacityPool the whole catalog is no longer on offer: give the pods that have a place now, such "
            f"as {placed[0].pods[0]}, one as well"
        )
        for part in folded(text, WIDTH):
            click.echo(part)


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


def print_further_obstacles(found: Decided, helping: Mapping[str, str]) -> None:
    """Prints why ignored pods for which no change was found would have no place in a pool that serves them, with the
    changes that would help there."""
    if not found.plan.outside:
        return
    from autoscaler.advice.ignored import as_if_served
    from autoscaler.report.tables.plan_summary import left_out_lines

    beside = {each for alike in _alike(found, helping).values() for each in alike}
    served = as_if_served(found.plan, found.snapshot, found.catalog, found.policy, found.now, beside=beside)
    if served is None:
        return
    groups: dict[tuple[str, ...], list[str]] = {}
    for entry in served.staying:
        lines = tuple(line.replace(entry.pod, "·") for line in left_out_lines(entry))
        groups.setdefault((entry.verdict, *lines), []).append(entry.pod)
    then = Decided(served.snapshot, found.catalog, served.plan, found.now, found.policy)
    steps = helping_changes(then, _THEN)
    click.echo("")
    click.echo("Ignored pods that would have no place in a pool that serves them either")
    for (verdict, *rest), pods in list(groups.items())[:_MOST]:
        step = next((f"  smallest change then: {steps[pod]}" for pod in pods if pod in steps), "")
        why = [f"  {line.replace('·', pods[0])}" for line in rest]
        for line in (f"{few(pods)}{_as_whole(found, pods[0])}: {verdict}", *why, *([step] if step else [])):
            for part in folded(line, WIDTH):
                click.echo(part)


def _as_whole(found: Decided, key: str) -> str:
    """The whole GPUs with which a pod that asks for parts of GPUs was planned; "" for others."""
    from autoscaler.lint.pods.gpu_shares import whole_instead

    asked = next(whole_instead(pod)[1] for pod in found.snapshot.pods if pod.key == key)
    return f" (with {asked}, for whole GPUs)" if asked else ""


def helping_changes(found: Decided, plans: int | None = None) -> dict[str, str]:
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
    from autoscaler.report.advice_text import advice_lines

    budget, helping = Budget() if plans is None else Budget(plans), dict[str, str]()
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
            helping.update(zip([pod.key], advice_lines([beside]), strict=True))
    return helping


def _first_of_each_workload(found: Decided) -> list[Pod]:
    from autoscaler.advice.situation import workload_of, worth_serving

    pods = {pod.key: pod for pod in found.snapshot.pods}
    first: dict[tuple[object, ...], Pod] = {}
    worth = (entry for entry in found.plan.outside if worth_serving(entry))
    for entry in (*found.plan.left_out, *worth):
        first.setdefault(workload_of(pods[entry.pod], found.snapshot), pods[entry.pod])
    return list(first.values())
