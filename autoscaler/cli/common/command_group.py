"""A command group whose list of commands says all that their first sentences say."""

from __future__ import annotations

import sys

import click


class Group(click.Group):
    """click cuts the lines off to fit 80 columns, which leaves sentences without an end."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of commands in --help."""
        commands = sorted(self.commands.items())
        with formatter.section("Commands"):
            formatter.write_dl([(name, command.get_short_help_str(sys.maxsize)) for name, command in commands])
