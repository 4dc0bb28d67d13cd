"""`foreslice doctor`: finds faults of a cluster that would prevent launches, each with the correction."""

from __future__ import annotations

import sys

import click

from autoscaler.checks.check import pool_conditions
from autoscaler.checks.rights import Right, rights_needed
from autoscaler.cli.common.commands import cluster_options
from autoscaler.cli.common.live import connected, decided, read_store
from autoscaler.cli.common.output import output_option, print_data, print_table
from autoscaler.cluster.access import missing_rights, service_account
from autoscaler.cluster.api import ForbiddenError, InvalidError, NotFoundError
from autoscaler.cluster.client.client import KubernetesClient
from autoscaler.cluster.gate_trials import prove
from autoscaler.cluster.resources import CAPACITY_POOLS
from autoscaler.planning.policy import Policy
from autoscaler.report.tables.doctor import GatesTried, Level, doctor_table, items_of
from autoscaler.settings.settings import LeaseSettings

SOMETHING_WRONG = 3


def _account(ctx: click.Context, option: click.Parameter, value: str) -> str:
    if value and value.count("/") != 1:
        raise click.BadParameter(f"{value!r} is not of the form NAMESPACE/NAME, such as foreslice-system/foreslice")
    return value


@click.command()
@cluster_options
@click.option("--feature-gates", default="", metavar="GATES", help="Gates that differ from their defaults: Name=true,…")
@click.option(
    "--service-account",
    default="",
    metavar="NAMESPACE/NAME",
    callback=_account,
    help="Check the rights of this service account.  [default: your own]",
)
@output_option()
def doctor(kubeconfig: str, context: str, feature_gates: str, service_account: str, output: str) -> None:
    """Changes nothing.

    Looks at the Kubernetes version and the APIs it serves, DRA drivers and whether they would run on future nodes,
    device plugins, quotas (GKE), other autoscalers, and the rights that the pools' modes need. Nothing needs to be
    installed. If you may create claims, slices and classes, it tests feature gates with server-side dry runs.

    \b
    Try:
      foreslice doctor
      foreslice doctor --service-account foreslice-system/foreslice
      foreslice doctor -o json | jq '.[] | select(.level == "error")'

    Exit code 0: no problem found; 3: problems found; 1: the cluster cannot be read.
    """
    client = connected(kubeconfig, context)
    assumed = client.profile(feature_gates)
    proof = prove(client)
    store = read_store(client, proof.applied_to(assumed), report=False)
    installed = _installed(client)
    live = decided(store)
    election = LeaseSettings()
    namespace = service_account.partition("/")[0] or election.namespace
    rights = rights_needed(live.snapshot.pools, lease=election.name, namespace=namespace)
    items = items_of(
        live.snapshot,
        pool_conditions(live.snapshot, live.plan, live.catalog, policy=Policy(), now=live.now),
        installed=installed,
        missing=_missing(client, rights, service_account) if installed else (),
        needed=len(rights) if installed else 0,
        problems=store.problems(),
        gates=GatesTried(proof.unproven, proof.contradicts(assumed)),
    )
    if output == "table":
        table = doctor_table(items)
        print_table(table.columns, table.rows)
    else:
        print_data([{"level": i.level.value, "area": i.area, "message": i.message} for i in items], output)
    if any(item.level is Level.ERROR for item in items):
        sys.exit(SOMETHING_WRONG)


def _installed(client: KubernetesClient) -> bool:
    """True if the cluster has Foreslice's own kinds."""
    try:
        client.list(CAPACITY_POOLS, limit=1)
    except NotFoundError:
        return False
    return True


def _missing(client: KubernetesClient, rights: tuple[Right, ...], account: str) -> tuple[Right, ...] | None:
    """The rights that are not granted; None if the API server does not answer."""
    try:
        return missing_rights(client, rights, user=service_account(account) if account else "")
    except (ForbiddenError, InvalidError, NotFoundError):
        return None
