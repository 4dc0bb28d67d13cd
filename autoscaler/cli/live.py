"""A running cluster as the commands read it: listed once, as the controller would see it. Nothing is written."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from autoscaler.cluster.client import KubernetesClient
    from autoscaler.cluster.store import Store
    from autoscaler.manifests.load import Loaded
    from instance_catalog.kubernetes_profile import KubernetesProfile

Command = TypeVar("Command", bound=Callable[..., Any])


def cluster_options(command: Command) -> Command:
    """--kubeconfig and --context, as kubectl has them."""
    for decorate in (
        click.option("--context", default="", metavar="NAME", help="[default: the current context]"),
        click.option("--kubeconfig", default="", metavar="PATH", help="[default: as kubectl]"),
    ):
        command = decorate(command)
    return command


def connected(kubeconfig: str, context: str) -> KubernetesClient:
    """The cluster's API. Raises ConfigurationError when none is configured."""
    from autoscaler.clock import SystemClock
    from autoscaler.cluster.client import KubernetesClient
    from autoscaler.cluster.client_transport import connect

    clock = SystemClock()
    return KubernetesClient(connect(clock, kubeconfig=kubeconfig, context=context), clock)


def read_store(client: KubernetesClient, profile: KubernetesProfile | None = None) -> Store:
    """Everything Foreslice reads of a cluster. `profile` overrides the version that the cluster says it has.

    Objects that cannot be used are told on stderr and left out. Raises ApiError when the cluster cannot be read.
    """
    from autoscaler.cluster.store import Store

    store = Store(client, profile or client.profile())
    store.refresh()
    for kind, key, problem in store.problems():
        click.echo(f"{problem.severity.value.lower()}: {kind} {key}: {problem}", err=True)
    return store


def read_cluster(kubeconfig: str, context: str, profile: KubernetesProfile | None) -> Loaded:
    """The cluster as input of a plan."""
    from autoscaler.manifests.load import Loaded
    from autoscaler.manifests.plan_context import PlanContext

    store = read_store(connected(kubeconfig, context), profile)
    return Loaded(snapshot=store.snapshot(), problems=(), context=PlanContext())
