"""`foreslice nodes`: lists the nodes that Foreslice requested in a cluster."""

from __future__ import annotations

import click

from autoscaler.cli.common.commands import cluster_options
from autoscaler.cli.common.live import connected, read_store
from autoscaler.cli.common.output import output_option, print_data, print_table
from autoscaler.clock import SystemClock
from autoscaler.report.tables.cluster_tables import node_entries, nodes_table


@click.command()
@cluster_options
@output_option()
def nodes(kubeconfig: str, context: str, output: str) -> None:
    """Only reads.

    Prices are list prices in US dollars per hour. WHY is the reason of the last change of phase (docs/lifecycle.md).

    \b
    Try:
      foreslice nodes
      foreslice nodes -o json | jq '.[] | select(.phase != "Ready") | {name, phase, since, why}'
    """
    entries = node_entries(read_store(connected(kubeconfig, context)).snapshot(), SystemClock().now())
    if output != "table":
        print_data(entries, output)
    elif entries:
        table = nodes_table(entries)
        print_table(table.columns, table.rows)
    else:
        click.echo("no ProvisionedNodes; `foreslice status` shows what the pools would launch")
