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


def print_advice(helping: Mapping[str, str]) -> None:
    """Nothing where nothing that was tried helps."""
    if helping:
        click.echo("")
        click.echo("Smallest change that places it")
        pods: dict[str, list[str]] = {}
        for pod, line in helping.items():
            pods.setdefault(line, []).append(pod)
        for line, alike in pods.items():
            for part in folded(f"  {few(alike)}: {line}", WIDTH):
                click.echo(part)


def helping_changes(found: Decided) -> dict[str, str]:
    """By pod. All share one number of plans, so that a plan with many problems takes no longer to print."""
    wanting = _first_of_each_workload(found)[:_MOST]
    if not wanting:
        return {}
    # Most plans place every pod, and the modules take a tenth of a second.
    from autoscaler.advice.advise import Budget, advise
    from autoscaler.report.advice_text import advice_lines

    budget, helping = Budget(), dict[str, str]()
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
