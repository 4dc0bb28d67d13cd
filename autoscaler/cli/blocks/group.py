"""`foreslice blocks`: capacity that is reserved for a time. Without a subcommand it lists what the cluster has."""

from __future__ import annotations

import click

from autoscaler.cli.common.commands import LazyGroup


class ListsByDefault(LazyGroup):
    """Without a subcommand it runs `list`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put `list` before what would have no command."""
        if not args or (args[0].startswith("-") and args[0] not in ctx.help_option_names):
            args = ["list", *args]
        return super().parse_args(ctx, args)


@click.group(
    cls=ListsByDefault,
    lazy={
        "buy": (
            "autoscaler.cli.blocks.market:buy_block",
            "Buy the capacity block OFFER_ID and print the CapacityBlock object for it.",
        ),
        "find": (
            "autoscaler.cli.blocks.market:find_blocks",
            "List capacity blocks on offer, with the price per accelerator hour.",
        ),
        "list": (
            "autoscaler.cli.blocks.list:list_blocks",
            "List the CapacityBlocks: phase, machines held, and how long they last.",
        ),
    },
)
def blocks() -> None:
    """Without a subcommand it runs `blocks list`.

    \b
    Try:
      foreslice blocks
      foreslice blocks find --type p5.48xlarge --count 4 --hours 48
    """
