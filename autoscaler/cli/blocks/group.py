"""`foreslice blocks`: capacity that is reserved for a time. Without a subcommand it lists what the cluster holds."""

from __future__ import annotations

import click

from autoscaler.cli.blocks.market import buy_block, find_blocks
from autoscaler.cli.common.command_group import Group
from autoscaler.cli.common.live import cluster_options
from autoscaler.cli.common.output import output_option


class ListsByDefault(Group):
    """Alone, and with nothing but options, it does what its command `list` does."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put `list` before what would have no command."""
        if not args or (args[0].startswith("-") and args[0] not in ctx.help_option_names):
            args = ["list", *args]
        return super().parse_args(ctx, args)


@click.group(cls=ListsByDefault)
def blocks() -> None:
    """List the capacity blocks of a cluster; find and buy some. Alone it does what `blocks list` does.

    \b
    Try:
      foreslice blocks
      foreslice blocks find --type p5.48xlarge --count 4 --hours 48
    """


@blocks.command("list")
@cluster_options
@output_option()
def list_blocks(kubeconfig: str, context: str, output: str) -> None:
    """List the CapacityBlocks: phase, machines held, and how long they last. Only reads.

    LEFT is the time to the start of a block that has not begun, else to the moment the provider takes its machines.
    NODES is how many of its machines are nodes, of how many.

    \b
    Try:
      foreslice blocks
      foreslice blocks list -o json | jq '.[] | {name, phase, reclaimedAt}'
    """
    from autoscaler.cli.common.live import connected, read_store
    from autoscaler.cli.common.output import print_data, print_table
    from autoscaler.clock import SystemClock
    from autoscaler.report.tables.cluster_tables import block_entries, blocks_table

    store = read_store(connected(kubeconfig, context))
    entries = block_entries(store.snapshot(), SystemClock().now())
    if output != "table":
        print_data(entries, output)
    elif entries:
        table = blocks_table(entries)
        print_table(table.columns, table.rows)
    else:
        click.echo("no CapacityBlocks; `kubectl explain capacityblock.spec` shows how to declare one")


blocks.add_command(find_blocks)
blocks.add_command(buy_block)
