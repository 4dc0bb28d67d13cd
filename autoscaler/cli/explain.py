"""`foreslice explain`: explains why a pod waits, the devices of a claim, and the purpose of a node; of a cluster, or of
manifests."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import click

from autoscaler.advice.advise import advise
from autoscaler.advice.ignored import as_if_served
from autoscaler.advice.situation import workload_of
from autoscaler.advice.trial import Budget
from autoscaler.checks.check import pool_conditions
from autoscaler.checks.pool_condition import PoolCondition
from autoscaler.cli.common.commands import catalog_option, cluster_options, skip_unknown_option, strict_option
from autoscaler.cli.common.decided import Decided
from autoscaler.cli.common.files import decided_for, read_manifests
from autoscaler.cli.common.output import output_option, print_data
from autoscaler.cli.common.where import Asked, where_options
from autoscaler.cli.common.why import type_answers, why_option
from autoscaler.errors import BadInputError
from autoscaler.model.pod import Pod
from autoscaler.planning.disruption.defragmentation import with_defragmentation
from autoscaler.planning.policy import Policy
from autoscaler.report.advised.listed import advice_lines
from autoscaler.report.explained.objects import claim_explanation, claim_lines, node_explanation, node_lines
from autoscaler.report.explained.requests import buffer_explanation, request_explanation, request_lines
from autoscaler.report.explanation import explanation_lines, explanation_of
from autoscaler.report.printable import one_line
from autoscaler.report.tables.plan_summary import left_out_lines
from autoscaler.report.type_answer import type_answer_lines
from autoscaler.report.words import few
from instance_catalog.dataclass import replace
from instance_catalog.spelling import did_you_mean

# Whatever was looked at is shown; for a pod without a place that is every offering.
_THOROUGH = Policy(considered=1_000_000)
_KINDS = {"pod": "pod", "claim": "claim", "resourceclaim": "claim", "node": "node"}
_REQUESTS = ("provisioningrequest", "provreq")
_BUFFERS = ("capacitybuffer", "cb")
_THEN = 6  # plans for an ignored pod, beside those that were spent before
_SHOWN = 5  # pods without a place, where none is named


@click.command()
@click.argument("name", metavar="[[KIND/]NAMESPACE/]NAME", required=False, default="")
@click.option(
    "-f",
    "--filename",
    "paths",
    multiple=True,
    metavar="PATH",
    help="File, directory, or - for stdin, instead of a cluster.",
)
@click.option("-n", "--namespace", default="default", show_default=True, help="Namespace of NAME, if NAME has none.")
@click.option(
    "--kubernetes-version", metavar="VERSION", help="With -f: decide like this version of Kubernetes.  [default: 1.36]"
)
@catalog_option
@skip_unknown_option
@strict_option
@cluster_options
@where_options
@why_option
@output_option()
def explain(
    *,
    name: str,
    paths: tuple[str, ...],
    namespace: str,
    kubernetes_version: str | None,
    directories: tuple[Path, ...],
    kubeconfig: str,
    context: str,
    asked: Asked,
    why: str,
    skip_unknown: bool,
    strict: bool,
    output: str,
) -> None:
    """Shows what a pod waits for, the offerings rejected for it by reason, and the smallest change that would place it.

    NAME is a pod, or a workload (`deployment/web`) for the first of its pods. `claim/NAME` explains a ResourceClaim,
    and `node/NAME` a node, which may be one that the plan would launch; `provreq/NAME` and `capacitybuffer/NAME`
    explain a ProvisioningRequest or a CapacityBuffer. Every change that is shown was tried by planning again, and
    places the pod.

    It makes a new plan from the cluster or the files, so it works without an installation and needs only read access.
    With -f and without a NAME, it explains the pods that cannot be placed.

    \b
    Try:
      foreslice explain train-0
      foreslice explain -f manifests/ team-a/train-0
      foreslice explain -f manifests/
      foreslice explain claim/train-gpu
      foreslice explain -f manifests/ train-0 --why-not g6.xlarge
      foreslice explain team-a/train-0 -o json | jq '.offerings[] | {offerings, reason}'
    """
    if not paths and not name:
        raise click.UsageError("Name a pod, a claim or a node; or give manifests with -f.")
    if paths:
        loaded = read_manifests(paths, kubernetes_version, directories, strict=strict, skip_unknown=skip_unknown)
        found = decided_for(loaded, directories, policy=_THOROUGH, asked=asked)
    else:
        from autoscaler.cli.common.live import connected, decided, read_store

        found = decided(read_store(connected(kubeconfig, context)), policy=_THOROUGH, asked=asked)
    plan = with_defragmentation(found.plan, found.snapshot, found.catalog, found.policy)
    found = replace(found, plan=plan)
    answers = [_answer(found, name, namespace)] if name else list(_without_place(found))
    if why:
        answers = _about_type(why, found, answers)
        if name and not answers:
            raise BadInputError(f"--why explains an instance type for a pod, and {name} is none")
    if output != "table":
        print_data([data for data, _ in answers] if not name else answers[0][0], output)
        return
    for position, (_, lines) in enumerate(answers):
        if position:
            click.echo("")
        for line in lines:
            click.echo(one_line(line))  # a line break in a name or a value would begin a line of its own


_Answer = tuple[dict[str, Any], list[str]]


def _about_type(why: str, found: Decided, answers: Sequence[_Answer]) -> list[_Answer]:
    """The same pods asked about an instance type."""
    pods = {pod.key: pod for pod in found.snapshot.pods}
    named = [pods[data["pod"]] for data, _ in answers if isinstance(data.get("pod"), str)]
    return [(data, list(type_answer_lines(data))) for data in type_answers(why, found, named)]


def _without_place(found: Decided) -> Iterator[_Answer]:
    """One answer for each workload with pods that get no place."""
    pods = {pod.key: pod for pod in found.snapshot.pods}
    first: dict[tuple[object, ...], Pod] = {}
    for entry in (*found.plan.left_out, *found.plan.outside):
        pod = pods[entry.pod]
        first.setdefault(workload_of(pod, found.snapshot), pod)
    if not first:
        click.echo("every pod has a place; name a pod, a claim or a node to explain it", err=True)
    for pod in list(first.values())[:_SHOWN]:
        yield _pod(found, pod)
    if len(first) > _SHOWN:
        click.echo(f"{len(first) - _SHOWN} more without a place: name one", err=True)


def _answer(found: Decided, name: str, namespace: str) -> _Answer:
    kind, _, rest = name.partition("/")
    pods = {pod.key: pod for pod in found.snapshot.pods}
    key = name if "/" in name else f"{namespace}/{name}"
    if key in pods:
        return _pod(found, pods[key])
    own = rest if "/" in rest else f"{namespace}/{rest}"
    match _KINDS.get(kind.lower()) if rest else None:
        case "pod" if own in pods:
            return _pod(found, pods[own])
        case "claim" if own in found.snapshot.claims:
            return _claim(found, own)
        case "node" if (node := node_explanation(rest, found.snapshot, found.plan)) is not None:
            return node, list(node_lines(node))
    if rest and (asked := _requested(found, kind.lower(), own)) is not None:
        return asked
    if workload := _first_of(found.snapshot.pods, name, namespace):
        return _pod(found, workload)
    if key in found.snapshot.claims:
        return _claim(found, key)
    if (node := node_explanation(name, found.snapshot, found.plan)) is not None:
        return node, list(node_lines(node))
    nodes = [*(n.name for n in found.snapshot.nodes), *(n.name for n in found.plan.launches)]
    known = [*pods, *found.snapshot.claims, *nodes]
    lists = "`kubectl get pods -A` lists them" if found.live else "the files have " + (few(list(pods)) or "no pods")
    step = did_you_mean(key, known, f"{lists}; -n sets the namespace", most=3)
    raise BadInputError(f"there is no pod, claim or node {key}", next_step=step)


def _first_of(pods: Sequence[Pod], name: str, namespace: str) -> Pod | None:
    """The first pod of a workload: "job/train", or "train" in the namespace."""
    kind, _, rest = name.rpartition("/")
    for pod in pods:
        owner, _, called = pod.owner.partition("/")
        if pod.namespace == namespace and called == rest and kind.lower() in ("", owner.lower()):
            return pod
    return None


def _pod(found: Decided, pod: Pod) -> _Answer:
    advice = advise(pod, found.snapshot, found.catalog, found.plan, found.policy, found.now)
    data = explanation_of(pod, found.snapshot, found.plan, _checked(found), advice, scheduled=found.live)
    lines = list(explanation_lines(data))
    if not advice and (then := _in_a_pool(found, pod)):
        data["ifServed"] = then
        lines += ["", "In a pool that serves it:", *(f"  {line}" for line in then)]
    return data, lines


def _in_a_pool(found: Decided, pod: Pod) -> list[str]:
    """The reason why an ignored pod would have no place in a pool that serves it, and the change that would help
    then."""
    others = {entry.pod for entry in found.plan.outside} - {pod.key}
    served = as_if_served(found.plan, found.snapshot, found.catalog, found.policy, found.now, beside=others)
    if served is None:
        return []
    advice = advise(pod, served.snapshot, found.catalog, served.plan, found.policy, found.now, budget=Budget(_THEN))
    changes = [line for one in advice for line in ("smallest change then:", *(f"  {x}" for x in advice_lines(one)))]
    return [*left_out_lines(served.staying[0]), *changes]


def _requested(found: Decided, kind: str, key: str) -> _Answer | None:
    """A ProvisioningRequest or CapacityBuffer, and the first of its pods that has no place."""
    snapshot, data = found.snapshot, None
    if kind in _REQUESTS:
        request = next((each for each in snapshot.provisioning_requests if each.key == key), None)
        data = None if request is None else request_explanation(request, snapshot, found.plan, found.now)
    elif kind in _BUFFERS:
        buffer = next((each for each in snapshot.capacity_buffers if each.key == key), None)
        data = None if buffer is None else buffer_explanation(buffer, snapshot, found.plan)
    if data is None:
        return None
    lines = list(request_lines(data))
    waiting = next((pod for pod in snapshot.pods if pod.key in data["leftOut"]), None)
    if waiting is not None:
        data["pod"], more = _pod(found, waiting)
        lines += ["", *more]
    return data, lines


def _claim(found: Decided, key: str) -> _Answer:
    """The claim, and the pod that waits with it."""
    data = claim_explanation(found.snapshot.claims[key], found.snapshot, found.plan)
    lines = list(claim_lines(data))
    waiting = next((pod for pod in found.snapshot.pods if pod.key in data["leftOut"]), None)
    if waiting is not None:
        pod, more = _pod(found, waiting)
        data["pod"] = pod
        lines += ["", *more]
    return data, lines


def _checked(found: Decided) -> tuple[PoolCondition, ...]:
    return pool_conditions(found.snapshot, found.plan, found.catalog, policy=Policy(), now=found.now)
