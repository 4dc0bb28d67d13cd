"""Manifests as commands read them that decide without a cluster: what `kubectl` would see, in files."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import click

from autoscaler.cli.common.choices import chosen_catalog, chosen_kubernetes
from autoscaler.cli.common.decided import Decided
from autoscaler.cli.common.where import Asked
from autoscaler.clock import SystemClock
from autoscaler.errors import BadInputError
from autoscaler.manifests.corrections import corrections_of
from autoscaler.manifests.load import Loaded, load
from autoscaler.planning.planner import plan_for
from autoscaler.planning.policy import Policy
from autoscaler.report.words import counted
from instance_catalog.types.catalog import Catalog


def read_manifests(paths: Sequence[str], version: str | None, directories: Sequence[Path]) -> Loaded:
    """What the files say; problems that forbid nothing go to stderr. Raises BadInputError."""
    described = chosen_catalog(directories).drivers.values() if directories else ()
    profile = None if version is None else chosen_kubernetes(version)
    loaded = load(paths, stdin=sys.stdin, profile=profile, drivers=described)
    if not loaded.ok:
        found = counted(len(loaded.errors), "problem")
        listed = "\n".join(str(problem) for problem in loaded.problems)
        raise BadInputError(f"{found} in the manifests; nothing was planned\n{listed}")
    for problem in loaded.problems:
        click.echo(f"{problem.severity.value.lower()}: {problem}", err=True)
    return loaded


def catalog_of(loaded: Loaded, directories: Sequence[Path], now: datetime) -> Catalog:
    """The catalog with the InstanceTypeOverlays that are among the manifests."""
    return chosen_catalog(directories, corrections_of(loaded.overlays, now))


def decided_for(loaded: Loaded, directories: Sequence[Path], *, policy: Policy, asked: Asked) -> Decided:
    """The plan for manifests, at the time of their PlanContext or now."""
    now = loaded.context.now or SystemClock().now()
    catalog = catalog_of(loaded, directories, now)
    policy = replace(policy, where=asked.where(loaded.snapshot, catalog))
    plan = plan_for(loaded.snapshot, catalog, policy, now)
    return Decided(loaded.snapshot, catalog, plan, now, policy, live=False)
