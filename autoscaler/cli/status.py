"""`foreslice status`: lists the pools of a cluster, their nodes and the launches that they would make."""

from __future__ import annotations

import click

from autoscaler.checks.check import pool_conditions
from autoscaler.cli.common.commands import cluster_options
from autoscaler.cli.common.live import connected, decided, read_store
from autoscaler.cli.common.output import output_option, print_data, print_table
from autoscaler.planning.policy import Policy
from autoscaler.report.tables.cluster_tables import status_entry, status_lines, status_tables


@click.command()
@cluster_options
@output_option()
def status(kubeconfig: str, context: str, output: str) -> None:
    """Also shows what keeps a pool from acting.

    The launches shown are a new plan from the state of the cluster. The command only reads.

    \b
    Try:
      foreslice status
      foreslice status -o json | jq '.pools[] | {name, acts, proposedUsdPerHour}'
      foreslice nodes                         what was launched
      foreslice explain NAMESPACE/POD         why one pod waits
    """
    live = decided(read_store(connected(kubeconfig, context)))
    checked = pool_conditions(live.snapshot, live.plan, live.catalog, policy=Policy(), now=live.now)
    found = status_entry(live.snapshot, live.plan, checked, live.now)
    if output != "table":
        print_data(found, output)
        return
    for table in status_tables(found):
        print_table(table.columns, table.rows, title=table.title)
        click.echo("")
    for line in status_lines(found):
        click.echo(line)
