"""docs/commands.md, from the commands' own --help texts."""

from __future__ import annotations

from pathlib import Path

import click

from autoscaler.cli.main import COMMANDS, foreslice

_HEAD = """# Commands

Generated from `--help` by `make generate`. What they have in common is in [cli.md](cli.md).
"""


def generated_files() -> dict[Path, str]:
    """The reference page."""
    root = click.Context(foreslice, info_name="foreslice")
    sections = [_HEAD, _section(root)]
    for name in COMMANDS:
        command = foreslice.get_command(root, name)
        assert command is not None, name
        context = click.Context(command, info_name=name, parent=root)
        sections.append(_section(context))
        if isinstance(command, click.Group):
            for child in command.list_commands(context):
                found = command.get_command(context, child)
                assert found is not None, child
                sections.append(_section(click.Context(found, info_name=child, parent=context)))
    return {Path("docs/commands.md"): "\n".join(sections)}


def _section(context: click.Context) -> str:
    context.terminal_width = 100
    context.max_content_width = 100
    return f"## {context.command_path}\n\n```\n{context.get_help()}\n```\n"
