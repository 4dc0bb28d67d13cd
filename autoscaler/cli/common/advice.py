"""The smallest change that would place each workload without a place, one line each, after a plan."""

from __future__ import annotations

from collections.abc import Mapping

import click

from autoscaler.cli.common.decided import Decided
from autoscaler.cli.common.output import folded
from autoscaler.cli.common.plan_output import WIDTH
from autoscaler.model.pod import Pod
from autoscaler.report.words import few

_MOST = 3  # workloads; `explain` answers for every pod
_THEN = 6  # plans for ignored pods, beside those that were spent before


def print_advice(helping: Mapping[str, str]) -> None:
    """Nothing where nothing that was tried helps."""
    if helping:
        click.echo("")
        click.echo("Smallest change that places it")
        pods: dict[str, list[str]] = {}
        for pod, line in helping.items():
            pods.setdefault(line, []).append(pod)
        for line, alike in pods.items():
            each = " (each alone)" if len(alike) > 1 and "→" in line else ""
            for part in folded(f"  {few(alike)}{each}: {line}", WIDTH):
                click.echo(part)


def print_further_obstacles(found: Decided, helping: Mapping[str, str]) -> None:
    """Why ignored pods that nothing was found to help would stay without a place in a pool that serves them, and what
    would help there."""
    if not found.plan.outside:
        return
    from autoscaler.advice.ignored import as_if_served
    from autoscaler.report.tables.plan_summary import left_out_lines

    served = as_if_served(found.plan, found.snapshot, found.catalog, found.policy, found.now, beside=helping)
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
        for line in (f"{few(pods)}: {verdict}", *why, *([step] if step else [])):
            for part in folded(line, WIDTH):
                click.echo(part)


def helping_changes(found: Decided, plans: int | None = None) -> dict[str, str]:
    """By pod. All share one number of plans, so that a plan with many problems takes no longer to print."""
    wanting = _first_of_each_workload(found)[:_MOST]
    if not wanting:
        return {}
    # Most plans place every pod, and the modules take a tenth of a second.
    from autoscaler.advice.advise import Budget, advise
    from autoscaler.report.advice_text import advice_lines

    budget, helping = Budget() if plans is None else Budget(plans), dict[str, str]()
    for pod in wanting:
        advice = advise(pod, found.snapshot, found.catalog, found.plan, found.policy, found.now, most=1, budget=budget)
        helping.update(zip([pod.key], advice_lines(advice), strict=False))
    return helping


def _first_of_each_workload(found: Decided) -> list[Pod]:
    pods = {pod.key: pod for pod in found.snapshot.pods}
    first: dict[str, Pod] = {}
    for entry in (*found.plan.left_out, *found.plan.outside):
        pod = pods[entry.pod]
        first.setdefault(f"{pod.namespace} {pod.owner or pod.name}", pod)
    return list(first.values())
