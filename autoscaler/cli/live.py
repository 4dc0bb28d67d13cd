"""A running cluster as the planner's input. It is only listed; nothing is written and nothing needs to be installed."""

from __future__ import annotations

import click

from autoscaler.clock import SystemClock
from autoscaler.cluster.client import KubernetesClient
from autoscaler.cluster.client_transport import connect
from autoscaler.cluster.store import Store
from autoscaler.manifests.load import Loaded
from autoscaler.manifests.plan_context import PlanContext
from instance_catalog.kubernetes_profile import KubernetesProfile


def read_cluster(kubeconfig: str, context: str, profile: KubernetesProfile | None) -> Loaded:
    """What is in the cluster, as the controller would see it. `profile` overrides the version that it says it has.

    Objects that cannot be used are told and left out. Raises ConfigurationError without a cluster, ApiError when it
    cannot be read.
    """
    clock = SystemClock()
    client = KubernetesClient(connect(clock, kubeconfig=kubeconfig, context=context), clock)
    store = Store(client, profile or client.profile())
    store.refresh()
    for kind, key, problem in store.problems():
        click.echo(f"{problem.severity.value.lower()}: {kind} {key}: {problem}", err=True)
    return Loaded(snapshot=store.snapshot(), problems=(), context=PlanContext())
