"""`foreslice blocks list`."""

from __future__ import annotations

import click

from autoscaler.cli.common.commands import cluster_options
from autoscaler.cli.common.live import connected, read_store
from autoscaler.cli.common.output import output_option, print_data, print_table
from autoscaler.clock import SystemClock
from autoscaler.report.tables.cluster_tables import block_entries, blocks_table


@click.command("list")
@cluster_options
@output_option()
def list_blocks(kubeconfig: str, context: str, output: str) -> None:
    """Only reads.

    LEFT is the time until the block starts or, after that, until the provider takes its machines back. NODES shows how
    many of its machines are nodes now.

    \b
    Try:
      foreslice blocks
      foreslice blocks list -o json | jq '.[] | {name, phase, reclaimedAt}'
    """
    store = read_store(connected(kubeconfig, context))
    entries = block_entries(store.snapshot(), SystemClock().now())
    if output != "table":
        print_data(entries, output)
    elif entries:
        table = blocks_table(entries)
        print_table(table.columns, table.rows)
    else:
        click.echo("no CapacityBlocks; `kubectl explain capacityblock.spec` shows how to declare one")
