"""`foreslice plan`: the planner on manifests without a cluster, or on a running cluster without touching it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

import click

from autoscaler.advice.amounts import Cheaper, cheaper_with_larger_disks
from autoscaler.advice.cheaper_types import (
    IfMeasured,
    SoldOtherwise,
    cheaper_if_asked_for,
    cheaper_if_measured,
    cheaper_with_less,
)
from autoscaler.advice.ignored import on_existing_nodes, refusing_nodes
from autoscaler.advice.models.context import Unfit, too_long
from autoscaler.advice.models.memory import TooSmall, placed_models, too_old, too_small
from autoscaler.advice.moves_shown import with_moves_shown
from autoscaler.cli.common.advice import helping_changes, lines_by_pod, print_advice, print_further_obstacles
from autoscaler.cli.common.commands import catalog_option, refuse_both, skip_unknown_option
from autoscaler.cli.common.created_files import write_objects, write_objects_option
from autoscaler.cli.common.decided import Decided
from autoscaler.cli.common.files import catalog_of, now_of, profile_of, read_manifests
from autoscaler.cli.common.output import output_option, write_page
from autoscaler.cli.common.plan_options import cost_option, costs_of, print_costs, print_what_if, what_if_option
from autoscaler.cli.common.plan_output import FORMS, print_notes, print_plan
from autoscaler.cli.common.terminal import announced
from autoscaler.cli.common.where import Asked, where_options
from autoscaler.cli.common.why import print_type_answers, refuse_unused, samples, type_answers, why_option
from autoscaler.errors import BadInputError
from autoscaler.lint.advice import advice, plan_advice, reason_of, surprise
from autoscaler.lint.devices.network_advice import network_advice
from autoscaler.lint.devices.unconsidered import unconsidered
from autoscaler.lint.meant_advice import meant_advice
from autoscaler.lint.other_systems import foreign_advice
from autoscaler.lint.releases import names_advice
from autoscaler.lint.supply_advice import supply_advice
from autoscaler.lint.tpu_advice import tpu_advice
from autoscaler.manifests.load import Loaded
from autoscaler.model.plan import Plan
from autoscaler.model.reason import Code, Reason, Subject
from autoscaler.model.snapshot import Snapshot
from autoscaler.planning.demand.implied_machines import with_implied_selectors
from autoscaler.planning.disruption.defragmentation import with_defragmentation
from autoscaler.planning.one_cloud import cloud_meant, clouds_of, clouds_of_pools, plan_in_one_cloud
from autoscaler.planning.policy import Policy, WorkLimits
from autoscaler.planning.supply.node_pools import without_ordinary_pools
from autoscaler.planning.supply.unprepared import not_working
from autoscaler.report.advised.model_texts import model_text
from autoscaler.report.advised.oversized_text import less_requested
from autoscaler.report.tables.given import Given, given_of, without_node_names
from autoscaler.report.words import money
from instance_catalog.dataclass import replace
from instance_catalog.diagnostic import Diagnostic
from instance_catalog.types.catalog import Catalog

if TYPE_CHECKING:
    from autoscaler.advice.together import Helping

ReadCatalog: TypeAlias = Callable[[Sequence[Path], datetime], Catalog]

SOMETHING_LEFT_OUT = 3
_TEXTS: Final = ("table", "wide", "markdown")  # forms for people


@click.command()
@click.option("-f", "--filename", "paths", multiple=True, metavar="PATH", help="File, directory, or - for stdin.")
@click.option("--live", is_flag=True, help="Plan for the pending pods of a cluster. Changes nothing.")
@click.option("--kubeconfig", default="", metavar="PATH", help="With --live.  [default: as kubectl]")
@click.option("--context", default="", metavar="NAME", help="With --live.  [default: the current context]")
@click.option(
    "--kubernetes-version", metavar="VERSION", help="Decide like this version of Kubernetes.  [default: 1.36]"
)
@click.option(
    "--html", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE", help="Also write an HTML page."
)
@where_options
@why_option
@what_if_option
@cost_option
@write_objects_option
@catalog_option
@click.option("--at", "moment", metavar="TIME", help="Plan for this time (RFC 3339).  [default: now]")
@click.option(
    "--work",
    type=click.IntRange(min=1),
    default=1,
    metavar="TIMES",
    help="Multiply the work budget by this number, if pods exceed it with their selectors or searches.  [default: 1]",
)
@skip_unknown_option
@click.option(
    "--strict",
    is_flag=True,
    help="Treat unknown fields as errors. Count pods that are ignored or would not work, and patches, as not placed.",
)
@click.option(
    "--replay",
    "ties",
    metavar="TIES",
    help="Schedule the pods onto the plan's nodes by kube-scheduler's scores, and warn about pods that then do not "
    "fit. Among equally good nodes, it takes the `first`, makes an `adversarial` choice, or draws one with a number "
    "as seed.",
)
@output_option(*FORMS)
def plan(
    *,
    paths: tuple[str, ...],
    live: bool,
    kubeconfig: str,
    context: str,
    kubernetes_version: str | None,
    directories: tuple[Path, ...],
    moment: str | None,
    work: int,
    strict: bool,
    skip_unknown: bool,
    ties: str | None,
    output: str,
    asked: Asked,
    why: str,
    questions: tuple[str, ...],
    cost_by: str,
    html: Path | None,
    objects: Path | None,
) -> None:
    """Nothing is launched.

    Reads pods and what makes pods (Deployments, Jobs, JobSets, RayClusters, PyTorchJobs, …), ResourceClaims and
    templates, DeviceClasses, and all other objects that affect scheduling: nodes, ResourceSlices, volumes, gangs,
    CapacityPools and CapacityBlocks. The DeviceClasses that driver charts install are built in. Without a CapacityPool
    the whole catalog is on offer, and the plan says which driver profile a pool must have. With --live it reads them
    from a running cluster. Nothing needs to be installed there; you need the right to list objects in all namespaces.

    Prices are those of the region. In one without prices a plan buys nothing; `foreslice catalog sync` imports them.

    \b
    Try:
      foreslice plan -f deploy/
      foreslice plan -f deploy/ --cloud aws --region us-east-1
      foreslice plan -f job.yaml --allow spot,on-demand
      helm template my-chart/ | foreslice plan -f -
      kubectl kustomize overlays/prod | foreslice plan -f - --skip-unknown
      kubectl get pods,resourceclaims,resourceclaimtemplates -A -o json | foreslice plan -f -
      foreslice plan -f job.yaml -o json | jq .summary
      foreslice plan --live --context staging
      foreslice plan -f deploy/ --replay adversarial
      foreslice plan -f deploy/ --what-if spot --what-if 'without p5.48xlarge'

    Exit code 0: every pod in scope is placed; with --strict also: no pod is ignored, every pod works on its node, no
    object looks like a patch, no runtime or template stands alone, and --skip-unknown left none out; 3: otherwise, or
    --skip-unknown left nothing to plan; 1: the input cannot be used.
    """
    refuse_both(paths, live=live)
    refuse_unused(why, questions, {"--cost-by": cost_by, "--html": html, "--write-objects": objects}, output=output)
    files = partial(_read_files, paths, directories, strict=strict, skip=skip_unknown)
    loaded, read_catalog = (partial(_read_cluster, kubeconfig, context) if live else files)(kubernetes_version)
    decide = partial(_decide, read=read_catalog, directories=directories, at=moment, ties=ties, work=work, asked=asked)
    with announced("planning …"):
        found = decide(loaded)
        helping = helping_changes(found) if not why and (html or objects or output in _TEXTS) else None
    if why:
        print_type_answers(list(type_answers(why, found, samples(found))), output)
        return
    if questions:
        sys.exit(0 if print_what_if(found, questions, output) else SOMETHING_LEFT_OUT)
    _write_files(html, objects, found, helping)
    given = given_of(found.snapshot) if live else _given(found, loaded)
    _print(found, helping, output, cost_by, given)
    _print_copies(loaded, decide, output)
    if found.plan.left_out or _all_skipped(found, given) or (strict and _falls_short(found.plan, given)):
        sys.exit(SOMETHING_LEFT_OUT)


def _write_files(html: Path | None, objects: Path | None, found: Decided, helping: Helping | None) -> None:
    if html is not None:
        write_page(html, found.snapshot, found.plan, found.now, title="plan", helping=lines_by_pod(helping))
    if objects is not None:
        write_objects(objects, found, {} if helping is None else helping.by_pod)


def _print_copies(loaded: Loaded, decide: Callable[[Loaded], Decided], output: str) -> None:
    """Prints the plan for the pods without the names of their nodes, if these are all that keeps them from being
    planned: the next obstacle should not appear only after that."""
    copies = without_node_names(loaded.snapshot)
    if copies is not None and output in ("table", "wide"):
        click.echo("\nWithout spec.nodeName")
        found = decide(replace(loaded, snapshot=copies))
        helping = helping_changes(found)
        print_plan(found.plan, output, given_of(copies))
        print_advice(found, helping)
        print_further_obstacles(found, helping)


def _given(found: Decided, loaded: Loaded) -> Given:
    given = given_of(found.snapshot, incomplete=loaded.incomplete, suspended=loaded.suspended, skipped=loaded.skipped)
    return replace(given, templates=() if found.snapshot.pods else loaded.templates)


def _all_skipped(found: Decided, given: Given) -> bool:
    """True if what --skip-unknown left out is all that may have had pods."""
    return bool(given.skipped) and not found.snapshot.pods


def _falls_short(decided: Plan, given: Given) -> bool:
    """True if pods are ignored, or placed where they do not work, or objects look like patches or are left out, or
    nothing makes the pods of a template."""
    return bool(decided.outside or given.incomplete or given.skipped or given.templates) or any(
        "not_working" in warning.detail for warning in decided.warnings
    )


def _read_files(
    paths: tuple[str, ...], directories: tuple[Path, ...], version: str | None, *, strict: bool, skip: bool
) -> tuple[Loaded, ReadCatalog]:
    loaded = read_manifests(paths, version, directories, strict=strict, skip_unknown=skip)
    return loaded, partial(catalog_of, loaded)


def _read_cluster(kubeconfig: str, context: str, kubernetes_version: str | None) -> tuple[Loaded, ReadCatalog]:
    from autoscaler.cli.common.live import read_cluster  # the client takes a while to import

    return read_cluster(kubeconfig, context, profile_of(kubernetes_version))


def _print(found: Decided, helping: Helping | None, output: str, cost_by: str, given: Given) -> None:
    """Prints the plan, and below its tables its costs and the changes that would help."""
    print_notes(found)
    costs = costs_of(found, cost_by)
    print_plan(found.plan, output, given, costs=costs)
    if output in _TEXTS:
        print_costs(found, cost_by, output)
        print_advice(found, helping, output)
    if output in ("table", "wide"):
        print_further_obstacles(found, helping)


def _decide(
    loaded: Loaded,
    *,
    read: ReadCatalog,
    directories: Sequence[Path],
    at: str | None,
    ties: str | None,
    work: int,
    asked: Asked,
) -> Decided:
    now = _moment(at) if at else now_of(loaded)
    catalog = read(directories, now)
    policy = Policy(work=WorkLimits().times(work), where=asked.where(loaded.snapshot, catalog))
    snapshot = without_ordinary_pools(loaded.snapshot, catalog)
    snapshot = with_implied_selectors(snapshot, clouds_of_pools(snapshot, catalog))
    decided, used = plan_in_one_cloud(snapshot, catalog, policy, now)
    decided = refusing_nodes(on_existing_nodes(decided, snapshot, catalog), snapshot, catalog)
    found_advice = _advice(decided, loaded, snapshot, catalog, (used, policy), now)
    models = tuple(placed_models(decided, snapshot, catalog))
    small = too_small(models, snapshot, catalog, used, now)
    stops = [found for found in (too_old(models, catalog), too_long(models)) if found]
    aside = unconsidered(snapshot, decided, catalog)
    useless = (*not_working(snapshot, decided, catalog), *map(_models, (*small, *stops)))
    decided = replace(decided, warnings=(*useless, *map(reason_of, found_advice), *aside, *decided.warnings))
    decided = with_defragmentation(decided, snapshot, catalog, used)
    decided = with_moves_shown(decided, snapshot, catalog, used, now)
    if ties is not None:
        decided = _replayed(decided, loaded, catalog, ties)
    return Decided(snapshot, catalog, decided, now, used)


def _advice(
    decided: Plan, loaded: Loaded, snapshot: Snapshot, catalog: Catalog, policies: tuple[Policy, Policy], now: datetime
) -> tuple[Diagnostic, ...]:
    """Warnings about the plan. The policies: with the cloud that it uses, and as the user asked for it."""
    used, asked = policies
    disks = cheaper_with_larger_disks(decided, snapshot, catalog, used, now)
    return (
        *_disks(disks),
        *less_requested(cheaper_with_less(decided, snapshot, catalog, used, now)),
        *_memory(cheaper_if_measured(decided, snapshot, catalog, used, now)),
        *advice(snapshot),
        *foreign_advice(loaded.snapshot, catalog, decided),
        *meant_advice(loaded.snapshot, catalog),
        *names_advice(snapshot),
        *plan_advice(snapshot, decided),
        *supply_advice(snapshot, decided, catalog, dear_disks=disks is not None),
        *network_advice(snapshot, decided, catalog),
        *tpu_advice(snapshot, decided, catalog),
        *_of_clouds(used, asked, clouds_of(decided, catalog), snapshot),
        *_asked_for(cheaper_if_asked_for(decided, snapshot, catalog, used, now)),
    )


def _disks(found: Cheaper | None) -> Iterator[Diagnostic]:
    """The cost of an assumed root disk, if a larger one would have made the plan cheaper."""
    if found is not None:
        nodes = " and ".join(f"{count} × {name}" for name, count in found.launches)
        types = [change.detail for change in found.types]
        disks = " and ".join(f"{one['disk']} on {one['instance_type']} ({one['setting']})" for one in types)
        steps = "`, `".join(
            f"foreslice catalog set {one['instance_type']} allocatable.ephemeral-storage={one['allocatable']} "
            "--into DIR --reason WHY"
            for one in types
        )
        yield surprise(
            "root disks",
            (),
            "the disk makes this plan dear: cheaper machines are left out only for the root disk that is assumed, and "
            f"with {disks} the plan is {nodes} for {money(found.usd_per_hour)} $/h",
            f"if yours are that large, say so: `{steps}`, and plan with --catalog DIR",
        )


def _memory(found: IfMeasured | None) -> Iterator[Diagnostic]:
    """The machines that would make the plan cheaper if nodes show more memory than the catalog guesses."""
    if found is None:
        return
    nodes = " and ".join(f"{count} × {name}" for name, count in found.launches)
    for one in found.types:
        assumed = f"{one.assumed.int64_value() // 2**20}Mi"
        yield surprise(
            f"instance type {one.instance_type}",
            (),
            f"fits and costs less if its nodes have {one.needed} of allocatable memory: {assumed} is a guess on the "
            f"safe side; with that the plan is {nodes} for {money(found.usd_per_hour)} $/h",
            "look at one (`kubectl get node NAME -o jsonpath='{.status.allocatable.memory}'`), tell the catalog "
            f"(`foreslice catalog set {one.instance_type} allocatable.memory=… --into DIR --reason WHY`) and plan with "
            "--catalog DIR",
        )


def _models(found: Unfit) -> Reason:
    """That models do not fit into the GPUs that their pods get, or hardly, or stop on GPUs of before Ampere, or for
    their context; and which ones run them."""
    problem, step = model_text(found)
    subject = Subject("Pod", found.pod, others=found.pods - 1)
    useless = {"not_working": found.pods} if isinstance(found, TooSmall) and found.surely else {}
    return Reason.of(Code.ADVICE, subject, problem=problem, next_step=step, **useless)


def _of_clouds(used: Policy, asked: Policy, clouds: Sequence[str], snapshot: Snapshot) -> Iterator[Diagnostic]:
    """The cloud of the machines, if none was requested."""
    if used.where.clouds != asked.where.clouds:
        cloud = used.where.clouds[0]
        meant, name = cloud_meant(snapshot)
        why = f"as the pods name {name}" if meant == cloud else "where the plan costs least"
        text = f"all machines are of {cloud}, {why}: a cluster is in one cloud"
        yield surprise("clouds", (), text, "--cloud plans for another one")
    elif len(clouds) > 1 and not snapshot.pools and not asked.where.clouds:
        text = f"the plan has machines of {' and '.join(clouds)}, and a cluster is in one cloud"
        yield surprise("clouds", (), text, "plan for each cluster by itself, or for one cloud with --cloud")


def _asked_for(found: SoldOtherwise | None) -> Iterator[Diagnostic]:
    """The cost of buying on demand only, if smaller machines are sold with other capacity types."""
    if found is not None:
        nodes = " and ".join(f"{count} × {name}" for name, count in found.launches)
        yield surprise(
            f"instance type {', '.join(found.types)}",
            (),
            "fits and costs less, and is never sold on demand",
            f"with --allow {','.join(found.allowed)} the plan is {nodes} for {money(found.usd_per_hour)} $/h",
        )


def _replayed(decided: Plan, loaded: Loaded, catalog: Catalog, ties: str) -> Plan:
    """The plan with a warning for every pod that finds no place in the replay."""
    from autoscaler.planning.placement.replay import replay
    from autoscaler.scheduling.schedule import adversarial, first, seeded

    choose = {"first": first, "adversarial": adversarial}.get(ties) or seeded(_seed(ties))
    found = replay(decided, loaded.snapshot, catalog, choose)
    if found.holds:
        click.echo("replay: every pod of the plan finds a place", err=True)
    return replace(decided, warnings=(*decided.warnings, *found.reasons))


def _seed(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise click.BadParameter(
            f"{text!r} is neither first nor adversarial nor a number", param_hint="--replay"
        ) from None


def _moment(text: str) -> datetime:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        found = None
    if found is None or found.tzinfo is None:
        raise BadInputError(f"--at {text!r} is not a moment with a time zone", next_step="write 2026-11-21T08:00:00Z")
    return found
