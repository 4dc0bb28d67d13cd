"""A running cluster for commands: listed once, as the controller would see it. Nothing is written."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path

import click
import structlog

from autoscaler.cli.common.decided import Decided
from autoscaler.cli.common.where import Asked
from autoscaler.clock import SystemClock
from autoscaler.cluster.client.client import KubernetesClient
from autoscaler.cluster.client.transport import connect
from autoscaler.cluster.gate_trials import prove
from autoscaler.cluster.store import Store
from autoscaler.manifests.load import Loaded
from autoscaler.manifests.plan_context import PlanContext
from autoscaler.planning.demand.virtual_pods import with_virtual_pods
from autoscaler.planning.planner import plan_for
from autoscaler.planning.policy import Policy
from autoscaler.report.checks_text import refusal_text
from instance_catalog.dataclass import replace
from instance_catalog.files.last_good import effective_catalog
from instance_catalog.files.loader import directory_layers, shipped_layers
from instance_catalog.kubernetes.profile import KubernetesProfile
from instance_catalog.types.catalog import Catalog


def connected(kubeconfig: str, context: str) -> KubernetesClient:
    """The cluster's API. Raises ConfigurationError if none is configured.

    Logs are written to stderr: stdout has the answer, which may be JSON.
    """
    # Looked up for each line: sys.stderr may be another one by then.
    structlog.configure(logger_factory=lambda *_: structlog.PrintLogger(sys.stderr))
    clock = SystemClock()
    return KubernetesClient(connect(clock, kubeconfig=kubeconfig, context=context), clock)


def read_store(client: KubernetesClient, profile: KubernetesProfile | None = None, *, report: bool = True) -> Store:
    """Everything that Foreslice reads of a cluster. `profile` overrides the cluster's own version.

    Objects that cannot be used are left out, and reported on stderr unless `report` is off. Raises ApiError if the
    cluster cannot be read.
    """
    store = Store(client, profile or client.profile())
    store.refresh()
    for kind, key, problem in store.problems() if report else ():
        click.echo(f"{problem.severity.value.lower()}: {kind} {key}: {problem}", err=True)
    return store


def read_cluster(
    kubeconfig: str, context: str, profile: KubernetesProfile | None
) -> tuple[Loaded, Callable[[Sequence[Path], datetime], Catalog]]:
    """The cluster as input of a plan, and what reads the catalog for it: directories, with its overlays over them."""
    client = connected(kubeconfig, context)
    store = read_store(client, profile or proven(client))
    snapshot = with_virtual_pods(store.snapshot())
    return Loaded(snapshot=snapshot, problems=(), context=PlanContext()), partial(live_catalog, store)


def proven(client: KubernetesClient) -> KubernetesProfile:
    """The profile of the cluster's version, with its feature gates found by trial if that is permitted; else as
    assumed."""
    assumed, proof = client.profile(), prove(client)
    if other := proof.contradicts(assumed):
        flag = ",".join(f"{name}={str(on).lower()}" for name, on in other.items())
        click.echo(f"note: feature gates of the cluster differ from the defaults of its version: {flag}", err=True)
    return proof.applied_to(assumed)


def live_catalog(store: Store, directories: Sequence[Path], now: datetime) -> Catalog:
    """The catalog with the cluster's InstanceTypeOverlays over it. A defective layer is left out with a warning."""
    files = [layer for directory in directories for layer in directory_layers(directory)]
    found = effective_catalog((*shipped_layers(), *files, *store.overlays()), now=now)
    for refused in found.refused:
        click.echo(f"warning: {refused.layer}: {refusal_text(refused)}", err=True)
    return found.catalog


def decided(store: Store, *, policy: Policy | None = None, asked: Asked | None = None) -> Decided:
    """The plan for a cluster as it is now."""
    now = SystemClock().now()
    snapshot, catalog = with_virtual_pods(store.snapshot()), live_catalog(store, (), now)
    used = policy or Policy()
    if asked is not None:
        used = replace(used, where=asked.where(snapshot, catalog))
    return Decided(snapshot, catalog, plan_for(snapshot, catalog, used, now), now, used)
