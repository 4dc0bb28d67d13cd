"""Manifests for commands that decide without a cluster: the objects that `kubectl` would see, in files."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

import click

from autoscaler.advice.ignored import on_existing_nodes, refusing_nodes
from autoscaler.cli.common.beside_errors import beside_errors, without_deployments
from autoscaler.cli.common.choices import chosen_catalog, chosen_kubernetes
from autoscaler.cli.common.decided import Decided
from autoscaler.cli.common.where import Asked
from autoscaler.clock import SystemClock
from autoscaler.errors import BadInputError
from autoscaler.manifests.corrections import corrections_of
from autoscaler.manifests.load import Loaded, load
from autoscaler.planning.demand.implied_machines import implied_reason, with_implied_selectors
from autoscaler.planning.one_cloud import clouds_of_pools, plan_in_one_cloud
from autoscaler.planning.policy import Policy
from autoscaler.planning.supply.node_pools import without_ordinary_pools
from autoscaler.report.words import counted, counted_kind
from instance_catalog.dataclass import replace
from instance_catalog.diagnostic import Diagnostic
from instance_catalog.kubernetes.profile import KubernetesProfile
from instance_catalog.types.catalog import Catalog


def profile_of(version: str | None) -> KubernetesProfile | None:
    """The profile that --kubernetes-version names, None without the option. Raises BadInputError."""
    return None if version is None else chosen_kubernetes(version)


def parsed_manifests(
    paths: Sequence[str],
    version: str | None,
    directories: Sequence[Path],
    *,
    strict: bool = False,
    skip_unknown: bool = False,
    planned: bool = True,
) -> Loaded:
    """The objects of the files, with their problems. Raises BadInputError for paths and versions that do not exist.

    The DeviceClasses of drivers that `directories` describe exist like those of shipped ones, before any name is looked
    up.
    """
    described = chosen_catalog(directories).drivers.values() if directories else ()
    return load(
        paths,
        stdin=sys.stdin,
        profile=profile_of(version),
        strict=strict,
        drivers=described,
        skip_unknown=skip_unknown,
        planned=planned,
    )


def read_manifests(
    paths: Sequence[str],
    version: str | None,
    directories: Sequence[Path],
    *,
    strict: bool = False,
    skip_unknown: bool = False,
    known_as: tuple[str, str] = ("", ""),
) -> Loaded:
    """The objects of the files, for planning; problems that are no errors are printed to stderr. Raises BadInputError.

    `known_as`: the folder of a copy, and its name for users.
    """
    loaded = parsed_manifests(paths, version, directories, strict=strict, skip_unknown=skip_unknown)
    folder, name = known_as
    more: list[Diagnostic] = []
    if not loaded.ok:
        more = list(beside_errors(loaded, catalog_of(loaded, directories, now_of(loaded))))
        loaded = replace(loaded, problems=tuple(without_deployments(loaded, more)))
    problems = problems_text(loaded).replace(folder, name) if folder else problems_text(loaded)
    if not loaded.ok:
        warnings = "".join(f"\nwarning: {one.block}" for one in more)
        raise BadInputError(f"{_counts(loaded)} in the manifests; nothing was planned\n{problems}{warnings}")
    if loaded.problems:
        click.echo(problems, err=True)
    return loaded


def problems_text(loaded: Loaded) -> str:
    """Every problem, each with its severity; objects without influence together, in one line at the end."""
    harmless = set(loaded.harmless)
    lines = [f"{problem.severity.value}: {problem.block}" for problem in loaded.problems if problem not in harmless]
    by_kind: dict[str, list[str]] = {}
    for problem in loaded.harmless:
        by_kind.setdefault(problem.about.partition(" ")[0], []).append(problem.about)
    names = [one[0] if len(one) == 1 else counted_kind(len(one), kind) for kind, one in by_kind.items()]
    if names:
        lines.append(f"note: ignored, no influence on where pods fit: {', '.join(names)}")
    return "\n".join(lines)


def _counts(loaded: Loaded) -> str:
    """ "2 errors and 3 warnings"."""
    errors, others = len(loaded.errors), len(loaded.problems) - len(loaded.errors) - len(loaded.harmless)
    return counted(errors, "error") + (f" and {counted(others, 'warning')}" if others else "")


def now_of(loaded: Loaded) -> datetime:
    """The time of the PlanContext among the manifests, else now."""
    return loaded.context.now or SystemClock().now()


def catalog_of(loaded: Loaded, directories: Sequence[Path], now: datetime) -> Catalog:
    """The catalog with the InstanceTypeOverlays that are among the manifests."""
    return chosen_catalog(directories, corrections_of(loaded.overlays, now))


def decided_for(loaded: Loaded, directories: Sequence[Path], *, policy: Policy, asked: Asked) -> Decided:
    """The plan for manifests, at the time of their PlanContext or now."""
    now = now_of(loaded)
    catalog = catalog_of(loaded, directories, now)
    policy = replace(policy, where=asked.where(loaded.snapshot, catalog))
    snapshot = without_ordinary_pools(loaded.snapshot, catalog)
    snapshot = with_implied_selectors(snapshot, clouds_of_pools(snapshot, catalog))
    narrowed = [pair for pair in zip(snapshot.pods, loaded.snapshot.pods, strict=True) if pair[0] != pair[1]]
    if narrowed:
        rest = f" and {len(narrowed) - 1} more" if len(narrowed) > 1 else ""
        click.echo(f"note: {narrowed[0][0].key}{rest}: {implied_reason(*narrowed[0])}", err=True)
    plan, policy = plan_in_one_cloud(snapshot, catalog, policy, now)
    plan = refusing_nodes(on_existing_nodes(plan, snapshot, catalog), snapshot, catalog)
    return Decided(snapshot, catalog, plan, now, policy, live=False)
