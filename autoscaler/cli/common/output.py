"""How commands print: tables for people, JSON and YAML for programs.

Bold heads and folded texts only on a terminal; piped output is plain, one line a row, so that grep and diff work on it.
"""

from __future__ import annotations

import json
import shutil
import sys
import textwrap
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

from autoscaler.cli.common.terminal import styled
from autoscaler.report.printable import one_line, printable_json, printable_yaml, steers

Command = TypeVar("Command", bound=Callable[..., Any])
FORMATS = ("table", "json", "yaml")
_LEAST_ROOM = 32  # columns for texts, however narrow the terminal is


def output_option(*extra: str) -> Callable[[Command], Command]:
    """The -o option that every listing command takes; `extra` adds formats such as "wide"."""
    return click.option(
        "-o",
        "--output",
        type=click.Choice([*FORMATS, *extra]),
        default="table",
        show_default=True,
        help="Output form.",
    )


def print_data(data: object, form: str) -> None:
    """Print plain data (dicts, lists, scalars) as "json" or "yaml"."""
    if form == "json":
        click.echo(printable_json(json.dumps(data, indent=2, ensure_ascii=False)))
        return
    click.echo(yaml_text(data), nl=False)


def yaml_text(data: object) -> str:
    """Plain data as YAML, in the order it has."""
    import yaml

    base = yaml.CSafeDumper if hasattr(yaml, "CSafeDumper") else yaml.SafeDumper

    class Dumper(base):  # type: ignore[misc, valid-type]
        """Strings that would steer a terminal get the quotes in which YAML has escapes."""

        def represent_str(self, text: str) -> Any:
            return self.represent_scalar("tag:yaml.org,2002:str", text, style='"' if steers(text) else None)

    Dumper.add_representer(str, Dumper.represent_str)
    return printable_yaml(str(yaml.dump(data, Dumper=Dumper, sort_keys=False, allow_unicode=True, width=120)))


def print_table(columns: Sequence[str], rows: Sequence[Sequence[str]], *, title: str = "") -> None:
    """Print rows under column heads; on a terminal bold heads, and as wide as the terminal is."""
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    if title:
        styled(title, bold=True)
    head, *lines = plain_table(columns, rows, width=width)
    styled(head, bold=True)
    for line in lines:
        click.echo(line)


def plain_table(columns: Sequence[str], rows: Sequence[Sequence[str]], *, width: int | None = None) -> list[str]:
    """Lines of an aligned table with two blanks between columns, as kubectl prints.

    With a `width` the texts of the last column go on below themselves. Names are never broken, so that they can be
    copied: where the other columns leave no room, lines are longer than that.
    """
    cells = [[column.upper() for column in columns], *([one_line(cell) for cell in row] for row in rows)]
    widths = [max(map(len, column)) + 2 for column in zip(*cells, strict=True)][:-1]
    room = None if width is None else max(width - sum(widths), _LEAST_ROOM)
    lines = []
    for *first, last in cells:
        start = "".join(cell.ljust(w) for cell, w in zip(first, widths, strict=True))
        for part in [last] if room is None else textwrap.wrap(last, room, break_long_words=False) or [""]:
            lines.append((start + part).rstrip())
            start = " " * len(start)
    return lines
